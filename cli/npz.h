// .npz archives: named arrays, stored or deflated. Depends on model/tensor.h and libzip alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace floe::cli {

// In the order of the archive; names without ".npy".
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The array of that name, or null.
const Tensor* FindTensor(const NamedTensors& tensors, const std::string& name);

// Every array of the archive. Before anything is allocated for an entry, its declared size is
// compared with its compressed size (deflate cannot exceed 1032:1) and with `max_bytes`; checksums
// are verified. NOT_FOUND no such file, INVALID_ARGUMENT malformed, UNIMPLEMENTED as ReadNpy;
// messages begin with the path and name the array.
absl::StatusOr<NamedTensors> ReadNpz(const std::string& path,
                                     int64_t max_bytes = int64_t{64} << 30);

enum class Compression { kStored, kDeflated };

// Replaces `path` as a whole or leaves it alone. INVALID_ARGUMENT for an empty list, a name twice,
// strings and handles (see cli/string_array.h for strings).
absl::Status WriteNpz(const std::string& path, const NamedTensors& tensors,
                      Compression compression = Compression::kDeflated);

}  // namespace floe::cli
