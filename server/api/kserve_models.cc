// What KServe v2 tells of models: metadata, Triton's configuration of them, and the index.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/kserve.h"
#include "server/api/methods.h"
#include "server/request/decode_infer.h"
#include "server/request/inference.h"
#include "server/request/kserve_types.h"

namespace floe::server {
namespace {

namespace kserve_pb = inference;

constexpr size_t kMostReasonBytes = 4096;

// Of the file that a model was loaded from, as Triton names its backends.
struct FileKind {
  const char* platform;
  const char* backend;
};
FileKind KindOfFile(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (absl::StartsWith({name.data(), name.size()}, "saved_model."))
    return {"tensorflow_savedmodel", "tensorflow"};
  if (name.ends_with(".pb") || name.ends_with(".pbtxt"))
    return {"tensorflow_graphdef", "tensorflow"};
  if (name.ends_with(".keras") || name.ends_with(".h5") || name.ends_with(".hdf5"))
    return {"keras", "keras"};
  return {"floe", "floe"};
}

// Of dtypes that KServe v2 has no name for, ours.
std::string DatatypeOf(const SignatureTensor& tensor) {
  const std::string name = KServeName(tensor.type.dtype);
  return name.empty() ? DTypeName(tensor.type.dtype) : name;
}

// -1 for what a request decides. A shape without a rank is [-1], because none stands for a scalar.
std::vector<int64_t> DimsOf(const SignatureTensor& tensor) {
  std::vector<int64_t> dims;
  if (!tensor.type.shape.rank_known()) return {-1};
  for (const Dim dim : tensor.type.shape.dims()) dims.push_back(dim.concrete() ? dim.size() : -1);
  return dims;
}

void FillTensor(const SignatureTensor& tensor,
                kserve_pb::ModelMetadataResponse::TensorMetadata* out) {
  out->set_name(tensor.key);
  out->set_datatype(DatatypeOf(tensor));
  for (const int64_t dim : DimsOf(tensor)) out->add_shape(dim);
}

// A served version and its default signature.
struct FoundModel {
  ServedHandle served;
  Inference asked;  // with model and signature
  const SignatureDef& def() const { return asked.signature->def(); }
};

absl::Status FindDefault(const ModelRegistry& registry, const std::string& name,
                         const std::string& version, FoundModel* found) {
  FLOE_RETURN_IF_ERROR(CheckModelName(registry, name, "name"));
  FLOE_ASSIGN_OR_RETURN(const std::optional<int64_t> number, KServeVersion(version));
  FLOE_ASSIGN_OR_RETURN(found->served, registry.Acquire(name, {number, {}}));
  return ChooseSignature(found->served->model(), "", &found->asked);
}

kserve_pb::DataType DataTypeOf(const SignatureTensor& tensor) {
  const std::string name = KServeName(tensor.type.dtype);
  kserve_pb::DataType type = kserve_pb::TYPE_INVALID;
  kserve_pb::DataType_Parse(absl::StrCat("TYPE_", name == "BYTES" ? "STRING" : name), &type);
  return type;
}

bool HasRows(const SignatureTensor& tensor) {
  const std::vector<int64_t> dims = DimsOf(tensor);
  return tensor.type.shape.rank_known() && !dims.empty() && dims[0] == -1;
}

// Rows of a batch, where the first dim of every tensor is the rows', as Triton's clients then
// assume; otherwise 0, and shapes are whole.
int64_t MaxBatchRows(const ModelRegistry& registry, const FoundModel& found) {
  const SignatureDef& def = found.def();
  if (!std::all_of(def.inputs.begin(), def.inputs.end(), HasRows) ||
      !std::all_of(def.outputs.begin(), def.outputs.end(), HasRows))
    return 0;
  const ModelInfo& info = found.served->model()->info();
  const absl::StatusOr<std::vector<ModelStats>> stats = registry.Stats(info.name);
  if (!stats.ok()) return 0;
  for (const ModelStats& model : *stats)
    for (const VersionStats& version : model.versions) {
      if (model.name != info.name || version.status.version != info.version) continue;
      if (!version.scheduler) continue;
      for (const SignatureEstimate& estimate : version.scheduler->estimates)
        if (estimate.name == def.name && estimate.why_not_batchable.empty())
          return estimate.max_rows;
    }
  return 0;
}

const ModelConfig* ConfigOf(const std::vector<ModelConfig>& models, std::string_view name) {
  for (const ModelConfig& model : models)
    if (model.name == name) return &model;
  return nullptr;
}

void FillPolicy(const VersionPolicy& policy, kserve_pb::ModelVersionPolicy* out) {
  switch (policy.kind) {
    case VersionPolicy::Kind::kLatest:
      return out->mutable_latest()->set_num_versions(static_cast<uint32_t>(policy.latest));
    case VersionPolicy::Kind::kAll:
      out->mutable_all();
      return;
    case VersionPolicy::Kind::kSpecific:
      for (const int64_t version : policy.specific) out->mutable_specific()->add_versions(version);
  }
}

// The tensors, without the rows' dim where there is a batch.
void FillTensors(const SignatureDef& def, bool batched, kserve_pb::ModelConfig* out) {
  const auto fill = [batched](const SignatureTensor& tensor, auto* to) {
    to->set_name(tensor.key);
    to->set_data_type(DataTypeOf(tensor));
    const std::vector<int64_t> dims = DimsOf(tensor);
    for (size_t i = batched ? 1 : 0; i < dims.size(); ++i) to->add_dims(dims[i]);
  };
  for (const SignatureTensor& input : def.inputs) {
    kserve_pb::ModelInput* const to = out->add_input();
    fill(input, to);
    to->set_optional(input.optional);
  }
  for (const SignatureTensor& output : def.outputs) fill(output, out->add_output());
}

const char* StateName(VersionState state) {
  switch (state) {
    case VersionState::kStart:
    case VersionState::kLoading:
      return "LOADING";
    case VersionState::kAvailable:
      return "READY";
    case VersionState::kUnloading:
      return "UNLOADING";
    case VersionState::kEnd:
      return "UNAVAILABLE";
    case VersionState::kUnknown:
      break;
  }
  return "UNKNOWN";
}

std::string ReasonText(const absl::Status& status) {
  return Printable({status.message().data(), status.message().size()}, kMostReasonBytes);
}

}  // namespace

absl::Status ModelMetadata(const ModelRegistry& registry,
                           const kserve_pb::ModelMetadataRequest& request,
                           kserve_pb::ModelMetadataResponse* response) {
  FoundModel found;
  FLOE_RETURN_IF_ERROR(FindDefault(registry, request.name(), request.version(), &found));
  const ModelInfo& info = found.served->model()->info();
  response->set_name(info.name);
  const absl::StatusOr<std::vector<VersionStatus>> versions = registry.Status(info.name, {});
  if (versions.ok())
    for (auto version = versions->rbegin(); version != versions->rend(); ++version)
      if (version->state == VersionState::kAvailable)
        response->add_versions(absl::StrCat(version->version));
  response->set_platform(KindOfFile(info.path).platform);
  for (const SignatureTensor& input : found.def().inputs) FillTensor(input, response->add_inputs());
  for (const SignatureTensor& output : found.def().outputs)
    FillTensor(output, response->add_outputs());
  return absl::OkStatus();
}

absl::Status ModelConfigOf(const ModelRegistry& registry,
                           const kserve_pb::ModelConfigRequest& request,
                           kserve_pb::ModelConfigResponse* response) {
  FoundModel found;
  FLOE_RETURN_IF_ERROR(FindDefault(registry, request.name(), request.version(), &found));
  const ModelInfo& info = found.served->model()->info();
  kserve_pb::ModelConfig* const out = response->mutable_config();
  out->set_name(info.name);
  out->set_platform(KindOfFile(info.path).platform);
  out->set_backend(KindOfFile(info.path).backend);
  const ConfigState state = registry.CurrentConfig();
  const ModelConfig* const config = ConfigOf(state.models, info.name);
  if (config != nullptr) FillPolicy(config->versions, out->mutable_version_policy());
  const int64_t rows = MaxBatchRows(registry, found);
  out->set_max_batch_size(static_cast<int32_t>(std::min<int64_t>(rows, INT32_MAX)));
  FillTensors(found.def(), rows > 0, out);
  if (rows == 0) return absl::OkStatus();
  kserve_pb::ModelDynamicBatching* const batching = out->mutable_dynamic_batching();
  batching->set_priority_levels(kPriorities);
  batching->set_default_priority_level(kDefaultPriority);
  if (config != nullptr)
    batching->set_max_queue_delay_microseconds(
        static_cast<uint64_t>(config->batching.batch_timeout_micros));
  return absl::OkStatus();
}

absl::Status RepositoryIndex(const ModelRegistry& registry,
                             const kserve_pb::RepositoryIndexRequest& request,
                             kserve_pb::RepositoryIndexResponse* response) {
  FLOE_RETURN_IF_ERROR(CheckRepository(request.repository_name()));
  std::vector<std::string> names;
  for (const ModelConfig& model : registry.CurrentConfig().models) names.push_back(model.name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const absl::StatusOr<std::vector<VersionStatus>> versions = registry.Status(name, {});
    if (!versions.ok() && !request.ready()) {  // no version has been found
      kserve_pb::RepositoryIndexResponse::ModelIndex* const model = response->add_models();
      model->set_name(name);
      model->set_state("UNAVAILABLE");
      model->set_reason(ReasonText(versions.status()));
    }
    if (!versions.ok()) continue;
    for (const VersionStatus& version : *versions) {
      if (request.ready() && version.state != VersionState::kAvailable) continue;
      kserve_pb::RepositoryIndexResponse::ModelIndex* const model = response->add_models();
      model->set_name(name);
      model->set_version(absl::StrCat(version.version));
      model->set_state(StateName(version.state));
      model->set_reason(ReasonText(version.error));
    }
  }
  return absl::OkStatus();
}

}  // namespace floe::server
