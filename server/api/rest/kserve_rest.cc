// KServe v2's REST API, the Open Inference Protocol, with its extension for binary tensors.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/kserve.h"
#include "server/api/rest/infer_json.h"
#include "server/api/rest/json_text.h"
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

template <typename Message>
void AppendTensors(const Message& tensors, std::string* out) {
  out->push_back('[');
  for (const auto& tensor : tensors) {
    *out += &tensor == &tensors[0] ? "{\"name\":" : ",{\"name\":";
    AppendJsonString(tensor.name(), out);
    absl::StrAppend(out, R"(,"datatype":")", tensor.datatype(), R"(","shape":[)");
    for (int i = 0; i < tensor.shape_size(); ++i)
      absl::StrAppend(out, i == 0 ? "" : ",", tensor.shape(i));
    *out += "]}";
  }
  out->push_back(']');
}

absl::StatusOr<std::string> MetadataV2(const ModelRegistry& registry, const HttpHead& head) {
  kserve_pb::ModelMetadataRequest request;
  kserve_pb::ModelMetadataResponse response;
  request.set_name(std::string(head.Name("model")));
  request.set_version(std::string(head.Name("version")));
  FLOE_RETURN_IF_ERROR(ModelMetadata(registry, request, &response));
  std::string text = R"({"name":)";
  AppendJsonString(response.name(), &text);
  text += R"(,"versions":[)";
  for (const std::string& version : response.versions())
    absl::StrAppend(&text, &version == &response.versions(0) ? "\"" : ",\"", version, "\"");
  absl::StrAppend(&text, R"(],"platform":")", response.platform(), R"(","inputs":)");
  AppendTensors(response.inputs(), &text);
  text += R"(,"outputs":)";
  AppendTensors(response.outputs(), &text);
  return text + "}\n";
}

absl::StatusOr<std::string> IndexV2(const ModelRegistry& registry) {
  kserve_pb::RepositoryIndexResponse response;
  FLOE_RETURN_IF_ERROR(RepositoryIndex(registry, {}, &response));
  std::string text = "[";
  for (const auto& model : response.models()) {
    text += &model == &response.models(0) ? "{\"name\":" : ",{\"name\":";
    AppendJsonString(model.name(), &text);
    absl::StrAppend(&text, R"(,"version":")", model.version(), R"(","state":")", model.state(),
                    R"(","reason":)");
    AppendJsonString(model.reason(), &text);
    text += "}";
  }
  return text + "]\n";
}

HttpReply ReplyV2(const absl::StatusOr<std::string>& body) {
  return body.ok() ? JsonReply(200, *body) : ErrorReply(body.status());
}

}  // namespace

void AddKServeRoutes(const ApiContext& context, const RestOptions& options, HttpRoutes* routes) {
  const ModelRegistry& registry = context.registry;
  const OpenInference door = InferenceDoor(context);
  routes->Add(
      SimpleRoute("/v2", MethodRole::kModels, [version = context.server.version](const HttpHead&) {
        std::string text = R"({"name":"floe","version":)";
        AppendJsonString(version, &text);
        return JsonReply(200,
                         text + ",\"extensions\":[\"binary_tensor_data\",\"model_repository\"]}\n");
      }));
  for (const char* path : kPaths) {
    routes->Add(
        InferenceRoute(absl::StrCat(path, "/infer"), door, options, InferCodecs(context, options)));
    routes->Add(SimpleRoute(path, MethodRole::kModels, [&registry](const HttpHead& head) {
      return ReplyV2(MetadataV2(registry, head));
    }));
  }
  HttpRoute index =
      SimpleRoute("/v2/repository/index", MethodRole::kModels,
                  [&registry](const HttpHead&) { return ReplyV2(IndexV2(registry)); });
  index.method = "POST";
  index.max_body_bytes = 4096;
  routes->Add(std::move(index));
}

}  // namespace floe::server
