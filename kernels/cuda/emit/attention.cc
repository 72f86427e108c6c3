// Attention, floe's fused op.
#include "model/ops/attention.h"

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/emit/product.h"

namespace floe::cuda {
namespace {

using ops::AttentionAxes;

constexpr int64_t kTile = 64, kMostHeads = 65535;

AttentionSteps StepsOf(const Shape& shape, const AttentionAxes& axes) {
  int64_t step[4] = {0, 0, 0, 0};
  int64_t dense = 1;
  for (int i = shape.rank(); i-- > 0;) {
    for (int which = 0; which < 4; ++which) {
      if (axes[which] == i && shape.dim(i) != 1) step[which] = dense;
    }
    dense *= shape.dim(i);
  }
  return {step[ops::kBatch], step[ops::kHead], step[ops::kPlace], step[ops::kFeature]};
}

int32_t SizeOf(const Shape& shape, const AttentionAxes& axes, int which) {
  return axes[which] < 0 ? 1 : static_cast<int32_t>(shape.dim(axes[which]));
}

class Attention final : public DeviceKernel {
 public:
  explicit Attention(const ops::AttentionForm& form) : form_(form) {}

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    const TensorView& out = addresses.out(0);
    if (out.elements() == 0) return;
    const Shape &q = addresses.in(0).shape, &k = addresses.in(1).shape, &v = addresses.in(2).shape;
    AttentionArgs args = {};
    args.heads = SizeOf(out.shape, form_.out, ops::kHead);
    args.queries = SizeOf(q, form_.q, ops::kPlace);
    args.keys = SizeOf(k, form_.k, ops::kPlace);
    args.features = SizeOf(q, form_.q, ops::kFeature);
    args.width = SizeOf(v, form_.v, ops::kFeature);
    args.q = addresses.in(0).as<float>();
    args.q_steps = StepsOf(q, form_.q);
    args.k_steps = StepsOf(k, form_.k);
    args.v_steps = StepsOf(v, form_.v);
    args.k = PlainFactor(addresses.in(1).as<float>(), args.k_steps.feature, args.k_steps.place,
                         args.keys, args.k_steps.batch | args.k_steps.head);
    args.v = PlainFactor(addresses.in(2).as<float>(), args.v_steps.place, args.v_steps.feature,
                         args.width, args.v_steps.batch | args.v_steps.head);
    args.scale = form_.scale;
    args.out = out.as<float>();
    args.out_steps = StepsOf(out.shape, form_.out);
    if (addresses.inputs.size() > 3) PutMask(addresses.in(3), &args);
    const int64_t heads = int64_t{SizeOf(out.shape, form_.out, ops::kBatch)} * args.heads;
    for (args.first_head = 0; args.first_head < heads; args.first_head += kMostHeads) {
      const auto count = static_cast<uint32_t>(std::min(kMostHeads, heads - args.first_head));
      launches->push_back(
          Launch::Of(KernelId::attention,
                     {Blocks(args.queries, kTile), Blocks(args.width, kTile), count}, args));
    }
  }

 private:
  void PutMask(const TensorView& mask, AttentionArgs* args) const {
    args->mask_steps = StepsOf(mask.shape, ops::MaskAxes(form_, mask.shape.rank()));
    if (!form_.fill.has_value()) {
      args->add = mask.as<float>();
      return;
    }
    args->keep = mask.as<uint8_t>();
    args->fill = *form_.fill;
    args->zero = form_.zero;
  }

  const ops::AttentionForm form_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeAttention(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ops::AttentionForm form, ops::AttentionFormOf(args.node));
  return std::make_unique<Attention>(form);
}

// Batches may be rows. What else must be equal, or 1, is known and is.
bool ComputesAttention(const KernelArgs& args) {
  const auto form = ops::AttentionFormOf(args.node);
  if (!form.ok()) return false;
  const auto dim = [&](size_t input, int which) {
    const SymShape& shape = args.inputs[input].type.shape;
    const AttentionAxes axes = input == 0   ? form->q
                               : input == 1 ? form->k
                               : input == 2 ? form->v
                                            : ops::MaskAxes(*form, shape.rank());
    return axes[which] < 0 ? Dim(1) : shape.dim(axes[which]);
  };
  for (const ValueInfo& input : args.inputs) {
    if (!input.type.shape.rank_known()) return false;
  }
  if (!Same(dim(0, ops::kFeature), dim(1, ops::kFeature)) ||
      !Same(dim(1, ops::kPlace), dim(2, ops::kPlace)) || !dim(0, ops::kPlace).concrete() ||
      !dim(2, ops::kFeature).concrete()) {
    return false;
  }
  Dim batch(1), heads(1);
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    for (const auto& [which, all] : {std::pair{ops::kBatch, &batch}, {ops::kHead, &heads}}) {
      const Dim size = dim(i, which);
      if (size == Dim(1)) continue;
      if (!size.known() || (*all != Dim(1) && *all != size)) return false;
      *all = size;
    }
  }
  if (args.inputs.size() < 4) return true;
  const auto fits = [](Dim mask, Dim all) { return mask == Dim(1) || Same(mask, all); };
  return fits(dim(3, ops::kPlace), dim(0, ops::kPlace)) &&
         fits(dim(3, ops::kFeature), dim(1, ops::kPlace));
}

const KernelRegistrar kAttention("Attention", DeviceKind::kCuda, {DType::kFloat32}, MakeAttention,
                                 {.computes = ComputesAttention});

}  // namespace
}  // namespace floe::cuda
