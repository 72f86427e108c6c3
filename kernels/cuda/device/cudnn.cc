// The names and numbers that are declared here are those of NVIDIA's documentation of cuDNN
// (docs.nvidia.com/deeplearning/cudnn, "cudnn_ops" and "cudnn_cnn"), which keeps them for versions
// 8 and 9.
#include "kernels/cuda/device/cudnn.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kernels/cuda/device/vendor_symbols.h"

namespace floe::cuda {
namespace {

constexpr int kDnnFloat = 0;          // CUDNN_DATA_FLOAT
constexpr int kChannelsLast = 1;      // CUDNN_TENSOR_NHWC
constexpr int kCrossCorrelation = 1;  // CUDNN_CROSS_CORRELATION
constexpr int kFma = 3;               // CUDNN_FMA_MATH: no tensor cores
// CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM and _IMPLICIT_GEMM.
constexpr int kAlgorithms[] = {1, 0};

struct DnnFunctions {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  size_t (*version)();
  const char* (*status_text)(int status);
  int (*set_stream)(void* handle, void* stream);
  int (*create_tensor)(void** tensor);
  int (*destroy_tensor)(void* tensor);
  int (*set_tensor)(void* tensor, int format, int type, int n, int c, int h, int w);
  int (*create_filter)(void** filter);
  int (*destroy_filter)(void* filter);
  int (*set_filter)(void* filter, int type, int format, int k, int c, int h, int w);
  int (*create_convolution)(void** convolution);
  int (*destroy_convolution)(void* convolution);
  int (*set_convolution)(void* convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                         int dilation_h, int dilation_w, int mode, int compute);
  int (*set_groups)(void* convolution, int groups);
  int (*set_math)(void* convolution, int math);
  int (*workspace)(void* handle, void* x, void* filter, void* convolution, void* y, int algorithm,
                   size_t* bytes);
  int (*convolve)(void* handle, const void* alpha, void* x_tensor, const void* x, void* filter,
                  const void* weights, void* convolution, int algorithm, void* workspace,
                  size_t workspace_bytes, const void* beta, void* y_tensor, void* y);
};

absl::Status FindDnnFunctions(const OpenedLibrary& library, DnnFunctions* f) {
  FLOE_RETURN_IF_ERROR(library.Find("cudnnCreate", &f->create));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnDestroy", &f->destroy));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnGetVersion", &f->version));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnGetErrorString", &f->status_text));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnSetStream", &f->set_stream));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnCreateTensorDescriptor", &f->create_tensor));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnDestroyTensorDescriptor", &f->destroy_tensor));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnSetTensor4dDescriptor", &f->set_tensor));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnCreateFilterDescriptor", &f->create_filter));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnDestroyFilterDescriptor", &f->destroy_filter));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnSetFilter4dDescriptor", &f->set_filter));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnCreateConvolutionDescriptor", &f->create_convolution));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnDestroyConvolutionDescriptor", &f->destroy_convolution));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnSetConvolution2dDescriptor", &f->set_convolution));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnSetConvolutionGroupCount", &f->set_groups));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnSetConvolutionMathType", &f->set_math));
  FLOE_RETURN_IF_ERROR(library.Find("cudnnGetConvolutionForwardWorkspaceSize", &f->workspace));
  return library.Find("cudnnConvolutionForward", &f->convolve);
}

// Of a device. Its stream is state, so calls take turns.
struct DnnHandle {
  explicit DnnHandle(const DnnFunctions& functions) : f(functions) {}
  ~DnnHandle() {
    if (handle != nullptr) (void)f.destroy(handle);
  }
  absl::Status Check(int status, const char* what) const {
    if (status == 0) return absl::OkStatus();
    const std::string text = absl::StrCat(what, ": ", f.status_text(status), " (", status, ")");
    // CUDNN_STATUS_NOT_SUPPORTED: 9 until version 8, from 3000 on in version 9.
    const bool not_supported = status == 9 || status / 1000 == 3;
    return not_supported ? absl::UnimplementedError(text) : absl::InternalError(text);
  }

  const DnnFunctions f;
  void* handle = nullptr;
  mutable Mutex mutex;
};

int DnnInt(int64_t number) { return static_cast<int>(number); }

// What describes a convolution of so many images.
class DnnProblem {
 public:
  explicit DnnProblem(const DnnHandle& dnn) : dnn_(dnn) {}
  ~DnnProblem() {
    for (void* const tensor : {x, y})
      if (tensor != nullptr) (void)dnn_.f.destroy_tensor(tensor);
    if (filter != nullptr) (void)dnn_.f.destroy_filter(filter);
    if (convolution != nullptr) (void)dnn_.f.destroy_convolution(convolution);
  }
  DnnProblem(const DnnProblem&) = delete;
  DnnProblem& operator=(const DnnProblem&) = delete;

  absl::Status Make(const VendorLayer& l, int64_t images) {
    const DnnFunctions& f = dnn_.f;
    FLOE_RETURN_IF_ERROR(Tensor(images, l.channels, l.in, &x));
    FLOE_RETURN_IF_ERROR(Tensor(images, l.outputs, l.out, &y));
    FLOE_RETURN_IF_ERROR(dnn_.Check(f.create_filter(&filter), "cudnnCreateFilterDescriptor"));
    FLOE_RETURN_IF_ERROR(dnn_.Check(
        f.set_filter(filter, kDnnFloat, kChannelsLast, DnnInt(l.outputs),
                     DnnInt(l.channels / l.groups), DnnInt(l.taps[0]), DnnInt(l.taps[1])),
        "cudnnSetFilter4dDescriptor"));
    FLOE_RETURN_IF_ERROR(
        dnn_.Check(f.create_convolution(&convolution), "cudnnCreateConvolutionDescriptor"));
    FLOE_RETURN_IF_ERROR(dnn_.Check(
        f.set_convolution(convolution, DnnInt(l.low[0]), DnnInt(l.low[1]), DnnInt(l.stride[0]),
                          DnnInt(l.stride[1]), DnnInt(l.dilation[0]), DnnInt(l.dilation[1]),
                          kCrossCorrelation, kDnnFloat),
        "cudnnSetConvolution2dDescriptor"));
    FLOE_RETURN_IF_ERROR(
        dnn_.Check(f.set_groups(convolution, DnnInt(l.groups)), "cudnnSetConvolutionGroupCount"));
    return dnn_.Check(f.set_math(convolution, kFma), "cudnnSetConvolutionMathType");
  }

  void *x = nullptr, *y = nullptr, *filter = nullptr, *convolution = nullptr;

 private:
  absl::Status Tensor(int64_t images, int64_t channels, const int64_t (&pixels)[2],
                      void** tensor) const {
    FLOE_RETURN_IF_ERROR(dnn_.Check(dnn_.f.create_tensor(tensor), "cudnnCreateTensorDescriptor"));
    return dnn_.Check(dnn_.f.set_tensor(*tensor, kChannelsLast, kDnnFloat, DnnInt(images),
                                        DnnInt(channels), DnnInt(pixels[0]), DnnInt(pixels[1])),
                      "cudnnSetTensor4dDescriptor");
  }
  const DnnHandle& dnn_;
};

class DnnCall final : public VendorCall {
 public:
  DnnCall(std::shared_ptr<const DnnHandle> dnn, const VendorLayer& layer, int algorithm)
      : dnn_(std::move(dnn)), layer_(layer), algorithm_(algorithm) {}

  std::string Text() const override { return absl::StrCat("algorithm ", algorithm_); }

  absl::StatusOr<uint64_t> WorkspaceBytes(int64_t rows) const override {
    DnnProblem problem(*dnn_);
    FLOE_RETURN_IF_ERROR(problem.Make(layer_, rows));
    size_t bytes = 0;
    MutexLock lock(dnn_->mutex);
    FLOE_RETURN_IF_ERROR(
        dnn_->Check(dnn_->f.workspace(dnn_->handle, problem.x, problem.filter, problem.convolution,
                                      problem.y, algorithm_, &bytes),
                    "cudnnGetConvolutionForwardWorkspaceSize"));
    return bytes;
  }

  absl::Status Enqueue(FloeCudaStream stream, const VendorArgs& args) const override {
    DnnProblem problem(*dnn_);
    FLOE_RETURN_IF_ERROR(problem.Make(layer_, args.rows));
    constexpr float kOne = 1, kZero = 0;
    MutexLock lock(dnn_->mutex);
    FLOE_RETURN_IF_ERROR(dnn_->Check(dnn_->f.set_stream(dnn_->handle, stream), "cudnnSetStream"));
    return dnn_->Check(
        dnn_->f.convolve(dnn_->handle, &kOne, problem.x, args.x, problem.filter, args.weights,
                         problem.convolution, algorithm_, args.workspace, args.workspace_bytes,
                         &kZero, problem.y, args.y),
        "cudnnConvolutionForward");
  }

 private:
  const std::shared_ptr<const DnnHandle> dnn_;
  const VendorLayer layer_;
  const int algorithm_;
};

class OpenedCudnn final : public Cudnn {
 public:
  explicit OpenedCudnn(std::shared_ptr<const DnnHandle> dnn) : dnn_(std::move(dnn)) {}

  // As the library writes versions: 91900 is 9.19.0, and 8907 is 8.9.7.
  std::string Version() const override {
    const size_t version = dnn_->f.version(), unit = version >= 90000 ? 10000 : 1000;
    return absl::StrCat("cuDNN ", version / unit, ".", version % unit / 100, ".", version % 100);
  }

  absl::StatusOr<std::vector<std::shared_ptr<const VendorCall>>> Propose(
      const VendorLayer& layer) const override {
    if (layer.uneven)
      return absl::UnimplementedError("it does not pad more on one side than on the other");
    std::vector<std::shared_ptr<const VendorCall>> calls;
    for (const int algorithm : kAlgorithms)
      calls.push_back(std::make_shared<DnnCall>(dnn_, layer, algorithm));
    return calls;
  }

 private:
  const std::shared_ptr<const DnnHandle> dnn_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Cudnn>> Cudnn::Open(const std::string& file) {
  const std::vector<std::string> usual = {"libcudnn.so.9", "libcudnn.so.8"};
  FLOE_ASSIGN_OR_RETURN(const OpenedLibrary library,
                        OpenedLibrary::Open(file.empty() ? usual : std::vector<std::string>{file}));
  DnnFunctions functions = {};
  FLOE_RETURN_IF_ERROR(FindDnnFunctions(library, &functions));
  auto dnn = std::make_shared<DnnHandle>(functions);
  FLOE_RETURN_IF_ERROR(dnn->Check(functions.create(&dnn->handle), "cudnnCreate"));
  return std::make_shared<const OpenedCudnn>(std::move(dnn));
}

}  // namespace floe::cuda
