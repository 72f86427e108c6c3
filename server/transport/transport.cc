#include "server/transport/transport.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace floe::server {

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseChannelArgs(
    const std::string& text) {
  std::vector<std::pair<std::string, std::string>> args;
  if (text.empty()) return args;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  for (const std::string& part : parts) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--grpc_channel_arguments: '", part, "' is not of the form key=value"));
    }
    args.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return args;
}

}  // namespace floe::server
