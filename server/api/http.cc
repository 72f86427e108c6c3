// Matching of paths, and refusals.
#include "server/api/http.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/quoted.h"
#include "base/retry_after.h"
#include "base/status.h"
#include "server/api/call_watch.h"
#include "server/api/cors.h"
#include "server/api/packed_reply.h"
#include "server/api/rest/json_text.h"

namespace floe::server {
namespace {

constexpr size_t kMostHttpErrorBytes = 4096;
constexpr size_t kMostIdBytes = 384;

std::string PatternOf(const HttpRoute& route) {
  return absl::StrCat(route.method, " ", route.pattern);
}

std::vector<std::string> SegmentsOf(const std::string& path) { return absl::StrSplit(path, '/'); }

// Whether one segment fits "literal", "{name}" or "{name}:literal"; notes what the name stands for.
bool SegmentFits(std::string_view pattern, std::string_view segment, HttpFields* names) {
  if (pattern.empty() || pattern.front() != '{') return pattern == segment;
  const size_t close = pattern.find('}');
  const std::string_view rest = pattern.substr(close + 1);
  if (segment.size() <= rest.size() || segment.substr(segment.size() - rest.size()) != rest)
    return false;
  names->emplace_back(pattern.substr(1, close - 1),
                      segment.substr(0, segment.size() - rest.size()));
  return true;
}

bool PathFits(const std::vector<std::string>& pattern, const std::vector<std::string>& path,
              HttpFields* names) {
  if (pattern.size() != path.size()) return false;
  names->clear();
  for (size_t i = 0; i < path.size(); ++i)
    if (!SegmentFits(pattern[i], path[i], names)) return false;
  return true;
}

bool MethodFits(const std::string& route, const std::string& method) {
  return route == method || (route == "GET" && method == "HEAD");
}

HttpReply RefusalOf(int status, const std::string& reason) {
  HttpReply reply;
  reply.status = status;
  reply.body = absl::StrCat(reason, "\n");
  return reply;
}

// Clients of these expect JSON, whatever the answer is.
bool IsRestPath(const std::string& path) {
  return absl::StartsWith(path, "/v1/") || absl::StartsWith(path, "/v2/");
}

HttpReply InFormOf(const std::string& path, HttpReply refusal) {
  if (!IsRestPath(path) || refusal.body.empty()) return refusal;
  refusal.body.pop_back();
  std::string body = R"({"error":)";
  AppendJsonString(refusal.body, &body);
  refusal.body = body + "}\n";
  refusal.content_type = "application/json";
  return refusal;
}

// Who may ask for health may ask for that of every model.
absl::Status MayOpen(const HttpRoute& route, const HttpFields& names, const HttpHead& head) {
  FLOE_RETURN_IF_ERROR(CheckAccess(head.roles, route.role, head.local, head.caller));
  if (route.role == MethodRole::kHealth) return absl::OkStatus();
  for (const auto& [name, value] : names)
    if (name == "model") return head.caller.CheckModel(value);
  return absl::OkStatus();
}

constexpr std::string_view kLoginCookie = "__Host-floe";

// Takes the cookies out of the fields; that of a login, or "".
std::string TakeLogin(HttpFields* fields) {
  std::string login;
  std::erase_if(*fields, [&login](const auto& field) {
    if (field.first != "cookie") return false;
    std::string_view rest = field.second;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(';'), rest.size());
      std::string_view one = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      while (one.starts_with(' ')) one.remove_prefix(1);
      if (!one.starts_with(kLoginCookie)) continue;
      one.remove_prefix(kLoginCookie.size());
      if (one.starts_with('=')) login = one.substr(1);
    }
    return true;
  });
  return login;
}

// A browser sends the cookie by itself, so that it counts for requests that do something only from
// pages of this server. Other sites' pages cannot read the answers to those that read.
void UseLogin(HttpHead* head) {
  const Access* const access = head->caller.access();
  head->login = TakeLogin(&head->fields);
  if (head->login.empty() || access == nullptr) return;
  const bool reads = head->method == "GET" || head->method == "HEAD";
  if (reads || IsFromOwnPage(*head)) head->caller = access->OfLogin(head->caller, head->login);
}

HttpReply NotAllowed(const HttpRoute& route, const HttpHead& head, const absl::Status& status) {
  const std::string* const accept = head.Field("accept");
  if (route.refusal && accept != nullptr && absl::StrContains(*accept, "text/html"))
    return route.refusal(head, status);
  HttpReply reply = RefusalOf(HttpStatusOf(status.code()), std::string(status.message()));
  if (reply.status == 401) reply.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"floe\"");
  return reply;
}

class AnswerAtEnd : public HttpHandler {
 public:
  AnswerAtEnd(HttpReply reply, std::shared_ptr<HttpResponder> responder)
      : reply_(std::move(reply)), responder_(std::move(responder)) {}
  void OnEnd() override { responder_->Send(std::move(reply_)); }

 private:
  HttpReply reply_;
  const std::shared_ptr<HttpResponder> responder_;
};

}  // namespace

const std::string* HttpHead::Field(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (key == name) return &value;
  return nullptr;
}

std::string_view HttpHead::Name(std::string_view name) const {
  for (const auto& [key, value] : names)
    if (key == name) return value;
  return {};
}

void HttpRoutes::Add(HttpRoute route) {
  std::vector<std::string> segments = SegmentsOf(route.pattern);
  entries_.push_back({std::move(route), std::move(segments)});
}

HttpRoutes::Match HttpRoutes::Find(const std::string& method, const std::string& path) const {
  const std::vector<std::string> segments = SegmentsOf(path);
  Match match;
  std::vector<std::string> allowed;
  for (const Entry& entry : entries_) {
    if (!PathFits(entry.segments, segments, &match.names)) continue;
    if (!MethodFits(entry.route.method, method)) {
      allowed.push_back(entry.route.method);
      if (entry.route.method == "GET") allowed.emplace_back("HEAD");
      continue;
    }
    for (auto& [name, value] : match.names) {
      const std::string sent = std::move(value);
      if (!DecodePercent(sent, &value)) {
        match.refusal = RefusalOf(400, absl::StrCat("the path's ", Quoted(sent),
                                                    " cannot be decoded; expected % and two "
                                                    "digits, and no control characters"));
        return match;
      }
    }
    match.route = &entry.route;
    return match;
  }
  match.names.clear();
  if (!allowed.empty()) allowed.emplace_back("OPTIONS");
  if (allowed.empty()) {
    match.refusal = RefusalOf(404, absl::StrCat("there is nothing at ", Quoted(path)));
  } else if (method == "OPTIONS") {
    match.refusal.status = 204;
    match.refusal.content_type.clear();
    match.refusal.fields = {{"Allow", absl::StrJoin(allowed, ", ")}};
  } else {
    match.refusal =
        RefusalOf(405, absl::StrCat(Quoted(path), " takes ", absl::StrJoin(allowed, ", "), ", not ",
                                    Quoted(method)));
    match.refusal.fields = {{"Allow", absl::StrJoin(allowed, ", ")}};
  }
  return match;
}

std::string LoginCookie(const std::string& value) {
  return absl::StrCat(std::string(kLoginCookie), "=", value,
                      "; Path=/; Max-Age=", value.empty() ? 0 : Logins::kSeconds,
                      "; Secure; HttpOnly; SameSite=Strict");
}

bool IsFromOwnPage(const HttpHead& head) {
  if (const std::string* const site = head.Field("sec-fetch-site")) return *site == "same-origin";
  const std::string* const origin = head.Field("origin");
  const std::string* const host = head.Field("host");
  return origin != nullptr && host != nullptr &&
         (*origin == absl::StrCat("https://", *host) || *origin == absl::StrCat("http://", *host));
}

void HttpRoutes::SetWatch(CallWatch* watch) {
  watch_ = watch;
  for (const std::string& pattern : Patterns()) watch->AddRoute(pattern);
}

void HttpRoutes::Refuse(CallRefusal cause, const HttpHead& head, const HttpRoute* route,
                        HttpReply refusal, const std::shared_ptr<HttpResponder>& to) const {
  refusal = InFormOf(head.path, std::move(refusal));
  if (watch_ != nullptr && refusal.status >= 400) {
    const auto text = [](const std::string* field) { return field == nullptr ? "" : *field; };
    const std::string id = text(head.Field(kRequestIdKey)),
                      trace = text(head.Field(kTraceparentKey));
    const auto& who = head.caller.principal();
    watch_->RefusedHttp(
        cause, {head.peer, head.path, who == nullptr ? "" : std::string_view(who->name), id, trace},
        route == nullptr ? "" : PatternOf(*route), refusal.status,
        refusal.content_type.starts_with("text/html") ? "" : refusal.body);
    if (!id.empty()) refusal.fields.emplace_back(kRequestIdKey, Printable(id, kMostIdBytes));
  }
  to->Send(std::move(refusal));
}

std::shared_ptr<HttpHandler> HttpRoutes::Open(HttpHead head,
                                              const std::shared_ptr<HttpResponder>& to,
                                              int64_t* max_body_bytes) const {
  *max_body_bytes = 0;
  std::shared_ptr<HttpResponder> responder = cors_ == nullptr ? to : cors_->Around(head, to);
  if (packs_) responder = PackingResponder(head, std::move(responder));
  Match match = Find(head.method, head.path);
  if (cors_ != nullptr && head.method == "OPTIONS" && !match.refusal.fields.empty())
    cors_->AddPreflight(head, std::string(match.refusal.fields[0].second), &match.refusal.fields);
  UseLogin(&head);
  const HttpRoute* const route = match.route;
  const auto refuse = [&](CallRefusal cause, HttpReply refusal) {
    Refuse(cause, head, route, std::move(refusal), responder);
    return nullptr;
  };
  if (route == nullptr) return refuse(CallRefusal::kUnknown, std::move(match.refusal));
  if (const absl::Status status = MayOpen(*route, match.names, head); !status.ok())
    return refuse(CallRefusal::kAccess, NotAllowed(*route, head, status));
  if (head.content_length.value_or(0) > route->max_body_bytes)
    return refuse(CallRefusal::kSize,
                  RefusalOf(413, absl::StrCat("the body has ", *head.content_length,
                                              " bytes; this path takes ", route->max_body_bytes)));
  *max_body_bytes = route->max_body_bytes;
  head.names = std::move(match.names);
  if (watch_ == nullptr || route->watches_itself) return route->open(head, responder);
  const auto watched = watch_->Around(head, PatternOf(*route), responder);
  return watched == nullptr ? nullptr : route->open(head, watched);
}

std::vector<std::string> HttpRoutes::Patterns() const {
  std::vector<std::string> patterns;
  for (const Entry& entry : entries_) patterns.push_back(PatternOf(entry.route));
  return patterns;
}

HttpRoute SimpleRoute(std::string pattern, MethodRole role,
                      std::function<HttpReply(const HttpHead&)> answer) {
  HttpRoute route;
  route.method = "GET";
  route.pattern = std::move(pattern);
  route.role = role;
  route.open = [answer = std::move(answer)](const HttpHead& head,
                                            std::shared_ptr<HttpResponder> responder) {
    return std::make_shared<AnswerAtEnd>(answer(head), std::move(responder));
  };
  return route;
}

bool DecodePercent(std::string_view text, std::string* out) {
  out->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const auto digit = [&](size_t at) {
        return at < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[at]));
      };
      if (!digit(i + 1) || !digit(i + 2)) return false;
      c = absl::HexStringToBytes(std::string(text.substr(i + 1, 2)))[0];
      i += 2;
    }
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) return false;
    out->push_back(c);
  }
  return true;
}

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpReply JsonReply(int status, std::string body) {
  HttpReply reply;
  reply.status = status;
  reply.body = std::move(body);
  reply.content_type = "application/json";
  return reply;
}

HttpReply ErrorReply(const absl::Status& status) {
  const absl::string_view said = status.message();
  std::string body = R"({"error":)";
  AppendJsonString(Printable({said.data(), said.size()}, kMostHttpErrorBytes), &body);
  constexpr int kContentTooLarge = 413;
  if (IsTooLarge(status)) return JsonReply(kContentTooLarge, body + "}\n");
  HttpReply reply = JsonReply(HttpStatusOf(status.code()), body + "}\n");
  const auto wait = RetryAfter(status);
  if (wait.has_value() || absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(
        wait.value_or(std::chrono::milliseconds(1000)));  // fields have whole ones
    reply.fields.emplace_back("Retry-After", absl::StrCat(std::max<int64_t>(1, seconds.count())));
  }
  return reply;
}

}  // namespace floe::server
