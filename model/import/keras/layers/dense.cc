// Dense, EinsumDense, Embedding, ReversibleEmbedding.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/quoted.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue Dense(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = c.In(), kernel = c.Weight(0);
  c.CheckSize("units", b.Size(kernel, -1, "a kernel"), "its kernel");
  c.Promote({&x, &kernel});
  ValueRef y = b.MatMul(x, kernel);
  if (c.config.Bool("use_bias", true)) y = b.Op("BiasAdd", {y, c.Weight(1)});
  return c.Activate("activation", y);
}

// A bias has the shape of the output's axes that bias_axes names, broadcast along the others.
ValueRef EinsumBias(LayerContext& c, const std::string& output) {
  GraphBuilder& b = c.b;
  const std::string axes = c.config.String("bias_axes", "");
  const ValueRef bias = c.Weight(1);
  std::vector<WantedDim> dims;
  int next = 0;
  bool begun = false;
  for (const char axis : output) {
    const bool mine = axes.find(axis) != std::string::npos;
    begun = begun || mine;
    if (mine)
      dims.push_back(b.DimOf(bias, next++));
    else if (begun)
      dims.emplace_back(1);
  }
  return b.Reshape(bias, dims);
}

KValue EinsumDense(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string equation = c.config.String("equation", "");
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) {
    c.Fail(absl::StrCat("equation ", Quoted(equation)));
    return {};
  }
  ValueRef x = c.In(), kernel = c.Weight(0);
  c.config.Ignore({"output_shape"});  // which the kernel has
  c.Promote({&x, &kernel});
  ValueRef y = b.Op("Einsum", {x, kernel}, {{"equation", equation}, {"N", int64_t{2}}});
  if (c.config.Has("bias_axes")) {
    std::string output = sides[1];
    if (const size_t dots = output.rfind('.'); dots != std::string::npos)
      output = output.substr(dots + 1);
    y = b.Add(y, EinsumBias(c, output));
  }
  return c.Activate("activation", y);
}

KValue Embedding(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef ids = c.In();
  if (b.dtype(ids) != DType::kInt64) ids = b.Cast(ids, DType::kInt32);
  const ValueRef rows = c.Weight(0);
  c.CheckSize("input_dim", b.Size(rows, 0, "the embeddings"), "its variable");
  c.CheckSize("output_dim", b.Size(rows, 1, "the embeddings"), "its variable");
  c.config.Ignore({"input_length", "sparse"});  // the shape of inputs, and how it is trained
  const ValueRef y = b.Op("GatherV2", {rows, ids, b.Int(0)});
  KTensor out{y, {}};
  if (c.config.Bool("mask_zero", false))
    out.mask = b.Op("NotEqual", {ids, b.Scalar(b.dtype(ids), 0)});
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
  c.CheckSize("input_dim", b.Size(c.Weight(0), 0, "the embeddings"), "its variable");
  c.CheckSize("output_dim", b.Size(c.Weight(0), 1, "the embeddings"), "its variable");
  const ValueRef weights = c.Weight(tied ? 0 : 1);
  ValueRef x = c.In(), kernel = tied ? b.Transpose(weights, {1, 0}) : weights;
  const std::string dtype = c.config.String("reverse_dtype", "");
  if (dtype == "float32" || dtype == "float16" || dtype == "bfloat16") {
    const DType to = dtype == "float32"   ? DType::kFloat32
                     : dtype == "float16" ? DType::kFloat16
                                          : DType::kBFloat16;
    x = b.Cast(x, to);
    kernel = b.Cast(kernel, to);
  } else if (!dtype.empty()) {
    c.Fail(absl::StrCat("reverse_dtype ", Quoted(dtype)));
  }
  const ValueRef y = b.MatMul(x, kernel);
  if (!c.config.Has("logit_soft_cap")) return y;
  const double cap = c.config.Number("logit_soft_cap", 1);
  return b.Mul(b.Op("Tanh", {b.Op("RealDiv", {y, b.Scalar(b.dtype(y), cap)})}), cap);
}

const LayerRegistrar kReversible({"ReversibleEmbedding"}, ReversibleEmbedding);
const LayerRegistrar kDense({"Dense"}, Dense, Masks::kPass);
const LayerRegistrar kEinsumDense({"EinsumDense"}, EinsumDense);
const LayerRegistrar kEmbedding({"Embedding"}, Embedding);

}  // namespace
}  // namespace floe::keras
