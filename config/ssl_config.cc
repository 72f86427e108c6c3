// SSLConfig -> SslConfig.
#include "config/ssl_config.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/text_proto.h"
#include "tensorflow_serving/config/ssl_config.pb.h"

namespace floe {

absl::StatusOr<SslConfig> ParseSslConfig(const std::string& text, const std::string& file) {
  tensorflow::serving::SSLConfig from;
  FLOE_RETURN_IF_ERROR(ParseTextProto(text, file, &from, nullptr, TextValues::kSecret));
  std::vector<std::string> mistakes;
  if (from.server_key().empty())
    mistakes.push_back(absl::StrCat(file, ": expected server_key: \"PEM\", the private key"));
  if (from.server_cert().empty())
    mistakes.push_back(absl::StrCat(file, ": expected server_cert: \"PEM\", the certificate"));
  if (!mistakes.empty()) return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  return SslConfig{std::move(*from.mutable_server_cert()), std::move(*from.mutable_server_key()),
                   std::move(*from.mutable_custom_ca()), from.client_verify()};
}

}  // namespace floe
