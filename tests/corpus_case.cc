#include "tests/corpus_case.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "cli/local_model.h"
#include "cli/string_array.h"
#include "model/half.h"
#include "model/op_def.h"

namespace floe::corpus {
namespace {

absl::StatusOr<Tensor> ArrayOf(const cli::NamedTensors& arrays, const nlohmann::json& described) {
  const std::string name = described["name"];
  const Tensor* array = cli::FindTensor(arrays, absl::StrReplaceAll(name, {{":", "__"}}));
  if (array == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("no array for '", name, "'"));
  if (described["dtype"] != "string") return *array;
  FLOE_ASSIGN_OR_RETURN(const Tensor flat, cli::DecodeStrings(*array));
  Shape shape;
  for (const int64_t dim : described["shape"]) shape.push_back(dim);
  if (shape.elements() != flat.elements())
    return absl::InvalidArgumentError(absl::StrCat(flat.elements(), " strings for '", name, "'"));
  return flat.Reshaped(shape);
}

// A difference in one element, or an empty string.
template <typename T>
std::string CompareElement(const CorpusCase& c, T got, T want) {
  double g = static_cast<double>(got), w = static_cast<double>(want);
  if (std::isnan(g) && std::isnan(w)) return "";
  if (c.mtol > 0) {
    g = std::clamp(g, -c.mtol, c.mtol);
    w = std::clamp(w, -c.mtol, c.mtol);
  }
  if (g == w || (std::isfinite(w) && std::abs(g - w) <= c.atol + c.rtol * std::abs(w))) return "";
  return absl::StrCat(g, ", expected ", w);
}
std::string CompareElement(const CorpusCase&, const std::string& got, const std::string& want) {
  return got == want ? "" : absl::StrCat("'", got, "', expected '", want, "'");
}
template <typename T>
std::string CompareExactly(T got, T want) {
  return got == want ? "" : absl::StrCat(got, ", expected ", want);
}
template <typename T>
std::string CompareElement(const CorpusCase& c, std::complex<T> got, std::complex<T> want) {
  const std::string real = CompareElement(c, got.real(), want.real());
  return real.empty() ? CompareElement(c, got.imag(), want.imag()) : real;
}

template <typename T>
absl::Status CompareAll(const CorpusCase& c, const TensorView& got, const TensorView& want) {
  for (int64_t i = 0; i < want.elements(); ++i) {
    std::string difference;
    if constexpr (std::is_integral_v<T>) {
      difference = CompareExactly(+got.as<T>()[i], +want.as<T>()[i]);
    } else {
      difference = CompareElement(c, got.as<T>()[i], want.as<T>()[i]);
    }
    if (!difference.empty())
      return absl::DataLossError(
          absl::StrCat("element ", i, " of ", want.elements(), " is ", difference));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CheckBounds(const ValueBounds& bounds, const TensorView& got) {
  double sum = 0, squares = 0;
  const auto n = static_cast<double>(got.elements());
  for (int64_t i = 0; i < got.elements(); ++i) {
    const auto value = static_cast<double>(got.as<T>()[i]);
    if (!(value >= bounds.low && value <= bounds.high)) {
      return absl::DataLossError(absl::StrCat("element ", i, " is ", value, ", expected ",
                                              bounds.low, " to ", bounds.high));
    }
    sum += value;
    squares += value * value;
  }
  // Six standard errors: one run in a hundred million strays further by chance.
  const double mean = sum / n, deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
  const double slack = 6 * bounds.deviation / std::sqrt(n) + 1e-6;
  if (std::abs(mean - bounds.mean) > slack || std::abs(deviation - bounds.deviation) > slack) {
    return absl::DataLossError(absl::StrCat("mean ", mean, " and deviation ", deviation,
                                            ", expected ", bounds.mean, " and ", bounds.deviation));
  }
  return absl::OkStatus();
}

absl::Status CompareRandom(const CorpusCase& c, const CorpusTensor& want, const TensorView& got) {
  CorpusCase shape_only;
  shape_only.values = false;
  FLOE_RETURN_IF_ERROR(CompareTensors(shape_only, got, want.value.view()));
  switch (got.dtype) {
    case DType::kFloat32:
      return CheckBounds<float>(*want.bounds, got);
    case DType::kFloat64:
      return CheckBounds<double>(*want.bounds, got);
    case DType::kFloat16:
      return CheckBounds<Half>(*want.bounds, got);
    case DType::kBFloat16:
      return CheckBounds<BFloat16>(*want.bounds, got);
    case DType::kInt32:
      return CheckBounds<int32_t>(*want.bounds, got);
    case DType::kInt64:
      return CheckBounds<int64_t>(*want.bounds, got);
    default:
      return absl::UnimplementedError(
          absl::StrCat("random values of dtype ", DTypeName(got.dtype), " in ", c.folder.string()));
  }
}

absl::Status RunOnce(const CorpusCase& c, const cli::BoundCall& call, ExecContext& context) {
  const absl::Status status = cli::RunCall(call, context);
  if (c.fails.empty()) {
    FLOE_RETURN_IF_ERROR(status);
    return CompareOutputs(c, context);
  }
  if (status.ok()) return absl::DataLossError("runs, expected an error");
  if (std::string(status.message()).find(c.fails) != std::string::npos) return absl::OkStatus();
  return Annotate(status, absl::StrCat("expected an error with '", c.fails, "'"));
}

}  // namespace

absl::StatusOr<CorpusCase> ReadCorpusCase(const std::filesystem::path& folder) {
  const nlohmann::json description = nlohmann::json::parse(std::ifstream(folder / "case.json"));
  FLOE_ASSIGN_OR_RETURN(const cli::NamedTensors inputs,
                        cli::ReadNpz((folder / "inputs.npz").string()));
  FLOE_ASSIGN_OR_RETURN(const cli::NamedTensors outputs,
                        cli::ReadNpz((folder / "outputs.npz").string()));
  CorpusCase c;
  for (const auto& input : description["inputs"]) {
    if (input["graph_shape"] == "absent") continue;
    FLOE_ASSIGN_OR_RETURN(Tensor value, ArrayOf(inputs, input));
    c.inputs.push_back({input["name"], std::move(value), {}});
  }
  c.folder = folder;
  CorpusVariant main{folder.filename().string(), folder / "graph.pb", {}, {}};
  for (const auto& output : description["outputs"]) {
    FLOE_ASSIGN_OR_RETURN(Tensor value, ArrayOf(outputs, output));
    c.outputs.push_back({output["name"], std::move(value), {}});
    main.outputs.push_back(output["name"]);
  }
  c.variants.push_back(std::move(main));
  for (const auto& [name, variant] : description["variants"].items()) {
    c.variants.push_back({absl::StrCat(folder.filename().string(), "/", name),
                          folder / std::string(variant["graph"]),
                          {},
                          variant["outputs"]});
  }
  c.init_ops = description["init_ops"];
  c.rtol = description["rtol"];
  c.atol = description["atol"];
  if (!description["mtol"].is_null()) c.mtol = description["mtol"];
  c.values = description["check"] == "value";
  c.repeats = !description["ops"].contains("SampleDistortedBoundingBoxV2");
  return c;
}

absl::StatusOr<ImportedModel> ImportCorpusCase(const CorpusCase& c, const CorpusVariant& variant) {
  ImportOptions options;
  options.fetches = variant.outputs;
  for (const CorpusTensor& input : c.inputs)
    options.feeds.push_back({input.name, input.value.dtype()});
  return variant.graph.empty() ? ImportBytes(variant.text, options)
                               : ImportFile(variant.graph.string(), options);
}

absl::StatusOr<cli::LocalModel> CompileCorpusCase(const CorpusCase& c, ImportedModel imported,
                                                  const CompileOptions& compile) {
  cli::LocalOptions options;
  options.compile = compile;
  options.init_nodes = c.init_ops;
  return cli::CompileLocal(std::move(imported), (c.folder / "graph.pb").string(), options);
}

absl::StatusOr<std::vector<Tensor>> InputsOf(const CorpusCase& c, const SignatureDef& def) {
  std::vector<Tensor> inputs(def.inputs.size());
  for (const CorpusTensor& input : c.inputs) {
    FLOE_ASSIGN_OR_RETURN(const int i, cli::FindInput(def, input.name));
    inputs[i] = input.value;
  }
  return inputs;
}

absl::Status CompareOutputs(const CorpusCase& c, const ExecContext& context) {
  for (size_t k = 0; k < c.outputs.size(); ++k) {
    const TensorView& got = context.Output(static_cast<int>(k));
    const CorpusTensor& want = c.outputs[k];
    const absl::Status same = want.bounds.has_value() ? CompareRandom(c, want, got)
                                                      : CompareTensors(c, got, want.value.view());
    if (!same.ok()) return Annotate(same, absl::StrCat("output '", want.name, "'"));
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<cli::BoundCall> BindCase(const CorpusCase& c, const cli::LocalModel& model) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, InputsOf(c, model.def()));
  return cli::BindCall(*model.signature, inputs);
}

std::vector<Tensor> CopyOutputs(const CorpusCase& c, const ExecContext& context) {
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < c.outputs.size(); ++k)
    outputs.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
  return outputs;
}

// The case as a second run in the same context answers it.
CorpusCase Repeated(CorpusCase c) {
  c.values = c.values && c.repeats;
  return c;
}

// Runs the call over memory that is filled in two ways; what it answers may not depend on that.
absl::Status RunOverFilledMemory(const CorpusCase& c, const cli::BoundCall& call,
                                 ExecContext& context) {
  context.CheckMemory(MemoryFill::kOnes);
  FLOE_RETURN_IF_ERROR(RunOnce(c, call, context));
  if (!c.fails.empty()) return absl::OkStatus();
  const std::vector<Tensor> first = CopyOutputs(c, context);
  context.CheckMemory(MemoryFill::kStripes);
  const CorpusCase again = Repeated(c);
  FLOE_RETURN_IF_ERROR(RunOnce(again, call, context));
  for (size_t k = 0; k < first.size() && again.values; ++k) {
    if (!c.outputs[k].bounds.has_value() &&
        !SameBits(first[k].view(), context.Output(static_cast<int>(k)))) {
      return absl::DataLossError(absl::StrCat("output '", c.outputs[k].name,
                                              "' depends on what memory held before the run"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCorpusCase(const CorpusCase& c, const CorpusVariant& variant,
                           const CompileOptions& compile) {
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportCorpusCase(c, variant));
  FLOE_ASSIGN_OR_RETURN(const cli::LocalModel model,
                        CompileCorpusCase(c, std::move(imported), compile));
  return RunCompiledCase(c, model);
}

absl::Status RunCompiledCase(const CorpusCase& c, const cli::LocalModel& model) {
  FLOE_ASSIGN_OR_RETURN(const cli::BoundCall call, BindCase(c, model));
  ExecContext context;
  FLOE_RETURN_IF_ERROR(RunOverFilledMemory(c, call, context));
  // What a run leaves behind in its context must not reach the next one.
  const absl::Status again = RunOnce(Repeated(c), call, context);
  return again.ok() ? again : Annotate(again, "the second run");
}

absl::StatusOr<std::vector<Tensor>> AnswersOf(const CorpusCase& c, const cli::LocalModel& model) {
  FLOE_ASSIGN_OR_RETURN(const cli::BoundCall call, BindCase(c, model));
  ExecContext context;
  FLOE_RETURN_IF_ERROR(cli::RunCall(call, context));
  return CopyOutputs(c, context);
}

namespace {

// Nodes that tables are filled from, which are run when a model is loaded.
std::vector<bool> FillTables(const Graph& graph) {
  std::vector<bool> fill(graph.size(), false);
  for (int i = graph.size() - 1; i >= 0; --i) {
    const Node& node = graph.node(i);
    if (node.op->outputs == 0 && node.op->effect && node.op->without_kernel != nullptr)
      fill[i] = true;
    if (!fill[i]) continue;
    for (const ValueRef& in : node.inputs) fill[in.node] = true;
  }
  return fill;
}

}  // namespace

absl::Status RunUndeclaredCase(const CorpusCase& c, const CorpusVariant& variant, bool ranks) {
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportCorpusCase(c, variant));
  SignatureDef& signature = imported.signatures[0];
  FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, InputsOf(c, signature));
  const std::vector<bool> fixed = FillTables(imported.graph);
  for (int i = 0; i < imported.graph.size(); ++i) {
    Node& node = imported.graph.mutable_node(i);
    const Tensor* value = node.attrs.Find<Tensor>("value");
    if (node.op->name != "Const" || value == nullptr || fixed[i]) continue;
    // One behind a control edge belongs to a branch, where nobody can feed it.
    if (!node.control_inputs.empty()) continue;
    inputs.push_back(*value);
    signature.inputs.push_back({.key = node.name, .tensor_name = node.name});
    signature.inputs.back().type.dtype = value->dtype();
    node.op = FindOp("Input");
    node.attrs.Set("dtype", value->dtype());
    node.attrs.Erase("value");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) continue;
    signature.inputs[i].optional = false;
    SymShape shape = SymShape::UnknownRank();
    if (ranks) {
      shape = SymShape(inputs[i].shape());
      for (int d = 0; d < shape.rank(); ++d) shape.set_dim(d, Dim::Unknown());
    }
    signature.inputs[i].type.shape = shape;
  }
  FLOE_ASSIGN_OR_RETURN(const cli::LocalModel model, CompileCorpusCase(c, std::move(imported)));
  FLOE_ASSIGN_OR_RETURN(const cli::BoundCall call, cli::BindCall(*model.signature, inputs));
  ExecContext context;
  return RunOverFilledMemory(c, call, context);
}

bool SameBits(const TensorView& a, const TensorView& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.dtype == DType::kString)
    return std::equal(a.as<std::string>(), a.as<std::string>() + a.elements(), b.as<std::string>());
  return a.bytes() == 0 || std::memcmp(a.data, b.data, a.bytes()) == 0;
}

namespace {

template <typename T>
bool SameBitsOrNaN(const TensorView& a, const TensorView& b) {
  const auto* x = static_cast<const T*>(a.data);
  const auto* y = static_cast<const T*>(b.data);
  return std::equal(x, x + a.bytes() / sizeof(T), y, [](T p, T q) {
    const auto wide_p = static_cast<double>(p), wide_q = static_cast<double>(q);
    return (std::isnan(wide_p) && std::isnan(wide_q)) || std::memcmp(&p, &q, sizeof(T)) == 0;
  });
}

}  // namespace

bool SameBitsButNaN(const TensorView& a, const TensorView& b) {
  if (SameBits(a, b)) return true;
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  switch (a.dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return SameBitsOrNaN<float>(a, b);
    case DType::kFloat64:
    case DType::kComplex128:
      return SameBitsOrNaN<double>(a, b);
    case DType::kFloat16:
      return SameBitsOrNaN<Half>(a, b);
    case DType::kBFloat16:
      return SameBitsOrNaN<BFloat16>(a, b);
    default:
      return false;
  }
}

absl::Status CompareTensors(const CorpusCase& c, const TensorView& got, const TensorView& want) {
  if (got.dtype != want.dtype || got.shape != want.shape) {
    return absl::DataLossError(absl::StrCat("is ", DTypeName(got.dtype), got.shape.ToString(),
                                            ", expected ", DTypeName(want.dtype),
                                            want.shape.ToString()));
  }
  if (!c.values) return absl::OkStatus();
  switch (PlainDType(want.dtype)) {
    case DType::kFloat32:
      return CompareAll<float>(c, got, want);
    case DType::kFloat64:
      return CompareAll<double>(c, got, want);
    case DType::kFloat16:
      return CompareAll<Half>(c, got, want);
    case DType::kBFloat16:
      return CompareAll<BFloat16>(c, got, want);
    case DType::kInt8:
      return CompareAll<int8_t>(c, got, want);
    case DType::kInt16:
      return CompareAll<int16_t>(c, got, want);
    case DType::kInt32:
      return CompareAll<int32_t>(c, got, want);
    case DType::kInt64:
      return CompareAll<int64_t>(c, got, want);
    case DType::kBool:
    case DType::kUInt8:
      return CompareAll<uint8_t>(c, got, want);
    case DType::kUInt16:
      return CompareAll<uint16_t>(c, got, want);
    case DType::kUInt32:
      return CompareAll<uint32_t>(c, got, want);
    case DType::kUInt64:
      return CompareAll<uint64_t>(c, got, want);
    case DType::kComplex64:
      return CompareAll<std::complex<float>>(c, got, want);
    case DType::kComplex128:
      return CompareAll<std::complex<double>>(c, got, want);
    case DType::kString:
      return CompareAll<std::string>(c, got, want);
    default:
      return absl::UnimplementedError(
          absl::StrCat("values of dtype ", DTypeName(want.dtype), " cannot be compared"));
  }
}

}  // namespace floe::corpus
