// KServe v2's REST API, the Open Inference Protocol, with its extension for binary tensors.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/kserve.h"
#include "server/api/rest/infer_json.h"
#include "server/api/rest/json_body.h"
#include "server/api/rest/method_route.h"
#include "server/api/rest/rest.h"

namespace floe::server {
namespace {

namespace kserve_pb = inference;

constexpr char kHeaderLength[] = "inference-header-content-length";
constexpr char kHeaderLengthName[] = "Inference-Header-Content-Length";
constexpr const char* kPaths[] = {"/v2/models/{model}", "/v2/models/{model}/versions/{version}"};

// What a path and the head say of an infer, and what its body said for the reply.
struct InferTarget {
  RestTarget rest;
  std::optional<size_t> json_bytes;  // of the body; unset: all of it
  RestReplyForm* reply = nullptr;    // the call's
  InferJsonForm form;
  std::string unpacked;  // a body that was packed, for as long as inputs are views into it
};

class InferJsonCodec : public InferCodec {
 public:
  explicit InferJsonCodec(std::unique_ptr<InferTarget> target) : target_(std::move(target)) {}

  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    asked->door = Door::kHttpModelInfer;
    FLOE_ASSIGN_OR_RETURN(message,
                          target_->rest.Unpacked(message, &asked->storage, &target_->unpacked));
    return DecodeInferJson(message, target_->json_bytes.value_or(message.size()),
                           target_->rest.spec(), target_->rest.memory, find, asked, &target_->form);
  }

  CallWishes wishes() const override { return {target_->form.priority, target_->form.timeout}; }

  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    size_t json_bytes = 0;
    FLOE_RETURN_IF_ERROR(
        EncodeInferJson(asked, outputs, target_->form, target_->rest.memory, reply, &json_bytes));
    if (json_bytes == reply->size()) return absl::OkStatus();
    target_->reply->content_type = "application/octet-stream";
    target_->reply->fields.emplace_back(kHeaderLengthName, absl::StrCat(json_bytes));
    return absl::OkStatus();
  }

  // Binary tensors are not looked at.
  bool IsSlow(std::string_view message) const override {
    return target_->rest.IsSlow(target_->json_bytes.value_or(message.size()));
  }
  bool HasReplyLimit() const override { return false; }

 private:
  const std::unique_ptr<InferTarget> target_;
};

absl::StatusOr<std::optional<size_t>> JsonBytesOf(const HttpHead& head) {
  const std::string* const text = head.Field(kHeaderLength);
  if (text == nullptr) return std::nullopt;
  int64_t bytes = 0;
  if (absl::SimpleAtoi(*text, &bytes) && bytes >= 0) return static_cast<size_t>(bytes);
  return absl::InvalidArgumentError(
      absl::StrCat(kHeaderLengthName, " is ", Quoted(*text), "; expected bytes of JSON"));
}

OpenRestCodec InferCodecs(const ApiContext& context, const RestOptions& options) {
  return [memory = context.memory, options](const HttpHead& head, RestReplyForm* reply,
                                            CodecPlace* place) -> absl::Status {
    auto target = std::make_unique<InferTarget>();
    FLOE_RETURN_IF_ERROR(target->rest.Read(head, options, memory));
    FLOE_ASSIGN_OR_RETURN(target->json_bytes, JsonBytesOf(head));
    target->reply = reply;
    place->Make<InferJsonCodec>(std::move(target));
    return absl::OkStatus();
  };
}

// A request of the method for the model and version of a path.
template <typename Request>
absl::Status FillModel(const HttpHead& head, std::string_view, Request* request) {
  request->set_name(std::string(head.Name("model")));
  request->set_version(std::string(head.Name("version")));
  return absl::OkStatus();
}

// Calls `take` with each field of an object.
absl::Status EachField(
    simdjson::ondemand::object object, JsonBody* body,
    absl::FunctionRef<absl::Status(std::string_view name, JsonValue value)> take) {
  for (auto item : object) {
    simdjson::ondemand::field field;
    std::string_view name;
    if (const auto error = std::move(item).get(field)) return body->Malformed(error);
    if (const auto error = field.unescaped_key().get(name)) return body->Malformed(error);
    FLOE_RETURN_IF_ERROR(take(name, field.value()));
  }
  return absl::OkStatus();
}

absl::Status EachFieldOf(
    std::string_view bytes,
    absl::FunctionRef<absl::Status(std::string_view name, JsonValue value, JsonBody* body)> take) {
  if (bytes.empty()) return absl::OkStatus();
  std::string padded(bytes);
  padded.append(kJsonPadding, '\0');
  JsonBody body;
  simdjson::ondemand::object object;
  FLOE_RETURN_IF_ERROR(body.Open(std::string_view(padded).substr(0, bytes.size()), nullptr));
  FLOE_RETURN_IF_ERROR(body.Fields(&object));
  FLOE_RETURN_IF_ERROR(EachField(object, &body, [&](std::string_view name, JsonValue value) {
    return take(name, value, &body);
  }));
  return body.CheckEnd();
}

absl::Status FillIndex(const HttpHead&, std::string_view bytes,
                       kserve_pb::RepositoryIndexRequest* request) {
  return EachFieldOf(bytes, [&](std::string_view name, JsonValue value, JsonBody* body) {
    JsonPath path("the body");
    if (name != "ready") return body->Skip(value, &path);
    bool ready = false;
    if (value.get_bool().get(ready) != simdjson::SUCCESS)
      return absl::InvalidArgumentError(
          absl::StrCat("ready: ", DescribeJson(value), " where true or false belongs"));
    request->set_ready(ready);
    return absl::OkStatus();
  });
}

void WriteIndex(const kserve_pb::RepositoryIndexResponse& response, std::string* out) {
  *out += '[';
  for (const auto& model : response.models()) {
    if (&model != &response.models(0)) *out += ',';
    AppendProtoJson(model, out);
  }
  *out += ']';
}

void WriteConfig(const kserve_pb::ModelConfigResponse& response, std::string* out) {
  AppendProtoJson(response.config(), out);
}

// The names of parameters are enough: the method says which it knows.
template <typename Request>
absl::Status FillChange(const HttpHead& head, std::string_view bytes, Request* request) {
  request->set_model_name(std::string(head.Name("model")));
  return EachFieldOf(bytes, [&](std::string_view name, JsonValue value, JsonBody* body) {
    JsonPath path("the body");
    if (name != "parameters") return body->Skip(value, &path);
    simdjson::ondemand::object parameters;
    if (value.get_object().get(parameters) != simdjson::SUCCESS)
      return absl::InvalidArgumentError(
          absl::StrCat("parameters: ", DescribeJson(value), " where an object belongs"));
    return EachField(parameters, body, [&](std::string_view key, JsonValue given) {
      (*request->mutable_parameters())[std::string(key)];
      return body->Skip(given, &path);
    });
  });
}

// Methods of KServe's gRPC API as routes.
class Bridge {
 public:
  Bridge(const MethodTable& methods, const RestOptions& options, HttpRoutes* routes)
      : methods_(methods), options_(options), routes_(*routes) {}

  template <typename Request, typename Response, typename... Write>
  void Add(std::string http_method, std::string pattern, const char* method,
           absl::Status (*fill)(const HttpHead&, std::string_view, Request*), Write... write) {
    routes_.Add(ProtoRoute<Request, Response>(
        std::move(http_method), std::move(pattern),
        *methods_.Find(absl::StrCat("/", kKServe, "/", method)), options_, fill, write...));
  }

 private:
  const MethodTable& methods_;
  const RestOptions options_;
  HttpRoutes& routes_;
};

void AddChanges(const MethodTable& methods, HttpRoutes* routes) {
  RestOptions options;
  options.timeout = std::chrono::minutes(2);  // a model is loaded meanwhile
  Bridge bridge(methods, options, routes);
  bridge.Add<kserve_pb::RepositoryModelLoadRequest, kserve_pb::RepositoryModelLoadResponse>(
      "POST", "/v2/repository/models/{model}/load", "RepositoryModelLoad", FillChange);
  bridge.Add<kserve_pb::RepositoryModelUnloadRequest, kserve_pb::RepositoryModelUnloadResponse>(
      "POST", "/v2/repository/models/{model}/unload", "RepositoryModelUnload", FillChange);
}

}  // namespace

void AddKServeRoutes(const ApiContext& context, const MethodTable& methods,
                     const RestOptions& options, HttpRoutes* routes) {
  const OpenInference door = InferenceDoor(context);
  Bridge bridge(methods, options, routes);
  bridge.Add<kserve_pb::ServerMetadataRequest, kserve_pb::ServerMetadataResponse>(
      "GET", "/v2", "ServerMetadata",
      [](const HttpHead&, std::string_view, auto*) { return absl::OkStatus(); });
  // Before the models: one that is called "stats" has no metadata here, as with Triton.
  bridge.Add<kserve_pb::ModelStatisticsRequest, kserve_pb::ModelStatisticsResponse>(
      "GET", "/v2/models/stats", "ModelStatistics", FillModel);
  for (const char* path : kPaths) {
    routes->Add(
        InferenceRoute(absl::StrCat(path, "/infer"), door, options, InferCodecs(context, options)));
    bridge.Add<kserve_pb::ModelMetadataRequest, kserve_pb::ModelMetadataResponse>(
        "GET", path, "ModelMetadata", FillModel);
    bridge.Add<kserve_pb::ModelConfigRequest, kserve_pb::ModelConfigResponse>(
        "GET", absl::StrCat(path, "/config"), "ModelConfig", FillModel, WriteConfig);
    bridge.Add<kserve_pb::ModelStatisticsRequest, kserve_pb::ModelStatisticsResponse>(
        "GET", absl::StrCat(path, "/stats"), "ModelStatistics", FillModel);
  }
  bridge.Add<kserve_pb::RepositoryIndexRequest, kserve_pb::RepositoryIndexResponse>(
      "POST", "/v2/repository/index", "RepositoryIndex", FillIndex, WriteIndex);
  AddChanges(methods, routes);
}

}  // namespace floe::server
