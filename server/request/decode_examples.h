// ClassificationRequest, RegressionRequest and MultiInferenceRequest -> Inference, without
// protobuf's classes: a tf.Example goes to the model as the bytes that were sent.
#pragma once

#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "server/request/examples.h"
#include "server/request/inference.h"
#include "server/request/value_list.h"

namespace floe::server {

// A tensorflow.serving.Input: views into its message.
struct ExamplesField {
  enum class Kind : uint8_t { kNone, kList, kListWithContext };
  Kind kind = Kind::kNone;
  ValueList examples;
  // Whose features each Example has, too, unless it has its own. In pieces where it was sent so.
  absl::InlinedVector<std::string_view, 1> context;
};

// The parts of a ClassificationRequest or RegressionRequest.
struct ExampleFields {
  ModelSpec model;
  std::string_view signature;
  ExamplesField input;
};

// Names need not be UTF-8. INVALID_ARGUMENT: the bytes are no such message, or an Example is none.
// Features are not looked at: the model's graph parses them.
absl::Status ReadExampleFields(std::string_view message, ExampleFields* fields);

// Fills `*asked` from a ClassificationRequest or RegressionRequest: who calls keeps it alive.
// Large inputs are left pending, as by DecodePredict. Errors beside those of `find`,
// ReadExampleFields, ChooseExampleSignature and FeedExamples: none.
absl::Status DecodeExamples(std::string_view message, const ExampleCall& call, FindModel find,
                            Inference* asked);

// A task of a MultiInferenceRequest. Views into the message.
struct InferenceTask {
  ModelSpec model;
  std::string_view signature;
  ExampleMethod method = ExampleMethod::kClassify;
};

inline constexpr size_t kMostTasks = 64;

// The parts of a MultiInferenceRequest.
struct MultiInferenceFields {
  absl::InlinedVector<InferenceTask, 4> tasks;
  ExamplesField input;
};

// INVALID_ARGUMENT, with TensorFlow Serving's words: the bytes are no MultiInferenceRequest; there
// are no tasks, or more than kMostTasks; they are of several models or versions, or one signature
// is asked twice. UNIMPLEMENTED: a task's method is neither classify nor regress.
absl::Status ReadMultiInferenceFields(std::string_view message, MultiInferenceFields* fields);

// As DecodeExamples, for one of the tasks.
absl::Status DecodeTask(const InferenceTask& task, ExamplesField input, size_t message_bytes,
                        bool check_method_name, FindModel find, Inference* asked);

}  // namespace floe::server
