// A model for fuzzers of what is read for models and written for callers, and not of runs.
#pragma once

#include <utility>

#include "server/loading/served_model.h"
#include "tests/fuzz/fuzzer.h"

namespace floe::fuzz {

class Served : public server::ServedModel {
 public:
  explicit Served(ModelHandle model) : model_(std::move(model)) {}
  const ModelHandle& model() const override { return model_; }
  ReplyFormat reply_format() const override { return ReplyFormat::kTyped; }
  void Submit(server::Request) override { Fail("nothing is run here"); }
  void CountRefused(const server::Inference&, absl::StatusCode) override {}

 private:
  const ModelHandle model_;
};

}  // namespace floe::fuzz
