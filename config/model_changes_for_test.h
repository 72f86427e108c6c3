// Every setting of a model, changed.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "config/config.h"

namespace floe {

struct ModelChange {
  const char* name;
  std::function<void(ModelConfig&)> make;
};

inline std::vector<ModelChange> BatchingChanges() {
  using M = ModelConfig&;
  return {
      {"max_batch_size", [](M m) { m.batching.max_batch_size = 2; }},
      {"batch_timeout_micros", [](M m) { m.batching.batch_timeout_micros = 2; }},
      {"max_enqueued_batches", [](M m) { m.batching.max_enqueued_batches = 2; }},
      {"max_enqueued_bytes", [](M m) { m.batching.max_enqueued_bytes = 2; }},
      {"max_enqueued_micros", [](M m) { m.batching.max_enqueued_micros = 2; }},
      {"allowed_batch_sizes",
       [](M m) {
         m.batching.allowed_batch_sizes = {2, 4};
         m.batching.max_batch_size = 4;
       }},
      {"pad_variable_length_inputs", [](M m) { m.batching.pad_variable_length_inputs = true; }},
      {"padding_values",
       [](M m) {
         m.batching.pad_variable_length_inputs = true;
         m.batching.padding_values = {{"x", 0.1}, {"y", -1}, {"z", 1e300}};
       }},
      {"enable_large_batch_splitting",
       [](M m) { m.batching.enable_large_batch_splitting = false; }},
      {"max_execution_batch_size", [](M m) { m.batching.max_execution_batch_size = 2; }},
  };
}

// One for each setting that says something about what is served. Each by itself gives another
// configuration that is still right.
inline std::vector<ModelChange> ModelChanges() {
  using M = ModelConfig&;
  std::vector<ModelChange> changes = BatchingChanges();
  const std::vector<ModelChange> others = {
      {"name", [](M m) { m.name = "other"; }},
      {"base_path", [](M m) { m.base_path = "/other"; }},
      {"latest", [](M m) { m.versions.latest = 2; }},
      {"all", [](M m) { m.versions.kind = VersionPolicy::Kind::kAll; }},
      {"specific",
       [](M m) {
         m.versions = {VersionPolicy::Kind::kSpecific, 1, {3, 5}};
       }},
      {"version_labels", [](M m) { m.version_labels["stable"] = 3; }},
      {"batching_full_status",
       [](M m) { m.batching_full_status = FullStatus::kResourceExhausted; }},
      {"max_run_bytes", [](M m) { m.max_run_bytes = 4096; }},
      {"completion_marker", [](M m) { m.completion_marker = ".complete"; }},
      {"workers", [](M m) { m.workers = 2; }},
      {"intra_op_threads", [](M m) { m.intra_op_threads = 2; }},
      {"cpu_set",
       [](M m) {
         m.cpu_set = {0, 1, 2, 5};
       }},
      {"cpu_shares", [](M m) { m.cpu_shares = 2; }},
      {"inline_below_us", [](M m) { m.inline_below_us = 0; }},
      {"fft", [](M m) { m.fft = false; }},
      {"precision", [](M m) { m.precision = Precision::kBf16; }},
      {"routes", [](M m) { m.routes["conv1/Relu"] = "gemm"; }},
      {"max_run_seconds", [](M m) { m.max_run_seconds = 7; }},
      {"default_timeout_microseconds", [](M m) { m.default_timeout_microseconds = 7; }},
      {"a bool",
       [](M m) {
         m.placeholder_defaults["p"] = {true, ""};
       }},
      {"an integer",
       [](M m) {
         m.placeholder_defaults["p"] = {int64_t{1}, ""};
       }},
      {"the least integer",
       [](M m) {
         m.placeholder_defaults["p"] = {std::numeric_limits<int64_t>::min(), ""};
       }},
      {"a whole number that is real",
       [](M m) {
         m.placeholder_defaults["p"] = {1.0, ""};
       }},
      {"a large real",
       [](M m) {
         m.placeholder_defaults["p"] = {1e22, ""};
       }},
      {"infinity",
       [](M m) {
         m.placeholder_defaults["p"] = {-std::numeric_limits<double>::infinity(), ""};
       }},
      {"a text",
       [](M m) {
         m.placeholder_defaults["p"] = {std::string("text"), ""};
       }},
      {"a dtype",
       [](M m) {
         m.placeholder_defaults["p"] = {true, "int64"};
       }},
      {"inputs", [](M m) { m.signature.inputs["x"] = "input:0"; }},
      {"outputs", [](M m) { m.signature.outputs["y"] = "softmax"; }},
      {"tags", [](M m) { m.saved_model_tags = "serve,gpu"; }},
      {"reply", [](M m) { m.reply = ReplyFormat::kTyped; }},
      {"device", [](M m) { m.device = "cuda:1"; }},
      {"on_device_error", [](M m) { m.on_device_error = OnDeviceError::kFail; }},
      {"another on_device_error", [](M m) { m.on_device_error = OnDeviceError::kCpu; }},
      {"device_shares", [](M m) { m.device_shares = 2; }},
      {"log_one_in", [](M m) { m.log_one_in = 100; }},
      {"another reply", [](M m) { m.reply = ReplyFormat::kContent; }},
  };
  changes.insert(changes.end(), others.begin(), others.end());
  return changes;
}

}  // namespace floe
