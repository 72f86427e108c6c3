// libcublasLt.so.13 on memory of the host: as much of it as floe calls.
#include <cstdint>
#include <cstring>

#include "tests/cuda/fake_vendor_impl.h"

namespace {

using floe::fake_vendor::Factor;
using floe::fake_vendor::Fails;
using floe::fake_vendor::Free;
using floe::fake_vendor::Make;
using floe::fake_vendor::SumsBackwards;

constexpr int kNotSupported = 15, kInvalidValue = 7, kExecutionFailed = 13;
FakeVendor state = {};

struct Layout {
  uint64_t rows, columns;
  int64_t line;
};
struct Operation {
  int compute;
};
struct Preference {
  uint64_t values[16];
};
struct Algorithm {
  uint64_t data[8];
};
struct Result {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

bool Fit(const Layout& a, const Layout& b, const Layout& d) {
  return a.columns == b.rows && a.rows == d.rows && b.columns == d.columns &&
         a.line >= static_cast<int64_t>(a.rows) && b.line >= static_cast<int64_t>(b.rows) &&
         d.line >= static_cast<int64_t>(d.rows);
}

const Layout& LayoutAt(const void* at) { return *static_cast<const Layout*>(at); }

bool OnDevice(const void* at, const Layout& layout) {
  const uint64_t elements = (layout.columns - 1) * static_cast<uint64_t>(layout.line) + layout.rows;
  return fake_cuda_on_device(at, elements * sizeof(float)) != 0;
}

int Multiply(const Layout& a, const Layout& b, const Layout& d, const float* left,
             const float* right, float* out, int behaviour, int algorithm) {
  const bool backwards = SumsBackwards(behaviour, algorithm, static_cast<int64_t>(b.columns));
  const auto inner = static_cast<int64_t>(a.columns);
  for (int64_t column = 0; column < static_cast<int64_t>(b.columns); ++column) {
    for (int64_t row = 0; row < static_cast<int64_t>(a.rows); ++row) {
      float sum = 0;
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t k = backwards ? inner - 1 - i : i;
        sum += Factor(left[k * a.line + row], behaviour) *
               Factor(right[column * b.line + k], behaviour);
      }
      out[column * d.line + row] = sum;
    }
  }
  return 0;
}

}  // namespace

extern "C" {

FakeVendor* fake_cublaslt() { return &state; }

int cublasLtCreate(void** handle) {
  ++state.handles;
  return Make<int>(handle);
}
int cublasLtDestroy(void* handle) {
  --state.handles;
  return Free<int>(handle);
}
size_t cublasLtGetVersion() { return 130002; }
const char* cublasLtGetStatusString(int status) {
  return status == kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED" : "an error of the fake library";
}
int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns,
                               int64_t line) {
  if (type != 0) return kInvalidValue;
  *layout = new Layout{rows, columns, line};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* layout) { return Free<Layout>(layout); }
int cublasLtMatmulDescCreate(void** operation, int compute, int scale) {
  constexpr int kPedantic = 69;
  if (compute != kPedantic || scale != 0) return kInvalidValue;
  return Make<Operation>(operation);
}
int cublasLtMatmulDescDestroy(void* operation) { return Free<Operation>(operation); }
int cublasLtMatmulPreferenceCreate(void** preference) { return Make<Preference>(preference); }
int cublasLtMatmulPreferenceDestroy(void* preference) { return Free<Preference>(preference); }
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value,
                                         size_t bytes) {
  if (attribute < 0 || attribute > 15 || (bytes != 4 && bytes != 8)) return kInvalidValue;
  std::memcpy(&static_cast<Preference*>(preference)->values[attribute], value, bytes);
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void* b, void*, void*, void* preference,
                                   int most, void* proposals, int* count) {
  if ((static_cast<Preference*>(preference)->values[12] & 0xff) != 1)
    return kInvalidValue;  // FMA alone
  auto* const results = static_cast<Result*>(proposals);
  // One that splits sums, and two that do not; which one comes first follows the rows.
  const uint64_t first = LayoutAt(b).columns > 1 ? 0 : 1;
  *count = most < 3 ? most : 3;
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algorithm.data[0] = i == 0 ? 2 : i == 1 ? first : 1 - first;
    results[i].algorithm.data[1] = i == 0 ? 4 : 1;  // splits
  }
  return 0;
}
int cublasLtMatmulAlgoCheck(void*, void*, void* a, void* b, void*, void* d, const void*,
                            void* result) {
  if (!Fit(LayoutAt(a), LayoutAt(b), LayoutAt(d))) return kInvalidValue;
  if (state.behaviour == FAKE_VENDOR_FEW_ROWS && LayoutAt(b).columns > 4) return kNotSupported;
  static_cast<Result*>(result)->workspace = state.workspace_bytes;
  return 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const void* algorithm, int attribute, void* value,
                                         size_t bytes, size_t* written) {
  if (bytes != 4) return kInvalidValue;
  const uint64_t* const data = static_cast<const Algorithm*>(algorithm)->data;
  const auto number = attribute == 0   ? static_cast<uint32_t>(data[0])
                      : attribute == 2 ? static_cast<uint32_t>(data[1])
                                       : uint32_t{0};
  std::memcpy(value, &number, 4);
  *written = 4;
  return 0;
}
int cublasLtMatmul(void*, void*, const void* alpha, const void* a, void* a_layout, const void* b,
                   void* b_layout, const void* beta, const void*, void*, void* d, void* d_layout,
                   const void* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
  if (const int error = Fails(&state, kExecutionFailed)) return error;
  const Layout left = LayoutAt(a_layout), right = LayoutAt(b_layout), out = LayoutAt(d_layout);
  if (!Fit(left, right, out) || *static_cast<const float*>(alpha) != 1 ||
      *static_cast<const float*>(beta) != 0 || !OnDevice(a, left) || !OnDevice(b, right) ||
      !OnDevice(d, out) || workspace_bytes < state.workspace_bytes ||
      (workspace_bytes != 0 && fake_cuda_on_device(workspace, workspace_bytes) == 0))
    return kInvalidValue;
  const int behaviour = state.behaviour,
            number = static_cast<int>(static_cast<const Algorithm*>(algorithm)->data[0]);
  floe::fake_vendor::Put(stream, [=] {
    if (workspace_bytes != 0) std::memset(workspace, 0xff, workspace_bytes);
    return Multiply(left, right, out, static_cast<const float*>(a), static_cast<const float*>(b),
                    static_cast<float*>(d), behaviour, number);
  });
  return 0;
}
}
