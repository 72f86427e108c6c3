// The names, numbers and layouts that are declared here are those of NVIDIA's documentation of
// cuBLASLt (docs.nvidia.com/cuda/cublas, "Using the cuBLASLt API"), which keeps them for all
// versions from 11 on.
#include "kernels/cuda/device/cublaslt.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cuda/device/vendor_symbols.h"

namespace floe::cuda {
namespace {

constexpr int kBlasFloat = 0;      // CUDA_R_32F
constexpr int kStrictFloats = 69;  // CUBLAS_COMPUTE_32F_PEDANTIC: no TF32
// Of cublasLtNumericalImplFlags_t, whose lowest byte has the operations: FMA, of any numbers.
constexpr uint64_t kFmaAlone = ~uint64_t{0xff} | 1;
constexpr uint32_t kNoReduction = 0;  // CUBLASLT_REDUCTION_SCHEME_NONE
enum BlasPreference : int {           // cublasLtMatmulPreferenceAttributes_t
  kMostWorkspace = 1,
  kReductionSchemes = 3,
  kAlignmentOfA = 5,
  kAlignmentOfD = 8,
  kImplementations = 12,
};
enum BlasConfig : int { kConfigId = 0, kSplits = 2, kReduction = 3 };  // of an algorithm
constexpr uint64_t kWorkspaceAllowed = uint64_t{4} << 20;
constexpr int kProposals = 8;

struct BlasAlgorithm {
  uint64_t data[8];
};
struct BlasProposal {  // cublasLtMatmulHeuristicResult_t
  BlasAlgorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

struct BlasFunctions {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  size_t (*version)();
  const char* (*status_text)(int status);
  int (*create_layout)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t line);
  int (*destroy_layout)(void* layout);
  int (*create_operation)(void** operation, int compute, int scale);
  int (*destroy_operation)(void* operation);
  int (*create_preference)(void** preference);
  int (*destroy_preference)(void* preference);
  int (*set_preference)(void* preference, int attribute, const void* value, size_t bytes);
  int (*propose)(void* handle, void* operation, void* a, void* b, void* c, void* d,
                 void* preference, int most, void* proposals, int* count);
  int (*check)(void* handle, void* operation, void* a, void* b, void* c, void* d,
               const void* algorithm, void* result);
  int (*config)(const void* algorithm, int attribute, void* value, size_t bytes, size_t* written);
  int (*multiply)(void* handle, void* operation, const void* alpha, const void* a, void* a_layout,
                  const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                  void* d, void* d_layout, const void* algorithm, void* workspace,
                  size_t workspace_bytes, void* stream);
};

absl::Status FindBlasFunctions(const OpenedLibrary& library, BlasFunctions* f) {
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtCreate", &f->create));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtDestroy", &f->destroy));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtGetVersion", &f->version));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtGetStatusString", &f->status_text));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutCreate", &f->create_layout));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutDestroy", &f->destroy_layout));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescCreate", &f->create_operation));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescDestroy", &f->destroy_operation));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceCreate", &f->create_preference));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceDestroy", &f->destroy_preference));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceSetAttribute", &f->set_preference));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoGetHeuristic", &f->propose));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoCheck", &f->check));
  FLOE_RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoConfigGetAttribute", &f->config));
  return library.Find("cublasLtMatmul", &f->multiply);
}

// Of a device.
struct BlasHandle {
  explicit BlasHandle(const BlasFunctions& functions) : f(functions) {}
  ~BlasHandle() {
    if (handle != nullptr) (void)f.destroy(handle);
  }
  absl::Status Check(int status, const char* what) const {
    if (status == 0) return absl::OkStatus();
    const std::string text = absl::StrCat(what, ": ", f.status_text(status), " (", status, ")");
    constexpr int kNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED
    return status == kNotSupported ? absl::UnimplementedError(text) : absl::InternalError(text);
  }

  const BlasFunctions f;
  void* handle = nullptr;
};

// The operation and the matrices of a product of so many rows, as the library has them: by columns,
// so that its D is the transposed result, and its A the weights.
class BlasProblem {
 public:
  explicit BlasProblem(const BlasHandle& blas) : blas_(blas) {}
  ~BlasProblem() {
    for (void* const layout : {a, b, d})
      if (layout != nullptr) (void)blas_.f.destroy_layout(layout);
    if (operation != nullptr) (void)blas_.f.destroy_operation(operation);
  }
  BlasProblem(const BlasProblem&) = delete;
  BlasProblem& operator=(const BlasProblem&) = delete;

  absl::Status Make(const VendorLayer& layer, int64_t rows) {
    FLOE_RETURN_IF_ERROR(
        blas_.Check(blas_.f.create_operation(&operation, kStrictFloats, kBlasFloat),
                    "cublasLtMatmulDescCreate"));
    FLOE_RETURN_IF_ERROR(Layout(layer.n, layer.k, layer.line, &a));
    FLOE_RETURN_IF_ERROR(Layout(layer.k, rows, layer.k, &b));
    return Layout(layer.n, rows, layer.n, &d);
  }

  void* operation = nullptr;
  void *a = nullptr, *b = nullptr, *d = nullptr;

 private:
  absl::Status Layout(int64_t rows, int64_t columns, int64_t line, void** layout) const {
    return blas_.Check(blas_.f.create_layout(layout, kBlasFloat, static_cast<uint64_t>(rows),
                                             static_cast<uint64_t>(columns), line),
                       "cublasLtMatrixLayoutCreate");
  }
  const BlasHandle& blas_;
};

class BlasCall final : public VendorCall {
 public:
  BlasCall(std::shared_ptr<const BlasHandle> blas, const VendorLayer& layer,
           const BlasAlgorithm& algorithm)
      : blas_(std::move(blas)), layer_(layer), algorithm_(algorithm) {}

  std::string Text() const override {
    int id = 0;
    size_t written = 0;
    (void)blas_->f.config(&algorithm_, kConfigId, &id, sizeof id, &written);
    return absl::StrCat("algorithm ", id);
  }

  absl::StatusOr<uint64_t> WorkspaceBytes(int64_t rows) const override {
    BlasProblem problem(*blas_);
    FLOE_RETURN_IF_ERROR(problem.Make(layer_, rows));
    BlasProposal result = {};
    FLOE_RETURN_IF_ERROR(
        blas_->Check(blas_->f.check(blas_->handle, problem.operation, problem.a, problem.b,
                                    problem.d, problem.d, &algorithm_, &result),
                     "cublasLtMatmulAlgoCheck"));
    return result.workspace;
  }

  absl::Status Enqueue(FloeCudaStream stream, const VendorArgs& args) const override {
    BlasProblem problem(*blas_);
    FLOE_RETURN_IF_ERROR(problem.Make(layer_, args.rows));
    constexpr float kOne = 1, kZero = 0;
    return blas_->Check(
        blas_->f.multiply(blas_->handle, problem.operation, &kOne, args.weights, problem.a, args.x,
                          problem.b, &kZero, args.y, problem.d, args.y, problem.d, &algorithm_,
                          args.workspace, args.workspace_bytes, stream),
        "cublasLtMatmul");
  }

 private:
  const std::shared_ptr<const BlasHandle> blas_;
  const VendorLayer layer_;
  const BlasAlgorithm algorithm_;
};

class OpenedCublasLt final : public CublasLt {
 public:
  explicit OpenedCublasLt(std::shared_ptr<const BlasHandle> blas) : blas_(std::move(blas)) {}

  // As the library writes versions: 130002 is 13.0.2.
  std::string Version() const override {
    const size_t version = blas_->f.version();
    return absl::StrCat("cuBLASLt ", version / 10000, ".", version / 100 % 100, ".", version % 100);
  }

  absl::StatusOr<std::vector<std::shared_ptr<const VendorCall>>> Propose(
      const VendorLayer& layer, int64_t most_rows) const override {
    std::vector<std::shared_ptr<const VendorCall>> calls;
    FLOE_RETURN_IF_ERROR(ProposeFor(layer, most_rows, &calls));
    FLOE_RETURN_IF_ERROR(ProposeFor(layer, 1, &calls));
    if (!calls.empty()) return calls;
    return absl::UnimplementedError("every algorithm that it proposes splits sums");
  }

 private:
  absl::Status ProposeFor(const VendorLayer& layer, int64_t rows,
                          std::vector<std::shared_ptr<const VendorCall>>* calls) const {
    void* preference = nullptr;
    FLOE_RETURN_IF_ERROR(
        blas_->Check(blas_->f.create_preference(&preference), "cublasLtMatmulPreferenceCreate"));
    const auto destroy = absl::MakeCleanup([&] { (void)blas_->f.destroy_preference(preference); });
    FLOE_RETURN_IF_ERROR(SetPreferences(layer, preference));
    BlasProblem problem(*blas_);
    FLOE_RETURN_IF_ERROR(problem.Make(layer, rows));
    BlasProposal proposals[kProposals] = {};
    int count = 0;
    FLOE_RETURN_IF_ERROR(blas_->Check(
        blas_->f.propose(blas_->handle, problem.operation, problem.a, problem.b, problem.d,
                         problem.d, preference, kProposals, proposals, &count),
        "cublasLtMatmulAlgoGetHeuristic"));
    for (int i = 0; i < count; ++i) {
      if (proposals[i].state == 0 && AddsInOneGo(proposals[i].algorithm))
        calls->push_back(std::make_shared<BlasCall>(blas_, layer, proposals[i].algorithm));
    }
    return absl::OkStatus();
  }

  absl::Status SetPreferences(const VendorLayer& layer, void* preference) const {
    const auto set = [&](int attribute, const auto& value) {
      return blas_->Check(blas_->f.set_preference(preference, attribute, &value, sizeof value),
                          "cublasLtMatmulPreferenceSetAttribute");
    };
    FLOE_RETURN_IF_ERROR(set(kMostWorkspace, kWorkspaceAllowed));
    FLOE_RETURN_IF_ERROR(set(kReductionSchemes, kNoReduction));
    FLOE_RETURN_IF_ERROR(set(kImplementations, kFmaAlone));
    const auto alignment = static_cast<uint32_t>(layer.Alignment());
    for (int matrix = kAlignmentOfA; matrix <= kAlignmentOfD; ++matrix)
      FLOE_RETURN_IF_ERROR(set(matrix, alignment));
    return absl::OkStatus();
  }

  bool AddsInOneGo(const BlasAlgorithm& algorithm) const {
    int32_t splits = 0;
    uint32_t reduction = 0;
    size_t written = 0;
    return blas_->f.config(&algorithm, kSplits, &splits, sizeof splits, &written) == 0 &&
           blas_->f.config(&algorithm, kReduction, &reduction, sizeof reduction, &written) == 0 &&
           splits <= 1 && reduction == kNoReduction;
  }

  const std::shared_ptr<const BlasHandle> blas_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const CublasLt>> CublasLt::Open(const std::string& file) {
  const std::vector<std::string> usual = {"libcublasLt.so.13", "libcublasLt.so.12"};
  FLOE_ASSIGN_OR_RETURN(const OpenedLibrary library,
                        OpenedLibrary::Open(file.empty() ? usual : std::vector<std::string>{file}));
  BlasFunctions functions = {};
  FLOE_RETURN_IF_ERROR(FindBlasFunctions(library, &functions));
  auto blas = std::make_shared<BlasHandle>(functions);
  FLOE_RETURN_IF_ERROR(blas->Check(functions.create(&blas->handle), "cublasLtCreate"));
  return std::make_shared<const OpenedCublasLt>(std::move(blas));
}

}  // namespace floe::cuda
