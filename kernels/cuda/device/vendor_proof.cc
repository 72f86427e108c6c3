#include "kernels/cuda/device/vendor_proof.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::cuda {
namespace {

// Of the sum of magnitudes. Float32 has about 1e-7 of it whatever the length, TF32 more than this
// up to some ten thousand terms.
constexpr double kAllowedError = 2e-6;
constexpr int kElementsChecked = 32;  // of a row
constexpr int64_t kMostElements = 1 << 22, kMostRows = 1024;

std::vector<float> MadeUp(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers)
    number = static_cast<float>(random()) / static_cast<float>(1u << 31) - 1;
  return numbers;
}

// Memory and stream of the proofs of one layer, and what must come out.
class VendorProver {
 public:
  VendorProver(std::shared_ptr<Device> device, const VendorLayer& layer)
      : device_(std::move(device)), layer_(layer), most_(RowsToProve(layer)) {}

  absl::Status Start() {
    x_ = MadeUp(most_ * layer_.XRow(), 1);
    weights_ = MadeUp(layer_.WeightElements(), 2);
    FLOE_ASSIGN_OR_RETURN(stream_, Stream::Make(device_));
    FLOE_RETURN_IF_ERROR(Upload(x_, &on_device_.x));
    FLOE_RETURN_IF_ERROR(Upload(weights_, &on_device_.weights));
    FLOE_ASSIGN_OR_RETURN(on_device_.y,
                          DeviceBuffer::Make(device_, sizeof(float) * most_ * layer_.YRow()));
    return absl::OkStatus();
  }

  // Errors of the device alone. Empty `why_not`: it is proven.
  absl::StatusOr<uint64_t> Prove(const VendorCall& call, std::string* why_not) {
    FLOE_ASSIGN_OR_RETURN(const uint64_t workspace, FindWorkspace(call, why_not));
    if (!why_not->empty()) return 0;
    FLOE_ASSIGN_OR_RETURN(workspace_, DeviceBuffer::Make(device_, workspace));
    FLOE_ASSIGN_OR_RETURN(const std::vector<float> all, Run(call, 0, most_, why_not));
    if (why_not->empty()) CheckNumbers(all, why_not);
    for (int64_t rows = most_; rows > 0 && why_not->empty(); rows /= 2) {
      for (const int64_t first : {int64_t{0}, (most_ - rows) / 3, most_ - rows})
        FLOE_RETURN_IF_ERROR(CheckBits(call, first, rows, all, why_not));
    }
    if (why_not->empty() && most_ > 1) FLOE_RETURN_IF_ERROR(CheckNan(call, all, why_not));
    return workspace;
  }

 private:
  absl::Status Upload(const std::vector<float>& numbers, DeviceBuffer* to) {
    const size_t bytes = numbers.size() * sizeof(float);
    FLOE_ASSIGN_OR_RETURN(*to, DeviceBuffer::Make(device_, bytes));
    return to->Upload(0, numbers.data(), bytes);
  }

  absl::StatusOr<uint64_t> FindWorkspace(const VendorCall& call, std::string* why_not) const {
    uint64_t most = 0;
    for (int64_t rows = most_; rows > 0; rows /= 2) {
      const auto bytes = call.WorkspaceBytes(rows);
      if (!bytes.ok()) {
        *why_not = absl::StrCat(rows, " rows: ", std::string(bytes.status().message()));
        return 0;
      }
      most = std::max(most, *bytes);
    }
    return most;
  }

  absl::StatusOr<std::vector<float>> Run(const VendorCall& call, int64_t first, int64_t rows,
                                         std::string* why_not) {
    const size_t bytes = sizeof(float) * rows * layer_.YRow();
    std::vector<float> y(static_cast<size_t>(rows * layer_.YRow()),
                         std::numeric_limits<float>::quiet_NaN());
    FLOE_RETURN_IF_ERROR(on_device_.y.Upload(0, y.data(), bytes));
    FLOE_RETURN_IF_ERROR(device_->MakeCurrent());
    const absl::Status done =
        call.Enqueue(stream_.handle(),
                     {reinterpret_cast<const float*>(on_device_.x.data()) + first * layer_.XRow(),
                      reinterpret_cast<const float*>(on_device_.weights.data()),
                      reinterpret_cast<float*>(on_device_.y.data()), rows, workspace_.data(),
                      workspace_.size()});
    FLOE_RETURN_IF_ERROR(stream_.Wait("proving a library's routine"));
    if (!done.ok()) *why_not = absl::StrCat(rows, " rows: ", std::string(done.message()));
    FLOE_RETURN_IF_ERROR(on_device_.y.Download(0, y.data(), bytes));
    return y;
  }

  void CheckNumbers(const std::vector<float>& y, std::string* why_not) const {
    const int64_t elements = layer_.YRow();
    for (const int64_t row : {int64_t{0}, most_ - 1}) {
      for (int i = 0; i < kElementsChecked; ++i) {
        const int64_t at = i * (elements - 1) / (kElementsChecked - 1);
        double magnitude = 0;
        const double want =
            layer_.Element(x_.data() + row * layer_.XRow(), weights_.data(), at, &magnitude);
        const double error = std::abs(static_cast<double>(y[row * elements + at]) - want);
        if (error <= kAllowedError * magnitude) continue;  // not if it is NaN
        *why_not = absl::StrCat("its results are not those of float32: an error of ",
                                error / magnitude, " of the terms");
        return;
      }
    }
  }

  absl::Status CheckBits(const VendorCall& call, int64_t first, int64_t rows,
                         const std::vector<float>& all, std::string* why_not) {
    if (!why_not->empty()) return absl::OkStatus();
    FLOE_ASSIGN_OR_RETURN(const std::vector<float> y, Run(call, first, rows, why_not));
    if (why_not->empty() &&
        std::memcmp(y.data(), all.data() + first * layer_.YRow(), y.size() * sizeof(float)) != 0)
      *why_not = absl::StrCat("its bits depend on the batch: those of ", rows, " and of ", most_,
                              " rows differ");
    return absl::OkStatus();
  }

  // The first row has a NaN, and the second is as it was.
  absl::Status CheckNan(const VendorCall& call, const std::vector<float>& all,
                        std::string* why_not) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    FLOE_RETURN_IF_ERROR(on_device_.x.Upload(0, &nan, sizeof nan));
    FLOE_ASSIGN_OR_RETURN(const std::vector<float> y, Run(call, 0, 2, why_not));
    FLOE_RETURN_IF_ERROR(on_device_.x.Upload(0, x_.data(), sizeof nan));
    const auto row = static_cast<int64_t>(layer_.YRow());
    const bool kept = std::any_of(y.begin(), y.begin() + row, [](float f) { return f != f; });
    const bool alone = std::memcmp(y.data() + row, all.data() + row, sizeof(float) * row) == 0;
    if (why_not->empty() && (!kept || !alone))
      *why_not = kept ? "NaN in a row changes another" : "it loses NaN";
    return absl::OkStatus();
  }

  const std::shared_ptr<Device> device_;
  const VendorLayer& layer_;
  const int64_t most_;
  std::vector<float> x_, weights_;
  Stream stream_;
  struct {
    DeviceBuffer x, weights, y;
  } on_device_;
  DeviceBuffer workspace_;
};

}  // namespace

int64_t RowsToProve(const VendorLayer& layer) {
  const int64_t row = std::max<int64_t>({layer.XRow(), layer.YRow(), 1});
  int64_t rows = 1;
  while (2 * rows * row <= kMostElements && 2 * rows <= kMostRows) rows *= 2;
  return rows;
}

absl::StatusOr<ProvenCall> ProveRows(const std::shared_ptr<Device>& device,
                                     const VendorLayer& layer,
                                     absl::Span<const std::shared_ptr<const VendorCall>> calls) {
  VendorProver prover(device, layer);
  FLOE_RETURN_IF_ERROR(prover.Start());
  ProvenCall proven;
  for (const std::shared_ptr<const VendorCall>& call : calls) {
    std::string why_not;
    FLOE_ASSIGN_OR_RETURN(const uint64_t workspace, prover.Prove(*call, &why_not));
    if (why_not.empty()) return ProvenCall{call, RowsToProve(layer), workspace, ""};
    if (proven.why_not.empty()) proven.why_not = absl::StrCat(call->Text(), ": ", why_not);
  }
  return proven;
}

}  // namespace floe::cuda
