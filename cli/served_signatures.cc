#include "cli/served_signatures.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/import/tensor_proto.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;

absl::StatusOr<std::vector<SignatureTensor>> TensorsFromProto(
    const google::protobuf::Map<std::string, tensorflow::TensorInfo>& infos) {
  std::vector<SignatureTensor> tensors;
  for (const auto& [key, info] : infos) {
    SignatureTensor tensor;
    tensor.key = key;
    tensor.tensor_name = info.name();
    const auto dtype = DTypeFromNumber(info.dtype());
    if (!dtype.ok())
      return Annotate(dtype.status(), absl::StrCat("tensor '", key, "' of the signature"));
    tensor.type.dtype = *dtype;
    tensor.type.shape = ShapeFromProto(info.tensor_shape());
    tensors.push_back(std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const SignatureTensor& a, const SignatureTensor& b) { return a.key < b.key; });
  return tensors;
}

absl::StatusOr<SignatureDef> SignatureFromProto(const std::string& name,
                                                const tensorflow::SignatureDef& proto) {
  SignatureDef def;
  def.name = name;
  def.method = proto.method_name();
  FLOE_ASSIGN_OR_RETURN(def.inputs, TensorsFromProto(proto.inputs()));
  FLOE_ASSIGN_OR_RETURN(def.outputs, TensorsFromProto(proto.outputs()));
  return def;
}

}  // namespace

absl::StatusOr<ServedSignatures> FetchSignatures(const RpcClient& client,
                                                 const tfs::ModelSpec& spec) {
  tfs::GetModelMetadataRequest request;
  tfs::GetModelMetadataResponse response;
  *request.mutable_model_spec() = spec;
  request.add_metadata_field("signature_def");
  FLOE_RETURN_IF_ERROR(
      client.Call("/tensorflow.serving.PredictionService/GetModelMetadata", request, &response));
  tfs::SignatureDefMap map;
  const auto packed = response.metadata().find("signature_def");
  if (packed == response.metadata().end() || !packed->second.UnpackTo(&map))
    return absl::InternalError("the server's metadata holds no signature_def");
  ServedSignatures served;
  served.version = response.model_spec().version().value();
  for (const auto& [name, proto] : map.signature_def()) {
    FLOE_ASSIGN_OR_RETURN(SignatureDef def, SignatureFromProto(name, proto));
    served.signatures.push_back(std::move(def));
  }
  std::sort(served.signatures.begin(), served.signatures.end(),
            [](const SignatureDef& a, const SignatureDef& b) { return a.name < b.name; });
  return served;
}

}  // namespace floe::cli
