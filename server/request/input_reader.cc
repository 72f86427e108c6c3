// Checks inputs against the signature. Values are decoded last, and large ones by the worker that
// runs the request.
#include "server/request/input_reader.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "runtime/input_shape.h"

namespace floe::server {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;  // keeps sizes far from overflow

// Larger inputs are decoded by the worker that runs them. So are values that fill up a shape of
// more bytes: a request that waits should hold no more than was sent.
constexpr int64_t kDecodedAtOnce = int64_t{1} << 20;
constexpr int64_t kFilledAtOnce = int64_t{16} << 10;

// How NumPy's clients send what is taken; "" where no cast makes sense.
std::string CastHint(DType sent, DType taken) {
  const std::string name = DTypeName(taken);
  if (sent == DType::kString || taken == DType::kString || name.starts_with("q") ||
      name.starts_with("bfloat"))
    return "";

  return absl::StrCat("; cast it first, in NumPy with x.astype(\"", name, "\")");
}

}  // namespace

absl::Status BadInput(std::string_view key, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(key), ": ", what));
}

absl::StatusOr<int64_t> ElementsOf(std::string_view key, DType dtype, const Shape& shape) {
  const size_t element_size = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  absl::StatusOr<int64_t> elements = CheckedElements(shape.dims(), element_size, kMaxTensorBytes);
  if (!elements.ok()) return BadInput(key, std::string(elements.status().message()));
  return elements;
}

absl::Status CheckBools(std::string_view key, const char* field, DType dtype,
                        std::string_view bytes) {
  if (dtype != DType::kBool) return absl::OkStatus();
  for (const char byte : bytes) {
    if ((byte & ~1) == 0) continue;
    const int number = static_cast<uint8_t>(byte);
    return BadInput(key, absl::StrCat(field, " of bool holds byte ", number, ", not 0 or 1"));
  }
  return absl::OkStatus();
}

absl::Status InputReader::CheckDType(std::string_view key, size_t index, DType sent,
                                     const char* (*name)(DType)) const {
  const DType taken = asked_.signature->def().inputs[index].type.dtype;
  if (sent == taken) return absl::OkStatus();
  return BadInput(key, absl::StrCat(ModelAndSignature(asked_), " takes ", name(taken), ", but ",
                                    name(sent), " was sent", CastHint(sent, taken)));
}

absl::Status InputReader::Take(size_t index, const CheckedTensor& checked, ValueList&& values) {
  const SignatureTensor& taken = asked_.signature->def().inputs[index];
  FLOE_RETURN_IF_ERROR(CheckInputShape(taken, checked.view.shape));
  FLOE_RETURN_IF_ERROR(asked_.storage.Charge(checked.bytes));
  asked_.inputs[index] = checked.view;
  if (checked.view.data != nullptr) return absl::OkStatus();
  // What may be a default is compared with it before the request waits.
  const bool compared =
      taken.default_value.valid() && taken.default_value.shape() == checked.view.shape;
  const bool large = checked.bytes > (checked.repeats ? kFilledAtOnce : kDecodedAtOnce);
  const bool later = large && !compared;
  if (!later) asked_.held_bytes += static_cast<size_t>(checked.bytes);
  (later ? later_ : now_).push_back({std::move(values), index});
  return absl::OkStatus();
}

absl::Status InputReader::DecodeAll(absl::Span<const Encoded> inputs, Inference* asked) {
  for (const Encoded& input : inputs)
    FLOE_RETURN_IF_ERROR(DecodeValues(input.values, &asked->storage, &asked->inputs[input.index]));
  return absl::OkStatus();
}

absl::Status InputReader::Decode() {
  FLOE_RETURN_IF_ERROR(DecodeAll(now_, &asked_));
  if (later_.empty()) return absl::OkStatus();
  asked_.pending = std::make_unique<PendingInputs>(
      [later = std::move(later_), asked = &asked_] { return DecodeAll(later, asked); });
  return absl::OkStatus();
}

}  // namespace floe::server
