// Dense, EinsumDense, Embedding, ReversibleEmbedding.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/quoted.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

// ---- int8, as Keras' quantize() leaves it ----

// Where the variables are: .keras files have the bias behind the kernel, .h5 files have what is
// trained before what is not.
struct Places {
  int kernel = 0, bias = 1, scale = 2;
};

Places PlacesOf(LayerContext& c, bool bias) {
  if (!c.int8) return {};
  if (!bias) return {0, -1, 1};
  return c.b.dtype(c.Weight(0)) == DType::kInt8 ? Places{} : Places{1, 0, 2};
}

// Whether inputs are rounded to int8 as well, by the greatest of each row.
bool QuantizesInputs(LayerContext& c) {
  const Json& config = c.config.At("quantization_config");
  if (config.is_null()) return true;
  const Json& quantizer = Member(Member(config, "config"), "activation_quantizer");
  if (quantizer.is_null()) return false;
  const Json& options = Member(quantizer, "config");
  const Json& range = Member(options, "value_range");
  const Json* const ends = Items(range);
  const bool usual = ends != nullptr && ends->size() == 2 && (*ends)[0] == -127 &&
                     (*ends)[1] == 127 && Text(options, "output_dtype") == "int8" &&
                     Member(options, "epsilon") == 1e-7;
  if (Text(quantizer, "class_name") != "AbsMaxQuantizer" || !usual)
    c.Refuse("another quantizer than AbsMaxQuantizer() of int8");
  return true;
}

// Whole numbers in float32, in which sums of their products are as near as those that Keras casts
// from int32; and what they were multiplied by, `axes` being ones.
struct Quantized {
  ValueRef x, scale;
};

Quantized QuantizeOver(GraphBuilder& b, ValueRef x, const std::vector<int64_t>& axes) {
  const DType dtype = b.dtype(x);
  const ValueRef most = Add(b, Reduce(b, "Max", b.Op("Abs", {x}), axes, true), 1e-7);
  const ValueRef scale = b.Op("RealDiv", {Scalar(b, dtype, 127), most});
  const ValueRef whole = b.Op("Round", {Mul(b, x, scale)});
  const ValueRef most_whole = b.Op("Minimum", {whole, Scalar(b, dtype, 127)});
  return {Cast(b, b.Op("Maximum", {most_whole, Scalar(b, dtype, -127)}), DType::kFloat32), scale};
}

ValueRef Int8MatMul(LayerContext& c, ValueRef x, ValueRef kernel, ValueRef scale) {
  GraphBuilder& b = c.b;
  x = Cast(b, x, c.compute_dtype);
  Quantized q{Cast(b, x, DType::kFloat32), {}};
  if (QuantizesInputs(c)) q = QuantizeOver(b, x, {-1});
  const ValueRef y = MatrixProduct(b, q.x, Cast(b, kernel, DType::kFloat32));
  if (q.scale.node >= 0) scale = Mul(b, scale, q.scale);
  return b.Op("RealDiv", {Cast(b, y, c.compute_dtype), scale});
}

// The scales of a product's input as they lie along its output.
ValueRef AlongOutput(LayerContext& c, ValueRef scale, const std::string& input,
                     const std::string& output) {
  GraphBuilder& b = c.b;
  std::vector<int64_t> order;
  std::vector<WantedDim> dims;
  for (const char axis : output) {
    const size_t at = input.find(axis);
    if (at != std::string::npos) order.push_back(static_cast<int64_t>(at));
    dims.push_back(at == std::string::npos ? WantedDim(1) : DimOf(b, scale, static_cast<int>(at)));
  }
  for (size_t k = 0; k < input.size(); ++k) {
    if (output.find(input[k]) == std::string::npos) order.push_back(static_cast<int64_t>(k));
  }
  return Reshape(b, Transpose(b, scale, order), dims);
}

ValueRef Int8Einsum(LayerContext& c, ValueRef x, ValueRef kernel, ValueRef scale,
                    const std::string& equation) {
  GraphBuilder& b = c.b;
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> in = absl::StrSplit(sides[0], ',');
  if (in.size() != 2 || absl::StrContains(equation, '.')) {
    c.Refuse(absl::StrCat("equation ", equation, " of a layer quantised to int8"));
    return {};
  }
  x = Cast(b, x, c.compute_dtype);
  Quantized q{Cast(b, x, DType::kFloat32), {}};
  if (QuantizesInputs(c)) {
    std::vector<int64_t> axes;
    for (size_t k = 0; k < in[0].size(); ++k) {
      if (absl::StrContains(in[1], in[0][k]) && !absl::StrContains(sides[1], in[0][k]))
        axes.push_back(static_cast<int64_t>(k));
    }
    q = QuantizeOver(b, x, axes);
    if (!b.ok()) return {};
    scale = Mul(b, AlongOutput(c, q.scale, in[0], sides[1]), scale);
  }
  const ValueRef y = b.Op("Einsum", {q.x, Cast(b, kernel, DType::kFloat32)},
                          {{"equation", equation}, {"N", int64_t{2}}});
  return b.Op("RealDiv", {Cast(b, y, c.compute_dtype), scale});
}

// ---- layers ----

KValue Dense(LayerContext& c) {
  GraphBuilder& b = c.b;
  const bool bias = c.config.Bool("use_bias", true);
  const Places at = PlacesOf(c, bias);
  ValueRef x = c.In(), kernel = c.Weight(at.kernel);
  if (c.keras2()) x = Cast(c.b, x, c.compute_dtype);  // whole numbers too
  c.CheckSize("units", SizeOf(b, kernel, -1, "a kernel"), "its kernel");
  if (!c.int8) c.Promote({&x, &kernel});
  ValueRef y = c.int8 ? Int8MatMul(c, x, kernel, c.Weight(at.scale)) : MatrixProduct(b, x, kernel);
  if (bias) y = b.Op("BiasAdd", {y, c.Weight(at.bias)});
  return c.Activate("activation", y);
}

// A bias has the shape of the output's axes that bias_axes names, broadcast along the others.
ValueRef EinsumBias(LayerContext& c, ValueRef bias, const std::string& output) {
  GraphBuilder& b = c.b;
  const std::string axes = c.config.String("bias_axes", "");
  std::vector<WantedDim> dims;
  int next = 0;
  bool begun = false;
  for (const char axis : output) {
    const bool mine = axes.find(axis) != std::string::npos;
    begun = begun || mine;
    if (mine)
      dims.push_back(DimOf(b, bias, next++));
    else if (begun)
      dims.emplace_back(1);
  }
  return Reshape(b, bias, dims);
}

KValue EinsumDense(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string equation = c.config.String("equation", "");
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) {
    c.Fail(absl::StrCat("equation ", Quoted(equation)));
    return {};
  }
  const Places at = PlacesOf(c, c.config.Has("bias_axes"));
  ValueRef x = c.In(), kernel = c.Weight(at.kernel);
  c.config.Ignore({"output_shape"});  // which the kernel has
  if (!c.int8) c.Promote({&x, &kernel});
  ValueRef y = c.int8 ? Int8Einsum(c, x, kernel, c.Weight(at.scale), equation)
                      : b.Op("Einsum", {x, kernel}, {{"equation", equation}, {"N", int64_t{2}}});
  if (c.config.Has("bias_axes")) {
    std::string output = sides[1];
    if (const size_t dots = output.rfind('.'); dots != std::string::npos)
      output = output.substr(dots + 1);
    y = Add(b, y, EinsumBias(c, c.Weight(at.bias), output));
  }
  return c.Activate("activation", y);
}

KValue Embedding(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef ids = c.In();
  if (b.dtype(ids) != DType::kInt64) ids = Cast(b, ids, DType::kInt32);
  const ValueRef rows = c.Weight(0);
  c.CheckSize("input_dim", SizeOf(b, rows, 0, "the embeddings"), "its variable");
  c.CheckSize("output_dim", SizeOf(b, rows, 1, "the embeddings"), "its variable");
  c.config.Ignore({"input_length", "sparse"});  // the shape of inputs, and how it is trained
  ValueRef y = b.Op("GatherV2", {rows, ids, Int(b, 0)});
  if (c.int8) {
    c.config.Ignore({"quantization_config"});  // ids have no scale
    const ValueRef scale = b.Op("GatherV2", {c.Weight(1), ids, Int(b, 0)});
    y = b.Op("RealDiv", {Cast(b, y, c.compute_dtype), ExpandDims(b, scale, -1)});
  }
  KTensor out{y, {}};
  if (c.config.Bool("mask_zero", false))
    out.mask = b.Op("NotEqual", {ids, Scalar(b, b.dtype(ids), 0)});
  return out;
}

// Called in reverse, it projects from the embedding to all ids.
KValue ReversibleEmbedding(LayerContext& c) {
  GraphBuilder& b = c.b;
  const KValue& reverse = c.Arg(1, "reverse");
  c.config.Ignore({"tie_weights", "logit_soft_cap", "reverse_dtype"});  // of calls in reverse
  if (reverse.kind != KValue::Kind::kJson || *reverse.json != true) return Embedding(c);
  const bool tied = c.config.Bool("tie_weights", true);
  c.config.Ignore({"mask_zero", "input_length"});
  c.CheckSize("input_dim", SizeOf(b, c.Weight(0), 0, "the embeddings"), "its variable");
  c.CheckSize("output_dim", SizeOf(b, c.Weight(0), 1, "the embeddings"), "its variable");
  const ValueRef weights = c.Weight(tied ? 0 : 1);
  ValueRef x = c.In(), kernel = tied ? Transpose(b, weights, {1, 0}) : weights;
  const std::string dtype = c.config.String("reverse_dtype", "");
  if (dtype == "float32" || dtype == "float16" || dtype == "bfloat16") {
    const DType to = dtype == "float32"   ? DType::kFloat32
                     : dtype == "float16" ? DType::kFloat16
                                          : DType::kBFloat16;
    x = Cast(b, x, to);
    kernel = Cast(b, kernel, to);
  } else if (!dtype.empty()) {
    c.Fail(absl::StrCat("reverse_dtype ", Quoted(dtype)));
  }
  const ValueRef y = MatrixProduct(b, x, kernel);
  if (!c.config.Has("logit_soft_cap")) return y;
  const double cap = c.config.Number("logit_soft_cap", 1);
  return Mul(b, b.Op("Tanh", {b.Op("RealDiv", {y, Scalar(b, b.dtype(y), cap)})}), cap);
}

const LayerRegistrar kReversible({"ReversibleEmbedding"}, ReversibleEmbedding);
const LayerRegistrar kDense({"Dense"}, Dense, Masks::kPass);
const LayerRegistrar kEinsumDense({"EinsumDense"}, EinsumDense);
const LayerRegistrar kEmbedding({"Embedding"}, Embedding);

}  // namespace
}  // namespace floe::keras
