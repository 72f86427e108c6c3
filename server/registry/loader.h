// Loading one version of a configured model: import, compile, warm up, put a queue in front.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_identity.h"
#include "base/memory_budget.h"
#include "config/config.h"
#include "server/registry/load_watch.h"
#include "server/registry/registry.h"
#include "server/scheduling/incident_log.h"
#include "server/scheduling/prepare.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {

// A loaded version with its queue.
// Threading: any thread. Stop() before the last handle goes: the queue's threads cannot end
// themselves.
class LocalServed : public ServedModel {
 public:
  // `file`: the memory of a mapped file in which weights lie. `memory_bytes`: of weights and plans.
  LocalServed(ModelHandle model, ReplyEncoding reply, std::unique_ptr<Executor> executor,
              Scheduler::Options options, MemoryShare file, int64_t memory_bytes,
              std::optional<FileIdentity> identity = {})
      : file_(std::move(file)),
        memory_bytes_(memory_bytes),
        identity_(identity),
        model_(std::move(model)),
        reply_(reply),
        scheduler_(std::move(executor), std::move(options)) {}

  const ModelHandle& model() const override { return model_; }
  ReplyEncoding reply_encoding() const override { return reply_; }
  void Submit(std::unique_ptr<Request> request) override { scheduler_.Submit(std::move(request)); }
  void CountRefused(absl::StatusCode code) override { scheduler_.CountRefused(code); }
  Scheduler& scheduler() { return scheduler_; }
  // Logs what went wrong of late. Called now and then, by one thread.
  void LogIncidents(TimePoint now);
  // Finishes what is queued, ends the queue's threads, and logs what was asked, if anything was.
  void Stop() { (void)StopBy(TimePoint::max()); }
  // As of Scheduler::StopBy.
  bool StopBy(TimePoint deadline);
  int64_t memory_bytes() const { return memory_bytes_; }  // when it was loaded
  // Of the file it was loaded from; none: of no file.
  const std::optional<FileIdentity>& identity() const { return identity_; }

 private:
  const MemoryShare file_;  // given back after the model
  const int64_t memory_bytes_;
  const std::optional<FileIdentity> identity_;
  const ModelHandle model_;
  const ReplyEncoding reply_;
  Scheduler scheduler_;
  IncidentLog incidents_;
};

struct LoadOptions {
  CompileOptions compile;
  ReplyFormat default_reply = ReplyFormat::kTyped;
  PrepareOptions prepare;
  LoadWatch::Load* progress = nullptr;  // is told of stages; may be null
};

// What to load. `file` empty: the graph is in `bytes`.
struct LoadSource {
  int64_t version = 1;
  std::string file;
  std::string bytes;
  std::optional<FileIdentity> identity = {};  // of the file that is meant; none: whatever is there
};

// Takes as long as it takes; never on a thread that serves. Errors as of import and compilation;
// RESOURCE_EXHAUSTED when memory is short, or when `memory` has not enough left. That is asked by
// the file's size before the file is read, then for all that is allocated, and by what plans need
// before anything is run. What is not used in the end, or by a load that failed, is given back to
// the system.
absl::StatusOr<std::shared_ptr<LocalServed>> LoadModel(const ModelConfig& config,
                                                       const LoadSource& source,
                                                       const LoadOptions& options,
                                                       const MemoryBudget& memory);

// How a registry loads.
using LoadFunction = std::function<absl::StatusOr<std::shared_ptr<LocalServed>>(
    const ModelConfig& config, const LoadSource& source)>;

}  // namespace floe::server
