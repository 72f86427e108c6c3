// Methods of gRPC as routes of HTTP: what is rare needs no code of its own for each.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "server/api/http.h"
#include "server/api/rest/proto_json.h"
#include "server/api/rest/rest_call.h"
#include "server/api/rpc.h"

namespace floe::server {

// A message of the method for a request of HTTP, and the body for its reply.
struct MethodForms {
  std::function<absl::StatusOr<std::string>(const HttpHead& head, std::string_view body)> request;
  std::function<absl::StatusOr<std::string>(std::string_view reply)> reply;
};

// The same call as by gRPC, with its role. `method` is unary, and outlives the route.
HttpRoute MethodRoute(std::string http_method, std::string pattern, const Method& method,
                      const RestOptions& options, MethodForms forms);

// `fill` sets fields of the request; the reply is AppendProtoJson's, or what `write` makes of it.
template <typename Request, typename Response>
HttpRoute ProtoRoute(
    std::string http_method, std::string pattern, const Method& method, const RestOptions& options,
    std::function<absl::Status(const HttpHead&, std::string_view body, Request*)> fill,
    std::function<void(const Response&, std::string*)> write = AppendProtoJson) {
  MethodForms forms;
  forms.request = [fill = std::move(fill)](const HttpHead& head,
                                           std::string_view body) -> absl::StatusOr<std::string> {
    Request request;
    FLOE_RETURN_IF_ERROR(fill(head, body, &request));
    return request.SerializeAsString();
  };
  forms.reply = [write = std::move(write)](std::string_view bytes) -> absl::StatusOr<std::string> {
    Response response;
    if (!response.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return absl::InternalError("the method's reply cannot be read");
    std::string body;
    write(response, &body);
    return body + "\n";
  };
  return MethodRoute(std::move(http_method), std::move(pattern), method, options, std::move(forms));
}

}  // namespace floe::server
