#include "server/api/packed_reply.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/api/gunzip.h"

namespace floe::server {
namespace {

// Smaller ones fit into one packet anyway.
constexpr size_t kPackedBodyFrom = 1024;

class PackingHttp : public ChangingResponder {
 public:
  using ChangingResponder::ChangingResponder;

 private:
  void Change(HttpReply* reply, bool whole) override {
    if (!whole || reply->body.size() < kPackedBodyFrom) return;
    for (const auto& [name, value] : reply->fields)
      if (absl::EqualsIgnoreCase(name, "etag") || absl::EqualsIgnoreCase(name, "content-encoding"))
        return;
    reply->fields.emplace_back("Vary", "Accept-Encoding");
    std::string packed = Deflated(reply->body, /*gzip=*/true);
    if (packed.empty()) return;
    reply->body = std::move(packed);
    reply->fields.emplace_back("Content-Encoding", "gzip");
  }
};

}  // namespace

bool TakesGzip(std::string_view accept_encoding) {
  for (const auto& item :
       absl::StrSplit(absl::string_view(accept_encoding.data(), accept_encoding.size()), ',')) {
    const std::vector<std::string> parts = absl::StrSplit(item, ';');
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts[0]), "gzip")) continue;
    if (parts.size() < 2) return true;
    const std::string weight(absl::StripAsciiWhitespace(parts[1]));
    double q = 0;
    return weight.rfind("q=", 0) == 0 && absl::SimpleAtod(weight.substr(2), &q) && q > 0;
  }
  return false;
}

std::shared_ptr<HttpResponder> PackingResponder(const HttpHead& head,
                                                std::shared_ptr<HttpResponder> to) {
  const std::string* const accept = head.Field("accept-encoding");
  if (accept == nullptr || !TakesGzip(*accept)) return to;
  return std::make_shared<PackingHttp>(std::move(to));
}

}  // namespace floe::server
