// SentRequest: a PredictRequest against the model version that is to answer it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/model.h"
#include "server/api/predict_request.h"
#include "server/api/tensor_input.h"
#include "server/batching/infer_request.h"

namespace floe::server {

// Lives as long as the InferRequest made from it, and so does the message: inputs are views into
// both. Threading: one thread at a time. Errors name the model, the signature and what they have.
class SentRequest {
 public:
  // `max_input_bytes`: of inputs that do not lie in the message as they are needed.
  // `memory`, which outlives it, pays for what is decoded and for what protobuf reads; null:
  // nobody.
  explicit SentRequest(int64_t max_input_bytes, const MemoryBudget* memory = nullptr)
      : max_input_bytes_(max_input_bytes), storage_(max_input_bytes, memory) {}

  // False: it takes a while to read, so that it should be done by another thread than the
  // transport's.
  bool ReadQuickly(std::string_view message);
  // Unless that was true: first, and once.
  absl::Status Read(std::string_view message);
  const SentPredict& sent() const { return sent_; }

  // Finds the signature asked for. FAILED_PRECONDITION: there is no such.
  absl::Status ChooseSignature(ModelHandle model);
  const ModelHandle& model() const { return model_; }
  const Signature& signature() const { return *signature_; }
  std::string ModelAndSignature() const;  // "model 'm' version 1, signature 'serving_default'"

  // The outputs that output_filter names, or all: indices in the signature, in the order of the
  // reply. INVALID_ARGUMENT: it names one twice, or one that the signature does not have.
  using Outputs = absl::InlinedVector<int, kUsualTensors>;
  absl::Status ChooseOutputs(Outputs* outputs) const;

  // Fills model, signature and inputs, of which those that are large to decode, or stand for much
  // more than was sent, are left pending. INVALID_ARGUMENT for inputs that the signature does not
  // have or that are missing, and for tensors of another dtype or shape; RESOURCE_EXHAUSTED for
  // those that would take too much. Nothing is allocated then.
  absl::Status Fill(InferRequest* request);
  // Of inputs that were decoded already, and of what protobuf read.
  size_t unfolded_bytes() const {
    return static_cast<size_t>(storage_.charged() - pending_bytes_) + sent_.parsed_bytes;
  }

 private:
  // What is to be decoded to become input `index` of the request.
  struct Encoded {
    const SentTensor* sent;
    size_t index;
  };

  absl::Status CheckInput(const SentInput& input, size_t index, InferRequest* request);
  void Decode(const std::vector<Encoded>& inputs, InferRequest* request);
  absl::Status WrongInputs() const;

  const int64_t max_input_bytes_;
  SentPredict sent_;
  InputStorage storage_;
  ModelHandle model_;
  const Signature* signature_ = nullptr;
  std::vector<Encoded> now_, later_;
  int64_t pending_bytes_ = 0;
};

// The keys of a signature's inputs or outputs.
std::vector<std::string> Keys(const std::vector<SignatureTensor>& tensors);

}  // namespace floe::server
