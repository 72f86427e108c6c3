// The proof that a library computes a row to the same bits in any number of rows.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/vendor_layer.h"

namespace floe::cuda {

// What computes a layer: `call`, for 1, 2, 4, ... up to most_rows rows at a time. Or nothing.
struct ProvenCall {
  std::shared_ptr<const VendorCall> call = nullptr;  // null: `why_not`
  int64_t most_rows = 0;
  uint64_t workspace_bytes = 0;  // that the largest needs
  std::string why_not = {};
};

// For how many rows calls are proven: as many as four million numbers hold, at least one
// and at most 1024.
int64_t RowsToProve(const VendorLayer& layer);

// Runs the calls on the device, with numbers made up, and takes the first whose results are right;
// keep every bit wherever the rows are, however many there are, and whichever of the numbers it is
// asked for; and keep what is wrong with one row, as NaN, out of the others. Errors are those of
// the device, after which it cannot be used. RESOURCE_EXHAUSTED: it has no room for the proof.
absl::StatusOr<ProvenCall> ProveRows(const std::shared_ptr<Device>& device,
                                     const VendorLayer& layer,
                                     absl::Span<const std::shared_ptr<const VendorCall>> calls);

}  // namespace floe::cuda
