// Islands: parts of a graph that a device computes in one go, as OnDevice nodes.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/on_device_error.h"
#include "kernels/kernel.h"
#include "model/graph.h"
#include "model/op_def.h"

namespace floe {

namespace cuda {
class Device;
}  // namespace cuda

// Which nodes leave the host.
struct Placement {
  // kHostDevice: the nodes that a device with all kernels would take. Their islands are frames of
  // the host then, with the same bits.
  DeviceKind device = kHostDevice;
  // Islands that are not worth their crossings, too. For tests.
  bool all = false;
  // Islands that do too little for what starting them costs, too: the device was asked for by name.
  bool small = false;
  // Of a batch that may be usual: what an island does in one run is judged by it.
  int64_t rows = 64;
  // Where islands run; null: on the host, kernels for GPUs by the emulator where it is linked.
  std::shared_ptr<cuda::Device> on = nullptr;
  // kCpu: islands on a device have a program for the host too.
  OnDeviceError on_error = OnDeviceError::kFail;
};

// Empty when the device of `options` may compute the node; or else why it stays on the host: "no
// kernel for float64". `outputs`: what is known of its outputs.
std::string WhyOnHost(const Node& node, absl::Span<const ValueInfo> inputs,
                      absl::Span<const ValueInfo> outputs, const KernelOptions& options);

// Makes OnDevice nodes of the nodes that the device may compute. Their shapes are known but for
// rows, or follow from those of the inputs. Nodes get levels: a host node's is even, a device
// node's odd, and a level rises only where a value crosses between host and device. Device nodes of
// one level are an island: no path leaves it and comes back, and no graph can have fewer crossings
// on its longest path. An island stays on the host if it has fewer floating-point operations than
// bytes that cross, for Placement::rows; or fewer than the host does meanwhile besides
// (runtime/device_cost.h), unless Placement::small. Constants, and values that are known before a
// run, belong to every island that reads them. `inputs`: types of graph->inputs.
absl::Status PlaceOnDevice(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options, const Placement& placement);

}  // namespace floe
