// The dtypes and notes of each op, from its OpDef and its kernels.
#include "cli/ops_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/kernel.h"
#include "model/flat_rows.h"
#include "model/op_def.h"
#include "model/refused_ops.h"

namespace floe::cli {
namespace {

struct DTypeGroup {
  const char* name;
  std::vector<DType> members;
};

const std::vector<DTypeGroup>& Groups() {
  static const std::vector<DTypeGroup> groups = {
      {"floats", {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}},
      {"integers",
       {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16,
        DType::kUInt32, DType::kUInt64}},
      {"complex", {DType::kComplex64, DType::kComplex128}},
      {"quantized",
       {DType::kQInt8, DType::kQUInt8, DType::kQInt16, DType::kQUInt16, DType::kQInt32}},
  };
  return groups;
}

bool Contains(const std::vector<DType>& dtypes, DType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

std::string DTypesOf(const OpDef& op) {
  std::vector<DType> left = KernelDTypes(op.name, DeviceKind::kCpu);
  if (left.empty() || Contains(left, DType::kInvalid)) return "any";
  std::vector<std::string> words;
  for (const DTypeGroup& group : Groups()) {
    const bool whole = std::all_of(group.members.begin(), group.members.end(),
                                   [&](DType dtype) { return Contains(left, dtype); });
    if (!whole) continue;
    words.emplace_back(group.name);
    const auto grouped = [&](DType dtype) { return Contains(group.members, dtype); };
    left.erase(std::remove_if(left.begin(), left.end(), grouped), left.end());
  }
  for (const DType dtype : left) words.emplace_back(DTypeName(dtype));
  return absl::StrJoin(words, ", ");
}

std::string RowsText(const OpDef& op) {
  if (op.rows == nullptr) return "no row rule: never batched";
  if (op.rows == RowsNever && FindFlatRule(op.name) != nullptr) return "keeps ragged rows";
  if (op.rows == RowsNever) return "mixes rows";
  if (op.rows == RowsElementwise) return "keeps rows";
  if (op.rows == RowsOfInput0) return "keeps rows of its first input";
  return "keeps rows by attributes and shapes";
}

std::string NotesOf(const OpDef& op) {
  std::vector<std::string> notes;
  if (op.without_kernel != nullptr) {
    notes.emplace_back(op.without_kernel);
  } else if (op.outputs != 0) {
    notes.push_back(RowsText(op));
  }
  if (op.allocates) notes.emplace_back("sizes known only when run");
  if (op.effect) notes.emplace_back("runs although nothing reads it");
  if (op.stateful && !op.allocates && op.without_kernel == nullptr)
    notes.emplace_back("never folded");
  if (op.limits != nullptr) notes.emplace_back(op.limits);
  return absl::StrJoin(notes, "; ");
}

}  // namespace

std::vector<SupportedOp> SupportedOps() {
  std::vector<SupportedOp> ops;
  for (const OpDef* op : AllOps()) {
    if (op->tensorflow.empty()) continue;
    std::vector<std::string> names = op->tensorflow;
    std::sort(names.begin(), names.end());
    ops.push_back({absl::StrJoin(names, ", "), DTypesOf(*op), NotesOf(*op)});
  }
  std::sort(ops.begin(), ops.end(),
            [](const SupportedOp& a, const SupportedOp& b) { return a.names < b.names; });
  return ops;
}

namespace {

void PrintRefused(std::ostream& out) {
  out << "\n## Refused ops\n\n"
         "A graph that needs one of these is refused when it is loaded, and the error gives the "
         "reason. `*` stands for any\nletters; an op in the table above is supported although a "
         "name here would match it. `scripts/list_tf_ops.py` lists\nTensorFlow's ops that are in "
         "neither table.\n\n"
         "| What | Ops | Why |\n| --- | --- | --- |\n";
  for (const RefusedOps& group : AllRefusedOps()) {
    out << "| " << group.group << " | `" << absl::StrJoin(NamesOf(group), "`, `") << "` | "
        << group.why << " |\n";
  }
}

}  // namespace

void PrintOpsMarkdown(std::ostream& out) {
  const std::vector<SupportedOp> ops = SupportedOps();
  out << "# Ops\n\n"
         "    build/release/floectl ops --markdown\n\n"
         "prints this page; a test compares it with the build. It lists TensorFlow's ops that "
         "graphs "
         "may use. The dtypes are\nthose of the first input, or of the output if there is no "
         "input. "
         "\"any\" means all dtypes of TensorFlow's CPU kernel, or\nthat the op reads no values. "
         "\"Rows\" are the requests of a batch, along the batch dimension. A signature can be "
         "batched"
         "\nif all its ops keep rows separate.\n\n"
         "| Op | Dtypes | Notes |\n| --- | --- | --- |\n";
  for (const SupportedOp& op : ops)
    out << "| " << op.names << " | " << op.dtypes << " | " << op.notes << " |\n";
  PrintRefused(out);
}

}  // namespace floe::cli
