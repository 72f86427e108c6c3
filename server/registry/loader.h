// Loading one configured model: find, import, compile, warm up, put a queue in front.
#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "server/batching/batcher.h"
#include "server/batching/prepare.h"
#include "server/registry/registry.h"

namespace floe::server {

// A loaded version with its queue.
// Threading: any thread. Stop before the last handle goes: the queue's threads cannot end
// themselves.
class LocalServed : public ServedModel {
 public:
  LocalServed(ModelHandle model, ReplyEncoding reply, std::unique_ptr<BatchRunner> runner,
              Batcher::Options options)
      : model_(std::move(model)), reply_(reply), batcher_(std::move(runner), std::move(options)) {}

  const ModelHandle& model() const override { return model_; }
  ReplyEncoding reply_encoding() const override { return reply_; }
  void Submit(std::unique_ptr<InferRequest> request) override {
    batcher_.Submit(std::move(request));
  }
  Batcher& batcher() { return batcher_; }

 private:
  const ModelHandle model_;
  const ReplyEncoding reply_;
  Batcher batcher_;
};

struct LoadOptions {
  CompileOptions compile;
  ReplyFormat default_reply = ReplyFormat::kTyped;
  PrepareOptions prepare;
};

// `file` empty: the graph is in `bytes`. Takes as long as it takes; never on a thread that serves.
// Errors as of import and compilation; RESOURCE_EXHAUSTED when memory is short.
absl::StatusOr<std::shared_ptr<LocalServed>> LoadModel(const ModelConfig& config, int64_t version,
                                                       const std::string& file,
                                                       const std::string& bytes,
                                                       const LoadOptions& options);

}  // namespace floe::server
