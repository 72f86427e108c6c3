// The words of texts are looked up where they are found, as text layers do; no word becomes a
// string of its own.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/op_def.h"
#include "model/tables.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

constexpr int kWords = 1;  // StringSplitV2's output

struct WordLookup {
  Tensor table, unknown;  // a string's value, and that of a word without one
};

class WordLookupFinder {
 public:
  explicit WordLookupFinder(const Graph& graph) : graph_(graph), uses_(graph) {}

  void Find() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (graph_.node(i).op->name == "StringSplitV2" && !uses_.is_output[i]) Match(i);
    }
  }

  std::map<int, WordLookup> splits;    // by StringSplitV2
  std::map<int, ValueRef> same_value;  // by a node that gives what another value is

 private:
  // An empty separator stands for blanks, between which no word is empty.
  bool HasNoEmptyWord(const Node& split) const {
    const Tensor* separator = ConstantOf(graph_, split.inputs[1]);
    return separator != nullptr && separator->elements() == 1 &&
           separator->as<std::string>()->empty() && split.attrs.Int("maxsplit", -1) < 0;
  }

  bool IsEmptyString(ValueRef ref) const {
    const Tensor* text = ConstantOf(graph_, ref);
    return text != nullptr && text->dtype() == DType::kString && text->shape().rank() == 0 &&
           text->as<std::string>()->empty();
  }

  // Whether node `reader` asks which words of `split` are empty, and chooses between `looked_up`
  // and one number by it.
  bool IsChoiceOfEmptyWords(int split, int reader, ValueRef looked_up,
                            std::map<int, ValueRef>* choices) const {
    const Node& equal = graph_.node(reader);
    const ValueRef words{split, kWords};
    if (equal.op->name != "Equal" || !HasNoEmptyWord(graph_.node(split))) return false;
    if (!IsEmptyString(equal.inputs[equal.inputs[0] == words ? 1 : 0])) return false;
    const int choice = uses_.OnlyUser(reader);
    if (choice < 0 || graph_.node(choice).op->name != "SelectV2") return false;
    const Node& select = graph_.node(choice);
    const Tensor* number = ConstantOf(graph_, select.inputs[1]);
    if (select.inputs[0] != ValueRef{reader, 0} || select.inputs[2] != looked_up ||
        number == nullptr || number->shape().rank() != 0)
      return false;
    choices->emplace(choice, looked_up);
    return true;
  }

  void Match(int split) {
    std::vector<int> readers;
    for (const int user : uses_.users[split]) {
      const std::vector<ValueRef>& inputs = graph_.node(user).inputs;
      if (std::find(inputs.begin(), inputs.end(), ValueRef{split, kWords}) != inputs.end())
        readers.push_back(user);
    }
    const auto find = std::find_if(readers.begin(), readers.end(), [&](int reader) {
      return graph_.node(reader).op->name == "LookupTableFind";
    });
    if (find == readers.end()) return;
    const Node& lookup = graph_.node(*find);
    const Tensor *table = ConstantOf(graph_, lookup.inputs[0]),
                 *unknown = ConstantOf(graph_, lookup.inputs[2]);
    if (table == nullptr || unknown == nullptr || !lookup.control_inputs.empty()) return;
    const TableObject* const object = TableOf(table->view());
    if (object == nullptr || object->key_dtype() != DType::kString ||
        object->value_dtype() != unknown->dtype() || object->value_shape().rank() != 0 ||
        unknown->shape().rank() != 0)
      return;
    std::map<int, ValueRef> found = {{*find, {split, kWords}}};
    for (const int reader : readers) {
      if (reader != *find && !IsChoiceOfEmptyWords(split, reader, {*find, 0}, &found)) return;
    }
    same_value.merge(found);
    splits.emplace(split, WordLookup{*table, *unknown});
  }

  const Graph& graph_;
  const Uses uses_;
};

}  // namespace

void FuseWordLookups(Graph* graph) {
  WordLookupFinder finder(*graph);
  finder.Find();
  if (finder.splits.empty()) return;
  Rebuild rebuild(*graph);
  for (int i = 0; i < graph->size(); ++i) {
    const auto split = finder.splits.find(i);
    const auto same = finder.same_value.find(i);
    if (same != finder.same_value.end()) {
      rebuild.Replace(i, 0, rebuild.Map(same->second));
    } else if (split == finder.splits.end()) {
      rebuild.Keep(i);
    } else {
      Node node = graph->node(i);
      node.op = FindOp("StringSplitLookup");
      for (ValueRef& input : node.inputs) input = rebuild.Map(input);
      const auto add = [&](const char* name, const Tensor& value) {
        node.inputs.push_back(
            {rebuild.Append(ConstNode(absl::StrCat(node.name, "/", name), value)), 0});
      };
      add("table", split->second.table);
      add("unknown", split->second.unknown);
      rebuild.Emit(i, std::move(node));
    }
  }
  *graph = rebuild.Finish();
  Prune(graph);
}

}  // namespace floe
