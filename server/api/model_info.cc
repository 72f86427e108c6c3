// GetModelMetadata and GetModelStatus, from what the registry knows.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/methods.h"

namespace floe::server {
namespace {

// Of a version that failed: its model chose some of the words.
constexpr size_t kMostErrorBytes = 4096;

namespace pb = tensorflow::serving;

constexpr char kSignatureDef[] = "signature_def";

VersionChoice ChoiceOf(const pb::ModelSpec& spec) {
  VersionChoice choice;
  if (spec.has_version()) choice.version = spec.version().value();
  choice.label = spec.version_label();
  return choice;
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

absl::Status CheckModelName(const ModelRegistry& registry, std::string_view model,
                            const char* field) {
  if (!model.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const ModelConfig& config : registry.CurrentConfig().models) names.push_back(config.name);
  std::sort(names.begin(), names.end());
  return absl::InvalidArgumentError(absl::StrCat(field, " is empty; models: ", QuotedList(names)));
}

absl::Status GetModelMetadata(const ModelRegistry& registry,
                              const pb::GetModelMetadataRequest& request,
                              pb::GetModelMetadataResponse* response) {
  const pb::ModelSpec& spec = request.model_spec();
  FLOE_RETURN_IF_ERROR(CheckModelName(registry, spec.name()));
  FLOE_RETURN_IF_ERROR(CheckFields(request));
  FLOE_ASSIGN_OR_RETURN(const ServedHandle served, registry.Acquire(spec.name(), ChoiceOf(spec)));
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
  FLOE_RETURN_IF_ERROR(CheckModelName(registry, spec.name()));
  FLOE_ASSIGN_OR_RETURN(const std::vector<VersionStatus> versions,
                        registry.Status(spec.name(), ChoiceOf(spec)));
  for (const VersionStatus& version : versions) {
    pb::ModelVersionStatus* const out = response->add_model_version_status();
    out->set_version(version.version);
    out->set_state(static_cast<pb::ModelVersionStatus::State>(version.state));
    out->mutable_status()->set_error_code(
        static_cast<tensorflow::error::Code>(version.error.code()));
    out->mutable_status()->set_error_message(Printable(
        {version.error.message().data(), version.error.message().size()}, kMostErrorBytes));
  }
  return absl::OkStatus();
}

}  // namespace floe::server
