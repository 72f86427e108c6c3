// Einsum as matrix products. Labels fall into four groups: batch (in both operands and the output),
// m (in the left operand and the output), n (right and output), k (both, summed). The operand that
// holds the output's last label is the right one, so that products are written in place.
#include <algorithm>

#include "base/status.h"
#include "kernels/cpu/gemm/einsum.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/packed_memory.h"

namespace floe::kernels {
namespace {

using Group = absl::InlinedVector<int, 8>;  // labels, outermost first

int64_t Count(const Group& group, const IntList& sizes) {
  int64_t count = 1;
  for (int label : group) count *= sizes[label];
  return count;
}

// Whether the labels are neighbouring axes of `axes` in this order, so that one step walks through
// all their values. Holds or not whatever the sizes are: scratch has to be affine in them.
bool Adjacent(const Group& group, const std::vector<int>& axes) {
  const auto at = std::search(axes.begin(), axes.end(), group.begin(), group.end());
  return group.empty() || at != axes.end();
}

int64_t OffsetOf(const Group& group, const IntList& sizes, const IntList& steps, int64_t index) {
  int64_t at = 0;
  for (size_t i = group.size(); i-- > 0;) {
    at += index % sizes[group[i]] * steps[group[i]];
    index /= sizes[group[i]];
  }
  return at;
}

// A matrix with one group of labels down and one across, and how it lies in its tensor.
struct GroupMatrix {
  GroupMatrix(Group down, Group across, const std::vector<int>& axes)
      : rows(std::move(down)),
        columns(std::move(across)),
        strided(Adjacent(rows, axes) && Adjacent(columns, axes)),
        in_place(strided && (columns.empty() || columns.back() == axes.back())) {}

  Group rows, columns;
  bool strided;   // one step down, one across
  bool in_place;  // and rows whose elements follow each other, as the GEMM reads and writes them

  static int64_t Step(const Group& group, const IntList& steps) {
    return group.empty() ? 1 : steps[group.back()];
  }
  int64_t elements(const IntList& sizes) const {
    return Count(rows, sizes) * Count(columns, sizes);
  }

  // Between its place and a dense matrix.
  Grid GridTo(bool dense_is_target, const IntList& sizes, const IntList& steps) const {
    Grid grid;
    int64_t dense = elements(sizes);
    for (const Group* group : {&rows, &columns}) {
      for (int label : *group) {
        dense /= std::max<int64_t>(sizes[label], 1);
        grid.Add(sizes[label], dense_is_target ? steps[label] : dense,
                 dense_is_target ? dense : steps[label]);
      }
    }
    return grid;
  }
};

class EinsumGemm final : public Kernel {
 public:
  EinsumGemm(ops::EinsumLabels labels, Group batch, const Group& m, const Group& n, const Group& k,
             int right)
      : labels_(std::move(labels)),
        batch_(std::move(batch)),
        right_(right),
        a_(m, k, labels_.inputs[1 - right]),
        b_(k, n, labels_.inputs[right]),
        c_(m, n, labels_.output),
        gemm_(PickGemm()) {}

  // Packs weights that no batch label walks through.
  void PackConstant(const Tensor& weights) {
    const Shape ones(std::vector<int64_t>(labels_.inputs[1 - right_].size(), 1));
    const Shape shapes[2] = {right_ == 0 ? weights.shape() : ones,
                             right_ == 0 ? ones : weights.shape()};
    const EinsumStrides strides(labels_, shapes);
    for (int label : batch_) {
      if (strides.sizes[label] != 1) return;
    }
    packed_ = PackedMemory(
        gemm_.PackedFloats(Count(b_.rows, strides.sizes), Count(b_.columns, strides.sizes)) *
        sizeof(float));
    std::vector<float> dense(b_.strided ? 0 : b_.elements(strides.sizes));
    ThreadPool alone(1);
    Pack(strides, weights.as<float>(), dense.data(), reinterpret_cast<float*>(packed_.data()),
         &alone);
  }

  absl::Status Run(const KernelContext& ctx) const override {
    const Shape shapes[2] = {ctx.in(0).shape, ctx.in(1).shape};
    const EinsumStrides strides(labels_, shapes);
    const IntList &sizes = strides.sizes, &left = strides.input[1 - right_],
                  &right = strides.input[right_];
    float* const y = ctx.out(0).as<float>();
    GemmTask task;
    task.n = Count(c_.columns, sizes);
    task.runs.length = Count(a_.columns, sizes);
    if (task.runs.length == 0) {
      constexpr float kZero = 0;
      FillElements(DType::kFloat32, &kZero, y, ctx.out(0).elements());
      return absl::OkStatus();
    }
    ScratchPieces pieces(ctx.scratch);
    float* const packed = pieces.Floats(PackedScratch(sizes));
    float* const b_dense = pieces.Floats(b_.strided ? 0 : b_.elements(sizes));
    float* const a_dense = pieces.Floats(a_.in_place ? 0 : a_.elements(sizes));
    float* const c_dense = pieces.Floats(c_.in_place ? 0 : c_.elements(sizes));
    task.b = packed_.size() != 0 ? reinterpret_cast<const float*>(packed_.data()) : packed;
    task.a.stride = a_.in_place ? GroupMatrix::Step(a_.rows, left) : task.runs.length;
    task.ldc = c_.in_place ? GroupMatrix::Step(c_.rows, strides.output) : task.n;
    const int64_t rows = Count(c_.rows, sizes),
                  products = ctx.out(0).elements() == 0 ? 0 : Count(batch_, sizes);
    int64_t packed_at = -1;
    for (int64_t i = 0; i < products; ++i) {
      const int64_t b_at = OffsetOf(batch_, sizes, right, i);
      if (packed_.size() == 0 && b_at != packed_at) {
        Pack(strides, ctx.in(right_).as<float>() + b_at, b_dense, packed, ctx.pool);
        packed_at = b_at;
      }
      const float* from = ctx.in(1 - right_).as<float>() + OffsetOf(batch_, sizes, left, i);
      if (!a_.in_place)
        CopyGrid(a_.GridTo(true, sizes, left), DType::kFloat32, from, a_dense, ctx.pool);
      task.a.base = a_.in_place ? from : a_dense;
      float* const to = y + OffsetOf(batch_, sizes, strides.output, i);
      task.c = c_.in_place ? to : c_dense;
      if (i % kUnwatchedProducts == kUnwatchedProducts - 1) FLOE_RETURN_IF_ERROR(CheckRunTime());
      FLOE_RETURN_IF_ERROR(RunGemm(gemm_, task, rows, *ctx.pool));
      if (!c_.in_place)
        CopyGrid(c_.GridTo(false, sizes, strides.output), DType::kFloat32, c_dense, to, ctx.pool);
    }
    return absl::OkStatus();
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs, absl::Span<const Shape>) const override {
    const IntList sizes = EinsumStrides(labels_, inputs).sizes;
    return ScratchPieces::Bytes({PackedScratch(sizes), b_.strided ? 0 : b_.elements(sizes),
                                 a_.in_place ? 0 : a_.elements(sizes),
                                 c_.in_place ? 0 : c_.elements(sizes)});
  }
  bool NeedsInput(int i) const override { return i != right_ || packed_.size() == 0; }
  size_t PackedBytes() const override { return packed_.size(); }
  std::string Route() const override { return NativeRoute(gemm_); }

 private:
  int64_t PackedScratch(const IntList& sizes) const {
    if (packed_.size() != 0) return 0;
    return PackedBound(gemm_, Count(b_.rows, sizes), Count(b_.columns, sizes));
  }

  void Pack(const EinsumStrides& strides, const float* from, float* dense, float* packed,
            ThreadPool* pool) const {
    const IntList& steps = strides.input[right_];
    const int64_t k = Count(b_.rows, strides.sizes), n = Count(b_.columns, strides.sizes);
    int64_t row_step = GroupMatrix::Step(b_.rows, steps),
            column_step = GroupMatrix::Step(b_.columns, steps);
    if (!b_.strided) {
      CopyGrid(b_.GridTo(true, strides.sizes, steps), DType::kFloat32, from, dense, pool);
      from = dense;
      row_step = n;
      column_step = 1;
    }
    PackGemm(gemm_, from, row_step, column_step, k, n, packed);
  }

  const ops::EinsumLabels labels_;
  const Group batch_;
  const int right_;  // the operand that is packed
  const GroupMatrix a_, b_, c_;
  const GemmKernels gemm_;
  AlignedBuffer packed_;
};

}  // namespace

std::unique_ptr<Kernel> MakeEinsumGemm(const KernelArgs& args) {
  if (args.inputs.size() != 2) return nullptr;
  absl::InlinedVector<int, 2> ranks;
  for (const ValueInfo& input : args.inputs) {
    if (!input.type.shape.rank_known()) return nullptr;
    ranks.push_back(input.type.shape.rank());
  }
  auto labels = ops::ParseEinsum(args.node.attrs.String("equation"), ranks);
  if (!labels.ok()) return nullptr;
  // In the order of the output, what is summed in that of the first operand: both matrices are most
  // often contiguous so.
  Group batch, in_first, in_second, k;
  const auto occurs = [&](int operand, int label) {
    return std::count(labels->inputs[operand].begin(), labels->inputs[operand].end(), label);
  };
  for (int label : labels->output) {
    const auto first = occurs(0, label), second = occurs(1, label);
    if (first > 1 || second > 1) return nullptr;
    (first != 0 && second != 0 ? batch : first != 0 ? in_first : in_second).push_back(label);
  }
  for (int operand : {0, 1}) {
    for (int label : labels->inputs[operand]) {
      if (std::count(labels->output.begin(), labels->output.end(), label) != 0) continue;
      if (occurs(0, label) != 1 || occurs(1, label) != 1) return nullptr;
      if (operand == 0) k.push_back(label);
    }
  }
  if (k.empty()) return nullptr;
  const int right =
      !labels->output.empty() && !in_first.empty() && labels->output.back() == in_first.back() ? 0
                                                                                               : 1;
  auto kernel =
      std::make_unique<EinsumGemm>(*std::move(labels), batch, right == 1 ? in_first : in_second,
                                   right == 1 ? in_second : in_first, k, right);
  const ValueInfo& weights = args.inputs[right];
  if (weights.has_constant()) kernel->PackConstant(weights.constant);
  return kernel;
}

}  // namespace floe::kernels
