// The answer's head and the framing of its body.
#include <algorithm>
#include <array>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "server/api/http.h"
#include "server/net/h1_parser.h"
#include "server/net/http_words.h"

namespace floe::server {
namespace {

struct Reason {
  int status;
  std::string_view text;
};
constexpr std::array kReasons = {
    Reason{200, "OK"},
    Reason{204, "No Content"},
    Reason{304, "Not Modified"},
    Reason{400, "Bad Request"},
    Reason{401, "Unauthorized"},
    Reason{403, "Forbidden"},
    Reason{404, "Not Found"},
    Reason{405, "Method Not Allowed"},
    Reason{406, "Not Acceptable"},
    Reason{408, "Request Timeout"},
    Reason{409, "Conflict"},
    Reason{411, "Length Required"},
    Reason{412, "Precondition Failed"},
    Reason{413, "Content Too Large"},
    Reason{414, "URI Too Long"},
    Reason{415, "Unsupported Media Type"},
    Reason{417, "Expectation Failed"},
    Reason{429, "Too Many Requests"},
    Reason{431, "Request Header Fields Too Large"},
    Reason{499, "Client Closed Request"},
    Reason{500, "Internal Server Error"},
    Reason{501, "Not Implemented"},
    Reason{503, "Service Unavailable"},
    Reason{504, "Gateway Timeout"},
    Reason{505, "HTTP Version Not Supported"},
};

absl::Status CheckField(const std::string& name, const std::string& value) {
  if (!IsToken(name) || std::any_of(value.begin(), value.end(), IsControl))
    return absl::InvalidArgumentError(
        absl::StrCat("the field ", Quoted(name), ": ", Quoted(value),
                     " cannot be sent: its name is no token or its value has a control character"));
  if (SameText(name, "content-length") || SameText(name, "transfer-encoding") ||
      SameText(name, "connection"))
    return absl::InvalidArgumentError(
        absl::StrCat("the field ", name, " is set by the connection, not by who answers"));
  return absl::OkStatus();
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string HttpDate(int64_t seconds) {
  const std::time_t when = seconds;
  std::tm parts = {};
  char text[40];
  gmtime_r(&when, &parts);
  // The program's locale is "C".
  return std::string(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
}

}  // namespace

std::string_view HttpReason(int status) {
  const auto* const found = std::find_if(kReasons.begin(), kReasons.end(),
                                         [status](const Reason& r) { return r.status == status; });
  return found == kReasons.end() ? "Status" : found->text;
}

H1Response::H1Response(const H1Head& request)
    : is_head_request_(request.method == "HEAD"),
      old_(request.minor == 0),
      keeps_(request.keep_alive) {}

std::string H1Response::Refusal(const H1Parser::Error& error) {
  const std::string body = absl::StrCat(error.reason, "\n");
  return absl::StrCat("HTTP/1.1 ", error.status, " ", std::string(HttpReason(error.status)),
                      "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ",
                      body.size(), "\r\nConnection: close\r\n\r\n", body);
}

absl::StatusOr<std::string> H1Response::Head(int status, const H1Fields& fields,
                                             std::optional<int64_t> length, int64_t date) {
  std::string text =
      absl::StrCat("HTTP/1.1 ", status, " ", std::string(HttpReason(status)), "\r\n");
  for (const auto& [name, value] : fields) {
    if (absl::Status wrong = CheckField(name, value); !wrong.ok()) return wrong;
    absl::StrAppend(&text, name, ": ", value, "\r\n");
  }
  if (date != 0) absl::StrAppend(&text, "Date: ", HttpDate(date), "\r\n");
  const bool has_body = HasBody(status);
  chunked_ = has_body && !length.has_value() && !old_;
  sends_body_ = has_body && !is_head_request_;
  if (has_body && !length.has_value() && !chunked_) keeps_ = false;
  if (chunked_)
    text += "Transfer-Encoding: chunked\r\n";
  else if (has_body && length.has_value())
    absl::StrAppend(&text, "Content-Length: ", *length, "\r\n");
  if (!keeps_)
    text += "Connection: close\r\n";
  else if (old_)
    text += "Connection: keep-alive\r\n";
  return text + "\r\n";
}

void H1Response::AppendPart(std::string_view bytes, std::string* out) const {
  if (!sends_body_ || bytes.empty()) return;
  if (chunked_) absl::StrAppend(out, absl::Hex(bytes.size()), "\r\n");
  *out += bytes;
  if (chunked_) *out += "\r\n";
}

std::string H1Response::End() const { return sends_body_ && chunked_ ? "0\r\n\r\n" : ""; }

}  // namespace floe::server
