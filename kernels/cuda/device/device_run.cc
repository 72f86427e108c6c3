#include "kernels/cuda/device/device_run.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::cuda {
namespace {

// CUDA's limits of a grid.
constexpr uint32_t kMostX = 0x7fffffff, kMostYZ = 65535;

absl::Status CheckLaunch(const Launch& launch) {
  const absl::Span<const FloeCudaKernel> kernels = ListedKernels();
  const auto id = static_cast<size_t>(launch.kernel);
  if (id >= kernels.size()) return absl::InternalError(absl::StrCat("there is no kernel ", id));
  const FloeCudaKernel& kernel = kernels[id];
  if (launch.args_bytes != static_cast<uint32_t>(kernel.args_bytes))
    return absl::InternalError(absl::StrCat(kernel.name, " takes ", kernel.args_bytes,
                                            " bytes of arguments, and gets ", launch.args_bytes));
  const Dim3& grid = launch.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > kMostX || grid.y > kMostYZ ||
      grid.z > kMostYZ)
    return absl::InternalError(absl::StrCat(kernel.name, " has a grid of ", grid.x, " x ", grid.y,
                                            " x ", grid.z, " blocks, which no device has"));
  return absl::OkStatus();
}

// Writes a graph node by node. Captured ones can be spoiled by what is called meanwhile: only what
// a library does is captured, as a graph inside.
class GraphWriter {
 public:
  GraphWriter(const Stream& stream, FloeCudaGraph graph)
      : device_(stream.device().get()), stream_(stream), graph_(graph) {}

  // Copies of inputs wait for nothing, and the first kernel for all of them.
  absl::Status CopyIn(const DevicePort& port) {
    if (port.bytes == 0) return absl::OkStatus();
    FloeCudaNode node = nullptr;
    FLOE_RETURN_IF_ERROR(device_->Check(
        device_->calls().add_copy_to_device(device_->index(), graph_, nullptr, 0, port.device,
                                            port.host, port.bytes, &node),
        "adding the copy of an input to a graph"));
    last_.push_back(node);
    return absl::OkStatus();
  }

  absl::Status Call(const Launch& launch) {
    FloeCudaGraph inner = nullptr;
    FLOE_RETURN_IF_ERROR(Capture(launch, &inner));
    FloeCudaNode node = nullptr;
    const int error = device_->calls().add_graph(device_->index(), graph_, last_.data(),
                                                 last_.size(), inner, &node);
    (void)device_->calls().destroy_graph(inner);
    FLOE_RETURN_IF_ERROR(device_->Check(error, "adding a library's call to a graph"));
    last_.assign(1, node);
    return absl::OkStatus();
  }

  absl::Status Kernel(const Launch& launch) {
    FLOE_RETURN_IF_ERROR(CheckLaunch(launch));
    FLOE_RETURN_IF_ERROR(device_->CheckCanRun(launch.kernel));
    FloeCudaNode node = nullptr;
    FLOE_RETURN_IF_ERROR(device_->Check(
        device_->calls().add_kernel(device_->index(), graph_, last_.data(), last_.size(),
                                    static_cast<uint32_t>(launch.kernel),
                                    {launch.grid.x, launch.grid.y, launch.grid.z}, launch.args,
                                    &node),
        absl::StrCat("adding the kernel ", ListedKernels()[static_cast<size_t>(launch.kernel)].name,
                     " to a graph")));
    last_.assign(1, node);
    return absl::OkStatus();
  }

  absl::Status CopyOut(const DevicePort& port) {
    if (port.bytes == 0) return absl::OkStatus();
    FloeCudaNode node = nullptr;
    return device_->Check(
        device_->calls().add_copy_to_host(device_->index(), graph_, last_.data(), last_.size(),
                                          port.host, port.device, port.bytes, &node),
        "adding the copy of an output to a graph");
  }

 private:
  absl::Status Capture(const Launch& launch, FloeCudaGraph* inner) {
    const FloeCudaLibrary& calls = device_->calls();
    FLOE_RETURN_IF_ERROR(
        device_->Check(calls.begin_capture(device_->index(), stream_.handle()), "capturing"));
    const absl::Status put = launch.call->Enqueue(stream_.handle(), launch.vendor_args());
    const int error = calls.end_capture(device_->index(), stream_.handle(), inner);
    if (!put.ok() && error == 0) (void)calls.destroy_graph(*inner);
    FLOE_RETURN_IF_ERROR(Annotate(put, device_->name()));
    return device_->Check(error, "capturing a library's call");
  }

  Device* const device_;
  const Stream& stream_;
  const FloeCudaGraph graph_;
  std::vector<FloeCudaNode> last_;  // what the next node waits for
};

absl::Status Write(const DeviceProgram& program, GraphWriter* writer) {
  for (const DevicePort& port : program.inputs) FLOE_RETURN_IF_ERROR(writer->CopyIn(port));
  for (const Launch& launch : program.launches)
    FLOE_RETURN_IF_ERROR(launch.call != nullptr ? writer->Call(launch) : writer->Kernel(launch));
  for (const DevicePort& port : program.outputs) FLOE_RETURN_IF_ERROR(writer->CopyOut(port));
  return absl::OkStatus();
}

}  // namespace

DeviceRun::DeviceRun(std::shared_ptr<Device> device, std::string name)
    : device_(std::move(device)), name_(std::move(name)) {}

absl::StatusOr<std::unique_ptr<DeviceRun>> DeviceRun::Make(const Stream& stream,
                                                           const DeviceProgram& program) {
  const std::shared_ptr<Device>& device = stream.device();
  FLOE_RETURN_IF_ERROR(device->CheckAlive());
  FloeCudaGraph graph = nullptr;
  FLOE_RETURN_IF_ERROR(
      device->Check(device->calls().create_graph(device->index(), &graph), "making a graph"));
  const auto destroy = absl::MakeCleanup([&] { (void)device->calls().destroy_graph(graph); });
  GraphWriter writer(stream, graph);
  FLOE_RETURN_IF_ERROR(Annotate(Write(program, &writer), program.name));
  std::unique_ptr<DeviceRun> run(new DeviceRun(device, program.name));
  FLOE_RETURN_IF_ERROR(Annotate(run->Instantiate(graph, stream), program.name));
  return run;
}

absl::Status DeviceRun::Instantiate(FloeCudaGraph graph, const Stream& stream) {
  FLOE_RETURN_IF_ERROR(device_->Check(device_->calls().instantiate(device_->index(), graph, &exec_),
                                      "making a graph executable"));
  FLOE_RETURN_IF_ERROR(device_->Check(
      device_->calls().upload(device_->index(), exec_, stream.handle()), "uploading a graph"));
  return stream.Wait("uploading a graph");
}

DeviceRun::~DeviceRun() {
  if (exec_ != nullptr) (void)device_->calls().destroy_exec(exec_);
}

absl::Status DeviceRun::Run(const Stream& stream) {
  FLOE_RETURN_IF_ERROR(device_->CheckAlive());
  const ScopedDeviceTurn turn(&device_->gate());
  FLOE_RETURN_IF_ERROR(device_->Check(
      device_->calls().launch(device_->index(), exec_, stream.handle()), "starting " + name_));
  return stream.Wait("running " + name_);
}

}  // namespace floe::cuda
