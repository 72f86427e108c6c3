// Lookup tables. A loaded model has them as constants (runtime/passes/load_tables.cc), so that
// looking something up is a function of its inputs; the ops that make and fill tables are gone by
// then.
#include "model/tables.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferTable(const InferContext&) {
  return ops::One(DType::kResource, SymShape());
}

absl::Status ExpectTable(const InferContext& c) {
  // Old graphs pass tables as names.
  if (c.dtype(0) == DType::kResource || c.dtype(0) == DType::kString) return absl::OkStatus();
  return Bad(absl::StrCat("input 0 is ", DTypeName(c.dtype(0)), ", expected a table"));
}

// Keys followed by the shape of a value: that of the table where it is known, else the default's.
absl::StatusOr<Types> InferFind(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectTable(c));
  const TableObject* table =
      c.inputs[0].has_constant() ? TableOf(c.inputs[0].constant.view()) : nullptr;
  SymShape value = c.shape(2);
  if (table != nullptr) {
    if (c.dtype(1) != table->key_dtype() || c.dtype(2) != table->value_dtype()) {
      return Bad(absl::StrCat("asks for ", DTypeName(c.dtype(1)), " -> ", DTypeName(c.dtype(2)),
                              " in a table of ", table->TypeText()));
    }
    value = SymShape(table->value_shape());
  }
  if (!c.shape(1).rank_known() || !value.rank_known())
    return ops::One(c.dtype(2), SymShape::UnknownRank());
  SymShape out = c.shape(1);
  for (const Dim dim : value.dims()) out.push_back(dim);
  return ops::One(c.dtype(2), std::move(out));
}

// Keys are looked up one by one.
RowMark FindRows(const RowContext& c) {
  if (c.marks[0] != RowMark::kConstant || c.marks[2] != RowMark::kConstant) return RowsNever(c);
  return ops::MarkOfData(c, 1, true);
}

absl::StatusOr<Types> InferTablesSize(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectTable(c));
  return ops::One(DType::kInt64, SymShape());
}

OpDef Table(const std::string& name) {
  return {.name = name,
          .infer = InferTable,
          .rows = RowsNever,
          .stateful = true,
          .tensorflow = {name, name + "V2"},
          .without_kernel = "a filled constant once the model is loaded"};
}

// Ops that fill a table and give nothing.
OpDef Filler(const std::string& name, const char* types) {
  return {.name = name,
          .outputs = 0,
          .infer = ops::InferNothing,
          .rows = RowsNever,
          .effect = true,
          .stateful = true,
          .input_types = types,
          .tensorflow = {name, name + "V2"},
          .without_kernel = "run once, while the model is loaded"};
}

const OpRegistrar kTables[] = {
    OpRegistrar(Table("HashTable")),
    OpRegistrar(Table("MutableHashTable")),
    OpRegistrar(Table("MutableHashTableOfTensors")),
    OpRegistrar(Filler("InitializeTable", "T U V")),
    OpRegistrar(Filler("InitializeTableFromTextFile", "resource string")),
    OpRegistrar(Filler("LookupTableImport", "T U V")),
    OpRegistrar(Filler("LookupTableInsert", "T U V")),
    OpRegistrar({.name = "LookupTableFind",
                 .infer = InferFind,
                 .rows = FindRows,
                 .input_types = "resource T U",
                 .tensorflow = {"LookupTableFind", "LookupTableFindV2"}}),
    OpRegistrar({.name = "LookupTableSize",
                 .infer = InferTablesSize,
                 .rows = RowsNever,
                 .input_types = "resource",
                 .tensorflow = {"LookupTableSize", "LookupTableSizeV2"}}),
};

}  // namespace
}  // namespace floe
