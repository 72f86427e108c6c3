// Door: by which API a request came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace floe::server {

enum class Door : uint8_t {
  kPredict,
  kClassify,
  kRegress,
  kMultiInference,
  kModelInfer,
  kModelStreamInfer,
  kHttpPredict,
  kHttpClassify,
  kHttpRegress,
  kHttpModelInfer,
};

// For labels of metrics.
struct DoorName {
  std::string_view method;    // "Predict", as TensorFlow Serving's and KServe's services have it
  std::string_view protocol;  // "grpc" or "http"
};

inline DoorName NameOf(Door door) {
  constexpr DoorName kNames[] = {
      {"Predict", "grpc"},        {"Classify", "grpc"},   {"Regress", "grpc"},
      {"MultiInference", "grpc"}, {"ModelInfer", "grpc"}, {"ModelStreamInfer", "grpc"},
      {"Predict", "http"},        {"Classify", "http"},   {"Regress", "http"},
      {"ModelInfer", "http"},
  };
  return kNames[static_cast<size_t>(door)];
}

}  // namespace floe::server
