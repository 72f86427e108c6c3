// The probe's graph and its configuration.
#include "server/registry/probe_model.h"

namespace floe::server {
namespace {

// y = relu(2 x): enough to pass through every part a request passes through.
constexpr char kProbeGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 1 } } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 2 } } } }
node { name: "twice" op: "Mul" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu" input: "twice" attr { key: "T" value { type: DT_FLOAT } } }
)";

}  // namespace

ModelConfig ProbeConfig() {
  ModelConfig config;
  config.name = kProbeModel;
  config.device = "cpu";
  config.workers = 1;
  config.inline_below_us = 0;  // the probe must see a worker thread work
  config.batching.max_batch_size = 1;
  config.batching.max_enqueued_batches = 16;
  return config;
}

LoadSource ProbeSource() { return {1, "", kProbeGraph}; }

}  // namespace floe::server
