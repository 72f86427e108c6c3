#include "model/import/savedmodel/freeze.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_beneath.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/read_file.h"
#include "base/status.h"
#include "model/import/checkpoint/tensor_bundle.h"
#include "model/import/format.h"
#include "model/import/graphdef/graphdef.h"
#include "model/import/import.h"
#include "model/import/message_ptr.h"
#include "model/import/other_formats.h"
#include "model/import/parse_message.h"
#include "model/import/savedmodel/closure.h"
#include "model/import/savedmodel/freeze_meta_graph.h"
#include "model/import/savedmodel/meta_graph.h"
#include "model/import/within_limits.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace floe {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr int64_t kMaxFileBytes = INT32_MAX;  // protobuf's

void PutValue(const Tensor& tensor, tensorflow::TensorProto* proto) {
  proto->set_dtype(static_cast<tensorflow::DataType>(tensor.dtype()));
  auto* const shape = proto->mutable_tensor_shape();
  for (const int64_t dim : tensor.shape().dims()) shape->add_dim()->set_size(dim);
  if (tensor.dtype() != DType::kString) {
    proto->set_tensor_content(tensor.data(), tensor.bytes());
    return;
  }
  for (int64_t i = 0; i < tensor.elements(); ++i)
    proto->add_string_val(tensor.as<std::string>()[i]);
}

template <typename Nodes>
void PutValues(const VariableValues& variables, Nodes* nodes) {
  for (NodeDef& node : *nodes) {
    node.clear_device();  // of the machine that trained it
    const auto attr = node.mutable_attr()->find(kVariableAttr);
    if (attr == node.mutable_attr()->end()) continue;
    const auto value = variables.find(attr->second.s());
    node.mutable_attr()->erase(kVariableAttr);
    if (value != variables.end())
      PutValue(value->second, (*node.mutable_attr())["value"].mutable_tensor());
  }
}

absl::StatusOr<Frozen> Freeze(FreezeRequest request, const std::string& checkpoint,
                              GraphDef* graph) {
  std::unique_ptr<TensorBundle> bundle;
  const OpenCheckpoint open = [&]() -> absl::StatusOr<TensorBundle*> {
    if (bundle == nullptr) {
      FLOE_ASSIGN_OR_RETURN(bundle, TensorBundle::Open(checkpoint, kMaxFileBytes));
    }
    return bundle.get();
  };
  request.keep_tables_unused = false;
  FLOE_ASSIGN_OR_RETURN(FrozenGraph frozen, FreezeGraph(std::move(request), open, graph));
  Frozen result;
  result.signature = std::move(frozen.signatures[0]);
  result.initialisers = std::move(frozen.initialisers);
  uint64_t bytes = 0;
  for (const auto& [name, value] : frozen.variables) bytes += value.bytes();
  if (bytes >= static_cast<uint64_t>(INT32_MAX))
    return absl::InvalidArgumentError(absl::StrCat("the variables have ", bytes,
                                                   " bytes, and a GraphDef at most 2 GiB; serve "
                                                   "the SavedModel as it is"));
  PutValues(frozen.variables, graph->mutable_node());
  for (auto& function : *graph->mutable_library()->mutable_function())
    PutValues(frozen.variables, function.mutable_node_def());
  result.graph = std::move(*graph);
  return result;
}

absl::StatusOr<FileSignature> PickSignature(std::vector<FileSignature> signatures,
                                            const std::string& wanted) {
  std::vector<std::string> names;
  for (FileSignature& signature : signatures) {
    names.push_back(signature.def.name);
    const bool only = wanted.empty() && signatures.size() == 1;
    if (only || signature.def.name == (wanted.empty() ? "serving_default" : wanted))
      return std::move(signature);
  }
  return absl::NotFoundError(absl::StrCat("there is no signature ",
                                          Quoted(wanted.empty() ? "serving_default" : wanted),
                                          "; the SavedModel has ", QuotedList(names)));
}

absl::StatusOr<Frozen> FreezeSavedModelFile(const std::string& file,
                                            const std::vector<std::string>& tags,
                                            const std::string& signature) {
  FLOE_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(file, kMaxFileBytes));
  const auto saved = NewMessage<tensorflow::SavedModel>();
  FLOE_RETURN_IF_ERROR(ParseMessage(bytes.view(), saved.get()));
  FLOE_ASSIGN_OR_RETURN(tensorflow::MetaGraphDef * meta, ChooseMetaGraph(tags, saved.get()));
  const std::string directory = DirectoryOf(file);
  FreezeRequest request;
  request.signatures.resize(1);
  FLOE_ASSIGN_OR_RETURN(request.signatures[0], PickSignature(ReadSignatures(meta), signature));
  request.init_nodes = InitNodes(*meta);
  request.restore_op = meta->saver_def().restore_op_name();
  request.objects = CapturedVariables(*meta);
  for (const auto& [node, asset] : AssetFiles(*meta))
    request.assets[node] = absl::StrCat(directory, "/assets/", asset);
  return Freeze(std::move(request), CheckpointOf(directory), meta->mutable_graph_def());
}

// A MetaGraphDef is no GraphDef: their first fields differ.
absl::StatusOr<MessagePtr<tensorflow::MetaGraphDef>> ReadGraph(const std::string& file) {
  FLOE_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(file, kMaxFileBytes));
  if (absl::Status other = CheckNoOtherFormat(bytes.view()); !other.ok())
    return Annotate(other, file);
  auto meta = NewMessage<tensorflow::MetaGraphDef>();
  const absl::Status as_graph = ParseMessage(bytes.view(), meta->mutable_graph_def());
  if (as_graph.ok() && meta->graph_def().node_size() != 0) return meta;
  meta->Clear();
  const absl::Status as_meta = ParseMessage(bytes.view(), meta.get());
  if (as_meta.ok() && meta->graph_def().node_size() != 0) return meta;
  return Annotate(as_graph.ok() ? absl::InvalidArgumentError("the graph has no nodes") : as_graph,
                  file);
}

absl::StatusOr<FileSignature> SignatureOf(const std::vector<std::string>& outputs,
                                          const GraphDef& graph) {
  std::set<std::string> names;
  for (const NodeDef& node : graph.node()) names.insert(node.name());
  FileSignature signature;
  for (const std::string& output : outputs) {
    FLOE_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(output));
    if (names.count(name.node) == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Quoted(output), ": the graph has no such node; nearest: ",
                       QuotedList(NearestNames(output, {names.begin(), names.end()}))));
    signature.def.outputs.push_back(
        {.key = output, .tensor_name = TensorNameOf(name.node, name.output)});
  }
  signature.def.name = "";
  return signature;
}

}  // namespace

absl::StatusOr<Frozen> FreezeSavedModel(const std::string& path,
                                        const std::vector<std::string>& tags,
                                        const std::string& signature) {
  FLOE_ASSIGN_OR_RETURN(const FoundFormat found, DetectFormat(path));
  if (found.format == Format::kGraphDef) {
    FLOE_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(path, kMaxFileBytes));
    if (absl::Status other = CheckNoOtherFormat(bytes.view()); !other.ok())
      return Annotate(other, path);
  }
  if (found.format == Format::kKeras || found.format == Format::kHdf5)
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is a Keras file, which floe serves as it is; 'freeze' takes what "
                     "model.export() writes"));
  if (found.format != Format::kSavedModel)
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is no SavedModel; a graph with a checkpoint is frozen with --graph or "
                     "--meta, --checkpoint and --outputs"));
  absl::StatusOr<Frozen> frozen = WithinLimits(
      ImportOptions().limits, [&] { return FreezeSavedModelFile(found.file, tags, signature); });
  return frozen.ok() ? std::move(frozen) : Annotate(frozen.status(), path);
}

absl::StatusOr<Frozen> FreezeCheckpoint(const std::string& file, const std::string& checkpoint,
                                        const std::vector<std::string>& outputs) {
  return WithinLimits(ImportOptions().limits, [&]() -> absl::StatusOr<Frozen> {
    FLOE_ASSIGN_OR_RETURN(const auto meta, ReadGraph(file));
    FreezeRequest request;
    request.signatures.resize(1);
    FLOE_ASSIGN_OR_RETURN(request.signatures[0], SignatureOf(outputs, meta->graph_def()));
    request.init_nodes = InitNodes(*meta);
    request.restore_op = meta->saver_def().restore_op_name();
    return Freeze(std::move(request), checkpoint, meta->mutable_graph_def());
  });
}

}  // namespace floe
