// Tells protocols by their first bytes.
#include "server/listener/stranger.h"

#include "absl/strings/str_cat.h"

namespace floe::server {

std::string_view StrangerOf(std::string_view first) {
  for (const std::string_view method :
       {"GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE "})
    if (first.starts_with(method)) return "HTTP/1";
  // A record of the handshake, of any version (RFC 8446 5.1).
  return first.starts_with("\x16\x03") ? "TLS" : "";
}

std::string AnswerTo(std::string_view stranger) {
  if (stranger != "HTTP/1") return "";
  const std::string text = "This port speaks gRPC, which needs HTTP/2.\n";
  return absl::StrCat(
      "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: "
      "close\r\nContent-Length: ",
      text.size(), "\r\n\r\n", text);
}

}  // namespace floe::server
