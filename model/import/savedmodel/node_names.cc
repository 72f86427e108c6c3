#include "model/import/savedmodel/node_names.h"

#include <charconv>

#include "tensorflow/core/framework/node_def.pb.h"

namespace floe {
namespace {

bool TakeNumber(std::string_view text, int* number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end && *number >= 0;
}

}  // namespace

InputName SplitInput(std::string_view input) {
  InputName name;
  if (!input.empty() && input[0] == '^') {
    name.node = input.substr(1);
    name.control = true;
    return name;
  }
  const size_t first = input.find(':');
  name.node = input.substr(0, first);
  if (first == std::string_view::npos) return name;
  const size_t last = input.rfind(':');
  std::string_view argument =
      last == first ? std::string_view() : input.substr(first + 1, last - first - 1);
  const std::string_view number = input.substr(last + 1);
  if (!TakeNumber(number, &name.number)) {
    if (last != first) return {};
    argument = number;  // "node:output_argument"
    name.number = 0;
  }
  name.argument = argument;
  return name;
}

std::string SharedName(const tensorflow::NodeDef& node) {
  const auto shared = node.attr().find("shared_name");
  return shared == node.attr().end() || shared->second.s().empty() ? node.name()
                                                                   : shared->second.s();
}

bool IsVariableHandle(const std::string& op) { return op == "VarHandleOp"; }

bool IsVariableReference(const std::string& op) { return op == "VariableV2" || op == "Variable"; }

bool IsCallOp(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}

}  // namespace floe
