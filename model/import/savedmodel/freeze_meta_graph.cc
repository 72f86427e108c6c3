#include "model/import/savedmodel/freeze_meta_graph.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/graphdef/graphdef.h"
#include "model/import/message_ptr.h"
#include "model/import/savedmodel/closure.h"
#include "model/import/savedmodel/freeze_variables.h"
#include "model/import/savedmodel/node_names.h"
#include "model/import/savedmodel/restore_plan.h"
#include "model/import/tensor_proto.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

std::vector<std::string> TensorNames(const std::vector<SignatureTensor>& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const SignatureTensor& tensor : tensors) names.push_back(tensor.tensor_name);
  return names;
}

bool FillsTable(const std::string& op) {
  return absl::StartsWith(op, "InitializeTable") || absl::StartsWith(op, "LookupTableImport") ||
         absl::StartsWith(op, "LookupTableInsert");
}

bool IsTableObject(const std::string& op) { return op.find("HashTable") != std::string::npos; }

class GraphFreezer {
 public:
  GraphFreezer(FreezeRequest request, const OpenCheckpoint& checkpoint, GraphDef* graph)
      : request_(std::move(request)), checkpoint_(checkpoint), graph_(*graph) {}

  absl::StatusOr<FrozenGraph> Run() {
    for (const FileSignature& signature : request_.signatures) {
      if (!signature.problem.ok()) frozen_.left_out[signature.def.name] = signature.problem;
    }
    FLOE_RETURN_IF_ERROR(CheckNames());
    SetAssets();
    TakeAssigned();
    FLOE_ASSIGN_OR_RETURN(plan_, PlanRestore(graph_, request_.restore_op));
    FindInitialisers();
    KeepNeeded();
    FLOE_ASSIGN_OR_RETURN(FrozenVariables variables, FreezeVariables(&graph_));
    refused_ = std::move(variables.refused);
    FLOE_RETURN_IF_ERROR(RestoreTables());
    LeaveOutRefused();
    FLOE_RETURN_IF_ERROR(ReadVariables());
    LeaveOutRefused();
    KeepNeeded();
    for (const FileSignature& signature : request_.signatures) {
      if (frozen_.left_out.count(signature.def.name) == 0)
        frozen_.signatures.push_back(signature.def);
    }
    if (frozen_.signatures.empty()) return NothingLeft();
    return std::move(frozen_);
  }

 private:
  absl::Status CheckNames() {
    std::set<std::string_view> names;
    for (const NodeDef& node : graph_.node()) {
      if (node.name().empty() || !names.insert(node.name()).second)
        return absl::InvalidArgumentError(
            absl::StrCat("node ", Quoted(node.name()), " (", Escaped(node.op()),
                         node.name().empty() ? "): has no name" : "): a second node of this name"));
    }
    for (const FileSignature& signature : request_.signatures) {
      for (const auto* tensors : {&signature.def.inputs, &signature.def.outputs}) {
        for (const SignatureTensor& tensor : *tensors) {
          const std::string node(SplitInput(tensor.tensor_name).node);
          if (names.count(node) != 0) continue;
          frozen_.left_out.emplace(signature.def.name, absl::InvalidArgumentError(absl::StrCat(
                                                           Quoted(tensor.key), " is the tensor ",
                                                           Quoted(tensor.tensor_name),
                                                           ", which the graph does not have")));
        }
      }
    }
    return absl::OkStatus();
  }

  // A file's name is a constant, whatever the graph has there.
  void SetAssets() {
    for (NodeDef& node : *graph_.mutable_node()) {
      const auto asset = request_.assets.find(node.name());
      if (asset == request_.assets.end()) continue;
      node.set_op("Const");
      node.clear_input();
      node.clear_attr();
      (*node.mutable_attr())["dtype"].set_type(tensorflow::DT_STRING);
      auto* const value = (*node.mutable_attr())["value"].mutable_tensor();
      value->set_dtype(tensorflow::DT_STRING);
      value->mutable_tensor_shape();
      value->add_string_val(asset->second);
    }
  }

  // A variable that is set to a constant at the start, such as the name of a vocabulary's file, has
  // that value and not the checkpoint's.
  void TakeAssigned() {
    const GraphClosure closure(graph_);
    const GraphClosure::Names started = closure.Needed(request_.init_nodes, {});
    for (NodeDef& node : *graph_.mutable_node()) {
      if (started.count(node.name()) == 0 || node.input_size() < 2 ||
          (node.op() != "AssignVariableOp" && node.op() != "Assign"))
        continue;
      const NodeDef* const variable = SourceOf(closure, node.input(0));
      const NodeDef* const value = SourceOf(closure, node.input(1));
      if (variable == nullptr || value == nullptr || value->op() != "Const" ||
          !(IsVariableHandle(variable->op()) || IsVariableReference(variable->op())) ||
          value->attr().count("value") == 0)
        continue;
      tensorflow::TensorProto proto = value->attr().at("value").tensor();
      absl::StatusOr<Tensor> tensor = TensorFromProto(&proto);
      if (!tensor.ok()) continue;
      assigned_[SharedName(*variable)] = *std::move(tensor);
      node.set_op("NoOp");
      node.clear_input();
      node.clear_attr();
    }
  }

  // The node that a value comes from, through what only passes it on.
  static const NodeDef* SourceOf(const GraphClosure& closure, const std::string& input) {
    constexpr int kMostSteps = 64;
    const NodeDef* node = closure.Find(SplitInput(input).node);
    for (int step = 0; step < kMostSteps && node != nullptr; ++step) {
      if (node->op() != "Identity" || node->input_size() == 0) return node;
      node = closure.Find(SplitInput(node->input(0)).node);
    }
    return nullptr;
  }

  // Of all that is to be run at the start only what may fill tables is kept.
  void FindInitialisers() {
    const GraphClosure closure(graph_);
    std::set<std::string_view> functions;
    for (const auto& function : graph_.library().function())
      functions.insert(function.signature().name());
    for (const std::string_view name : closure.Needed(request_.init_nodes, {})) {
      const NodeDef& node = *closure.Find(name);
      if (FillsTable(node.op()) || IsCallOp(node.op()) || functions.count(node.op()) != 0)
        frozen_.initialisers.emplace_back(name);
    }
    std::sort(frozen_.initialisers.begin(), frozen_.initialisers.end());
    if (request_.keep_tables_unused) return;
    const GraphClosure::Names needed = NeededBySignatures(closure);
    const bool any = std::any_of(needed.begin(), needed.end(), [&](std::string_view name) {
      return IsTableObject(closure.Find(name)->op());
    });
    if (!any) frozen_.initialisers.clear();
  }

  // A default is computed where nobody feeds.
  static std::set<std::string> FedBy(const GraphClosure& closure, const SignatureDef& def) {
    std::set<std::string> fed;
    for (const SignatureTensor& input : def.inputs) {
      const NodeDef* const node = closure.Find(SplitInput(input.tensor_name).node);
      if (node == nullptr || node->op() != "PlaceholderWithDefault") fed.insert(input.tensor_name);
    }
    return fed;
  }

  GraphClosure::Names NeededBySignatures(const GraphClosure& closure) const {
    GraphClosure::Names all;
    for (const FileSignature& signature : request_.signatures) {
      if (frozen_.left_out.count(signature.def.name) != 0) continue;
      all.merge(closure.Needed(TensorNames(signature.def.outputs), FedBy(closure, signature.def)));
    }
    return all;
  }

  void KeepNeeded() {
    const GraphClosure closure(graph_);
    GraphClosure::Names kept = NeededBySignatures(closure);
    kept.merge(closure.Needed(frozen_.initialisers, {}));
    std::map<std::string, std::string> moved;    // tensor -> the placeholder that stands for it
    std::map<std::string, SignatureTensor> fed;  // by node
    for (FileSignature& signature : request_.signatures) {
      if (frozen_.left_out.count(signature.def.name) != 0) continue;
      for (SignatureTensor& input : signature.def.inputs) {
        const NodeDef* const node = closure.Find(SplitInput(input.tensor_name).node);
        if (node == nullptr || kept.count(node->name()) != 0) continue;
        if (input.tensor_name != node->name())
          input.tensor_name =
              moved.try_emplace(input.tensor_name, UnusedName(closure, input)).first->second;
        fed.emplace(input.tensor_name, input);
      }
    }
    for (NodeDef& node : *graph_.mutable_node()) {
      if (const auto one = fed.find(node.name()); one != fed.end()) {
        BecomeInput(one->second, &node);
        kept.insert(node.name());
      }
      for (std::string& input : *node.mutable_input()) {
        if (const auto to = moved.find(input); to != moved.end()) input = to->second;
      }
    }
    KeepNodes(kept, &graph_);
    for (const auto& [tensor, placeholder] : moved) {
      NodeDef* const node = graph_.add_node();
      node->set_name(placeholder);
      BecomeInput(fed.at(placeholder), node);
    }
  }

  static std::string UnusedName(const GraphClosure& closure, const SignatureTensor& input) {
    std::string name = input.tensor_name;
    std::replace(name.begin(), name.end(), ':', '_');
    while (closure.Find(name) != nullptr) name += "_";
    return name;
  }

  // What nobody computes, but somebody feeds: nothing above it is there any more.
  static void BecomeInput(const SignatureTensor& input, NodeDef* node) {
    node->clear_input();
    if (node->op() == "Placeholder") return;
    node->set_op("Placeholder");
    node->clear_attr();
    (*node->mutable_attr())["dtype"].set_type(static_cast<tensorflow::DataType>(input.type.dtype));
    auto* const shape = (*node->mutable_attr())["shape"].mutable_shape();
    shape->set_unknown_rank(!input.type.shape.rank_known());
    for (const Dim dim : input.type.shape.dims())
      shape->add_dim()->set_size(dim.concrete() ? dim.size() : -1);
  }

  // ---- values ----

  absl::StatusOr<Tensor> Restored(const RestoredTensor& from) {
    FLOE_ASSIGN_OR_RETURN(TensorBundle * bundle, checkpoint_());
    return bundle->ReadPart(from.name, from.part);
  }

  // "part/part_1" without a saver that says more: the second slice of "part".
  absl::StatusOr<Tensor> ReadByName(const std::string& name) {
    FLOE_ASSIGN_OR_RETURN(TensorBundle * bundle, checkpoint_());
    const size_t cut = name.rfind("/part_");
    const std::string whole = name.substr(0, cut);
    size_t number = 0;
    if (bundle->Has(name) || cut == std::string::npos || !bundle->Has(whole) ||
        !absl::SimpleAtoi(name.substr(cut + 6), &number))
      return bundle->Read(name);
    FLOE_ASSIGN_OR_RETURN(auto slices, bundle->Slices(whole));
    std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return std::lexicographical_compare(
          a.begin(), a.end(), b.begin(), b.end(),
          [](const SliceRange& x, const SliceRange& y) { return x.start < y.start; });
    });
    if (number >= slices.size()) return bundle->Read(name);
    return bundle->ReadSlice(whole, slices[number]);
  }

  // A variable that the saver leaves out, as it does with those of Keras 3: as the object graph
  // says, if there is one.
  absl::StatusOr<Tensor> ReadByObject(const std::string& name) {
    const auto path = request_.objects.find(name);
    if (path == request_.objects.end()) return ReadByName(name);
    if (!objects_.has_value()) {
      FLOE_ASSIGN_OR_RETURN(TensorBundle * bundle, checkpoint_());
      if (!bundle->Has(CheckpointObjects::kName)) return ReadByName(name);
      FLOE_ASSIGN_OR_RETURN(const Tensor graph, bundle->Read(CheckpointObjects::kName));
      if (graph.dtype() != DType::kString || graph.elements() != 1) return ReadByName(name);
      FLOE_ASSIGN_OR_RETURN(objects_, CheckpointObjects::Parse(graph.as<std::string>()[0]));
    }
    const std::string key = objects_->KeyOf(path->second);
    return ReadByName(key.empty() ? name : key);
  }

  absl::StatusOr<Tensor> ReadVariable(const std::string& name) {
    const auto assigned = assigned_.find(name);
    if (assigned != assigned_.end()) return assigned->second;
    const auto planned = plan_.variables.find(name);
    absl::StatusOr<Tensor> value =
        planned != plan_.variables.end() ? Restored(planned->second) : ReadByObject(name);
    if (value.ok()) return value;
    return Annotate(value.status(), absl::StrCat("variable ", Quoted(name)));
  }

  absl::Status ReadVariables() {
    const GraphClosure closure(graph_);
    GraphClosure::Names needed = NeededBySignatures(closure);
    needed.merge(closure.Needed(frozen_.initialisers, {}));
    for (NodeDef& node : *graph_.mutable_node()) {
      if (needed.count(node.name()) == 0) continue;
      absl::Status read = ReadFor(&node);
      if (read.ok()) continue;
      // Other signatures may do without a variable that the checkpoint lacks; a file that is
      // missing or damaged is no good to any.
      if (!absl::IsNotFound(read)) return read;
      refused_.emplace(node.name(), Lacking(read));
    }
    for (auto& function : *graph_.mutable_library()->mutable_function()) {
      for (NodeDef& node : *function.mutable_node_def()) {
        const absl::Status read = ReadFor(&node);
        if (!read.ok())
          return Annotate(absl::IsNotFound(read) ? Lacking(read) : read,
                          absl::StrCat("function ", Quoted(function.signature().name())));
      }
    }
    return absl::OkStatus();
  }

  // Not as a file that is not found: a tensor does not come later.
  static absl::Status Lacking(const absl::Status& missing) {
    return absl::InvalidArgumentError(missing.message());
  }

  absl::Status ReadFor(NodeDef* node) {
    const auto attr = node->attr().find(kVariableAttr);
    if (attr == node->attr().end() || node->op() != "Const") return absl::OkStatus();
    const std::string& name = attr->second.s();
    auto [at, fresh] = frozen_.variables.try_emplace(name);
    if (fresh) {
      absl::StatusOr<Tensor> value = ReadVariable(name);
      if (!value.ok()) {
        frozen_.variables.erase(at);
        return value.status();
      }
      at->second = *std::move(value);
    }
    const auto declared = node->attr().find("dtype");
    const int dtype = declared == node->attr().end() ? 0 : declared->second.type();
    if (static_cast<int>(at->second.dtype()) == dtype) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("node ", Quoted(node->name()), ": the checkpoint has variable ", Quoted(name),
                     " as ", DTypeName(at->second.dtype()), ", the graph as dtype ", dtype));
  }

  // Tables whose entries are in the checkpoint are filled from constants.
  absl::Status RestoreTables() {
    std::vector<std::string> names;
    const GraphClosure closure(graph_);
    for (const auto& [name, entries] : plan_.tables) {
      if (closure.Find(name) != nullptr) names.push_back(name);
    }
    for (const std::string& name : names) {
      const RestorePlan::Entries& entries = plan_.tables.at(name);
      const auto made = NewMessage<NodeDef>();
      NodeDef& fill = *made;
      fill.set_name(absl::StrCat(name, "/floe_restore"));
      fill.set_op("LookupTableImportV2");
      fill.add_input(name);
      for (const auto& [what, from, attr] : {std::tuple("keys", &entries.keys, "Tin"),
                                             std::tuple("values", &entries.values, "Tout")}) {
        FLOE_ASSIGN_OR_RETURN(Tensor value, Restored(*from));
        const auto dtype = static_cast<tensorflow::DataType>(value.dtype());
        NodeDef* const constant = graph_.add_node();
        constant->set_name(absl::StrCat(fill.name(), "/", what));
        constant->set_op("Const");
        (*constant->mutable_attr())["dtype"].set_type(dtype);
        (*constant->mutable_attr())[kVariableAttr].set_s(constant->name());
        (*fill.mutable_attr())[attr].set_type(dtype);
        frozen_.variables[constant->name()] = std::move(value);
        fill.add_input(constant->name());
      }
      frozen_.initialisers.push_back(fill.name());
      *graph_.add_node() = std::move(fill);
    }
    return absl::OkStatus();
  }

  // ---- signatures that cannot be ----

  void LeaveOutRefused() {
    if (refused_.empty()) return;
    const GraphClosure closure(graph_);
    auto& initialisers = frozen_.initialisers;
    std::erase_if(initialisers, [&](const std::string& node) {
      const GraphClosure::Names needed = closure.Needed({node}, {});
      return std::any_of(refused_.begin(), refused_.end(),
                         [&](const auto& one) { return needed.count(one.first) != 0; });
    });
    for (const FileSignature& signature : request_.signatures) {
      if (frozen_.left_out.count(signature.def.name) != 0) continue;
      const GraphClosure::Names needed =
          closure.Needed(TensorNames(signature.def.outputs), FedBy(closure, signature.def));
      for (const auto& [node, why] : refused_) {
        if (needed.count(node) == 0) continue;
        frozen_.left_out[signature.def.name] = why;
        break;
      }
    }
  }

  absl::Status NothingLeft() const {
    if (request_.signatures.empty())
      return absl::InvalidArgumentError(
          "it has no signatures, and no function that was traced before it was saved; export it "
          "with one (tf.saved_model.save(model, path, signatures=...)), or name its inputs and "
          "outputs in the configuration "
          "(signature.inputs, signature.outputs)");
    const auto usual = frozen_.left_out.find("serving_default");
    const auto& [name, why] = usual != frozen_.left_out.end() ? *usual : *frozen_.left_out.begin();
    return name.empty() ? why : Annotate(why, absl::StrCat("signature ", Quoted(name)));
  }

  FreezeRequest request_;
  const OpenCheckpoint& checkpoint_;
  GraphDef& graph_;
  RestorePlan plan_;
  std::map<std::string, Tensor> assigned_;  // by SharedName
  std::optional<CheckpointObjects> objects_;
  std::map<std::string, absl::Status> refused_;
  FrozenGraph frozen_;
};

}  // namespace

absl::StatusOr<FrozenGraph> FreezeGraph(FreezeRequest request, const OpenCheckpoint& checkpoint,
                                        GraphDef* graph) {
  return GraphFreezer(std::move(request), checkpoint, graph).Run();
}

}  // namespace floe
