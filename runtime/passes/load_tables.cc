#include "runtime/passes/load_tables.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/file_beneath.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/tables.h"
#include "runtime/analyze.h"
#include "runtime/evaluate.h"
#include "runtime/text_table.h"

namespace floe {
namespace {

constexpr int64_t kMaxAssetBytes = int64_t{1} << 30;
constexpr int64_t kMaxElements = int64_t{1} << 24;  // of a value computed on the way

bool IsTable(const Node& node) {
  const std::string& op = node.op->name;
  return op == "HashTable" || op == "MutableHashTable" || op == "MutableHashTableOfTensors";
}
bool IsFiller(const Node& node) {
  const std::string& op = node.op->name;
  return op == "InitializeTable" || op == "InitializeTableFromTextFile" ||
         op == "LookupTableImport" || op == "LookupTableInsert";
}

// Whether there are tables in a graph and those below it, which may share bodies many times over.
class TableSearch {
 public:
  bool In(const Graph& graph) {
    const auto [at, fresh] = known_.try_emplace(&graph, false);
    if (!fresh) return at->second;
    for (const Node& node : graph.nodes()) {
      bool found = IsTable(node);
      for (const auto& body : node.subgraphs) found = In(*body) || found;
      if (found) return known_[&graph] = true;
    }
    return false;
  }

 private:
  std::map<const Graph*, bool> known_;
};

// Nodes that `roots` need, themselves included.
std::vector<bool> Closure(const Graph& graph, const std::vector<int>& roots) {
  std::vector<bool> needed(graph.size(), false);
  std::vector<int> open = roots;
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    if (needed[i]) continue;
    needed[i] = true;
    for (const ValueRef& in : graph.node(i).inputs) open.push_back(in.node);
    for (const int control : graph.node(i).control_inputs) open.push_back(control);
  }
  return needed;
}

// One table of the model, for every node that means it.
struct Table {
  std::string name;  // of the first node
  std::shared_ptr<TableObject> object;
  std::string filled_by;     // node; empty: nothing yet
  std::vector<int> fillers;  // nodes that would fill it
  bool used = false;         // by something the signatures fetch
};

// One class: the steps of one rewrite, over one graph and what has been found in it.
class TableLoader {
 public:
  TableLoader(Graph* graph, const TableSources& sources, const KernelOptions& options)
      : graph_(*graph), sources_(sources), options_(options) {}

  absl::Status Run() {
    FLOE_RETURN_IF_ERROR(MakeTables(&graph_));
    needed_ = Closure(graph_, sources_.roots);
    for (int i = 0; i < graph_.size(); ++i) {
      if (needed_[i]) MarkUses(graph_.node(i));
      if (!IsFiller(graph_.node(i))) continue;
      if (Table* const table = TableOfFiller(i)) table->fillers.push_back(i);
    }
    FLOE_ASSIGN_OR_RETURN(const std::vector<int> initialisers, Initialisers());
    FLOE_RETURN_IF_ERROR(Evaluate(Closure(graph_, initialisers)));
    return CheckFilled();
  }

 private:
  // ---- tables become constants ----

  absl::Status MakeTables(Graph* graph) {
    FLOE_RETURN_IF_ERROR(SpendVisits(graph->size() + 1));
    for (Node& node : graph->mutable_nodes()) {
      if (IsTable(node)) FLOE_RETURN_IF_ERROR(AtNode(node, MakeTable(&node)));
      for (auto& body : node.subgraphs) {
        if (!search_.In(*body)) continue;
        std::shared_ptr<const Graph>& changed = changed_[body];
        if (changed == nullptr) {
          Graph copy = *body;
          FLOE_RETURN_IF_ERROR(MakeTables(&copy));
          changed = std::make_shared<const Graph>(std::move(copy));
        }
        body = changed;
      }
    }
    return absl::OkStatus();
  }

  // What TensorFlow's resource manager would call it. A node without a name to share is a table of
  // its own.
  static std::string SharedKey(const Node& node) {
    const std::string container = node.attrs.String("container");
    const std::string shared = node.attrs.String("shared_name");
    const bool by_node = shared.empty() && node.attrs.Bool("use_node_name_sharing");
    if (shared.empty() && !by_node) return absl::StrCat("node ", node.name);
    return absl::StrCat("shared ", container.size(), " ", container, " ",
                        by_node ? node.name : shared);
  }

  absl::Status MakeTable(Node* node) {
    const Attrs& attrs = node->attrs;
    const SymShape declared = attrs.Get<SymShape>("value_shape", SymShape());
    if (!declared.concrete())
      return absl::UnimplementedError(absl::StrCat("values of shape ", declared.ToString()));
    const Shape value_shape =
        node->op->name == "MutableHashTableOfTensors" ? declared.At(1) : Shape();
    const TableKind kind =
        node->op->name == "HashTable" ? TableKind::kFilledOnce : TableKind::kMutable;
    FLOE_ASSIGN_OR_RETURN(
        std::shared_ptr<TableObject> object,
        TableObject::Create(kind, attrs.Type("key_dtype"), attrs.Type("value_dtype"), value_shape));
    const auto [at, added] = by_key_.try_emplace(SharedKey(*node), nullptr);
    if (added) {
      tables_.push_back(std::make_unique<Table>());
      at->second = tables_.back().get();
      at->second->name = node->name;
      at->second->object = std::move(object);
      by_object_[at->second->object.get()] = at->second;
    } else if (at->second->object->TypeText() != object->TypeText() ||
               at->second->object->kind() != kind) {
      return absl::InvalidArgumentError(
          absl::StrCat("shares the table of ", Quoted(at->second->name), ", which is ",
                       at->second->object->TypeText(), ", not ", object->TypeText()));
    }
    Tensor handle = Tensor::Allocate(DType::kResource, Shape());
    *static_cast<Handle*>(handle.mutable_data()) = at->second->object;
    node->op = FindOp("Const");
    node->attrs = {};
    node->attrs.Set("dtype", DType::kResource);
    node->attrs.Set("value", std::move(handle));
    node->inputs.clear();
    node->num_outputs = 1;
    return absl::OkStatus();
  }

  Table* TableOfConst(const Node& node) const {
    const Tensor* value = node.attrs.Find<Tensor>("value");
    if (node.op->name != "Const" || value == nullptr) return nullptr;
    const auto found = by_object_.find(TableOf(value->view()));
    return found == by_object_.end() ? nullptr : found->second;
  }

  // The table that input 0 of a filler leads to; null when it takes more than following names.
  Table* TableOfFiller(int i) const {
    ValueRef at = graph_.node(i).inputs[0];
    for (;;) {
      const Node& node = graph_.node(at.node);
      if (Table* const table = TableOfConst(node)) return table;
      const bool passes = node.op->name == "Identity" || node.op->name == "IdentityN";
      if (!passes || at.output >= static_cast<int>(node.inputs.size())) return nullptr;
      at = node.inputs[at.output];
    }
  }

  void MarkUses(const Node& node) {
    if (Table* const table = TableOfConst(node)) table->used = true;
    for (const auto& body : node.subgraphs) {
      if (!marked_.insert(body.get()).second) continue;
      for (const Node& inner : body->nodes()) MarkUses(inner);
    }
  }

  // ---- which nodes are run ----

  absl::StatusOr<std::vector<int>> Initialisers() const {
    std::vector<int> nodes;
    // What outputs wait for is run in any case, as every run would have done.
    for (int i = 0; i < graph_.size(); ++i) {
      if (needed_[i] && IsFiller(graph_.node(i)) && graph_.node(i).op->name != "LookupTableInsert")
        nodes.push_back(i);
    }
    if (!sources_.init_nodes.empty()) {
      for (const std::string& name : sources_.init_nodes) {
        FLOE_ASSIGN_OR_RETURN(const int node, Named(name));
        nodes.push_back(node);
      }
      return nodes;
    }
    for (const auto& table : tables_) {
      if (!table->used) continue;
      // Initialisers may repeat each other, which shows when they are run; what changes a mutable
      // table depends on the order.
      if (table->object->kind() == TableKind::kMutable && table->fillers.size() > 1) {
        return absl::FailedPreconditionError(absl::StrCat(
            "table ", Quoted(table->name), " is changed by ", NodeNames(table->fillers),
            "; say which of them to run before the first request (init_nodes)"));
      }
      nodes.insert(nodes.end(), table->fillers.begin(), table->fillers.end());
    }
    return nodes;
  }

  absl::StatusOr<int> Named(std::string name) const {
    if (!name.empty() && name[0] == '^') name = name.substr(1);
    std::vector<std::string> names;
    for (int i = 0; i < graph_.size(); ++i) {
      if (graph_.node(i).name == name) return i;
      names.push_back(graph_.node(i).name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("init_nodes: the graph has no node ", Quoted(name),
                     "; nearest: ", QuotedList(NearestNames(name, names))));
  }

  std::string NodeNames(const std::vector<int>& nodes) const {
    std::vector<std::string> names;
    names.reserve(nodes.size());
    for (const int i : nodes) names.push_back(graph_.node(i).name);
    return QuotedList(names);
  }

  // ---- running them ----

  absl::Status Evaluate(const std::vector<bool>& wanted) {
    values_.resize(graph_.size());
    for (int i = 0; i < graph_.size(); ++i) {
      if (wanted[i]) {
        FLOE_RETURN_IF_ERROR(
            Annotate(AtNode(graph_.node(i), EvaluateOne(i)), "while tables are initialised"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status EvaluateOne(int i) {
    const Node& node = graph_.node(i);
    std::vector<ValueInfo> inputs;
    std::vector<Tensor> tensors;
    for (const ValueRef& in : node.inputs) {
      if (in.output >= static_cast<int>(values_[in.node].size()))
        return absl::InternalError("an input was not computed");
      tensors.push_back(values_[in.node][in.output]);
      inputs.push_back(
          {{tensors.back().dtype(), SymShape(tensors.back().shape())}, tensors.back(), {}});
    }
    if (IsFiller(node)) return Fill(i, tensors);
    if (node.op->name == "NoOp") return absl::OkStatus();
    if (node.op->name == "Unsupported") {
      return absl::UnimplementedError(
          absl::StrCat("floe does not support ", node.attrs.String("tensorflow_op")));
    }
    if (node.op->name == "Input")
      return absl::InvalidArgumentError("a table cannot depend on what requests feed");
    FLOE_ASSIGN_OR_RETURN(const std::vector<ValueInfo> outputs, InferNode(node, inputs, options_));
    if (!outputs.empty() && std::all_of(outputs.begin(), outputs.end(),
                                        [](const ValueInfo& out) { return out.has_constant(); })) {
      for (const ValueInfo& out : outputs) values_[i].push_back(out.constant);
      return absl::OkStatus();
    }
    return RunKernel(i, tensors, outputs);
  }

  // What folding leaves alone: handles, and ops without inputs or with state.
  absl::Status RunKernel(int i, const std::vector<Tensor>& inputs,
                         const std::vector<ValueInfo>& outputs) {
    const Node& node = graph_.node(i);
    Types types;
    for (const ValueInfo& out : outputs) {
      types.push_back(out.type);
      if (node.op->allocates) continue;
      if (!out.type.shape.concrete() ||
          !CheckedElements(out.type.shape.At(1).dims(), 1, kMaxElements).ok())
        return absl::UnimplementedError("its value is not known, or too large, at load");
    }
    if (!node.subgraphs.empty() || node.op->name == "Switch" || node.op->name == "Merge")
      return absl::UnimplementedError("control flow around initialisers");
    FLOE_ASSIGN_OR_RETURN(values_[i], EvaluateNode(node, inputs, types, options_));
    return absl::OkStatus();
  }

  absl::Status Fill(int i, const std::vector<Tensor>& inputs) {
    const auto found = by_object_.find(TableOf(inputs[0].view()));
    if (found == by_object_.end())
      return absl::InvalidArgumentError("input 0 is no table of this graph");
    Table* const table = found->second;
    if (table->used) FLOE_RETURN_IF_ERROR(FillTable(i, inputs, table));
    size_t bytes = 0;
    for (const auto& other : tables_) bytes += other->object->bytes();
    if (bytes > TableObject::kMaxBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the model's tables hold more than ",
                                                       TableObject::kMaxBytes, " bytes together"));
    }
    // Whoever waited for it need not any more.
    Node& node = graph_.mutable_node(i);
    node.op = FindOp("NoOp");
    node.attrs = {};
    node.inputs.clear();
    return absl::OkStatus();
  }

  absl::Status FillTable(int i, const std::vector<Tensor>& inputs, Table* table) {
    const Node& node = graph_.node(i);
    TableObject& object = *table->object;
    const bool once = object.kind() == TableKind::kFilledOnce;
    if (once ? node.op->name == "LookupTableInsert"
             : absl::StartsWith(node.op->name, "Initialize")) {
      return absl::InvalidArgumentError(absl::StrCat("table ", Quoted(table->name), " is no ",
                                                     once ? "Mutable" : "", "HashTable"));
    }
    if (!once || table->filled_by.empty()) {
      FLOE_RETURN_IF_ERROR(Entries(node, inputs, &object));
      table->filled_by = node.name;
      return absl::OkStatus();
    }
    FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<TableObject> again,
                          TableObject::Create(object.kind(), object.key_dtype(),
                                              object.value_dtype(), object.value_shape()));
    FLOE_RETURN_IF_ERROR(Entries(node, inputs, again.get()));
    if (object.SameEntries(*again)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("table ", Quoted(table->name), " was filled by ", Quoted(table->filled_by),
                     " with other entries; say which of them to run (init_nodes)"));
  }

  absl::Status Entries(const Node& node, const std::vector<Tensor>& inputs,
                       TableObject* table) const {
    if (node.op->name != "InitializeTableFromTextFile")
      return table->Insert(inputs[1].view(), inputs[2].view());
    if (inputs[1].dtype() != DType::kString || inputs[1].elements() != 1)
      return absl::InvalidArgumentError("its file name is not a single string");
    const std::string& name = *inputs[1].as<std::string>();
    FLOE_ASSIGN_OR_RETURN(const std::string text, ReadAsset(sources_.asset_directory, name));
    return Annotate(FillFromText(text, TextTableFormat::FromAttrs(node.attrs), table),
                    absl::StrCat("file ", Quoted(name)));
  }

  absl::Status CheckFilled() const {
    for (const auto& table : tables_) {
      if (!table->used || !table->filled_by.empty() || table->object->kind() == TableKind::kMutable)
        continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "table ", Quoted(table->name), " is never filled: ",
          table->fillers.empty()
              ? "the graph has no initialiser for it; freezing leaves initialisers out unless they "
                "are named as outputs"
              : absl::StrCat("init_nodes do not reach ", NodeNames(table->fillers))));
    }
    return absl::OkStatus();
  }

  Graph& graph_;
  const TableSources& sources_;
  const KernelOptions& options_;
  TableSearch search_;
  // Bodies with tables and what became of them; the keys keep them alive.
  std::map<std::shared_ptr<const Graph>, std::shared_ptr<const Graph>> changed_;
  std::set<const Graph*> marked_;
  std::vector<bool> needed_;  // by what the signatures fetch
  std::vector<std::unique_ptr<Table>> tables_;
  std::map<std::string, Table*> by_key_;
  std::map<const TableObject*, Table*> by_object_;
  std::vector<std::vector<Tensor>> values_;  // by node
};

}  // namespace

absl::StatusOr<std::string> ReadAsset(const std::string& directory, const std::string& name) {
  if (directory.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the model has no directory to find file ", Quoted(name), " in"));
  }
  const std::string base = name.substr(name.rfind('/') + 1);
  std::vector<std::string> places;
  if (name.empty() || name[0] != '/') {
    places.push_back(name);
  } else if (absl::StartsWith(name, directory + "/")) {
    places.push_back(name.substr(directory.size() + 1));
  }
  for (const std::string& place : {absl::StrCat("assets/", base), base}) {
    if (!base.empty() && base != ".." && base != ".") places.push_back(place);
  }
  for (const std::string& place : places) {
    absl::StatusOr<std::string> text = ReadFileBeneath(directory, place, kMaxAssetBytes);
    if (!absl::IsNotFound(text.status())) return text;
  }
  return absl::NotFoundError(absl::StrCat("file ", Quoted(name),
                                          " is not in the model's directory (", QuotedList(places),
                                          " were looked for)"));
}

absl::Status LoadTables(Graph* graph, const TableSources& sources, const KernelOptions& options) {
  if (sources.init_nodes.empty() && !TableSearch().In(*graph)) return absl::OkStatus();
  return TableLoader(graph, sources, options).Run();
}

}  // namespace floe
