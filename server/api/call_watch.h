// CallWatch: calls that are no inferences, and calls that no door took. Inferences count, log and
// follow themselves (InferCall).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/api/access_log.h"
#include "server/api/http.h"
#include "server/api/line_limit.h"
#include "server/api/rpc.h"

namespace floe::server {

// Why no door took a call, for the access log.
enum class CallRefusal : uint8_t {
  kUnknown,  // there is no such method or route
  kAccess,   // its caller may not call it
  kSize,     // it is too large
  kHead,     // what it says of itself is wrong
  kLimit,    // too many calls or bytes are under way, or the server stops
};
const char* CauseOf(CallRefusal cause);  // "unknown", "access", ...

// A call as far as it is known when it is refused. "": not known.
struct RefusedCall {
  std::string_view peer, path, caller, request_id, traceparent;
};

// Outlives the calls. Threading: Add before any call, the rest on any thread.
class CallWatch {
 public:
  // `log` may be null, and outlives this.
  explicit CallWatch(AccessLog* log = nullptr);

  // Names that are counted apart from "other": paths of methods, and routes as "GET /metrics".
  void AddMethod(const std::string& path) { rpcs_.try_emplace(path); }
  void AddRoute(const std::string& route) { routes_.try_emplace(route); }

  // Opens a call by `open` that is counted, and answered with what its caller asks for: the id, the
  // trace, the time.
  absl::StatusOr<std::shared_ptr<CallHandler>> Open(const CallHead& head,
                                                    const std::shared_ptr<Responder>& responder,
                                                    const OpenCall& open);
  // The same of a request by a route. Null: it was answered, because what it asks for is wrong.
  std::shared_ptr<HttpResponder> Around(const HttpHead& head, const std::string& route,
                                        const std::shared_ptr<HttpResponder>& responder);

  // A line of the log, and a count. Of an RPC that no method took.
  void Refused(CallRefusal cause, const RefusedCall& call, const absl::Status& status);
  void Refused(CallRefusal cause, const CallHead& head, const absl::Status& status);
  // Of HTTP, with the status of the answer. `route`: "" where there is none.
  void RefusedHttp(CallRefusal cause, const RefusedCall& call, const std::string& route, int status,
                   std::string_view reason);

  void CountRpc(std::string_view path, absl::StatusCode code);
  void CountRoute(const std::string& route, int status);
  // Calls `visit` for each count that is not zero.
  using Visit =
      std::function<void(const std::string& name, const std::string& code, uint64_t count)>;
  void ForEachRpc(const Visit& visit) const;    // code "OK"
  void ForEachRoute(const Visit& visit) const;  // code "200"

 private:
  static constexpr size_t kCodes = 17;
  static constexpr std::array<int, 21> kStatuses = {200, 204, 303, 304, 400, 401, 403,
                                                    404, 405, 408, 409, 413, 414, 429,
                                                    431, 499, 500, 501, 503, 504, 505};
  template <size_t kSize>
  using Counts = std::array<std::atomic<uint64_t>, kSize>;
  void Log(CallRefusal cause, const RefusedCall& call, const absl::Status& status);

  AccessLog* const log_;
  LineLimit lines_;
  std::map<std::string, Counts<kCodes>, std::less<>> rpcs_;
  std::map<std::string, Counts<kStatuses.size() + 1>, std::less<>> routes_;
};

// The same, of a request that a connection answers in the place of a route.
void NoteRefused(const HttpRoutes& routes, CallRefusal cause, const RefusedCall& call,
                 const HttpReply& reply);

}  // namespace floe::server
