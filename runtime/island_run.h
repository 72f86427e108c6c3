// IslandRun: the plan of an island at one number of rows, on a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/device/device_run.h"
#include "runtime/device_weights.h"
#include "runtime/plan.h"

namespace floe {

// Has its arena on the device, pinned memory for what crosses, and one CUDA graph. Threading: one
// thread at a time.
class IslandRun {
 public:
  // Whether all steps of the plan are the device's, and read nothing that the number of rows alone
  // says.
  static bool Covers(const Plan& plan);

  // Of a plan that it covers. `name`: of the island, for errors. Errors are those of the device.
  static absl::StatusOr<std::unique_ptr<IslandRun>> Make(
      std::shared_ptr<const Plan> plan, int64_t rows, const std::string& name,
      std::shared_ptr<const DeviceWeights> weights);

  // Inputs of the plan, in its order. Returns when the outputs are there.
  absl::Status Run(absl::Span<const TensorView> inputs);
  // Until the next run.
  const TensorView& Output(int k) const { return outputs_[static_cast<size_t>(k)]; }

 private:
  IslandRun(std::shared_ptr<const Plan> plan, int64_t rows,
            std::shared_ptr<const DeviceWeights> weights);
  absl::Status Reserve();
  absl::Status UploadKnown();
  TensorView ViewOf(int slot) const;
  std::vector<cuda::Launch> Launches() const;

  const std::shared_ptr<const Plan> plan_;
  const int64_t rows_;
  const std::shared_ptr<const DeviceWeights> weights_;
  cuda::Stream stream_;
  cuda::DeviceBuffer arena_, constants_;
  std::map<const void*, std::byte*> places_;  // of the plan's own constants
  cuda::PinnedBuffer staging_;
  std::vector<std::byte*> staged_;   // by input
  std::vector<TensorView> outputs_;  // in `staging_`, or constants of the plan
  std::unique_ptr<cuda::DeviceRun> run_;
};

}  // namespace floe
