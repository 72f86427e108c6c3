// HTTP as functions of requests: what api/ offers to whatever reads HTTP/1.1 or HTTP/2. Nothing
// here knows how bytes come or go.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "server/api/access.h"
#include "server/api/roles.h"

namespace floe::server {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// What is known of a request before its body. Owns what it holds.
struct HttpHead {
  std::string method;  // "GET"
  std::string path;    // "/v1/models/a", as sent
  std::string query;   // behind '?', as sent
  HttpFields fields;   // names in lower case
  HttpFields names;    // of the route's pattern: {"model", "a"}, decoded
  std::string peer;    // as in CallHead
  bool local = false;
  ListenerRoles roles;
  Caller caller;
  std::string login = {};  // the cookie of a browser's login; "": none
  uint64_t principal = 0;
  TimePoint arrived = TimePoint::min();
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<CancelToken> cancel;         // raised when the client leaves; may be null
  std::optional<int64_t> content_length = {};  // unset: chunked

  const std::string* Field(std::string_view name) const;  // null: none
  std::string_view Name(std::string_view name) const;     // of the pattern; "": none
};

struct HttpReply {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  HttpFields fields = {};  // more of them, not those of the connection (H1Response::Head)
};

// Whether answers of this status have a body at all (RFC 9110 6.4.1).
inline bool HasBody(int status) {
  constexpr int kFirstFinal = 200, kNoContent = 204, kNotModified = 304;
  return status >= kFirstFinal && status != kNoContent && status != kNotModified;
}

// Where the answer goes. The connection implements it. Either Send once, or Begin, then Write any
// number of times, then End. When the server stops, the connection ends what was begun.
// Threading: any thread, but one call at a time. What comes after the end is ignored.
class HttpResponder {
 public:
  virtual ~HttpResponder() = default;
  virtual void Send(HttpReply&& reply) = 0;
  // A body whose length is not known, such as server-sent events; `head.body` is its first part.
  virtual void Begin(HttpReply&& head) = 0;
  virtual void Write(std::string&& part) = 0;
  virtual void End() = 0;
  // Of an answer that was begun: bytes that wait until the client reads, beside what the connection
  // holds. Who writes more than once looks at it, because nothing else bounds them.
  virtual size_t Unsent() const { return 0; }
  // Ends it without them: with the stream of HTTP/2, or the connection of HTTP/1.1.
  virtual void Cut() {}
};

// Passes an answer on, and changes its first part.
class ChangingResponder : public HttpResponder {
 public:
  explicit ChangingResponder(std::shared_ptr<HttpResponder> to) : to_(std::move(to)) {}
  void Send(HttpReply&& reply) final {
    Change(&reply, /*whole=*/true);
    to_->Send(std::move(reply));
  }
  void Begin(HttpReply&& head) final {
    Change(&head, /*whole=*/false);
    to_->Begin(std::move(head));
  }
  void Write(std::string&& part) final { to_->Write(std::move(part)); }
  void End() final { to_->End(); }
  size_t Unsent() const final { return to_->Unsent(); }
  void Cut() final { to_->Cut(); }

 private:
  // `whole`: no other part of the body follows.
  virtual void Change(HttpReply* reply, bool whole) = 0;

  const std::shared_ptr<HttpResponder> to_;
};

// A request in progress. The connection calls it, one method at a time.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void OnBody(std::string_view part) { (void)part; }  // valid during the call
  virtual void OnEnd() = 0;  // the request is whole: answer it, now or later
  virtual void OnDone() {}   // it was answered, or the client left, perhaps before OnEnd
};

// Opens a request by its head alone. Who answers here by `responder` returns null: no body is read.
using OpenHttp = std::function<std::shared_ptr<HttpHandler>(
    const HttpHead& head, std::shared_ptr<HttpResponder> responder)>;

struct HttpRoute {
  std::string method;  // "GET", which serves HEAD too
  // Literals and names of whole segments, or of their beginning: "/v1/models/{model}:predict".
  std::string pattern;
  MethodRole role = MethodRole::kInference;
  int64_t max_body_bytes = 0;  // of a body: none, unless it says more
  OpenHttp open;
  // Its calls count and follow themselves, as those of inferences and of RPCs.
  bool watches_itself = false;
  // What a browser is shown that may not open it, in place of a line of text.
  std::function<HttpReply(const HttpHead& head, const absl::Status& why)> refusal = {};
};

class Cors;
class CallWatch;
enum class CallRefusal : uint8_t;

// Routes by method and path. Filled at start-up, then read by any thread.
class HttpRoutes {
 public:
  // A method and pattern may be added once.
  void Add(HttpRoute route);
  // Other sites that may call; before any request. Lives as long.
  void SetCors(const Cors* cors) { cors_ = cors; }
  // Packs the replies of clients that take them so; before any request.
  void PackReplies() { packs_ = true; }
  // Of all routes there are, from now on. Outlives their requests.
  void SetWatch(CallWatch* watch);
  // For requests that no route takes; null: there is none.
  CallWatch* watch() const { return watch_; }

  struct Match {
    const HttpRoute* route = nullptr;  // null: `refusal` says why
    HttpFields names;                  // of the pattern
    // 404, 405 with Allow, 204 with it to OPTIONS, 400 for a path that cannot be decoded.
    HttpReply refusal;
  };
  // Of several patterns that match, the first one that was added.
  Match Find(const std::string& method, const std::string& path) const;

  // The whole way from a head to a handler: Find, then who calls and its role (401 and 403), the
  // model in the path (403), the size that the head says (413), then the route's own. Null:
  // `to` was answered. `max_body_bytes` is the bound of the body that is to be read.
  std::shared_ptr<HttpHandler> Open(HttpHead head, const std::shared_ptr<HttpResponder>& to,
                                    int64_t* max_body_bytes) const;

  std::vector<std::string> Patterns() const;  // "GET /healthz", in order

 private:
  struct Entry {
    HttpRoute route;
    std::vector<std::string> segments;
  };
  void Refuse(CallRefusal cause, const HttpHead& head, const HttpRoute* route, HttpReply refusal,
              const std::shared_ptr<HttpResponder>& to) const;

  std::vector<Entry> entries_;
  CallWatch* watch_ = nullptr;
  bool packs_ = false;
  const Cors* cors_ = nullptr;  // null: no site may
};

// A route whose answer needs the head alone, given at once.
HttpRoute SimpleRoute(std::string pattern, MethodRole role,
                      std::function<HttpReply(const HttpHead&)> answer);

// "a%20b" as "a b". False: a code is wrong, or stands for a control character.
bool DecodePercent(std::string_view text, std::string* out);

// gRPC's codes as HTTP's, as gRPC's own gateways have them: INVALID_ARGUMENT is 400.
int HttpStatusOf(absl::StatusCode code);

HttpReply JsonReply(int status, std::string body);
// The cookie of a browser's login (Access::LogIn), for Set-Cookie; an empty one forgets it.
std::string LoginCookie(const std::string& value);
// Whether a page of this server sent the request, as browsers say it, which pages cannot.
bool IsFromOwnPage(const HttpHead& head);

// {"error": "..."} with HttpStatusOf, and Retry-After where trying again may help; 413 for what
// IsTooLarge.
HttpReply ErrorReply(const absl::Status& status);

}  // namespace floe::server
