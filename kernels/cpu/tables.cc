// Lookups in tables that were filled when the model was loaded.
#include "model/tables.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

absl::StatusOr<const TableObject*> TableIn(const KernelContext& ctx) {
  const TableObject* const table = TableOf(ctx.in(0));
  if (table == nullptr) return absl::InvalidArgumentError("input 0 is no lookup table");
  return table;
}

absl::Status Find(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const TableObject* const table, TableIn(ctx));
  return table->Find(ctx.in(1), ctx.in(2), ctx.out(0));
}

absl::Status Size(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const TableObject* const table, TableIn(ctx));
  *ctx.out(0).as<int64_t>() = table->size();
  return absl::OkStatus();
}

// What is left of these after loading would make or change a table while requests run.
absl::StatusOr<std::unique_ptr<Kernel>> RefuseChange(const KernelArgs& args) {
  return absl::UnimplementedError(absl::StrCat(
      args.node.op->name, ": tables are made and filled while a model is loaded, not by requests"));
}

FLOE_REGISTER_KERNEL(LookupTableFind, kCpu, MakeFunction<&Find>);
FLOE_REGISTER_KERNEL(LookupTableSize, kCpu, MakeFunction<&Size>);
FLOE_REGISTER_KERNEL(HashTable, kCpu, RefuseChange);
FLOE_REGISTER_KERNEL(MutableHashTable, kCpu, RefuseChange);
FLOE_REGISTER_KERNEL(MutableHashTableOfTensors, kCpu, RefuseChange);
FLOE_REGISTER_KERNEL(InitializeTable, kCpu, RefuseChange);
FLOE_REGISTER_KERNEL(InitializeTableFromTextFile, kCpu, RefuseChange);
FLOE_REGISTER_KERNEL(LookupTableImport, kCpu, RefuseChange);
FLOE_REGISTER_KERNEL(LookupTableInsert, kCpu, RefuseChange);

}  // namespace
}  // namespace floe::kernels
