#include "tests/fuzz/run_model.h"

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "model/handle.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"
#include "tests/fuzz/fuzzer.h"

namespace floe::fuzz {
namespace {

Shape InputShape(const SymShape& declared, int64_t rows, Random& random) {
  Shape shape;
  if (!declared.rank_known()) {
    for (int rank = random.Below(4); rank > 0; --rank)
      shape.push_back(shape.rank() == 0 ? rows : 1 + random.Below(3));
    return shape;
  }
  for (const Dim& dim : declared.dims())
    shape.push_back(dim.known() ? dim.size() : shape.rank() == 0 ? rows : 1 + random.Below(3));
  return shape;
}

void FillInput(const TensorView& view, Random& random) {
  const int64_t n = view.elements();
  for (int64_t i = 0; i < n; ++i) {
    const int number = random.Below(9) - 3;
    switch (view.dtype) {
      case DType::kString:
        view.as<std::string>()[i] = std::string("a b,1").substr(random.Below(6));
        break;
      case DType::kFloat32:
        view.as<float>()[i] = static_cast<float>(random.OneIn(16) ? random.Real() : number * .5);
        break;
      case DType::kFloat64:
        view.as<double>()[i] = random.OneIn(16) ? random.Real() : number * .5;
        break;
      case DType::kBool:
        view.as<bool>()[i] = number > 0;
        break;
      case DType::kInt32:
        view.as<int32_t>()[i] = number;
        break;
      case DType::kInt64:
        view.as<int64_t>()[i] = number;
        break;
      default:
        std::fill_n(view.as<char>() + i * DTypeSize(view.dtype), DTypeSize(view.dtype),
                    static_cast<char>(number & 1));
        break;
    }
  }
}

void TouchOutput(const TensorView& view) {
  if (view.dtype == DType::kString) {
    for (int64_t i = 0; i < view.elements(); ++i)
      Touch(view.as<std::string>()[i].data(), view.as<std::string>()[i].size());
  } else if (!IsHandle(view.dtype)) {
    Touch(view.data, view.bytes());
  }
}

// One request of so many rows. Errors are as good as answers.
absl::Status RunOnce(const CompiledSignature& signature, ExecContext& context, int64_t rows,
                     Random random) {
  std::vector<Tensor> inputs;
  std::vector<Shape> shapes;
  const Budget budget_of_inputs(kLimits);
  for (const SignatureTensor& input : signature.signature().inputs) {
    const Shape shape = InputShape(input.type.shape, rows, random);
    if (input.type.dtype == DType::kInvalid || IsHandle(input.type.dtype))
      return absl::UnimplementedError("handles are not fed");
    FLOE_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(shape.dims(), 32));
    FLOE_RETURN_IF_ERROR(budget_of_inputs.CheckValue(elements * 32));
    inputs.push_back(Tensor::Allocate(input.type.dtype, shape));
    FillInput(inputs.back().view(), random);
    shapes.push_back(shape);
  }
  FLOE_ASSIGN_OR_RETURN(const auto plan, signature.Bind(shapes));
  FLOE_RETURN_IF_ERROR(context.Prepare(plan, plan->has_rows() ? rows : 1));
  for (size_t i = 0; i < inputs.size(); ++i)
    context.BindInput(static_cast<int>(i), inputs[i].data());
  FLOE_RETURN_IF_ERROR(context.Run());
  for (size_t k = 0; k < signature.graph().outputs.size(); ++k)
    TouchOutput(context.Output(static_cast<int>(k)));
  return absl::OkStatus();
}

}  // namespace

Random ChoicesOf(const std::string& bytes) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return Random(hash);
}

absl::Status CompileAndRun(ImportedModel imported, Random random) {
  CompileOptions compile;
  compile.limits = kLimits;
  FLOE_ASSIGN_OR_RETURN(
      const auto model,
      Model::Create({{}, std::move(imported.graph), std::move(imported.signatures)}, compile));
  if (model->signatures().empty()) return absl::OkStatus();
  const CompiledSignature& signature = model->signatures().begin()->second.default_variant();
  ExecContext context;
  context.budget().SetLimits(kLimits);
  const int64_t rows = random.OneIn(8) ? 0 : 1 + random.Below(3);
  FLOE_RETURN_IF_ERROR(RunOnce(signature, context, rows, random));
  return RunOnce(signature, context, rows + 1, random);
}

}  // namespace floe::fuzz
