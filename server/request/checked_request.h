// CheckedRequest: a parsed request against the model version that is to answer it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/model.h"
#include "server/request/decode_predict.h"
#include "server/request/request.h"

namespace floe::server {

// Lives as long as the Request made from it, and so does the message: inputs are views into
// both. Threading: one thread at a time. Errors name the model, the signature and what they have.
class CheckedRequest {
 public:
  // `max_input_bytes`: of inputs that do not lie in the message as they are needed.
  // `memory`, which outlives it, pays for what is decoded; null: nobody.
  explicit CheckedRequest(int64_t max_input_bytes, const MemoryBudget* memory = nullptr)
      : storage_(max_input_bytes, memory) {}

  // First, and once.
  absl::Status Decode(std::string_view message) { return DecodePredict(message, &parsed_); }
  const ParsedRequest& parsed() const { return parsed_; }

  // Finds the signature asked for. FAILED_PRECONDITION: there is no such.
  absl::Status ChooseSignature(ModelHandle model);
  const ModelHandle& model() const { return model_; }
  const Signature& signature() const { return *signature_; }
  std::string ModelAndSignature() const;  // "model 'm' version 1, signature 'serving_default'"

  // The outputs that output_filter names, or all: indices in the signature, in the order of the
  // reply. INVALID_ARGUMENT: it names one twice, or one that the signature does not have.
  using OutputIndices = absl::InlinedVector<int, kUsualTensors>;
  absl::Status ChooseOutputs(OutputIndices* outputs) const;

  // Fills model, signature and inputs, of which those that are large to decode, or stand for much
  // more than was sent, are left pending. INVALID_ARGUMENT for inputs that the signature does not
  // have or that are missing, and for tensors of another dtype or shape; RESOURCE_EXHAUSTED for
  // those that would take too much. Nothing is allocated then.
  absl::Status Fill(Request* request);
  // Of inputs that were decoded already.
  size_t decoded_bytes() const { return static_cast<size_t>(storage_.charged() - pending_bytes_); }

 private:
  // What is to be decoded to become input `index` of the request.
  struct Encoded {
    const ParsedTensor* tensor;
    size_t index;
  };

  absl::Status CheckInput(const ParsedInput& input, size_t index, Request* request);
  absl::Status DecodeInputs(const std::vector<Encoded>& inputs, Request* request);
  absl::Status WrongInputs() const;

  ParsedRequest parsed_;
  InputStorage storage_;
  ModelHandle model_;
  const Signature* signature_ = nullptr;
  std::vector<Encoded> now_, later_;
  int64_t pending_bytes_ = 0;
};

// The keys of a signature's inputs or outputs.
std::vector<std::string> Keys(const std::vector<SignatureTensor>& tensors);

}  // namespace floe::server
