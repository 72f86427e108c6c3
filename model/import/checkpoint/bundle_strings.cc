#include "model/import/checkpoint/bundle_strings.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/crc32c.h"
#include "base/memory_budget.h"
#include "base/status.h"
#include "base/tf_record.h"
#include "base/varint.h"

namespace floe {
namespace {

// The checksum takes lengths as numbers of four bytes, of eight where they do not fit.
uint32_t AddLength(uint32_t crc, uint64_t length) {
  const auto small = static_cast<uint32_t>(length);
  return length <= UINT32_MAX ? Crc32c(&small, sizeof small, crc)
                              : Crc32c(&length, sizeof length, crc);
}

}  // namespace

absl::StatusOr<Tensor> StringsFromBundle(std::string_view bytes, const Shape& shape,
                                         uint32_t crc32c) {
  const int64_t elements = shape.elements();
  if (static_cast<uint64_t>(elements) > bytes.size())
    return absl::DataLossError(absl::StrCat("string", shape.ToString(), " in ", bytes.size(),
                                            " bytes, which do not even hold the lengths"));
  BudgetVector<uint64_t> lengths(static_cast<size_t>(elements));
  uint32_t crc = 0;
  uint64_t total = 0;
  for (uint64_t& length : lengths) {
    if (!TakeVarint(&bytes, &length) || length > bytes.size())
      return absl::DataLossError("the length of a string is past the end of its bytes");
    crc = AddLength(crc, length);
    total += length;
  }
  uint32_t stored = 0;
  if (bytes.size() < sizeof stored || total != bytes.size() - sizeof stored)
    return absl::DataLossError(absl::StrCat("its strings have ", total, " bytes, ", bytes.size(),
                                            " are left for them and a checksum"));
  std::memcpy(&stored, bytes.data(), sizeof stored);
  if (stored != MaskCrc32c(crc)) return absl::DataLossError("the checksum of its lengths is wrong");
  if (MaskCrc32c(Crc32c(bytes.data(), bytes.size(), crc)) != crc32c)
    return absl::DataLossError("the checksum of its strings is wrong");
  bytes.remove_prefix(sizeof stored);
  FLOE_RETURN_IF_ERROR(CheckMemory(static_cast<int64_t>(total)));
  Tensor out = Tensor::Allocate(DType::kString, shape);
  auto* const strings = static_cast<std::string*>(out.mutable_data());
  for (size_t i = 0; i < lengths.size(); ++i) {
    strings[i].assign(bytes.substr(0, lengths[i]));
    bytes.remove_prefix(lengths[i]);
  }
  return out;
}

}  // namespace floe
