#include "model/import/savedmodel/meta_graph.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/message_ptr.h"
#include "model/import/savedmodel/closure.h"
#include "model/import/savedmodel/node_names.h"
#include "model/import/savedmodel/offered_functions.h"
#include "model/import/savedmodel/structure.h"
#include "model/import/tensor_proto.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace floe {
namespace {

using tensorflow::MetaGraphDef;
using tensorflow::TensorInfo;

absl::StatusOr<SignatureTensor> ReadTensor(const std::string& key, const TensorInfo& info) {
  SignatureTensor tensor{.key = key};
  if (info.encoding_case() == TensorInfo::kCooSparse)
    return absl::UnimplementedError(
        absl::StrCat(Quoted(key), " is a sparse tensor, which no request can name"));
  if (info.name().empty())
    return absl::InvalidArgumentError(absl::StrCat(Quoted(key), " names no tensor"));
  tensor.tensor_name = CanonicalTensor(info.name());
  FLOE_ASSIGN_OR_RETURN(tensor.type.dtype, DTypeFromNumber(info.dtype()));
  tensor.type.shape = ShapeFromProto(info.tensor_shape());
  return tensor;
}

// A ragged tensor is as many as it has parts.
absl::Status ReadTensors(const std::string& key, const TensorInfo& info,
                         std::vector<SignatureTensor>* tensors) {
  if (info.encoding_case() != TensorInfo::kCompositeTensor) {
    FLOE_ASSIGN_OR_RETURN(SignatureTensor tensor, ReadTensor(key, info));
    tensors->push_back(std::move(tensor));
    return absl::OkStatus();
  }
  const TensorInfo::CompositeTensor& parts = info.composite_tensor();
  FLOE_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                        RaggedParts(parts.type_spec(), key, parts.components_size()));
  for (size_t k = 0; k < keys.size(); ++k) {
    FLOE_ASSIGN_OR_RETURN(SignatureTensor tensor,
                          ReadTensor(keys[k], parts.components(static_cast<int>(k))));
    tensors->push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

// Protobuf's maps have no order; the file's keys are served in that of their letters.
template <typename Map>
std::vector<std::string> SortedKeys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::Status Read(tensorflow::SignatureDef* file, SignatureDef* def) {
  for (const std::string& key : SortedKeys(file->inputs())) {
    const absl::Status read = ReadTensors(key, file->inputs().at(key), &def->inputs);
    if (!read.ok()) return Annotate(read, "input");
    SignatureTensor* const input = &def->inputs.back();
    const auto fallback = file->mutable_defaults()->find(key);
    if (fallback != file->mutable_defaults()->end()) {
      FLOE_ASSIGN_OR_RETURN(input->default_value, TensorFromProto(&fallback->second));
      if (input->default_value.dtype() != input->type.dtype)
        return absl::InvalidArgumentError(absl::StrCat(
            "the default of input ", Quoted(key), " is ", DTypeName(input->default_value.dtype()),
            ", the input is ", DTypeName(input->type.dtype)));
      input->optional = true;
    }
  }
  for (const std::string& key : SortedKeys(file->outputs())) {
    const absl::Status read = ReadTensors(key, file->outputs().at(key), &def->outputs);
    if (!read.ok()) return Annotate(read, "output");
  }
  if (def->outputs.empty()) return absl::InvalidArgumentError("it has no outputs");
  return absl::OkStatus();
}

std::vector<std::string> NodesOf(const MetaGraphDef& meta, const char* collection) {
  const auto found = meta.collection_def().find(collection);
  if (found == meta.collection_def().end()) return {};
  const auto& nodes = found->second.node_list().value();
  return {nodes.begin(), nodes.end()};
}

constexpr char kInitOp[] = "__saved_model_init_op";

std::string TagText(const MetaGraphDef& meta) {
  std::vector<std::string> tags(meta.meta_info_def().tags().begin(),
                                meta.meta_info_def().tags().end());
  return tags.empty() ? "(no tags)" : QuotedList(tags);
}

}  // namespace

std::vector<FileSignature> ReadSignatures(MetaGraphDef* meta) {
  std::vector<FileSignature> signatures;
  for (const std::string& name : SortedKeys(meta->signature_def())) {
    if (absl::StartsWith(name, "__saved_model_")) continue;
    tensorflow::SignatureDef& file = meta->mutable_signature_def()->at(name);
    FileSignature signature;
    signature.def.name = name;
    if (!file.method_name().empty()) signature.def.method = file.method_name();
    signature.problem = Read(&file, &signature.def);
    signatures.push_back(std::move(signature));
  }
  return signatures.empty() ? OfferFunctions(meta) : std::move(signatures);
}

std::vector<std::string> InitNodes(const MetaGraphDef& meta) {
  const auto signature = meta.signature_def().find(kInitOp);
  if (signature != meta.signature_def().end()) {
    const auto& outputs = signature->second.outputs();
    const auto init = outputs.find(kInitOp);
    if (init != outputs.end()) return {std::string(SplitInput(init->second.name()).node)};
  }
  for (const char* collection :
       {"saved_model_main_op", "legacy_init_op", "saved_model_init_op", "table_initializer"}) {
    std::vector<std::string> nodes = NodesOf(meta, collection);
    if (!nodes.empty()) return nodes;
  }
  return {};
}

std::map<std::string, std::string> AssetFiles(const MetaGraphDef& meta) {
  std::map<std::string, std::string> files;
  const auto add = [&files](const tensorflow::AssetFileDef& asset) {
    files[std::string(SplitInput(asset.tensor_info().name()).node)] = asset.filename();
  };
  for (const auto& asset : meta.asset_file_def()) add(asset);
  const auto found = meta.collection_def().find("saved_model_assets");
  if (found == meta.collection_def().end()) return files;
  for (const google::protobuf::Any& any : found->second.any_list().value()) {
    const auto asset = NewMessage<tensorflow::AssetFileDef>();
    if (asset->ParseFromString(any.value())) add(*asset);
  }
  return files;
}

std::string CheckpointOf(const std::string& directory) {
  std::error_code error;
  const std::string usual = directory + "/variables/variables", beside = directory + "/variables";
  return !std::filesystem::exists(usual + ".index", error) &&
                 std::filesystem::exists(beside + ".index", error)
             ? beside
             : usual;
}

absl::StatusOr<MetaGraphDef*> ChooseMetaGraph(const std::vector<std::string>& tags,
                                              tensorflow::SavedModel* model) {
  std::set<std::string> wanted(tags.begin(), tags.end());
  if (wanted.empty()) wanted.insert("serve");
  std::vector<std::string> known;
  for (MetaGraphDef& meta : *model->mutable_meta_graphs()) {
    const auto& has = meta.meta_info_def().tags();
    if (std::set<std::string>(has.begin(), has.end()) == wanted) return &meta;
    known.push_back(TagText(meta));
  }
  if (tags.empty() && model->meta_graphs_size() == 1) return model->mutable_meta_graphs(0);
  std::string text;
  for (const std::string& one : known) absl::StrAppend(&text, text.empty() ? "" : "; ", one);
  return absl::InvalidArgumentError(
      absl::StrCat("the SavedModel has no graph of the tags ",
                   QuotedList(std::vector<std::string>(wanted.begin(), wanted.end())),
                   ", it has: ", text.empty() ? "no graph at all" : text,
                   "; choose some with the model's 'saved_model_tags', or --tags"));
}

}  // namespace floe
