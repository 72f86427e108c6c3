// What Classify, Regress and the tasks of MultiInference have in common: a signature that takes
// serialized tf.Examples, and what its outputs mean.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/request/inference.h"
#include "server/request/value_list.h"

namespace floe::server {

enum class ExampleMethod : uint8_t { kClassify, kRegress };

// What a request asks, beside its Examples.
struct ExampleCall {
  ExampleMethod method = ExampleMethod::kClassify;
  // The signature must have the method's name (--enable_signature_method_name_check).
  bool check_method_name = false;
};

// "tensorflow/serving/classify", as signatures and tasks have it.
const char* MethodNameOf(ExampleMethod method);

// Chooses the signature and the outputs that the method reads, and gives the index of the input
// that takes the Examples. Errors beside those of ChooseSignature are INVALID_ARGUMENT, with
// TensorFlow Serving's words: the signature's method, inputs or outputs are not the method's.
absl::StatusOr<size_t> ChooseExampleSignature(ModelHandle model, std::string_view name,
                                              const ExampleCall& call, Inference* asked);

// Makes the Examples the only input. `examples` is a list of strings, one for each, whose views
// stay. INVALID_ARGUMENT: there are none. RESOURCE_EXHAUSTED: they would take too much.
absl::Status FeedExamples(size_t input, ValueList&& examples, size_t message_bytes,
                          Inference* asked);

// The same of strings that `asked` keeps already. While it waits it holds `held_bytes`.
absl::Status FeedExamples(size_t input, std::string* examples, int64_t count, size_t held_bytes,
                          Inference* asked);

// A run's outputs as the method reads them, one row for each Example. Views of the outputs.
struct ClassifyOutputs {
  const TensorView* labels = nullptr;  // strings; null: the signature has none
  const TensorView* scores = nullptr;  // float32; one of the two is there
  int64_t rows = 0, classes = 0;

  std::string_view Label(int64_t row, int64_t index) const;
  float Score(int64_t row, int64_t index) const;
};
struct RegressOutputs {
  const TensorView* values = nullptr;  // float32
  int64_t rows = 0;

  float Value(int64_t row) const;
};

// INVALID_ARGUMENT, with TensorFlow Serving's words: shapes or dtypes are not the method's, or
// labels are no UTF-8. INTERNAL: the run gave other outputs than the signature has.
absl::StatusOr<ClassifyOutputs> ReadClassifyOutputs(const Inference& asked, Outputs outputs);
absl::StatusOr<RegressOutputs> ReadRegressOutputs(const Inference& asked, Outputs outputs);

}  // namespace floe::server
