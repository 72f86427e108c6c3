// The call of a MethodRoute.
#include "server/api/rest/method_route.h"

#include <memory>

#include "server/api/followed.h"

namespace floe::server {
namespace {

// Bodies name some parameters, at most.
constexpr int64_t kMostBodyBytes = 4096;

// Held by the connection until the request is done, and by the method until it has finished.
class MethodCall : public HttpHandler,
                   public Responder,
                   public std::enable_shared_from_this<MethodCall> {
 public:
  MethodCall(const Method& method, const MethodForms& forms, const HttpHead& head,
             const RestOptions& options, std::shared_ptr<HttpResponder> responder)
      : method_(method),
        forms_(forms),
        head_(head),
        call_(CallHeadOf(head_, options)),
        responder_(std::move(responder)) {}

  void OnBody(std::string_view part) override { body_.append(part); }
  void OnEnd() override {
    absl::StatusOr<std::string> request = forms_.request(head_, body_);
    if (!request.ok()) return responder_->Send(ErrorReply(request.status()));
    const auto owner = std::make_shared<const std::string>(*std::move(request));
    Invoke(method_, call_, Message{*owner, owner}, shared_from_this());
  }

  void Write(std::string&& message) override { reply_ = std::move(message); }
  void Finish(const absl::Status& status, const Trailers& trailers) override {
    const absl::StatusOr<std::string> body = status.ok() ? forms_.reply(reply_) : status;
    HttpReply reply = body.ok() ? JsonReply(200, *body) : ErrorReply(body.status());
    AddToReply(trailers, &reply);
    responder_->Send(std::move(reply));
  }

 private:
  const Method& method_;
  const MethodForms& forms_;  // the route's
  const HttpHead head_;
  const CallHead call_;  // has views into head_
  const std::shared_ptr<HttpResponder> responder_;
  std::string body_, reply_;
};

}  // namespace

HttpRoute MethodRoute(std::string http_method, std::string pattern, const Method& method,
                      const RestOptions& options, MethodForms forms) {
  HttpRoute route;
  route.max_body_bytes = http_method == "GET" ? 0 : kMostBodyBytes;
  route.method = std::move(http_method);
  route.pattern = std::move(pattern);
  route.role = method.info().role;
  route.watches_itself = true;
  route.open = [&method, options, forms = std::make_shared<const MethodForms>(std::move(forms))](
                   const HttpHead& head, std::shared_ptr<HttpResponder> responder) {
    return std::make_shared<MethodCall>(method, *forms, head, options, std::move(responder));
  };
  return route;
}

}  // namespace floe::server
