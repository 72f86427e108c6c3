// Recurrent cells as single ops: GRUBlockCell, LSTMBlockCell, BlockLSTM.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// out[n] = bias[n] + sum of [x, h][k] * w[k][n], added in the order of k.
template <class T, class H>
void Affine(const T* x, int64_t inputs, const H* h, int64_t cells, const T* w, const T* bias,
            int64_t width, float* out) {
  std::copy_n(bias, width, out);
  for (int64_t k = 0; k < inputs + cells; ++k) {
    const float value = k < inputs ? static_cast<float>(x[k]) : static_cast<float>(h[k - inputs]);
    const T* row = w + k * width;
    for (int64_t n = 0; n < width; ++n) out[n] += value * row[n];
  }
}

template <class T>
void Store(const TensorView& out, int64_t row, const float* values, int64_t n) {
  if (out.data != nullptr) std::copy_n(values, n, out.as<T>() + row * n);
}

// Inputs [first, last] have a row of cells, as many as input 1, for each row of input 0.
absl::Status CheckStates(const KernelContext& ctx, int first, int last) {
  const Shape wanted({ctx.in(0).shape.dim(0), ctx.in(1).shape.dim(1)});
  for (int i = first; i <= last; ++i) {
    if (ctx.in(i).shape != wanted)
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                     ctx.in(i).shape.ToString(), ", expected ",
                                                     wanted.ToString()));
  }
  return absl::OkStatus();
}

// Inputs [first, last] have `elements` elements.
absl::Status CheckVectors(const KernelContext& ctx, int first, int last, int64_t elements) {
  for (int i = first; i <= last; ++i) {
    if (ctx.in(i).elements() != elements)
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                     ctx.in(i).shape.ToString(), ", expected ",
                                                     elements, " elements"));
  }
  return absl::OkStatus();
}

// Inputs: x, h, w_ru, w_c, b_ru, b_c. Outputs: r, u, c, h.
absl::Status GruCell(const KernelContext& ctx) {
  const int64_t batch = ctx.in(0).shape.dim(0), inputs = ctx.in(0).shape.dim(1),
                cells = ctx.in(1).shape.dim(1);
  if (ctx.in(2).shape != Shape({inputs + cells, 2 * cells}) ||
      ctx.in(3).shape != Shape({inputs + cells, cells})) {
    return absl::InvalidArgumentError(absl::StrCat("weights ", ctx.in(2).shape.ToString(), " and ",
                                                   ctx.in(3).shape.ToString(), " do not fit ",
                                                   cells, " cells"));
  }
  FLOE_RETURN_IF_ERROR(CheckStates(ctx, 1, 1));
  FLOE_RETURN_IF_ERROR(CheckVectors(ctx, 4, 4, 2 * cells));
  FLOE_RETURN_IF_ERROR(CheckVectors(ctx, 5, 5, cells));
  if (cells == 0) return absl::OkStatus();
  std::vector<float> gates(2 * cells), reset(cells), candidate(cells), state(cells);
  for (int64_t b = 0; b < batch; ++b) {
    const float *x = ctx.in(0).as<float>() + b * inputs, *h = ctx.in(1).as<float>() + b * cells;
    Affine(x, inputs, h, cells, ctx.in(2).as<float>(), ctx.in(4).as<float>(), 2 * cells,
           gates.data());
    for (float& g : gates) g = Sigmoid(g);
    for (int64_t i = 0; i < cells; ++i) reset[i] = gates[i] * h[i];
    Affine(x, inputs, reset.data(), cells, ctx.in(3).as<float>(), ctx.in(5).as<float>(), cells,
           candidate.data());
    for (int64_t i = 0; i < cells; ++i) {
      candidate[i] = std::tanh(candidate[i]);
      const float u = gates[cells + i];
      state[i] = u * h[i] + (1 - u) * candidate[i];
    }
    Store<float>(ctx.out(0), b, gates.data(), cells);
    Store<float>(ctx.out(1), b, gates.data() + cells, cells);
    Store<float>(ctx.out(2), b, candidate.data(), cells);
    Store<float>(ctx.out(3), b, state.data(), cells);
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(GRUBlockCell, kCpu, MakeFunction<GruCell>, DType::kFloat32);

struct LstmOptions {
  float forget_bias, clip;
  bool peephole;
  bool forget_second = false;  // the gates are i, f, ci, o; otherwise i, ci, f, o
};

// What one step of one row reads: weights as inputs `first` and following, w, wci, wcf, wco, b.
template <class T>
struct LstmStep {
  const KernelContext& ctx;
  const LstmOptions& options;
  int first;
  int64_t inputs, cells;
  std::vector<float> gates, values;  // values: i, cs, f, o, ci, co, h, of `cells` each

  LstmStep(const KernelContext& context, const LstmOptions& o, int weights, int64_t in, int64_t n)
      : ctx(context),
        options(o),
        first(weights),
        inputs(in),
        cells(n),
        gates(4 * n),
        values(7 * n) {}

  void Run(const T* x, const T* state, const T* h) {
    Affine(x, inputs, h, cells, ctx.in(first).as<T>(), ctx.in(first + 4).as<T>(), 4 * cells,
           gates.data());
    const float* const forget = gates.data() + (options.forget_second ? 1 : 2) * cells;
    const float* const candidate = gates.data() + (options.forget_second ? 2 : 1) * cells;
    for (int64_t k = 0; k < cells; ++k) {
      const auto peep = [&](int gate, float c) {
        return options.peephole ? static_cast<float>(ctx.in(first + gate).as<T>()[k]) * c : 0.0f;
      };
      const float before = static_cast<float>(state[k]);
      const float i = Sigmoid(gates[k] + peep(1, before));
      const float ci = std::tanh(candidate[k]);
      const float f = Sigmoid(forget[k] + options.forget_bias + peep(2, before));
      float c = ci * i + before * f;
      if (options.clip > 0) c = std::min(std::max(c, -options.clip), options.clip);
      const float o = Sigmoid(gates[3 * cells + k] + peep(3, c));
      const float co = std::tanh(c);
      const float all[] = {i, c, f, o, ci, co, co * o};
      for (int v = 0; v < 7; ++v) values[v * cells + k] = all[v];
    }
  }
  void StoreRow(int64_t row) const {
    for (int v = 0; v < 7; ++v) Store<T>(ctx.out(v), row, values.data() + v * cells, cells);
  }
};

// The weights from input `first` on.
absl::Status CheckLstm(const KernelContext& ctx, const LstmOptions& options, int first,
                       int64_t inputs, int64_t cells) {
  if (ctx.in(first).shape != Shape({inputs + cells, 4 * cells})) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights ", ctx.in(first).shape.ToString(), " do not fit ", cells, " cells"));
  }
  FLOE_RETURN_IF_ERROR(CheckVectors(ctx, first + 4, first + 4, 4 * cells));
  if (options.peephole) FLOE_RETURN_IF_ERROR(CheckVectors(ctx, first + 1, first + 3, cells));
  return absl::OkStatus();
}

// Inputs: x, cs, h, w, wci, wcf, wco, b. Outputs: i, cs, f, o, ci, co, h.
template <class T>
absl::Status LstmCell(const KernelContext& ctx, const LstmOptions& options) {
  const int64_t batch = ctx.in(0).shape.dim(0), inputs = ctx.in(0).shape.dim(1),
                cells = ctx.in(1).shape.dim(1);
  FLOE_RETURN_IF_ERROR(CheckStates(ctx, 1, 2));
  FLOE_RETURN_IF_ERROR(CheckLstm(ctx, options, 3, inputs, cells));
  if (cells == 0) return absl::OkStatus();
  LstmStep<T> step(ctx, options, 3, inputs, cells);
  for (int64_t b = 0; b < batch; ++b) {
    step.Run(ctx.in(0).as<T>() + b * inputs, ctx.in(1).as<T>() + b * cells,
             ctx.in(2).as<T>() + b * cells);
    step.StoreRow(b);
  }
  return absl::OkStatus();
}

// Inputs: seq_len_max, x [time, batch, in], cs, h, w, wci, wcf, wco, b. Steps past the length are
// zeros.
template <class T>
absl::Status BlockLstm(const KernelContext& ctx, const LstmOptions& options) {
  const Shape& shape = ctx.in(1).shape;
  const int64_t steps = shape.dim(0), batch = shape.dim(1), inputs = shape.dim(2),
                cells = ctx.in(2).shape.dim(1);
  FLOE_ASSIGN_OR_RETURN(const int64_t length, ReadInt(ctx.in(0)));
  if (length < 0 || length > steps)
    return absl::InvalidArgumentError(
        absl::StrCat("seq_len_max ", length, " is not in [0, ", steps, "]"));
  for (int i = 2; i < 4; ++i) {
    if (ctx.in(i).shape != Shape({batch, cells}))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                     ctx.in(i).shape.ToString(), ", expected [",
                                                     batch, ",", cells, "]"));
  }
  FLOE_RETURN_IF_ERROR(CheckLstm(ctx, options, 4, inputs, cells));
  if (cells == 0) return absl::OkStatus();
  LstmStep<T> step(ctx, options, 4, inputs, cells);
  std::vector<T> state(cells), h(cells);
  for (int64_t b = 0; b < batch; ++b) {
    std::copy_n(ctx.in(2).as<T>() + b * cells, cells, state.data());
    std::copy_n(ctx.in(3).as<T>() + b * cells, cells, h.data());
    for (int64_t t = 0; t < steps; ++t) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      if (t < length) {
        step.Run(ctx.in(1).as<T>() + (t * batch + b) * inputs, state.data(), h.data());
        std::copy_n(step.values.data() + cells, cells, state.data());
        std::copy_n(step.values.data() + 6 * cells, cells, h.data());
      } else {
        std::fill(step.values.begin(), step.values.end(), 0.0f);
      }
      step.StoreRow(t * batch + b);
    }
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLstm(const KernelArgs& args) {
  const LstmOptions options{args.node.attrs.Float("forget_bias", 1),
                            args.node.attrs.Float("cell_clip", 3),
                            args.node.attrs.Bool("use_peephole")};
  return FromFunction([options](const KernelContext& ctx) { return LstmCell<T>(ctx, options); });
}
FLOE_REGISTER_KERNELS(LSTMBlockCell, kCpu, MakeLstm<T>, TypeList<float, Half>);

template <bool kSecond>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBlockLstm(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  const LstmOptions options{kSecond ? 0.0f : a.Float("forget_bias", 1),
                            a.Float("cell_clip", kSecond ? 0.0f : 3.0f), a.Bool("use_peephole"),
                            kSecond};
  const bool half = args.inputs[1].type.dtype == DType::kFloat16;
  if (!half && args.inputs[1].type.dtype != DType::kFloat32)
    return absl::UnimplementedError(
        absl::StrCat("values of ", DTypeName(args.inputs[1].type.dtype)));
  return FromFunction([options, half](const KernelContext& ctx) {
    return half ? BlockLstm<Half>(ctx, options) : BlockLstm<float>(ctx, options);
  });
}
FLOE_REGISTER_KERNEL(BlockLSTM, kCpu, MakeBlockLstm<false>, DType::kInt64);
FLOE_REGISTER_KERNEL(BlockLSTMV2, kCpu, MakeBlockLstm<true>, DType::kInt64);

}  // namespace
}  // namespace floe::kernels
