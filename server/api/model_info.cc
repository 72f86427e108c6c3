#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/api/methods.h"
#include "server/api/names.h"

namespace floe::server {
namespace {

namespace pb = tensorflow::serving;

constexpr char kSignatureDef[] = "signature_def";

std::optional<int64_t> VersionOf(const pb::ModelSpec& spec) {
  if (!spec.has_version()) return std::nullopt;
  return spec.version().value();
}

void FillTensorInfo(const SignatureTensor& tensor, tensorflow::TensorInfo* info) {
  const bool numbered = tensor.tensor_name.find(':') != std::string::npos;
  info->set_name(numbered ? tensor.tensor_name : tensor.tensor_name + ":0");
  info->set_dtype(static_cast<tensorflow::DataType>(tensor.type.dtype));
  tensorflow::TensorShapeProto* const shape = info->mutable_tensor_shape();
  if (!tensor.type.shape.rank_known()) return shape->set_unknown_rank(true);
  for (const Dim dim : tensor.type.shape.dims()) {
    shape->add_dim()->set_size(dim.concrete() ? dim.size() : -1);
  }
}

void FillSignature(const SignatureDef& def, tensorflow::SignatureDef* out) {
  out->set_method_name(def.method);
  for (const SignatureTensor& input : def.inputs) {
    FillTensorInfo(input, &(*out->mutable_inputs())[input.key]);
  }
  for (const SignatureTensor& output : def.outputs) {
    FillTensorInfo(output, &(*out->mutable_outputs())[output.key]);
  }
}

absl::Status CheckFields(const pb::GetModelMetadataRequest& request) {
  if (request.metadata_field().empty()) {
    return absl::InvalidArgumentError("metadata_field is empty; ask for 'signature_def'");
  }
  for (const std::string& field : request.metadata_field()) {
    if (field != kSignatureDef) {
      return absl::InvalidArgumentError(
          absl::StrCat("metadata_field ", Quoted(field), " is unknown; ask for 'signature_def'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSpec(const ModelRegistry& registry, std::string_view model,
                       std::string_view version_label) {
  if (model.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model_spec.name is empty; models: ", QuotedNames(registry.ModelNames())));
  }
  if (version_label.empty()) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(registry.Status(std::string(model), std::nullopt).status());
  return absl::InvalidArgumentError(
      absl::StrCat("model ", Quoted(model), " has no version label ", Quoted(version_label),
                   "; leave version_label out for the newest version, or give model_spec.version"));
}

absl::Status GetModelMetadata(const ModelRegistry& registry,
                              const pb::GetModelMetadataRequest& request,
                              pb::GetModelMetadataResponse* response) {
  const pb::ModelSpec& spec = request.model_spec();
  FLOE_RETURN_IF_ERROR(CheckSpec(registry, spec.name(), spec.version_label()));
  FLOE_RETURN_IF_ERROR(CheckFields(request));
  FLOE_ASSIGN_OR_RETURN(const ServedHandle served, registry.Acquire(spec.name(), VersionOf(spec)));
  const Model& model = *served->model();
  response->mutable_model_spec()->set_name(model.info().name);
  response->mutable_model_spec()->mutable_version()->set_value(model.info().version);
  pb::SignatureDefMap map;
  for (const auto& [name, signature] : model.signatures()) {
    FillSignature(signature.def(), &(*map.mutable_signature_def())[name]);
  }
  (*response->mutable_metadata())[kSignatureDef].PackFrom(map);
  return absl::OkStatus();
}

absl::Status GetModelStatus(const ModelRegistry& registry, const pb::GetModelStatusRequest& request,
                            pb::GetModelStatusResponse* response) {
  const pb::ModelSpec& spec = request.model_spec();
  FLOE_RETURN_IF_ERROR(CheckSpec(registry, spec.name(), spec.version_label()));
  FLOE_ASSIGN_OR_RETURN(const std::vector<VersionStatus> versions,
                        registry.Status(spec.name(), VersionOf(spec)));
  for (const VersionStatus& version : versions) {
    pb::ModelVersionStatus* const out = response->add_model_version_status();
    out->set_version(version.version);
    out->set_state(static_cast<pb::ModelVersionStatus::State>(version.state));
    out->mutable_status()->set_error_code(
        static_cast<tensorflow::error::Code>(version.error.code()));
    out->mutable_status()->set_error_message(std::string(version.error.message()));
  }
  return absl::OkStatus();
}

}  // namespace floe::server
