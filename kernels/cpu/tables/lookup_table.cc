// Lookups in tables that were filled when the model was loaded.
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"
#include "model/tables.h"

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

FLOE_REGISTER_KERNEL(LookupTableFind, kCpu, MakeFunction<&Find>);
FLOE_REGISTER_KERNEL(LookupTableSize, kCpu, MakeFunction<&Size>);

}  // namespace
}  // namespace floe::kernels
