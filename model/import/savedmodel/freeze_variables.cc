#include "model/import/savedmodel/freeze_variables.h"

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/message_ptr.h"
#include "model/import/savedmodel/freeze_body.h"
#include "model/import/savedmodel/node_names.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;

constexpr int kMaxCallDepth = 64;  // of calls

// Nodes of a function that its results and effects need.
std::unordered_set<std::string_view> NeededNodes(const FunctionDef& function) {
  std::unordered_map<std::string_view, const NodeDef*> index;
  for (const NodeDef& node : function.node_def()) index.emplace(node.name(), &node);
  std::vector<std::string_view> open;
  for (const auto& [result, value] : function.ret()) open.push_back(SplitInput(value).node);
  for (const auto& [result, node] : function.control_ret()) open.push_back(node);
  std::unordered_set<std::string_view> needed;
  while (!open.empty()) {
    const auto found = index.find(open.back());
    open.pop_back();
    if (found == index.end() || !needed.insert(found->first).second) continue;
    for (const std::string& input : found->second->input()) open.push_back(SplitInput(input).node);
  }
  return needed;
}

class Library : public FunctionSource {
 public:
  explicit Library(const tensorflow::FunctionDefLibrary& library) {
    for (const FunctionDef& function : library.function())
      functions_.emplace(function.signature().name(), &function);
  }

  bool Has(const std::string& name) const override { return functions_.count(name) != 0; }

  int ResultNumber(const std::string& name, std::string_view result) const override {
    const auto& results = functions_.at(name)->signature().output_arg();
    for (int k = 0; k < results.size(); ++k) {
      if (results.Get(k).name() == result) return k;
    }
    return -1;
  }

  absl::StatusOr<Frozen> Freeze(const std::string& name, const Binding& arguments) override {
    const auto found = functions_.find(name);
    if (found == functions_.end())
      return absl::InvalidArgumentError(
          absl::StrCat("the graph's library has no function ", Quoted(name)));
    std::string key = name, types;
    bool bound = false;
    for (const tensorflow::DataType dtype : arguments) {
      absl::StrAppend(&types, " ", dtype);
      bound = bound || dtype != tensorflow::DT_INVALID;
    }
    if (bound) key += types;
    const auto [at, fresh] = frozen_.try_emplace(key);
    if (!fresh) {
      if (at->second.name.empty())
        return absl::InvalidArgumentError(absl::StrCat("function ", Quoted(name), " calls itself"));
      return at->second;
    }
    if (depth_ >= kMaxCallDepth)
      return absl::ResourceExhaustedError(absl::StrCat("functions call each other deeper than ",
                                                       kMaxCallDepth, " levels, down to ",
                                                       Quoted(name)));
    ++depth_;
    absl::StatusOr<Frozen> frozen = Make(*found->second, arguments);
    --depth_;
    if (!frozen.ok()) {
      frozen_.erase(key);
      return Annotate(frozen.status(), absl::StrCat("function ", Quoted(name)));
    }
    return frozen_[key] = *std::move(frozen);
  }

  absl::Status Keep(const std::string& name) override { return Freeze(name, {}).status(); }

  void MoveTo(tensorflow::FunctionDefLibrary* library) { library->Swap(made_.get()); }

 private:
  absl::StatusOr<Frozen> Make(const FunctionDef& function, const Binding& arguments) {
    FLOE_RETURN_IF_ERROR(SpendVisits(function.node_def_size() + 1));
    const auto made = NewMessage<FunctionDef>();
    FunctionDef& copy = *made;
    *copy.mutable_signature() = function.signature();
    *copy.mutable_attr() = function.attr();
    *copy.mutable_arg_attr() = function.arg_attr();
    *copy.mutable_resource_arg_unique_id() = function.resource_arg_unique_id();
    *copy.mutable_control_ret() = function.control_ret();
    const std::unordered_set<std::string_view> needed = NeededNodes(function);
    for (const NodeDef& node : function.node_def()) {
      if (needed.count(node.name()) != 0) *copy.add_node_def() = node;
    }
    BodyFreezer body(copy.mutable_node_def(), this, true);
    bool bound = false;
    for (int k = 0; k < copy.signature().input_arg_size(); ++k) {
      if (k >= static_cast<int>(arguments.size()) || arguments[k] == tensorflow::DT_INVALID)
        continue;
      auto* const argument = copy.mutable_signature()->mutable_input_arg(k);
      body.BindArgument(argument->name(), arguments[k]);
      Retype(argument, arguments[k]);
      copy.mutable_arg_attr()->erase(k);
      copy.mutable_resource_arg_unique_id()->erase(k);
      bound = true;
    }
    FLOE_RETURN_IF_ERROR(body.Run(nullptr));
    Frozen frozen;
    frozen.name = bound ? UnusedName(function.signature().name()) : function.signature().name();
    for (auto& result : *copy.mutable_signature()->mutable_output_arg()) {
      const auto value = function.ret().find(result.name());
      if (value == function.ret().end())
        return absl::InvalidArgumentError(
            absl::StrCat("returns nothing for ", Quoted(result.name())));
      (*copy.mutable_ret())[result.name()] = body.Renamed(value->second);
      frozen.results.push_back(body.BoundTo(value->second));
      if (frozen.results.back() != tensorflow::DT_INVALID) Retype(&result, frozen.results.back());
    }
    copy.mutable_signature()->set_name(frozen.name);
    *made_->add_function() = std::move(copy);
    return frozen;
  }

  static void Retype(tensorflow::OpDef::ArgDef* argument, tensorflow::DataType dtype) {
    argument->set_type(dtype);
    argument->clear_type_attr();
    argument->clear_handle_data();
    argument->clear_experimental_full_type();
  }

  std::string UnusedName(const std::string& name) {
    for (int number = 1;; ++number) {
      std::string made = absl::StrCat(name, "_frozen_", number);
      if (functions_.count(made) == 0 && names_.insert(made).second) return made;
    }
  }

  std::unordered_map<std::string, const FunctionDef*> functions_;
  std::unordered_map<std::string, Frozen> frozen_;  // by name and arguments; no name: open
  std::set<std::string> names_;
  const MessagePtr<tensorflow::FunctionDefLibrary> made_ =
      NewMessage<tensorflow::FunctionDefLibrary>();
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<FrozenVariables> FreezeVariables(tensorflow::GraphDef* graph) {
  FrozenVariables frozen;
  Library library(graph->library());
  BodyFreezer body(graph->mutable_node(), &library, false);
  FLOE_RETURN_IF_ERROR(body.Run(&frozen.refused));
  library.MoveTo(graph->mutable_library());
  return frozen;
}

}  // namespace floe
