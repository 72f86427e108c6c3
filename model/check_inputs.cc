#include "model/check_inputs.h"

#include <array>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace floe {
namespace {

struct Input {
  DType dtype = DType::kInvalid;  // given, or shared with all inputs of one `letter`
  char letter = 0;
  bool any = false, repeated = false, has_dims = false;
  std::vector<std::string> dims;
  std::string dims_text;  // "[n,4]"
  bool IsIndex() const { return letter >= 'i' && letter <= 'n'; }
};

void ReadDims(const std::string& text, Input* input) {
  input->has_dims = true;
  input->dims_text = text;
  const std::string inside = text.substr(1, text.size() - 2);
  if (!inside.empty()) input->dims = absl::StrSplit(inside, ',');
}

std::vector<Input> Parse(const std::string& types) {
  std::vector<Input> inputs;
  std::istringstream words(types);
  for (std::string word; words >> word;) {
    Input input;
    input.repeated = word.back() == '*' || word == "?";
    if (word.back() == '*') word.pop_back();
    input.any = word == "?";
    if (const size_t bracket = word.find('['); bracket != std::string::npos) {
      ReadDims(word.substr(bracket), &input);
      word.resize(bracket);
    }
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

// What the inputs before had, by letter.
struct Shared {
  std::array<DType, 128> dtypes;
  std::array<Dim, 128> dims;
};

absl::Status CheckDType(const Input& rule, size_t k, DType dtype, Shared* shared) {
  const auto mismatch = [&](const std::string& wanted) {
    return Bad(absl::StrCat("input ", k, " is ", DTypeName(dtype), ", expected ", wanted));
  };
  if (rule.any || dtype == DType::kInvalid) return absl::OkStatus();
  if (rule.letter == 0)
    return dtype == rule.dtype ? absl::OkStatus() : mismatch(DTypeName(rule.dtype));
  if (rule.IsIndex() && dtype != DType::kInt32 && dtype != DType::kInt64)
    return mismatch("int32 or int64");
  DType& first = shared->dtypes[static_cast<unsigned char>(rule.letter)];
  if (first == DType::kInvalid) first = dtype;
  if (first == dtype) return absl::OkStatus();
  return mismatch(absl::StrCat(DTypeName(first), " as another input is"));
}

absl::Status CheckDims(const Input& rule, size_t k, const SymShape& shape, Shared* shared) {
  if (!rule.has_dims || !shape.rank_known()) return absl::OkStatus();
  const auto rank = static_cast<int>(rule.dims.size());
  if (shape.rank() != rank)
    return Bad(
        absl::StrCat("input ", k, " has shape ", shape.ToString(), ", expected rank ", rank));
  for (int axis = 0; axis < rank; ++axis) {
    const std::string& name = rule.dims[axis];
    if (name == "_" || !shape.dim(axis).known()) continue;
    Dim wanted = shape.dim(axis);
    if (int64_t number = 0; absl::SimpleAtoi(name, &number)) {
      wanted = number;
    } else {
      Dim& first = shared->dims[static_cast<unsigned char>(name[0])];
      if (!first.known()) first = wanted;
      wanted = first;
    }
    if (wanted != shape.dim(axis))
      return Bad(absl::StrCat(
          "input ", k, " has shape ", shape.ToString(), ", expected ", rule.dims_text,
          name == wanted.ToString() ? "" : " with " + name + " = " + wanted.ToString()));
  }
  return absl::OkStatus();
}

// The entry of each input; null for those that have none.
std::vector<const Input*> EntriesOf(const std::vector<Input>& rules, size_t inputs) {
  std::vector<const Input*> entries;
  // A repeated input takes what the others leave.
  const size_t repeats = inputs + 1 > rules.size() ? inputs + 1 - rules.size() : 0;
  for (const Input& rule : rules) entries.insert(entries.end(), rule.repeated ? repeats : 1, &rule);
  entries.resize(inputs, nullptr);
  return entries;
}

}  // namespace

absl::Status CheckInputs(const Node& node, absl::Span<const ValueInfo> inputs) {
  const std::vector<Input>* rules = InputsOf(*node.op);
  if (rules == nullptr) return absl::OkStatus();
  Shared shared;
  shared.dtypes.fill(DType::kInvalid);
  shared.dims.fill(Dim::Unknown());
  const std::vector<const Input*> entries = EntriesOf(*rules, inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (entries[k] == nullptr) continue;
    FLOE_RETURN_IF_ERROR(CheckDType(*entries[k], k, inputs[k].type.dtype, &shared));
    FLOE_RETURN_IF_ERROR(CheckDims(*entries[k], k, inputs[k].type.shape, &shared));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferChecked(const Node& node, absl::Span<const ValueInfo> inputs) {
  FLOE_RETURN_IF_ERROR(CheckInputs(node, inputs));
  return node.op->infer({node, inputs});
}

}  // namespace floe
