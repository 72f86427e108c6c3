#include "model/input_types.h"

#include <array>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {
namespace {

struct Input {
  DType dtype = DType::kInvalid;  // given, or shared with all inputs of one `letter`
  char letter = 0;
  bool any = false, repeated = false;
  bool IsIndex() const { return letter >= 'i' && letter <= 'n'; }
};

std::vector<Input> Parse(const std::string& types) {
  std::vector<Input> inputs;
  std::istringstream words(types);
  for (std::string word; words >> word;) {
    Input input;
    input.repeated = word.back() == '*' || word == "?";
    if (word.back() == '*') word.pop_back();
    input.any = word == "?";
    if (word.size() == 1) {
      input.letter = word[0];
    } else {
      input.dtype = DTypeFromName(word).value();
    }
    inputs.push_back(input);
  }
  return inputs;
}

const std::vector<Input>* InputsOf(const OpDef& op) {
  static const auto* const by_op = [] {
    auto* table = new std::unordered_map<const OpDef*, std::vector<Input>>();
    for (const OpDef* op : AllOps())
      if (op->input_types != nullptr) table->emplace(op, Parse(op->input_types));
    return table;
  }();
  const auto found = by_op->find(&op);
  return found == by_op->end() ? nullptr : &found->second;
}

absl::Status Mismatch(size_t input, DType dtype, const std::string& wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("input ", input, " is ", DTypeName(dtype), ", expected ", wanted));
}

using Shared = std::array<DType, 128>;  // by letter

absl::Status CheckInput(const Input& rule, size_t k, DType dtype, Shared* shared) {
  if (rule.any || dtype == DType::kInvalid) return absl::OkStatus();
  if (rule.letter == 0) {
    return dtype == rule.dtype ? absl::OkStatus() : Mismatch(k, dtype, DTypeName(rule.dtype));
  }
  if (rule.IsIndex() && dtype != DType::kInt32 && dtype != DType::kInt64)
    return Mismatch(k, dtype, "int32 or int64");
  DType& first = (*shared)[static_cast<size_t>(rule.letter)];
  if (first == DType::kInvalid) first = dtype;
  if (first == dtype) return absl::OkStatus();
  return Mismatch(k, dtype, absl::StrCat(DTypeName(first), " as another input is"));
}

}  // namespace

absl::Status CheckInputTypes(const Node& node, absl::Span<const ValueInfo> inputs) {
  const std::vector<Input>* rules = InputsOf(*node.op);
  if (rules == nullptr) return absl::OkStatus();
  Shared shared;
  shared.fill(DType::kInvalid);
  // A repeated input takes what the others leave.
  const size_t repeats = inputs.size() + 1 > rules->size() ? inputs.size() + 1 - rules->size() : 0;
  size_t k = 0;
  for (const Input& rule : *rules) {
    const size_t count = rule.repeated ? repeats : 1;
    for (size_t i = 0; i < count && k < inputs.size(); ++i, ++k)
      FLOE_RETURN_IF_ERROR(CheckInput(rule, k, inputs[k].type.dtype, &shared));
  }
  return absl::OkStatus();
}

}  // namespace floe
