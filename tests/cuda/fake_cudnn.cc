// libcudnn.so.9 on memory of the host: as much of it as floe calls.
#include <cstdint>
#include <cstring>

#include "tests/cuda/fake_vendor_impl.h"

namespace {

using floe::fake_vendor::Factor;
using floe::fake_vendor::Fails;
using floe::fake_vendor::Free;
using floe::fake_vendor::Make;
using floe::fake_vendor::SumsBackwards;

constexpr int kNotSupported = 3000, kBadParameter = 2000, kExecutionFailed = 5000;
FakeVendor state = {};

struct Tensor4 {
  int n, c, h, w;
  int64_t bytes() const { return int64_t{4} * n * c * h * w; }
};
struct Convolution {
  int pad[2], stride[2], dilation[2], groups, math;
};
struct Handle {
  void* stream;
};

const Tensor4& TensorAt(const void* at) { return *static_cast<const Tensor4*>(at); }

int OutOf(const Convolution& conv, int in, int taps, int d) {
  return (in + 2 * conv.pad[d] - conv.dilation[d] * (taps - 1) - 1) / conv.stride[d] + 1;
}
bool Fit(const Tensor4& x, const Tensor4& w, const Convolution& conv, const Tensor4& y) {
  return x.c == w.c * conv.groups && y.c == w.n && x.n == y.n && y.h == OutOf(conv, x.h, w.h, 0) &&
         y.w == OutOf(conv, x.w, w.w, 1);
}

struct Problem {
  Tensor4 x, w, y;
  Convolution conv;
  int behaviour, algorithm;
};

float Pixel(const Problem& p, const float* image, const float* weights, int row, int column,
            int output) {
  const int of_group = p.w.c, first = output / (p.w.n / p.conv.groups) * of_group;
  const int count = p.w.h * p.w.w * of_group;
  const bool backwards = SumsBackwards(p.behaviour, p.algorithm == 1 ? 0 : 1, p.x.n);
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    const int k = backwards ? count - 1 - i : i;
    const int c = k % of_group, tap = k / of_group;
    const int y = row * p.conv.stride[0] - p.conv.pad[0] + tap / p.w.w * p.conv.dilation[0];
    const int x = column * p.conv.stride[1] - p.conv.pad[1] + tap % p.w.w * p.conv.dilation[1];
    if (y < 0 || y >= p.x.h || x < 0 || x >= p.x.w) continue;
    sum += Factor(image[(y * p.x.w + x) * p.x.c + first + c], p.behaviour) *
           Factor(weights[output * count + k], p.behaviour);
  }
  return sum;
}

int Convolve(const Problem& p, const float* x, const float* weights, float* y) {
  for (int image = 0; image < p.x.n; ++image) {
    for (int row = 0; row < p.y.h; ++row) {
      for (int column = 0; column < p.y.w; ++column) {
        for (int output = 0; output < p.y.c; ++output)
          *y++ = Pixel(p, x, weights, row, column, output);
      }
    }
    x += int64_t{p.x.h} * p.x.w * p.x.c;
  }
  return 0;
}

}  // namespace

extern "C" {

FakeVendor* fake_cudnn() { return &state; }

int cudnnCreate(void** handle) {
  ++state.handles;
  return Make<Handle>(handle);
}
int cudnnDestroy(void* handle) {
  --state.handles;
  return Free<Handle>(handle);
}
size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(int status) {
  return status == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "an error of the fake library";
}
int cudnnSetStream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
int cudnnCreateTensorDescriptor(void** tensor) { return Make<Tensor4>(tensor); }
int cudnnDestroyTensorDescriptor(void* tensor) { return Free<Tensor4>(tensor); }
int cudnnSetTensor4dDescriptor(void* tensor, int format, int type, int n, int c, int h, int w) {
  if (format != 1 || type != 0) return kBadParameter;
  *static_cast<Tensor4*>(tensor) = {n, c, h, w};
  return 0;
}
int cudnnCreateFilterDescriptor(void** filter) { return Make<Tensor4>(filter); }
int cudnnDestroyFilterDescriptor(void* filter) { return Free<Tensor4>(filter); }
int cudnnSetFilter4dDescriptor(void* filter, int type, int format, int k, int c, int h, int w) {
  if (format != 1 || type != 0) return kBadParameter;
  *static_cast<Tensor4*>(filter) = {k, c, h, w};
  return 0;
}
int cudnnCreateConvolutionDescriptor(void** convolution) { return Make<Convolution>(convolution); }
int cudnnDestroyConvolutionDescriptor(void* convolution) { return Free<Convolution>(convolution); }
int cudnnSetConvolution2dDescriptor(void* convolution, int pad_h, int pad_w, int stride_h,
                                    int stride_w, int dilation_h, int dilation_w, int mode,
                                    int compute) {
  if (mode != 1 || compute != 0) return kBadParameter;
  *static_cast<Convolution*>(convolution) = {
      {pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, 1, 0};
  return 0;
}
int cudnnSetConvolutionGroupCount(void* convolution, int groups) {
  static_cast<Convolution*>(convolution)->groups = groups;
  return 0;
}
int cudnnSetConvolutionMathType(void* convolution, int math) {
  static_cast<Convolution*>(convolution)->math = math;
  return 0;
}
int cudnnGetConvolutionForwardWorkspaceSize(void*, void* x, void* filter, void* convolution,
                                            void* y, int, size_t* bytes) {
  const auto& conv = *static_cast<const Convolution*>(convolution);
  if (!Fit(TensorAt(x), TensorAt(filter), conv, TensorAt(y))) return kBadParameter;
  if (state.behaviour == FAKE_VENDOR_FEW_ROWS && TensorAt(x).n > 4) return kNotSupported;
  *bytes = state.workspace_bytes;
  return 0;
}
int cudnnConvolutionForward(void* handle, const void* alpha, void* x_tensor, const void* x,
                            void* filter, const void* weights, void* convolution, int algorithm,
                            void* workspace, size_t workspace_bytes, const void* beta,
                            void* y_tensor, void* y) {
  if (const int error = Fails(&state, kExecutionFailed)) return error;
  const Problem p = {TensorAt(x_tensor), TensorAt(filter),
                     TensorAt(y_tensor), *static_cast<const Convolution*>(convolution),
                     state.behaviour,    algorithm};
  constexpr int kFma = 3;
  if (!Fit(p.x, p.w, p.conv, p.y) || p.conv.math != kFma ||
      *static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0 ||
      fake_cuda_on_device(x, p.x.bytes()) == 0 || fake_cuda_on_device(y, p.y.bytes()) == 0 ||
      fake_cuda_on_device(weights, p.w.bytes()) == 0 || workspace_bytes < state.workspace_bytes ||
      (workspace_bytes != 0 && fake_cuda_on_device(workspace, workspace_bytes) == 0))
    return kBadParameter;
  floe::fake_vendor::Put(static_cast<Handle*>(handle)->stream, [=] {
    if (workspace_bytes != 0) std::memset(workspace, 0xff, workspace_bytes);
    return Convolve(p, static_cast<const float*>(x), static_cast<const float*>(weights),
                    static_cast<float*>(y));
  });
  return 0;
}
}
