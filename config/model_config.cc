#include <tuple>

#include "config/config.h"

namespace floe {
namespace {

// A structured binding names every field, so that one added later cannot be forgotten.
auto Compared(const ModelConfig& model) {
  const auto& [name, base_path, where, versions, completion_marker, labels, workers,
               intra_op_threads, cpu_set, weight, batching, batching_full_status, max_run_bytes,
               max_run_seconds, default_timeout_microseconds, inline_below_us, placeholder_defaults,
               signature, reply] = model;
  return std::tie(name, base_path, versions, completion_marker, labels, workers, intra_op_threads,
                  cpu_set, weight, batching, batching_full_status, max_run_bytes, max_run_seconds,
                  default_timeout_microseconds, inline_below_us, placeholder_defaults, signature,
                  reply);
}

}  // namespace

bool operator==(const ModelConfig& a, const ModelConfig& b) { return Compared(a) == Compared(b); }

}  // namespace floe
