// Names of nodes and their outputs as inputs of other nodes have them, in graphs and in functions.
#pragma once

#include <string>
#include <string_view>

namespace tensorflow {
class NodeDef;
}

namespace floe {

// One input: "^node", "node", "node:2"; in functions "argument", "node:output_argument:2".
struct InputName {
  std::string_view node;
  std::string_view argument;  // of a function's node; empty: not said
  int number = 0;             // behind the last colon
  bool control = false;
};

// Names that are malformed are of a node that nobody has.
InputName SplitInput(std::string_view input);

// What a variable or table is called where several nodes mean the same: its shared_name, else the
// node's name.
std::string SharedName(const tensorflow::NodeDef& node);

// By what it is called: the ops that have a variable's handle, or the variable, as output.
bool IsVariableHandle(const std::string& op);
bool IsVariableReference(const std::string& op);
// A function's call, whose attribute 'f' names it.
bool IsCallOp(const std::string& op);

}  // namespace floe
