// The fields of the Fetch standard's CORS protocol.
#include "server/api/cors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace floe::server {
namespace {

constexpr char kMaxAgeSeconds[] = "600";

// Names of fields and commas between them, as a browser asks.
bool IsFieldList(std::string_view text) {
  constexpr std::string_view kMarks = "-_, ";
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return absl::ascii_isalnum(c) || kMarks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Adds fields to the answer.
class CorsResponder : public ChangingResponder {
 public:
  CorsResponder(HttpFields fields, std::shared_ptr<HttpResponder> to)
      : ChangingResponder(std::move(to)), fields_(std::move(fields)) {}

 private:
  void Change(HttpReply* reply, bool /*whole*/) override {
    for (auto& field : fields_) reply->fields.push_back(std::move(field));
    fields_.clear();
  }

  HttpFields fields_;
};

}  // namespace

std::string Cors::AllowedFor(const HttpHead& head) const {
  const std::string* const origin = head.Field("origin");
  if (origin == nullptr) return "";
  for (const std::string& allowed : origins_)
    if (allowed == "*" || allowed == *origin) return allowed;
  return "";
}

std::shared_ptr<HttpResponder> Cors::Around(const HttpHead& head,
                                            std::shared_ptr<HttpResponder> to) const {
  if (origins_.empty()) return to;
  HttpFields fields;
  const std::string allowed = AllowedFor(head);
  if (!allowed.empty()) {
    fields.emplace_back("Access-Control-Allow-Origin", allowed);
    fields.emplace_back("Access-Control-Expose-Headers",
                        "inference-header-content-length, retry-after, x-request-id");
  }
  // Caches are not to give one site the answer for another.
  if (allowed != "*") fields.emplace_back("Vary", "Origin");
  return std::make_shared<CorsResponder>(std::move(fields), std::move(to));
}

void Cors::AddPreflight(const HttpHead& head, const std::string& methods,
                        HttpFields* fields) const {
  if (head.Field("access-control-request-method") == nullptr || AllowedFor(head).empty()) return;
  fields->emplace_back("Access-Control-Allow-Methods", methods);
  const std::string* const asked = head.Field("access-control-request-headers");
  if (asked != nullptr && IsFieldList(*asked))
    fields->emplace_back("Access-Control-Allow-Headers", *asked);
  fields->emplace_back("Access-Control-Max-Age", kMaxAgeSeconds);
}

}  // namespace floe::server
