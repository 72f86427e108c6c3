// A Predict call of a model that a server serves: which version and signature, and its message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "cli/rpc.h"
#include "model/graph.h"
#include "model/tensor.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::cli {

inline constexpr char kPredictMethod[] = "/tensorflow.serving.PredictionService/Predict";

struct ServedCall {
  std::string model, signature = "serving_default";
  int64_t version = 0;  // 0: that of the label
  std::string label;    // empty too: the server's choice
};

// INPUT, the positional arguments, checked while parsing.
CLI::Option* AddInputArguments(CLI::App& app, std::vector<std::string>& inputs);
// --version and --label.
std::vector<CLI::Option*> AddVersionOptions(CLI::App& app, ServedCall& call);

// The version that the server would choose, and its signature. NOT_FOUND lists those there are.
struct CalledSignature {
  int64_t version = 0;
  SignatureDef def;
};
absl::StatusOr<CalledSignature> FetchCalled(const RpcClient& client, const ServedCall& call);

// The message with those of the inputs that are valid, in the order of `def`.
tensorflow::serving::PredictRequest RequestOf(const ServedCall& call, const SignatureDef& def,
                                              const std::vector<Tensor>& inputs);

}  // namespace floe::cli
