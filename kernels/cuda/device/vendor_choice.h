// Which libraries of NVIDIA may compute layers.
#pragma once

#include <string>

namespace floe::cuda {

struct VendorChoice {
  bool cublaslt = false, cudnn = false;
  std::string cublaslt_file = {}, cudnn_file = {};  // empty: those that the linker finds

  // As the key gpu_libraries says it: none, cublaslt, cudnn or all.
  static VendorChoice Named(const std::string& name) {
    return {.cublaslt = name == "cublaslt" || name == "all",
            .cudnn = name == "cudnn" || name == "all"};
  }
};

}  // namespace floe::cuda
