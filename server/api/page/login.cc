// A browser's login: a form takes a token, and a cookie takes its place.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/retry_after.h"
#include "base/status.h"
#include "server/api/page/shell.h"

namespace floe::server {
namespace {

constexpr int64_t kMostFormBytes = 4096;
constexpr char kFormType[] = "application/x-www-form-urlencoded";

// A page of this server, and nothing that a browser could take for another one's address.
bool IsOwnPath(std::string_view path) {
  return path.starts_with('/') && !path.starts_with("//") &&
         std::all_of(path.begin(), path.end(),
                     [](unsigned char c) { return absl::ascii_isgraph(c) && c != '\\'; });
}

// A field of a form; "": there is none, or it cannot be decoded.
std::string FormField(const std::string& form, std::string_view name) {
  for (const auto& field : absl::StrSplit(form, '&')) {
    const std::string text(field);
    const size_t mark = text.find('=');
    if (mark == std::string::npos || std::string_view(text).substr(0, mark) != name) continue;
    std::string value;
    const std::string spaced = absl::StrReplaceAll(text.substr(mark + 1), {{"+", " "}});
    return DecodePercent(spaced, &value) ? value : "";
  }
  return "";
}

HttpReply FormPage(const Access* access, const std::string& next, int status,
                   const std::string& why) {
  Html content;
  content.Add("<h1>Log in</h1>");
  if (!why.empty()) content.Add("<p class=\"bad\" role=\"alert\">").Text(why).Add("</p>");
  if (access == nullptr || !access->has_tokens()) {
    content.Add("<p>This server has no tokens.</p>");
    return PageReply(status, WholePage("Log in - floe", "", {}, content));
  }
  content.Add(
      "<form method=\"post\" action=\"/page/login\"><p><label for=\"token\">Token</label> ");
  content.Add("<input type=\"password\" id=\"token\" name=\"token\" size=\"48\" required ");
  content.Add("autofocus autocomplete=\"off\" spellcheck=\"false\"></p>");
  content.Add("<input type=\"hidden\" name=\"next\" value=\"").Text(next).Add("\">");
  content.Add("<p><button type=\"submit\">Log in</button></p></form>");
  content.Add("<p>The browser keeps no token, but a cookie for eight hours at most, with the ");
  content.Add("token's roles infer and read. It takes the cookie by https alone, or from this ");
  content.Add("machine.</p>");
  HttpReply page = PageReply(status, WholePage("Log in - floe", "", {}, content));
  if (status == 401)
    page.fields.insert(page.fields.begin(), {"WWW-Authenticate", "Bearer realm=\"floe\""});
  return page;
}

HttpReply GoTo(const std::string& path, const std::string& cookie) {
  HttpReply reply;
  reply.status = 303;
  reply.content_type.clear();
  reply.fields = {{"Location", IsOwnPath(path) ? path : "/"},
                  {"Set-Cookie", LoginCookie(cookie)},
                  {"Cache-Control", "no-store"}};
  return reply;
}

HttpReply LogIn(const HttpHead& head, const std::string& form) {
  const Access* const access = head.caller.access();
  const std::string next = FormField(form, "next");
  const auto refused = [&](const absl::Status& status) {
    HttpReply page =
        FormPage(access, next, HttpStatusOf(status.code()), std::string(status.message()));
    if (const auto wait = RetryAfter(status))
      page.fields.emplace_back(
          "Retry-After", absl::StrCat(std::chrono::ceil<std::chrono::seconds>(*wait).count()));
    return page;
  };
  const std::string* const type = head.Field("content-type");
  if (type == nullptr || !type->starts_with(kFormType))
    return refused(absl::InvalidArgumentError(absl::StrCat("a login is a form: ", kFormType)));
  // Else a page of another site could log its readers in.
  if (!IsFromOwnPage(head))
    return refused(absl::PermissionDeniedError("logins come from this server's own page"));
  if (access == nullptr)
    return refused(absl::FailedPreconditionError("this server asks nobody for a token"));
  const absl::StatusOr<std::string> cookie =
      access->LogIn(std::string(absl::StripAsciiWhitespace(FormField(form, "token"))), head.peer);
  return cookie.ok() ? GoTo(next, *cookie) : refused(cookie.status());
}

HttpReply LogOut(const HttpHead& head) {
  if (!IsFromOwnPage(head))
    return ErrorPage(absl::PermissionDeniedError("this server's own pages log out alone"));
  if (head.caller.access() != nullptr) head.caller.access()->LogOut(head.login);
  return GoTo("/", "");
}

class FormHandler : public HttpHandler {
 public:
  using Answer = HttpReply (*)(const HttpHead& head, const std::string& form);
  FormHandler(Answer answer, const HttpHead& head, std::shared_ptr<HttpResponder> responder)
      : answer_(answer), head_(head), responder_(std::move(responder)) {}
  void OnBody(std::string_view part) override { form_.append(part); }
  void OnEnd() override { responder_->Send(answer_(head_, form_)); }

 private:
  const Answer answer_;
  const HttpHead head_;
  const std::shared_ptr<HttpResponder> responder_;
  std::string form_;
};

void AddForm(const char* path, FormHandler::Answer answer, HttpRoutes* routes) {
  HttpRoute route;
  route.method = "POST";
  route.pattern = path;
  route.role = MethodRole::kOpen;
  route.max_body_bytes = kMostFormBytes;
  route.open = [answer](const HttpHead& head, std::shared_ptr<HttpResponder> responder) {
    return std::make_shared<FormHandler>(answer, head, std::move(responder));
  };
  routes->Add(std::move(route));
}

}  // namespace

HttpReply LoginPage(const HttpHead& head, const absl::Status& why) {
  if (!absl::IsUnauthenticated(why)) return ErrorPage(why);
  return FormPage(head.caller.access(), head.path, HttpStatusOf(why.code()),
                  std::string(why.message()));
}

Html WhoIsLoggedIn(const Caller& caller) {
  Html html;
  if (caller.principal() == nullptr || !caller.principal()->is_browser) return html;
  html.Add("<form method=\"post\" action=\"/page/logout\"><p>This is ").Text(caller.name());
  html.Add(". <button type=\"submit\">Log out</button></p></form>");
  return html;
}

void AddLoginRoutes(HttpRoutes* routes) {
  routes->Add(SimpleRoute("/page/login", MethodRole::kOpen, [](const HttpHead& head) {
    return FormPage(head.caller.access(), "/", 200, "");
  }));
  AddForm("/page/login", LogIn, routes);
  AddForm(
      "/page/logout", [](const HttpHead& head, const std::string&) { return LogOut(head); },
      routes);
}

}  // namespace floe::server
