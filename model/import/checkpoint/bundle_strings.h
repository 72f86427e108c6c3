// Strings as a checkpoint's shard has them.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace floe {

// `bytes`: all lengths, a checksum of them, and all strings; `crc32c` is the index's checksum of
// everything. The shape's size has been checked by the caller. DATA_LOSS when the bytes are others.
absl::StatusOr<Tensor> StringsFromBundle(std::string_view bytes, const Shape& shape,
                                         uint32_t crc32c);

}  // namespace floe
