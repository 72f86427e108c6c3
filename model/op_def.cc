#include "model/op_def.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

struct Registry {
  std::map<std::string, std::unique_ptr<const OpDef>> by_name;
  std::map<std::string, const OpDef*> by_tensorflow_name;
};

// Function-local, because registrars of other files run before this file's own statics may exist.
Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

// As many inputs as the types name; of a repeated one at least one, of any types none.
void CountInputs(OpDef* def) {
  if (def->input_types == nullptr || def->min_inputs != 0 || def->max_inputs != 0) return;
  bool more = false;
  std::istringstream words(def->input_types);
  for (std::string word; words >> word;) {
    more = more || word == "?" || word.back() == '*';
    def->min_inputs += word == "?" ? 0 : 1;
  }
  def->max_inputs = more ? -1 : def->min_inputs;
}

}  // namespace

OpRegistrar::OpRegistrar(OpDef def, const char* input_types) {
  if (input_types != nullptr) def.input_types = input_types;
  CountInputs(&def);
  if (def.tensorflow.empty()) def.tensorflow = {def.name};
  if (def.tensorflow.front().empty()) def.tensorflow.clear();
  Registry& registry = TheRegistry();
  const std::string name = def.name;
  if (!def.output_names.empty()) {
    const bool lists = std::any_of(
        def.output_names.begin(), def.output_names.end(),
        [](const std::string& output) { return output.find(':') != std::string::npos; });
    def.outputs = lists ? -1 : static_cast<int>(def.output_names.size());
  }
  auto owned = std::make_unique<const OpDef>(std::move(def));
  bool fresh = true;
  for (const std::string& tf : owned->tensorflow)
    fresh &= registry.by_tensorflow_name.emplace(tf, owned.get()).second;
  fresh &= registry.by_name.emplace(name, std::move(owned)).second;
  if (!fresh) {  // two files claim one name: a mistake in the program, seen at its first start
    std::fprintf(stderr, "op %s or one of its TensorFlow names is registered twice\n",
                 name.c_str());
    std::abort();
  }
}

const OpDef* FindOp(const std::string& name) {
  const auto& ops = TheRegistry().by_name;
  const auto it = ops.find(name);
  return it == ops.end() ? nullptr : it->second.get();
}

const OpDef* FindTensorFlowOp(const std::string& name) {
  const auto& ops = TheRegistry().by_tensorflow_name;
  const auto it = ops.find(name);
  return it == ops.end() ? nullptr : it->second;
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> ops;
  for (const auto& [name, def] : TheRegistry().by_name) ops.push_back(def.get());
  return ops;
}

absl::Status Bad(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::StatusOr<bool> InferContext::DimsOf(int i, std::vector<Dim>* dims) const {
  const ValueInfo& value = inputs[i];
  if (!value.constant.valid()) return false;
  FLOE_ASSIGN_OR_RETURN(std::vector<int64_t> base, IntegerValues(value.constant.view()));
  std::vector<int64_t> per_row(base.size(), 0);
  if (value.per_row.valid()) {
    FLOE_ASSIGN_OR_RETURN(per_row, IntegerValues(value.per_row.view()));
  }
  dims->clear();
  for (size_t k = 0; k < base.size(); ++k) dims->push_back(Dim::Affine(base[k], per_row[k]));
  return true;
}

absl::StatusOr<bool> InferContext::IntsOf(int i, std::vector<int64_t>* values) const {
  if (!inputs[i].has_constant()) return false;
  FLOE_ASSIGN_OR_RETURN(*values, IntegerValues(inputs[i].constant.view()));
  return true;
}

bool ValueInfo::IsRowCount() const {
  if (!per_row.valid() || constant.shape().rank() != 0) return false;
  const auto base = IntegerValues(constant.view()), slope = IntegerValues(per_row.view());
  return base.ok() && slope.ok() && (*base)[0] == 0 && (*slope)[0] == 1;
}

bool RowContext::OthersConstant(int n) const {
  return std::all_of(marks.begin() + std::min<size_t>(n, marks.size()), marks.end(),
                     [](RowMark m) { return m == RowMark::kConstant; });
}

namespace {

// The verdict when no rule can keep rows: unknown beats mixed beats constant.
RowMark Worst(absl::Span<const RowMark> marks) {
  RowMark worst = RowMark::kConstant;
  for (RowMark m : marks) {
    if (m == RowMark::kUnknown) return m;
    if (m != RowMark::kConstant) worst = RowMark::kMixed;
  }
  return worst;
}

bool AnyBad(absl::Span<const RowMark> marks) {
  return std::any_of(marks.begin(), marks.end(),
                     [](RowMark m) { return m == RowMark::kMixed || m == RowMark::kUnknown; });
}

bool AllConstant(absl::Span<const RowMark> marks) {
  return std::all_of(marks.begin(), marks.end(), [](RowMark m) { return m == RowMark::kConstant; });
}

}  // namespace

RowMark RowsElementwise(const RowContext& c) {
  if (AllConstant(c.marks) || AnyBad(c.marks)) return Worst(c.marks);
  const SymShape& out = c.outputs[0].shape;
  if (!out.rank_known() || out.rank() == 0 || !out.dim(0).has_rows()) return RowMark::kMixed;
  for (size_t i = 0; i < c.marks.size(); ++i) {
    const SymShape& in = c.inputs[i].type.shape;
    if (!in.rank_known()) return RowMark::kMixed;
    if (c.marks[i] == RowMark::kRows) {
      if (in.rank() != out.rank() || in.dim(0) != out.dim(0)) return RowMark::kMixed;
    } else if (in.rank() == out.rank() && in.dim(0) != Dim(1)) {
      return RowMark::kMixed;  // a constant laid over the rows gives each row another value
    }
  }
  return RowMark::kRows;
}

RowMark RowsOfInput0(const RowContext& c) {
  if (AllConstant(c.marks) || AnyBad(c.marks)) return Worst(c.marks);
  if (c.marks[0] != RowMark::kRows || !c.OthersConstant(1)) return RowMark::kMixed;
  const SymShape& in = c.inputs[0].type.shape;
  for (const TensorType& out : c.outputs) {
    if (!out.shape.rank_known() || out.shape.rank() == 0 || in.rank() == 0 ||
        out.shape.dim(0) != in.dim(0)) {
      return RowMark::kMixed;
    }
  }
  return RowMark::kRows;
}

RowMark RowsNever(const RowContext& c) { return Worst(c.marks); }

absl::StatusOr<SymShape> BroadcastShapes(const SymShape& a, const SymShape& b) {
  if (!a.rank_known() || !b.rank_known()) return SymShape::UnknownRank();
  const int rank = std::max(a.rank(), b.rank());
  SymShape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const Dim da = ia < 0 ? Dim(1) : a.dim(ia), db = ib < 0 ? Dim(1) : b.dim(ib);
    if (da == db || db == Dim(1)) {
      out.push_back(da);
    } else if (da == Dim(1)) {
      out.push_back(db);
    } else if (!da.known() || !db.known()) {
      // An unknown dim against a number above 1 can only be 1 or that number.
      const Dim known = da.known() ? da : db;
      out.push_back(known.concrete() && known.size() > 1 ? known : Dim::Unknown());
    } else {
      return Bad(absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(), " do not broadcast"));
    }
  }
  return out;
}

absl::StatusOr<Types> InferSame(const InferContext& c) { return Types{c.inputs[0].type}; }

}  // namespace floe
