// A configured placeholder value as a tensor.
#pragma once

#include <string>

#include "config/config.h"
#include "model/tensor.h"

namespace floe::server {

// A scalar. INVALID_ARGUMENT names the placeholder when the dtype is unknown or cannot hold the
// value.
absl::StatusOr<Tensor> DefaultTensor(const std::string& name, const PlaceholderDefault& value);

}  // namespace floe::server
