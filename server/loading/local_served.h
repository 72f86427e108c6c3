// LocalServed: a loaded version with its queue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/file_identity.h"
#include "base/memory_budget.h"
#include "server/loading/model_devices.h"
#include "server/loading/served_model.h"
#include "server/scheduling/incident_log.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {

// One class: what a loaded version is, as callers, its host and statistics see it.
// Threading: any thread. Stop() before the last handle goes: the queue's threads cannot end
// themselves. One class: it hands on what the scheduler and the executor offer.
class LocalServed : public ServedModel {
 public:
  // `file`: the memory of a mapped file in which weights lie. `memory_bytes`: of weights and plans.
  LocalServed(ModelHandle model, ReplyFormat reply, std::unique_ptr<Executor> executor,
              Scheduler::Options options, MemoryShare file, int64_t memory_bytes,
              std::optional<FileIdentity> identity = {}, ModelPlace place = {})
      : place_(std::move(place)),
        file_(std::move(file)),
        memory_bytes_(memory_bytes),
        identity_(identity),
        model_(std::move(model)),
        reply_(reply),
        scheduler_(std::move(executor), std::move(options)) {}

  const ModelHandle& model() const override { return model_; }
  ReplyFormat reply_format() const override { return reply_; }
  int64_t log_one_in() const override { return log_one_in_; }
  void set_log_one_in(int64_t one_in) { log_one_in_ = one_in; }  // before it serves
  void Submit(Request request) override { scheduler_.Submit(std::move(request)); }
  void CountRefused(const Inference& asked, absl::StatusCode code) override {
    scheduler_.CountRefused(asked, code);
  }
  void ProfileNextRun() override { scheduler_.executor().ProfileNextRun(); }
  std::shared_ptr<const RunProfile> LastProfile() const override {
    return scheduler_.executor().LastProfile();
  }
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
  const ModelPlace& place() const { return place_; }
  // UNAVAILABLE: its device is lost, and its requests fail for that.
  absl::Status CheckDevice() const;

 private:
  const ModelPlace place_;
  const MemoryShare file_;  // given back after the model
  const int64_t memory_bytes_;
  const std::optional<FileIdentity> identity_;
  const ModelHandle model_;
  const ReplyFormat reply_;
  int64_t log_one_in_ = 0;
  Scheduler scheduler_;
  IncidentLog incidents_;
};

}  // namespace floe::server
