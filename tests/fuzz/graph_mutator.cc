#include "tests/fuzz/graph_mutator.h"

#include <algorithm>
#include <set>

#include "model/op_def.h"

namespace floe::fuzz {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::TensorProto;

constexpr int kMaxNodes = 60;
constexpr size_t kMaxTemplates = 16;  // of one op or attribute

// Every name that files use for ops: what floe registers and what the importer takes apart itself.
const std::vector<std::string>& OpNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {
        "PartitionedCall", "StatefulPartitionedCall", "If",   "While",
        "StatelessIf",     "StatelessWhile",          "Case", "StatelessCase"};
    for (const OpDef* op : AllOps())
      all.insert(all.end(), op->tensorflow.begin(), op->tensorflow.end());
    return all;
  }();
  return names;
}

constexpr const char* kWords[] = {"SAME",    "VALID",     "EXPLICIT", "NHWC",      "NCHW",
                                  "REFLECT", "SYMMETRIC", "linear",   "bc,cd->bd", "...a->a",
                                  "frame",   "NDHWC",     "DCR",      "x"};

constexpr DataType kTypes[] = {
    tensorflow::DT_FLOAT,    tensorflow::DT_DOUBLE,    tensorflow::DT_HALF,
    tensorflow::DT_BFLOAT16, tensorflow::DT_INT32,     tensorflow::DT_INT64,
    tensorflow::DT_INT8,     tensorflow::DT_UINT8,     tensorflow::DT_INT16,
    tensorflow::DT_UINT16,   tensorflow::DT_UINT32,    tensorflow::DT_UINT64,
    tensorflow::DT_BOOL,     tensorflow::DT_COMPLEX64, tensorflow::DT_STRING,
    tensorflow::DT_VARIANT,  tensorflow::DT_RESOURCE};

std::string NodeName(const std::string& input) {
  const std::string plain = !input.empty() && input[0] == '^' ? input.substr(1) : input;
  return plain.substr(0, plain.find(':'));
}

// Calls `change` for every dtype in the message.
template <typename Change>
void EachType(google::protobuf::Message* message, const Change& change) {
  const auto& reflection = *message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_ENUM) {
      if (!field->is_repeated()) {
        reflection.SetEnumValue(message, field, change(reflection.GetEnumValue(*message, field)));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i)
        reflection.SetRepeatedEnumValue(
            message, field, i, change(reflection.GetRepeatedEnumValue(*message, field, i)));
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) {
        EachType(reflection.MutableMessage(message, field), change);
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i)
        EachType(reflection.MutableRepeatedMessage(message, field, i), change);
    }
  }
}

// Values in the list of the tensor's dtype instead of bytes, so that dtype and shape may change.
void AddValue(TensorProto* tensor, int64_t number, double real) {
  switch (tensor->dtype()) {
    case tensorflow::DT_FLOAT:
      tensor->add_float_val(static_cast<float>(real));
      break;
    case tensorflow::DT_DOUBLE:
      tensor->add_double_val(real);
      break;
    case tensorflow::DT_INT64:
      tensor->add_int64_val(number);
      break;
    case tensorflow::DT_BOOL:
      tensor->add_bool_val((number & 1) != 0);
      break;
    case tensorflow::DT_STRING:
      tensor->add_string_val(number % 3 == 0 ? "" : std::to_string(number) + " a");
      break;
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      tensor->add_half_val(static_cast<int>(number & 0xffff));
      break;
    case tensorflow::DT_COMPLEX64:
      tensor->add_scomplex_val(static_cast<float>(real));
      tensor->add_scomplex_val(1);
      break;
    case tensorflow::DT_UINT32:
      tensor->add_uint32_val(static_cast<uint32_t>(number));
      break;
    case tensorflow::DT_UINT64:
      tensor->add_uint64_val(static_cast<uint64_t>(number));
      break;
    default:
      tensor->add_int_val(static_cast<int>(number));
      break;
  }
}

void ClearValues(TensorProto* tensor) {
  const tensorflow::TensorShapeProto shape = tensor->tensor_shape();
  const DataType dtype = tensor->dtype();
  tensor->Clear();
  tensor->set_dtype(dtype);
  *tensor->mutable_tensor_shape() = shape;
}

}  // namespace

Templates& Templates::Shared() {
  static Templates shared;
  return shared;
}

void Templates::LearnNode(const NodeDef& node) {
  constexpr size_t kMaxBytes = 1000;
  if (node.ByteSizeLong() > kMaxBytes) return;
  const bool known = std::find(OpNames().begin(), OpNames().end(), node.op()) != OpNames().end();
  if (!known) return;
  std::vector<NodeDef>& seen = nodes_[node.op()];
  if (seen.empty()) ops_.push_back(node.op());
  if (seen.size() < kMaxTemplates) seen.push_back(node);
  for (const auto& [name, value] : node.attr()) {
    std::vector<AttrValue>& values = attrs_[name];
    if (values.empty()) attr_names_.push_back(name);
    if (values.size() < kMaxTemplates) values.push_back(value);
  }
}

void Templates::Learn(const GraphDef& graph) {
  for (const NodeDef& node : graph.node()) LearnNode(node);
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) LearnNode(node);
  }
}

const NodeDef* Templates::Node(Random& random) const {
  return ops_.empty() ? nullptr : &random.Pick(nodes_.at(random.Pick(ops_)));
}

const AttrValue* Templates::Attr(const std::string& name, Random& random) const {
  const auto found = attrs_.find(name);
  return found == attrs_.end() ? nullptr : &random.Pick(found->second);
}

const std::string& Templates::AttrName(Random& random) const {
  static const std::string kFallback = "T";
  return attr_names_.empty() ? kFallback : random.Pick(attr_names_);
}

GraphMutator::Scope GraphMutator::PickScope() {
  Scope scope{graph_.mutable_node(), nullptr, {}};
  if (graph_.library().function_size() != 0 && !random_.OneIn(3)) {
    scope.function =
        graph_.mutable_library()->mutable_function(random_.Below(graph_.library().function_size()));
    scope.nodes = scope.function->mutable_node_def();
    for (const auto& argument : scope.function->signature().input_arg())
      scope.values.push_back(argument.name());
  }
  for (const NodeDef& node : *scope.nodes) {
    scope.values.push_back(OutputOf(scope, node.name()));
    for (const std::string& input : node.input()) scope.values.push_back(input);
  }
  return scope;
}

std::string GraphMutator::OutputOf(const Scope& scope, const std::string& node) {
  const std::string number = std::to_string(random_.OneIn(4) ? random_.Below(4) : 0);
  if (scope.function != nullptr) return node + ":output:" + number;
  return number == "0" ? node : node + ":" + number;
}

std::string GraphMutator::Value(const Scope& scope) {
  return scope.values.empty() ? "x" : random_.Pick(scope.values);
}

std::string GraphMutator::FreshName() { return "n" + std::to_string(random_.Below(100000)); }

NodeDef* GraphMutator::AnyNode(const Scope& scope) {
  return scope.nodes->empty() ? nullptr : scope.nodes->Mutable(random_.Below(scope.nodes->size()));
}

void GraphMutator::Mutate() {
  using Change = void (GraphMutator::*)();
  static constexpr Change kChanges[] = {
      &GraphMutator::AddNode,           &GraphMutator::AddNode,
      &GraphMutator::InsertOnEdge,      &GraphMutator::InsertOnEdge,
      &GraphMutator::RemoveNode,        &GraphMutator::DuplicateNode,
      &GraphMutator::ChangeInputs,      &GraphMutator::ChangeInputs,
      &GraphMutator::ChangeOp,          &GraphMutator::ChangeAttr,
      &GraphMutator::ChangeAttr,        &GraphMutator::ChangeAttr,
      &GraphMutator::ChangeTensor,      &GraphMutator::ChangeTensor,
      &GraphMutator::ChangeTensor,      &GraphMutator::ChangeDtypes,
      &GraphMutator::ChangePlaceholder, &GraphMutator::ChangeLibrary,
      &GraphMutator::ChangePlaceholder};
  if (random_.OneIn(15)) {
    fields_.Mutate(&graph_);
  } else {
    (this->*random_.Pick(kChanges))();
  }
}

// A copy under a new name, its inputs among the scope's values. Its output goes into `scope`.
void GraphMutator::NewNodeLike(const NodeDef& node, Scope& scope, const std::string& first_input) {
  if (scope.nodes->size() >= kMaxNodes) return;
  NodeDef made = node;
  made.set_name(FreshName());
  for (int i = 0; i < made.input_size(); ++i)
    made.set_input(i, i == 0 && !first_input.empty() ? first_input : Value(scope));
  scope.values.push_back(OutputOf(scope, made.name()));
  *scope.nodes->Add() = std::move(made);
}

void GraphMutator::AddNode() {
  Scope scope = PickScope();
  const NodeDef* like = Templates::Shared().Node(random_);
  if (like == nullptr) return;
  NodeDef node = *like;
  if (random_.OneIn(8)) node.set_op(random_.Pick(OpNames()));
  NewNodeLike(node, scope, "");
}

// A new node takes the place of a value that another node reads.
void GraphMutator::InsertOnEdge() {
  Scope scope = PickScope();
  const NodeDef* like = Templates::Shared().Node(random_);
  const int reader = scope.nodes->empty() ? -1 : random_.Below(scope.nodes->size());
  if (like == nullptr || reader < 0 || scope.nodes->Get(reader).input_size() == 0) return;
  const int input = random_.Below(scope.nodes->Get(reader).input_size());
  NewNodeLike(*like, scope, scope.nodes->Get(reader).input(input));
  const std::string& name = scope.nodes->Get(scope.nodes->size() - 1).name();
  scope.nodes->Mutable(reader)->set_input(input, OutputOf(scope, name));
}

// Readers of the node get its first input, or now and then nothing that exists.
void GraphMutator::RemoveNode() {
  const Scope scope = PickScope();
  if (scope.nodes->size() < 2) return;
  const int index = random_.Below(scope.nodes->size());
  const NodeDef gone = scope.nodes->Get(index);
  scope.nodes->DeleteSubrange(index, 1);
  if (gone.input_size() == 0 || random_.OneIn(8)) return;
  for (NodeDef& node : *scope.nodes) {
    for (std::string& input : *node.mutable_input()) {
      if (NodeName(input) == gone.name()) input = gone.input(0);
    }
  }
}

void GraphMutator::DuplicateNode() {
  Scope scope = PickScope();
  const NodeDef* node = AnyNode(scope);
  if (node == nullptr || scope.nodes->size() >= kMaxNodes) return;
  NodeDef copy = *node;
  if (!random_.OneIn(20)) copy.set_name(FreshName());
  *scope.nodes->Add() = std::move(copy);
}

void GraphMutator::ChangeInputs() {
  const Scope scope = PickScope();
  NodeDef* node = AnyNode(scope);
  if (node == nullptr) return;
  const int inputs = node->input_size();
  const int index = inputs == 0 ? 0 : random_.Below(inputs);
  switch (inputs == 0 ? 0 : random_.Below(7)) {
    case 0:
      node->add_input(Value(scope));
      break;
    case 1:
      node->add_input("^" + NodeName(Value(scope)));
      break;
    case 2:
      node->mutable_input()->SwapElements(index, random_.Below(inputs));
      break;
    case 3:
      node->mutable_input()->DeleteSubrange(index, 1);
      break;
    case 4:
      node->set_input(index, NodeName(node->input(index)) + ":" + std::to_string(random_.Below(5)));
      break;
    default:
      node->set_input(index, Value(scope));
      break;
  }
}

void GraphMutator::ChangeOp() {
  const Scope scope = PickScope();
  if (NodeDef* node = AnyNode(scope)) {
    const NodeDef* like = Templates::Shared().Node(random_);
    const bool same_inputs = like != nullptr && like->input_size() == node->input_size();
    node->set_op(same_inputs ? like->op() : random_.Pick(OpNames()));
    if (!same_inputs || random_.OneIn(2)) return;
    *node->mutable_attr() = like->attr();
  }
}

void GraphMutator::MutateShape(tensorflow::TensorShapeProto* shape) {
  const int rank = shape->dim_size();
  const int64_t size = random_.OneIn(6) ? random_.Integer() : random_.Below(5) - 1;
  switch (random_.Below(5)) {
    case 0:
      shape->add_dim()->set_size(size);
      break;
    case 1:
      if (rank > 0) shape->mutable_dim()->RemoveLast();
      break;
    case 2:
      shape->set_unknown_rank(random_.OneIn(2));
      break;
    default:
      if (rank > 0) shape->mutable_dim(random_.Below(rank))->set_size(size);
      break;
  }
}

void GraphMutator::MutateTensor(TensorProto* tensor) {
  if (random_.OneIn(12)) tensor->set_dtype(random_.Pick(kTypes));
  if (random_.OneIn(4)) {
    MutateShape(tensor->mutable_tensor_shape());
    if (random_.OneIn(6)) return;  // with values that may not fit
  }
  ClearValues(tensor);
  int64_t elements = 1;
  constexpr int64_t kMaxValues = 24;
  for (const auto& dim : tensor->tensor_shape().dim())
    elements = std::clamp<int64_t>(dim.size(), 0, kMaxValues) * elements % (kMaxValues + 1);
  const bool splat = random_.OneIn(3);
  for (int64_t i = 0; i < (splat ? std::min<int64_t>(elements, 1) : elements); ++i) {
    AddValue(tensor, random_.OneIn(8) ? random_.Integer() : random_.Below(7) - 2, random_.Real());
  }
}

void GraphMutator::MutateAttr(AttrValue* value) {
  switch (value->value_case()) {
    case AttrValue::kType:
      value->set_type(random_.OneIn(20) ? static_cast<DataType>(random_.Below(200))
                                        : random_.Pick(kTypes));
      break;
    case AttrValue::kShape:
      MutateShape(value->mutable_shape());
      break;
    case AttrValue::kTensor:
      MutateTensor(value->mutable_tensor());
      break;
    case AttrValue::kI:
      value->set_i(random_.OneIn(2) ? random_.Below(6) - 1 : random_.Integer());
      break;
    case AttrValue::kF:
      value->set_f(static_cast<float>(random_.Real()));
      break;
    case AttrValue::kB:
      value->set_b(!value->b());
      break;
    case AttrValue::kS:
      value->set_s(random_.OneIn(2) ? random_.Pick(kWords) : fields_.Text(value->s()));
      break;
    case AttrValue::kFunc:
      if (graph_.library().function_size() != 0) {
        const int index = random_.Below(graph_.library().function_size());
        value->mutable_func()->set_name(graph_.library().function(index).signature().name());
      }
      break;
    default:
      fields_.Mutate(value);
      break;
  }
}

void GraphMutator::ChangeAttr() {
  const Scope scope = PickScope();
  NodeDef* node = AnyNode(scope);
  if (node == nullptr) return;
  auto& attrs = *node->mutable_attr();
  if (attrs.empty() || random_.OneIn(8)) {  // one that other nodes have
    const std::string name = Templates::Shared().AttrName(random_);
    if (const AttrValue* value = Templates::Shared().Attr(name, random_)) attrs[name] = *value;
    return;
  }
  auto it = std::next(attrs.begin(), random_.Below(attrs.size()));
  if (random_.OneIn(12)) {
    attrs.erase(it);
  } else if (const AttrValue* value = Templates::Shared().Attr(it->first, random_);
             value != nullptr && random_.OneIn(3)) {
    it->second = *value;
  } else {
    MutateAttr(&it->second);
  }
}

void GraphMutator::ChangeTensor() {
  const Scope scope = PickScope();
  std::vector<TensorProto*> tensors;
  for (NodeDef& node : *scope.nodes) {
    for (auto& [name, value] : *node.mutable_attr()) {
      if (value.has_tensor()) tensors.push_back(value.mutable_tensor());
    }
  }
  if (!tensors.empty()) MutateTensor(random_.Pick(tensors));
}

// One dtype becomes another everywhere, which keeps a graph's types in agreement.
void GraphMutator::ChangeDtypes() {
  const int from = random_.OneIn(2) ? tensorflow::DT_FLOAT : random_.Pick(kTypes);
  const int to = random_.Pick(kTypes);
  EachType(&graph_, [&](int type) { return type == from ? to : type; });
  for (NodeDef& node : *graph_.mutable_node()) {
    const auto value = node.mutable_attr()->find("value");
    if (value == node.mutable_attr()->end() || !value->second.has_tensor()) continue;
    TensorProto* tensor = value->second.mutable_tensor();
    if (tensor->dtype() != to) continue;
    ClearValues(tensor);
    AddValue(tensor, random_.Below(3), random_.Real());
  }
}

void GraphMutator::ChangePlaceholder() {
  for (int attempt = 0; attempt < 8; ++attempt) {
    NodeDef* node = AnyNode({graph_.mutable_node(), nullptr, {}});
    if (node == nullptr || node->op() != "Placeholder") continue;
    AttrValue& value = (*node->mutable_attr())[random_.OneIn(5) ? "dtype" : "shape"];
    if (value.value_case() == AttrValue::VALUE_NOT_SET) value.mutable_shape();
    MutateAttr(&value);
    return;
  }
}

void GraphMutator::ChangeLibrary() {
  auto& functions = *graph_.mutable_library()->mutable_function();
  if (functions.empty()) return;
  tensorflow::FunctionDef* function = functions.Mutable(random_.Below(functions.size()));
  auto* signature = function->mutable_signature();
  switch (random_.Below(7)) {
    case 0:
      if (functions.size() < 8) {
        const tensorflow::FunctionDef copy = *function;
        *functions.Add() = copy;
        if (!random_.OneIn(4))
          functions.Mutable(functions.size() - 1)->mutable_signature()->set_name(FreshName());
      }
      break;
    case 1:
      signature->add_input_arg()->set_name(FreshName());
      break;
    case 2:
      if (signature->input_arg_size() != 0) signature->mutable_input_arg()->RemoveLast();
      break;
    case 3:
      if (signature->output_arg_size() != 0) signature->mutable_output_arg()->RemoveLast();
      break;
    case 4: {
      const std::string name = FreshName();
      signature->add_output_arg()->set_name(name);
      (*function->mutable_ret())[name] =
          function->ret().empty() ? "x" : function->ret().begin()->second;
      break;
    }
    case 5:
      fields_.Mutate(function);
      break;
    default:
      if (!function->ret().empty() && !function->node_def().empty()) {
        auto it = std::next(function->mutable_ret()->begin(), random_.Below(function->ret_size()));
        it->second = function->node_def(random_.Below(function->node_def_size())).name() + ":o:0";
      }
      break;
  }
}

void GraphMutator::Splice(const GraphDef& other) {
  if (other.node().empty()) return;
  Scope scope = PickScope();
  // A node and what it reads, a few steps back.
  std::set<std::string> wanted = {other.node(random_.Below(other.node_size())).name()};
  for (int i = other.node_size() - 1; i >= 0; --i) {
    const NodeDef& node = other.node(i);
    if (wanted.count(node.name()) == 0) continue;
    for (const std::string& input : node.input()) wanted.insert(NodeName(input));
  }
  const std::string prefix = FreshName() + "/";
  for (const NodeDef& node : other.node()) {
    if (wanted.count(node.name()) == 0 || scope.nodes->size() >= kMaxNodes) continue;
    NodeDef copy = node;
    copy.set_name(prefix + node.name());
    for (std::string& input : *copy.mutable_input()) {
      if (random_.OneIn(6)) {
        input = Value(scope);
      } else {
        input = input[0] == '^' ? "^" + prefix + input.substr(1) : prefix + input;
      }
    }
    *scope.nodes->Add() = std::move(copy);
  }
  if (graph_.library().function_size() < 8) graph_.mutable_library()->MergeFrom(other.library());
  if (NodeDef* reader = AnyNode(scope); reader != nullptr && reader->input_size() != 0) {
    const std::string& last = scope.nodes->Get(scope.nodes->size() - 1).name();
    reader->set_input(random_.Below(reader->input_size()), OutputOf(scope, last));
  }
}

}  // namespace floe::fuzz
