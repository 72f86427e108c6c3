// LSTM, GRU, SimpleRNN, RNN over cells, Bidirectional, TimeDistributed.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/recurrent.h"

namespace floe::keras {
namespace {

// The cell of a recurrent layer's configuration.
std::unique_ptr<Cell> CellOf(LayerContext& c, const std::string& class_name, const Json& config,
                             const LayerWeights& weights) {
  if (class_name != "RNN") return MakeCell(c, class_name, config, weights.Child("cell"));
  const Json& cell = Member(config, "cell");
  return MakeCell(c, Text(cell, "class_name"), Member(cell, "config"), weights.Child("cell"));
}

KValue Recurrent(LayerContext& c) {
  const RecurrentOptions options = OptionsOf(c, c.layer.config());
  const std::unique_ptr<Cell> cell = CellOf(c, c.class_name, c.layer.config(), c.layer.weights);
  if (cell == nullptr) return {};
  return RunRecurrent(c, *cell, options, InitialStates(c));
}

ValueRef Merge(LayerContext& c, const std::string& mode, ValueRef y, ValueRef back) {
  GraphBuilder& b = c.b;
  if (mode == "concat") return Concat(b, {y, back}, Rank(b, y) - 1);
  if (mode == "sum") return Add(b, y, back);
  if (mode == "ave") return Mul(b, Add(b, y, back), 0.5);
  if (mode == "mul") return Mul(b, y, back);
  c.Fail(absl::StrCat("merge_mode is ", Quoted(mode)));
  return {};
}

// One direction: what it gives, its states behind its output.
std::vector<KTensor> Direction(LayerContext& c, const Json& layer, const std::string& place,
                               bool turned, std::vector<ValueRef> initial,
                               RecurrentOptions* options) {
  const Json& config = Member(layer, "config");
  *options = OptionsOf(c, config);
  options->backwards = options->backwards != turned;
  options->zero_output_for_mask = options->return_sequences;  // Keras insists
  const std::unique_ptr<Cell> cell =
      CellOf(c, Text(layer, "class_name"), config, c.layer.weights.Child(place));
  if (cell == nullptr) return {};
  return Flatten(RunRecurrent(c, *cell, *options, std::move(initial)));
}

KValue Bidirectional(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Json &forward = c.config.At("layer"), &own = c.config.At("backward_layer");
  const std::string mine = PolicyName(c.config.At("dtype"), true),
                    theirs = PolicyName(Member(Member(forward, "config"), "dtype"), true);
  if (c.keras2() && !mine.empty() && !theirs.empty() && mine != theirs)
    return c.Refuse(absl::StrCat("dtype ", Quoted(mine), " around a layer of ", Quoted(theirs)));
  const std::vector<ValueRef> initial = InitialStates(c);
  const auto half = static_cast<int64_t>(initial.size() / 2);
  RecurrentOptions options, back_options;
  const std::vector<KTensor> y = Direction(c, forward, "forward_layer", false,
                                           {initial.begin(), initial.begin() + half}, &options);
  const std::vector<KTensor> back =
      Direction(c, own.is_null() ? forward : own, "backward_layer", own.is_null(),
                {initial.begin() + half, initial.end()}, &back_options);
  if (!b.ok() || y.empty() || back.empty()) return {};
  ValueRef turned = back[0].value;
  if (options.return_sequences) turned = b.Op("ReverseV2", {turned, Ints(b, {1})});
  std::vector<KValue> out;
  if (c.config.Has("merge_mode")) {
    const std::string mode = c.config.String("merge_mode", "concat");
    out.emplace_back(KTensor{Merge(c, mode, y[0].value, turned), y[0].mask});
  } else {
    out = {y[0], KTensor{turned, y[0].mask}};
  }
  for (size_t k = 1; k < y.size(); ++k) out.emplace_back(y[k]);
  for (size_t k = 1; k < back.size(); ++k) out.emplace_back(back[k]);
  return out.size() == 1 ? out[0] : KValue(std::move(out));
}

// The layer sees all steps of all rows as rows.
KValue TimeDistributed(LayerContext& c) {
  GraphBuilder& b = c.b;
  const KTensor in{c.In(), c.Mask()};
  const int rank = Rank(b, in.value);
  if (b.ok() && rank < 3) c.Fail(absl::StrCat("an input of rank ", rank));
  const auto merged = [&](ValueRef v) {
    std::vector<WantedDim> dims{-1};
    for (int k = 2; k < Rank(b, v); ++k) dims.push_back(DimOf(b, v, k));
    return Reshape(b, v, dims);
  };
  if (!b.ok()) return {};
  Call inner;
  KTensor step{merged(in.value), {}};
  if (in.has_mask() && Rank(b, in.mask) > 2) step.mask = merged(in.mask);
  inner.args.emplace_back(step);
  const KValue out = c.CallLayer(c.config.At("layer"), c.layer.weights.Child("layer"), inner);
  const std::vector<KTensor> flat = Flatten(out);
  if (!b.ok() || flat.size() != 1) {
    c.Fail("a layer with one output is needed");
    return {};
  }
  std::vector<WantedDim> dims{DimOf(b, in.value, 0), DimOf(b, in.value, 1)};
  if (!dims[0].fixed() && dims[1].fixed()) dims[0] = -1;
  for (int k = 1; k < Rank(b, flat[0].value); ++k) dims.push_back(DimOf(b, flat[0].value, k));
  // Keras 3 answers in the type that this layer computes in; one of 16 bits throughout gives way to
  // the layer inside.
  const Json& policy = Member(c.layer.config(), "dtype");
  const bool own =
      c.compute_dtype == DType::kFloat64 || PolicyName(policy, true) != PolicyName(policy, false);
  const bool floating = Floating(b, flat[0].value) && !c.keras2() && own;
  return Reshape(b, floating ? Cast(b, flat[0].value, c.compute_dtype) : flat[0].value, dims);
}

const LayerRegistrar kRecurrent({"LSTM", "GRU", "SimpleRNN", "RNN"}, Recurrent);
const LayerRegistrar kBidirectional({"Bidirectional"}, Bidirectional);
const LayerRegistrar kTimeDistributed({"TimeDistributed"}, TimeDistributed, Masks::kPass);

}  // namespace
}  // namespace floe::keras
