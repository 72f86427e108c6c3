// TensorFlow Serving's REST API, version 1.
#include <google/protobuf/util/json_util.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/api/methods.h"
#include "server/api/rest/examples_json.h"
#include "server/api/rest/json_text.h"
#include "server/api/rest/predict_json.h"
#include "server/api/rest/rest.h"

namespace floe::server {
namespace {

namespace pb = tensorflow::serving;

constexpr char kModelPath[] = "/v1/models/{model}";
constexpr const char* kVersions[] = {"", "/versions/{version}", "/labels/{label}"};

struct PredictTarget {
  RestTarget rest;
  JsonLayout layout = JsonLayout::kRows;  // as the body had it
};

class PredictJsonCodec : public InferCodec {
 public:
  explicit PredictJsonCodec(std::unique_ptr<PredictTarget> target) : target_(std::move(target)) {}

  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    asked->door = Door::kHttpPredict;
    std::string unpacked;
    FLOE_ASSIGN_OR_RETURN(message, target_->rest.Unpacked(message, &asked->storage, &unpacked));
    return DecodePredictJson(message, target_->rest.spec(), target_->rest.memory, find, asked,
                             &target_->layout);
  }

  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    return EncodePredictJson(asked, outputs, target_->layout, target_->rest.memory, reply);
  }

  bool IsSlow(std::string_view message) const override {
    return target_->rest.IsSlow(message.size());
  }
  bool HasReplyLimit() const override { return false; }

 private:
  const std::unique_ptr<PredictTarget> target_;
};

// Classify and regress.
class ExamplesJsonCodec : public InferCodec {
 public:
  ExamplesJsonCodec(std::unique_ptr<RestTarget> target, const ExampleCall& call)
      : target_(std::move(target)), call_(call) {}

  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    asked->door =
        call_.method == ExampleMethod::kClassify ? Door::kHttpClassify : Door::kHttpRegress;
    std::string unpacked;
    FLOE_ASSIGN_OR_RETURN(message, target_->Unpacked(message, &asked->storage, &unpacked));
    return DecodeExamplesJson(message, target_->spec(), call_, target_->memory, find, asked);
  }

  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    return EncodeExamplesJson(asked, outputs, call_.method, target_->memory, reply);
  }

  bool IsSlow(std::string_view message) const override { return target_->IsSlow(message.size()); }
  bool HasReplyLimit() const override { return false; }

 private:
  const std::unique_ptr<RestTarget> target_;
  const ExampleCall call_;
};

HttpReply ReplyOf(const absl::StatusOr<std::string>& body) {
  return body.ok() ? JsonReply(200, *body) : ErrorReply(body.status());
}

// As TensorFlow Serving's text of a message: with names as in the .proto, and what is zero, too.
absl::StatusOr<std::string> JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok())
    return absl::InternalError(absl::StrCat("no JSON of a message: ", status.ToString()));
  return text;
}

void SetSpec(const ModelSpec& spec, pb::ModelSpec* out) {
  out->set_name(std::string(spec.name));
  if (spec.version.has_value()) out->mutable_version()->set_value(*spec.version);
  if (!spec.label.empty()) out->set_version_label(std::string(spec.label));
}

absl::StatusOr<std::string> StatusJson(const ModelRegistry& registry, const ModelSpec& spec) {
  pb::GetModelStatusRequest request;
  pb::GetModelStatusResponse response;
  SetSpec(spec, request.mutable_model_spec());
  FLOE_RETURN_IF_ERROR(GetModelStatus(registry, request, &response));
  return JsonOf(response);
}

absl::StatusOr<std::string> MetadataJson(const ModelRegistry& registry, const ModelSpec& spec) {
  pb::GetModelMetadataRequest request;
  pb::GetModelMetadataResponse response;
  SetSpec(spec, request.mutable_model_spec());
  request.add_metadata_field("signature_def");
  FLOE_RETURN_IF_ERROR(GetModelMetadata(registry, request, &response));
  pb::SignatureDefMap map;
  response.metadata().at("signature_def").UnpackTo(&map);
  FLOE_ASSIGN_OR_RETURN(const std::string model, JsonOf(response.model_spec()));
  FLOE_ASSIGN_OR_RETURN(const std::string signatures, JsonOf(map));
  return absl::StrCat("{\n\"model_spec\": ", model,
                      ",\n\"metadata\": {\"signature_def\": ", signatures, "}\n}\n");
}

absl::StatusOr<std::string> ListJson(const ModelRegistry& registry, const Caller& caller) {
  std::vector<std::string> names;
  for (const ModelConfig& model : registry.CurrentConfig().models)
    if (caller.Sees(model.name)) names.push_back(model.name);
  std::string text = R"({"models": [)";
  for (const std::string& name : names) {
    if (&name != &names.front()) text += ",";
    text += "\n{\"name\": ";
    AppendJsonString(name, &text);
    const absl::StatusOr<std::string> status = StatusJson(registry, {name, {}, {}});
    // {"model_version_status": [...]} is the rest of the object; a model without versions has none.
    text += status.ok() ? absl::StrCat(",", status->substr(status->find('{') + 1))
                        : R"(,"model_version_status": []})";
  }
  return text + "\n]}\n";
}

using ModelJson = absl::StatusOr<std::string> (*)(const ModelRegistry&, const ModelSpec&);

HttpRoute ModelRoute(const ModelRegistry& registry, std::string pattern, ModelJson json) {
  return SimpleRoute(std::move(pattern), MethodRole::kModels,
                     [&registry, json](const HttpHead& head) {
                       const absl::StatusOr<ModelSpec> spec = SpecOf(head);
                       return ReplyOf(spec.ok() ? json(registry, *spec) : spec.status());
                     });
}

OpenRestCodec PredictCodecs(const ApiContext& context, const RestOptions& options) {
  return [memory = context.memory, options](const HttpHead& head, RestReplyForm*,
                                            CodecPlace* place) -> absl::Status {
    auto target = std::make_unique<PredictTarget>();
    FLOE_RETURN_IF_ERROR(target->rest.Read(head, options, memory));
    place->Make<PredictJsonCodec>(std::move(target));
    return absl::OkStatus();
  };
}

OpenRestCodec ExampleCodecs(const ApiContext& context, const RestOptions& options,
                            ExampleMethod method) {
  const ExampleCall call{method, context.check_method_names};
  return [memory = context.memory, options, call](const HttpHead& head, RestReplyForm*,
                                                  CodecPlace* place) -> absl::Status {
    auto target = std::make_unique<RestTarget>();
    FLOE_RETURN_IF_ERROR(target->Read(head, options, memory));
    place->Make<ExamplesJsonCodec>(std::move(target), call);
    return absl::OkStatus();
  };
}

}  // namespace

void AddServingRoutes(const ApiContext& context, const RestOptions& options, HttpRoutes* routes) {
  const ModelRegistry& registry = context.registry;
  const OpenInference door = InferenceDoor(context);
  routes->Add(SimpleRoute("/v1/models", MethodRole::kModels, [&registry](const HttpHead& head) {
    return ReplyOf(ListJson(registry, head.caller));
  }));
  for (const char* version : kVersions) {
    const std::string path = absl::StrCat(kModelPath, version);
    routes->Add(InferenceRoute(path + ":predict", door, options, PredictCodecs(context, options)));
    routes->Add(InferenceRoute(path + ":classify", door, options,
                               ExampleCodecs(context, options, ExampleMethod::kClassify)));
    routes->Add(InferenceRoute(path + ":regress", door, options,
                               ExampleCodecs(context, options, ExampleMethod::kRegress)));
    routes->Add(ModelRoute(registry, path + "/metadata", MetadataJson));
    routes->Add(ModelRoute(registry, path, StatusJson));
  }
}

}  // namespace floe::server
