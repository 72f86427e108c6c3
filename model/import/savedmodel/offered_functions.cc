#include "model/import/savedmodel/offered_functions.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/savedmodel/closure.h"
#include "model/import/savedmodel/node_names.h"
#include "model/import/savedmodel/object_graph.h"
#include "model/import/savedmodel/structure.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace floe {
namespace {

using tensorflow::FunctionDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::SavedConcreteFunction;
using tensorflow::SavedObject;

constexpr char kKerasExport[] = "_default_save_signature";

// A function under the name that it is offered by.
struct Offer {
  std::string name;
  const tensorflow::SavedFunction* function;
};

// Finds the functions that users wrote.
class Finder {
 public:
  explicit Finder(const tensorflow::SavedObjectGraph& objects) : objects_(objects) {}

  std::vector<Offer> Find() {
    if (objects_.nodes_size() != 0) Visit(0, "");
    return std::move(offers_);
  }

 private:
  void Visit(int root, const std::string& root_name) {
    std::vector<std::pair<int, std::string>> open = {{root, root_name}};
    for (size_t at = 0; at < open.size(); ++at) {
      const auto [object, name] = open[at];
      if (!seen_.insert(object).second || TakeOf(object, name)) continue;
      for (const auto& child : objects_.nodes(object).children()) {
        const std::string& edge = child.local_name();
        if (!Known(child.node_id()) || edge.empty() || edge[0] == '_' || edge == "signatures" ||
            !objects_.nodes(child.node_id()).has_user_object())
          continue;
        open.emplace_back(child.node_id(), name.empty() ? edge : absl::StrCat(name, ".", edge));
      }
    }
  }

  // What one object has; false: nothing.
  bool TakeOf(int object, const std::string& name) {
    const size_t before = offers_.size();
    const tensorflow::SavedFunction* exported = nullptr;
    for (const auto& child : objects_.nodes(object).children()) {
      if (!Known(child.node_id()) || !objects_.nodes(child.node_id()).has_function()) continue;
      const std::string& edge = child.local_name();
      const tensorflow::SavedFunction& function = objects_.nodes(child.node_id()).function();
      if (edge == kKerasExport) exported = &function;
      if (function.concrete_functions_size() == 0 || edge.empty() ||
          (edge[0] == '_' && edge != "__call__"))
        continue;
      offers_.push_back({name.empty() ? edge : absl::StrCat(name, ".", edge), &function});
    }
    if (offers_.size() == before && exported != nullptr && exported->concrete_functions_size() != 0)
      offers_.push_back({name.empty() ? kKerasExport : name, exported});
    return offers_.size() != before;
  }

  bool Known(int object) const { return object >= 0 && object < objects_.nodes_size(); }

  const tensorflow::SavedObjectGraph& objects_;
  std::set<int> seen_;
  std::vector<Offer> offers_;
};

// Adds calls of functions to the graph.
class Caller {
 public:
  explicit Caller(MetaGraphDef* meta)
      : meta_(*meta), objects_(meta->object_graph_def()), tensors_(CapturedTensors(*meta)) {
    for (const NodeDef& node : meta_.graph_def().node()) names_.insert(node.name());
    for (const FunctionDef& function : meta_.graph_def().library().function())
      functions_.emplace(function.signature().name(), &function);
  }

  FileSignature Call(const std::string& name, const std::string& function) {
    FileSignature signature;
    signature.def.name = name;
    signature.problem = Add(function, &signature.def);
    return signature;
  }

 private:
  absl::Status Add(const std::string& name, SignatureDef* def) {
    const auto found = functions_.find(name);
    const auto saved = objects_.concrete_functions().find(name);
    if (found == functions_.end() || saved == objects_.concrete_functions().end())
      return absl::InvalidArgumentError(
          absl::StrCat("the graph's library has no function ", Quoted(name)));
    const tensorflow::OpDef& op = found->second->signature();
    const int arguments = op.input_arg_size() - saved->second.bound_inputs_size();
    if (arguments < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("function ", Quoted(name), " captures more than it has arguments"));
    std::vector<std::string> captures;
    for (const int object : saved->second.bound_inputs()) {
      FLOE_ASSIGN_OR_RETURN(std::string tensor, TensorOf(object));
      captures.push_back(std::move(tensor));
    }
    FLOE_RETURN_IF_ERROR(ReadInputs(saved->second, op, arguments, def));
    FLOE_RETURN_IF_ERROR(ReadOutputs(saved->second, op, def));
    AddCall(op, captures, def);
    return absl::OkStatus();
  }

  static absl::Status ReadInputs(const SavedConcreteFunction& saved, const tensorflow::OpDef& op,
                                 int arguments, SignatureDef* def) {
    const auto& structure = saved.canonicalized_input_signature();
    std::vector<StructureTensor> tensors;
    for (const auto& part : structure.tuple_value().values()) {
      FLOE_ASSIGN_OR_RETURN(std::vector<StructureTensor> more, FlattenStructure(part, ""));
      tensors.insert(tensors.end(), more.begin(), more.end());
    }
    if (static_cast<int>(tensors.size()) != arguments) tensors.resize(arguments);
    std::set<std::string> keys;
    for (int k = 0; k < arguments; ++k) {
      const auto& argument = op.input_arg(k);
      std::string key = tensors[k].name.empty() ? argument.name() : tensors[k].name;
      while (!keys.insert(key).second) key += "_";
      FLOE_ASSIGN_OR_RETURN(SignatureTensor input, SignatureTensorOf(key, argument, tensors[k]));
      def->inputs.push_back(std::move(input));
    }
    return absl::OkStatus();
  }

  static absl::Status ReadOutputs(const SavedConcreteFunction& saved, const tensorflow::OpDef& op,
                                  SignatureDef* def) {
    FLOE_ASSIGN_OR_RETURN(std::vector<StructureTensor> tensors,
                          FlattenStructure(saved.output_signature(), "output"));
    if (op.output_arg_size() == 0) return absl::InvalidArgumentError("it returns no tensor");
    if (static_cast<int>(tensors.size()) != op.output_arg_size()) {
      tensors.assign(op.output_arg_size(), {});
      for (size_t k = 0; k < tensors.size(); ++k) tensors[k].path = absl::StrCat("output_", k);
    }
    for (size_t k = 0; k < tensors.size(); ++k) {
      FLOE_ASSIGN_OR_RETURN(
          SignatureTensor output,
          SignatureTensorOf(tensors[k].path, op.output_arg(static_cast<int>(k)), tensors[k]));
      def->outputs.push_back(std::move(output));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<SignatureTensor> SignatureTensorOf(
      const std::string& key, const tensorflow::OpDef::ArgDef& argument,
      const StructureTensor& tensor) {
    SignatureTensor made{.key = key};
    absl::StatusOr<DType> dtype = DTypeFromNumber(argument.type());
    if (!dtype.ok()) return Annotate(dtype.status(), Quoted(key));
    made.type.dtype = *dtype;
    made.type.shape = tensor.type.dtype == *dtype ? tensor.type.shape : SymShape::UnknownRank();
    return made;
  }

  void AddCall(const tensorflow::OpDef& op, const std::vector<std::string>& captures,
               SignatureDef* def) {
    NodeDef call;
    const std::string name = absl::StrCat("function/", def->name);
    call.set_name(UnusedName(name));
    call.set_op("StatefulPartitionedCall");
    auto& attr = *call.mutable_attr();
    attr["f"].mutable_func()->set_name(op.name());
    for (const auto& argument : op.input_arg())
      attr["Tin"].mutable_list()->add_type(argument.type());
    for (const auto& result : op.output_arg()) attr["Tout"].mutable_list()->add_type(result.type());
    for (SignatureTensor& input : def->inputs) {
      input.tensor_name = UnusedName(absl::StrCat(name, "_", input.key));
      NodeDef* const placeholder = meta_.mutable_graph_def()->add_node();
      placeholder->set_name(input.tensor_name);
      placeholder->set_op("Placeholder");
      auto& attrs = *placeholder->mutable_attr();
      attrs["dtype"].set_type(static_cast<tensorflow::DataType>(input.type.dtype));
      ShapeToProto(input.type.shape, attrs["shape"].mutable_shape());
      call.add_input(input.tensor_name);
    }
    for (const std::string& capture : captures) call.add_input(capture);
    for (size_t k = 0; k < def->outputs.size(); ++k)
      def->outputs[k].tensor_name = CanonicalTensor(absl::StrCat(call.name(), ":", k));
    *meta_.mutable_graph_def()->add_node() = std::move(call);
  }

  static void ShapeToProto(const SymShape& shape, tensorflow::TensorShapeProto* proto) {
    proto->set_unknown_rank(!shape.rank_known());
    if (!shape.rank_known()) return;
    for (const Dim dim : shape.dims()) proto->add_dim()->set_size(dim.concrete() ? dim.size() : -1);
  }

  // The tensor of the graph that stands for an object.
  absl::StatusOr<std::string> TensorOf(int object) {
    if (object < 0 || object >= objects_.nodes_size())
      return absl::InvalidArgumentError(
          absl::StrCat("captures object ", object, ", and there are ", objects_.nodes_size()));
    const auto [at, fresh] = tensors_.try_emplace(object);
    if (fresh) at->second = MakeTensor(object);
    if (!at->second.empty()) return at->second;
    return absl::UnimplementedError(absl::StrCat(
        "captures object ", object,
        " of the program, which is no variable, table, constant or file that the graph has"));
  }

  std::string MakeTensor(int number) {
    const SavedObject& object = objects_.nodes(number);
    if (object.has_constant())
      return names_.count(object.constant().operation()) != 0 ? object.constant().operation() : "";
    if (object.has_asset()) {
      const int index = object.asset().asset_file_def_index();
      return index < 0 || index >= meta_.asset_file_def_size()
                 ? ""
                 : CanonicalTensor(meta_.asset_file_def(index).tensor_info().name());
    }
    if (object.has_resource()) return TableOf(object);
    if (!object.has_variable()) return "";
    NodeDef* const handle = meta_.mutable_graph_def()->add_node();
    handle->set_name(UnusedName(object.variable().name()));
    handle->set_op("VarHandleOp");
    (*handle->mutable_attr())["dtype"].set_type(object.variable().dtype());
    (*handle->mutable_attr())["shared_name"].set_s(handle->name());
    return handle->name();
  }

  // The graph's node of a table is the one that its object would make.
  std::string TableOf(const SavedObject& object) const {
    const auto shared_name = [](const NodeDef& node) {
      const auto name = node.attr().find("shared_name");
      return name == node.attr().end() ? "" : name->second.s();
    };
    for (const auto& child : object.children()) {
      if (child.local_name() != "_create_resource" || child.node_id() < 0 ||
          child.node_id() >= objects_.nodes_size())
        continue;
      for (const std::string& name :
           objects_.nodes(child.node_id()).function().concrete_functions()) {
        const auto creator = functions_.find(name);
        if (creator == functions_.end()) continue;
        for (const NodeDef& made : creator->second->node_def()) {
          for (const NodeDef& node : meta_.graph_def().node()) {
            if (!shared_name(made).empty() && node.op() == made.op() &&
                shared_name(node) == shared_name(made))
              return node.name();
          }
        }
      }
    }
    return "";
  }

  std::string UnusedName(std::string name) {
    if (name.empty()) name = "object";
    while (!names_.insert(name).second) name += "_";
    return name;
  }

  MetaGraphDef& meta_;
  const tensorflow::SavedObjectGraph& objects_;
  std::map<int, std::string> tensors_;  // by object; empty: none
  std::set<std::string> names_;
  std::unordered_map<std::string, const FunctionDef*> functions_;
};

std::vector<std::string> Traces(const tensorflow::SavedFunction& function,
                                const tensorflow::SavedObjectGraph& objects) {
  std::vector<std::string> traces(function.concrete_functions().begin(),
                                  function.concrete_functions().end());
  std::stable_partition(traces.begin(), traces.end(), [&objects](const std::string& name) {
    const auto saved = objects.concrete_functions().find(name);
    return saved == objects.concrete_functions().end() ||
           !HasTrue(saved->second.canonicalized_input_signature());
  });
  return traces;
}

}  // namespace

std::vector<FileSignature> OfferFunctions(MetaGraphDef* meta) {
  const std::vector<Offer> offers = Finder(meta->object_graph_def()).Find();
  std::vector<FileSignature> signatures;
  std::set<std::string> names;
  Caller caller(meta);
  for (const Offer& offer : offers) {
    const std::vector<std::string> traces = Traces(*offer.function, meta->object_graph_def());
    for (size_t k = 0; k < traces.size(); ++k) {
      std::string name = k == 0 ? offer.name : absl::StrCat(offer.name, "_", k + 1);
      while (!names.insert(name).second) name += "_";
      signatures.push_back(caller.Call(name, traces[k]));
    }
  }
  const auto usual = offers.size() == 1
                         ? signatures.begin()
                         : std::find_if(signatures.begin(), signatures.end(),
                                        [](const auto& one) { return one.def.name == "__call__"; });
  if (usual != signatures.end()) {
    FileSignature copy = *usual;
    copy.def.name = "serving_default";
    signatures.push_back(std::move(copy));
  }
  return signatures;
}

}  // namespace floe
