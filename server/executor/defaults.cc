#include "server/executor/defaults.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/executor/plan_executor.h"

namespace floe::server {
namespace {

// A copy that lives as long as the request.
absl::StatusOr<TensorView> Keep(const TensorView& value, InputStorage* storage) {
  const bool strings = value.dtype == DType::kString;
  const auto bytes = static_cast<int64_t>(value.elements() *
                                          (strings ? sizeof(std::string) : DTypeSize(value.dtype)));
  FLOE_RETURN_IF_ERROR(storage->Pay(bytes));
  void* const to = strings ? storage->AllocateStrings(value.elements()) : storage->Allocate(bytes);
  CopyElements(value, to);
  return TensorView{value.dtype, value.shape, to};
}

}  // namespace

absl::StatusOr<bool> BindDefaults(Request* request) {
  for (const DefaultProgram* program : request->binding.missing) {
    FLOE_ASSIGN_OR_RETURN(const BoundDefault bound, BindDefault(*program, request->inputs));
    if (!bound.shape) {
      request->binding.plan = bound.plan;
      return false;
    }
    request->inputs[program->input] = {bound.plan->output_types()[0].dtype, *bound.shape, nullptr};
  }
  return true;
}

absl::Status ComputeDefaults(const RunLimits& limits, ExecContext* context, Request* request) {
  const auto& missing = request->binding.missing;
  // A request whose run failed beside others runs again with the values that it has.
  for (size_t& done = request->computed_defaults; done < missing.size(); ++done) {
    const DefaultProgram& program = *missing[done];
    TensorView& input = request->inputs[program.input];
    FLOE_RETURN_IF_ERROR(PrepareDefault(program, request->inputs, context));
    FLOE_RETURN_IF_ERROR(RunWithin(limits, context));
    const TensorView& value = context->Output(0);
    if (input.dtype != DType::kInvalid && input.shape != value.shape) {
      return absl::InternalError(absl::StrCat(
          "the default of input ", Quoted(request->signature->def().inputs[program.input].key),
          " has shape ", value.shape.ToString(), " and not ", input.shape.ToString()));
    }
    FLOE_ASSIGN_OR_RETURN(input, Keep(value, &request->storage));
  }
  return absl::OkStatus();
}

}  // namespace floe::server
