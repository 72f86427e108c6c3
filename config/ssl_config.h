// TensorFlow Serving's --ssl_config_file: a text proto with PEM inside.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace floe {

struct SslConfig {
  std::string certificate, key, client_ca;  // PEM; client_ca may be empty
  bool client_verify = false;
};

// INVALID_ARGUMENT has one line per mistake, with file and line. Errors show nothing of a value:
// one of them is a key.
absl::StatusOr<SslConfig> ParseSslConfig(const std::string& text, const std::string& file);

}  // namespace floe
