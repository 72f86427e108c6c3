#include "kernels/cpu/gemm/openblas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"

namespace floe::kernels {
namespace {

#if defined(__x86_64__)
constexpr char kArchitecture[] = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr char kArchitecture[] = "aarch64-linux-gnu";
#else
constexpr char kArchitecture[] = "";
#endif

// CBLAS's own enumerators.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;
using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                       const float* a, int lda, const float* b, int ldb, float beta, float* c,
                       int ldc);

struct State {
  Mutex mutex;
  std::string path ABSL_GUARDED_BY(mutex);  // configured; empty: the system's
  std::unique_ptr<const Blas> blas ABSL_GUARDED_BY(mutex);
};

State& TheState() {
  static State* state = new State;  // outlives every thread that may still multiply at exit
  return *state;
}

Mutex& SerialMutex() {
  static Mutex* mutex = new Mutex;
  return *mutex;
}

// The pthread flavour first: plain libopenblas.so.0 may be a serial build, which is wrong under
// several callers.
std::vector<std::string> Candidates(const std::string& configured) {
  if (!configured.empty()) return {configured};
  std::vector<std::string> paths;
  if (*kArchitecture != '\0') {
    paths.push_back(absl::StrCat("/usr/lib/", kArchitecture, "/openblas-pthread/libopenblas.so.0"));
  }
  paths.push_back("libopenblas.so.0");
  return paths;
}

}  // namespace

class BlasLoader {
 public:
  // Null with the reason in `why`.
  static std::unique_ptr<const Blas> Open(const std::string& path, std::string* why) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      *why = dlerror();
      return nullptr;
    }
    auto blas = std::make_unique<Blas>();
    blas->sgemm_ = dlsym(library, "cblas_sgemm");
    if (blas->sgemm_ == nullptr) {
      *why = absl::StrCat(path, " has no cblas_sgemm");
      dlclose(library);
      return nullptr;
    }
    if (auto set_threads =
            reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"))) {
      set_threads(1);
    }
    auto get_parallel = reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_parallel"));
    blas->serial_ = get_parallel != nullptr && get_parallel() == 0;
    auto get_config = reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_config"));
    blas->description_ =
        absl::StrCat(get_config != nullptr ? get_config() : "CBLAS", " (", path,
                     blas->serial_ ? ", serial build: calls are serialised)" : ")");
    return blas;  // the library stays open for the life of the process
  }
};

void Blas::Multiply(int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, float* c,
                    int64_t ldc) const {
  if (m == 0 || n == 0) return;
  const auto leading = [](const Matrix& x) {
    return static_cast<int>(x.ld > 1 ? x.ld : 1);
  };  // 0 is an error
  const auto call = [&] {
    reinterpret_cast<Sgemm>(sgemm_)(kRowMajor, a.transposed ? kTrans : kNoTrans,
                                    b.transposed ? kTrans : kNoTrans, static_cast<int>(m),
                                    static_cast<int>(n), static_cast<int>(k), 1.0f, a.data,
                                    leading(a), b.data, leading(b), 0.0f, c, static_cast<int>(ldc));
  };
  if (serial_) {
    MutexLock lock(SerialMutex());
    call();
  } else {
    call();
  }
}

void SetBlasLibrary(const std::string& path) {
  MutexLock lock(TheState().mutex);
  TheState().path = path;
}

absl::StatusOr<const Blas*> OpenBlas() {
  State& state = TheState();
  MutexLock lock(state.mutex);
  if (state.blas != nullptr) return state.blas.get();
  // Read by the library while it is opened: each of floe's workers calls it alone.
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  std::string reasons;
  for (const std::string& path : Candidates(state.path)) {
    std::string why;
    if ((state.blas = BlasLoader::Open(path, &why)) != nullptr) return state.blas.get();
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", why);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no BLAS library could be opened (", reasons,
                   "); install libopenblas0-pthread or set cpu.blas_library"));
}

std::string BlasDescription() {
  State& state = TheState();
  MutexLock lock(state.mutex);
  return state.blas == nullptr ? "not opened" : state.blas->description();
}

}  // namespace floe::kernels
