// What all pages have: their head, and the fields that keep what is foreign out of them.
#include "server/api/page/shell.h"

#include "server/api/page/assets.h"

namespace floe::server {
namespace {

// Scripts and styles of this server alone, no others and none inside the page.
constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

}  // namespace

HttpReply PageReply(int status, const Html& html) {
  HttpReply reply;
  reply.status = status;
  reply.body = html.text();
  reply.content_type = "text/html; charset=utf-8";
  reply.fields = {{"Content-Security-Policy", kContentPolicy},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Referrer-Policy", "same-origin"},
                  {"Cross-Origin-Opener-Policy", "same-origin"},
                  {"Cache-Control", "no-store"}};
  return reply;
}

Html WholePage(const std::string& title, const std::string& live, const Html& script,
               const Html& content) {
  Html html;
  html.Filled(PageFile("page.html"), {{"title", title}, {"live", live}});
  return html.Put("script", script).Put("content", content);
}

HttpReply ErrorPage(const absl::Status& status) {
  Html content;
  content.Add("<h1>Not here</h1><p>").Text(std::string(status.message()));
  content.Add("</p><p><a href=\"/\">All models</a></p>");
  return PageReply(HttpStatusOf(status.code()), WholePage("Not here", "", {}, content));
}

}  // namespace floe::server
