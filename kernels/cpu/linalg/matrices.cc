#include "kernels/cpu/linalg/matrices.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// Rows and columns of one matrix of a tensor behind `batch` dims.
struct Size {
  int64_t rows = 1, cols = 1;
  Size(const TensorView& t, int batch) {
    if (t.shape.rank() > batch) rows = t.shape.dim(batch);
    if (t.shape.rank() > batch + 1) cols = t.shape.dim(batch + 1);
    if (t.dtype == DType::kComplex64 || t.dtype == DType::kComplex128) cols *= 2;
  }
  int64_t elements() const { return rows * cols; }
};

// Place k of the batch in an input that broadcasts to it.
int64_t BroadcastPlace(const Shape& in, const Shape& out, int batch, int64_t k) {
  int64_t index = 0, step = 1;
  for (int i = 1; i <= batch; ++i) {
    const int64_t place = k % out.dim(batch - i);
    k /= out.dim(batch - i);
    if (i + 2 > in.rank()) continue;
    const int64_t size = in.dim(in.rank() - 2 - i);
    if (size != 1) index += place * step;
    step *= size;
  }
  return index;
}

void Load(const TensorView& in, int64_t k, Matrix* m) {
  ForDType(in.dtype, Floats{}, [&](auto type) {
    using T = decltype(type);
    const T* x = in.as<T>() + k * m->size();
    for (int64_t r = 0; r < m->rows(); ++r) {
      for (int64_t c = 0; c < m->cols(); ++c) (*m)(r, c) = static_cast<Compute<T>>(*x++);
    }
  });
}

void Store(const Matrix& m, int64_t k, const TensorView& out) {
  const DType dtype = out.dtype == DType::kComplex64    ? DType::kFloat32
                      : out.dtype == DType::kComplex128 ? DType::kFloat64
                                                        : out.dtype;
  using Stored = TypeList<float, double, Half, BFloat16, int32_t, int64_t>;
  ForDType(dtype, Stored{}, [&](auto type) {
    using T = decltype(type);
    T* y = static_cast<T*>(out.data) + k * m.size();
    for (int64_t r = 0; r < m.rows(); ++r) {
      for (int64_t c = 0; c < m.cols(); ++c)
        *y++ = static_cast<T>(static_cast<Compute<T>>(m(r, c)));
    }
  });
}

// Before Eigen allocates so many elements; the share is theirs while they live.
absl::StatusOr<MemoryShare> TakeElements(int64_t elements) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(sizeof(double)), &bytes))
    return absl::ResourceExhaustedError("the matrices are larger than memory can be");
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(bytes));
  return TakeMemory(bytes);
}

class MatrixKernel final : public Kernel {
 public:
  MatrixKernel(MatrixFunction function, const MatrixOptions& options, Attrs attrs)
      : function_(function),
        dims_(options.dims),
        copies_(options.copies),
        attrs_(std::move(attrs)) {}

  absl::Status Run(const KernelContext& ctx) const override {
    bool any = false;
    for (const TensorView& out : ctx.outputs) any = any || out.elements() > 0;
    if (!any) return absl::OkStatus();
    const Shape& shape = ctx.out(0).shape;
    const int batch = shape.rank() - dims_;
    std::vector<const TensorView*> matrices;
    std::vector<Size> in, out;
    int64_t elements = 0, count = 1;
    for (const TensorView& input : ctx.inputs) {
      if (input.shape.rank() < 2) continue;
      matrices.push_back(&input);
      elements += in.emplace_back(input, input.shape.rank() - 2).elements();
    }
    for (const TensorView& output : ctx.outputs)
      elements += out.emplace_back(output, batch).elements();
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeElements(copies_ * elements));
    MatrixCall call{attrs_, ctx, {}, {}};
    for (const Size& size : in) call.in.emplace_back(size.rows, size.cols);
    for (const Size& size : out) call.out.emplace_back(size.rows, size.cols);
    for (int i = 0; i < batch; ++i) count *= shape.dim(i);
    RunWatch watch;
    for (int64_t k = 0; k < count && !watch.Stopped(); ++k) {
      for (size_t i = 0; i < matrices.size(); ++i)
        Load(*matrices[i], BroadcastPlace(matrices[i]->shape, shape, batch, k), &call.in[i]);
      FLOE_RETURN_IF_ERROR(function_(call));
      for (size_t i = 0; i < call.out.size(); ++i) Store(call.out[i], k, ctx.outputs[i]);
    }
    return watch.status();
  }

 private:
  MatrixFunction function_;
  int dims_, copies_;
  Attrs attrs_;
};

using Registered = std::map<std::string, std::pair<MatrixFunction, MatrixOptions>>;
Registered& MatrixOps() {
  static auto* const ops = new Registered();
  return *ops;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixKernel(const KernelArgs& args) {
  const auto& [function, options] = MatrixOps().at(args.node.op->name);
  return std::make_unique<MatrixKernel>(function, options, args.node.attrs);
}

}  // namespace

bool RegisterMatrices(const char* name, MatrixFunction function, const MatrixOptions& options) {
  MatrixOps().emplace(name, std::pair(function, options));
  KernelRegistrar(name, DeviceKind::kCpu, options.dtypes, &MakeMatrixKernel);
  return true;
}

}  // namespace floe::kernels
