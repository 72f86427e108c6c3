// Any bytes as a model file: import, compile, bind and two runs, within small limits.
#include <algorithm>
#include <vector>

#include "base/status.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "model/handle.h"
#include "model/import/import.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/graph_mutator.h"

namespace floe::fuzz {
namespace {

constexpr ResourceLimits kLimits{
    .max_value_bytes = 1 << 16, .max_bytes = 1 << 20, .max_loop_rounds = 50, .max_visits = 3000};

// Sizes and values of the inputs follow from the bytes of the file.
Random ChoicesOf(const uint8_t* data, size_t size) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 1099511628211u;
  return Random(hash);
}

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

absl::Status LoadAndRun(const std::string& bytes, Random random) {
  ImportOptions import;
  import.limits = kLimits;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportBytes(bytes, import));
  CompileOptions compile;
  compile.limits = kLimits;
  FLOE_ASSIGN_OR_RETURN(
      const auto model,
      Model::Create({{}, std::move(imported.graph), std::move(imported.signatures)}, compile));
  const CompiledSignature& signature = model->Find("")->defaults_form();
  ExecContext context;
  context.budget().SetLimits(kLimits);
  const int64_t rows = random.OneIn(8) ? 0 : 1 + random.Below(3);
  FLOE_RETURN_IF_ERROR(RunOnce(signature, context, rows, random));
  return RunOnce(signature, context, rows + 1, random);
}

// The file as a message, from either form.
bool Parse(const std::string& bytes, tensorflow::GraphDef* graph) {
  google::protobuf::TextFormat::Parser text;
  class Silent : public google::protobuf::io::ErrorCollector {
    void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  } silent;
  text.RecordErrorsTo(&silent);
  return graph->ParseFromString(bytes) || text.ParseFromString(bytes, graph);
}

std::string Form(const tensorflow::GraphDef& graph, Random& random) {
  std::string bytes;
  constexpr int kTextOnceIn = 40;
  if (!random.OneIn(kTextOnceIn)) return graph.SerializeAsString();
  google::protobuf::TextFormat::PrintToString(graph, &bytes);
  return bytes;
}

}  // namespace
}  // namespace floe::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const floe::fuzz::UnitTimer timer;
  const absl::Status ran = floe::fuzz::LoadAndRun(
      std::string(reinterpret_cast<const char*>(data), size), floe::fuzz::ChoicesOf(data, size));
  floe::fuzz::Report(ran);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  tensorflow::GraphDef graph;
  constexpr int kBytesOnceIn = 30;
  if (random.OneIn(kBytesOnceIn) || !Parse(bytes, &graph))
    return Give(MutateBytes(bytes, max_size), data, max_size);
  Templates::Shared().Learn(graph);
  GraphMutator mutator(&graph, &random);
  for (int changes = 1 + random.Below(random.OneIn(4) ? 6 : 2); changes > 0; --changes)
    mutator.Mutate();
  return Give(Form(graph, random), data, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_out_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  tensorflow::GraphDef graph, other;
  if (!Parse(std::string(reinterpret_cast<const char*>(data1), size1), &graph) ||
      !Parse(std::string(reinterpret_cast<const char*>(data2), size2), &other))
    return 0;
  GraphMutator(&graph, &random).Splice(other);
  return Give(Form(graph, random), out, max_out_size);
}
