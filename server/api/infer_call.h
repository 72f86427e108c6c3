// What every inference RPC has in common, whatever its messages are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "server/api/api.h"
#include "server/request/inference.h"

namespace floe::server {

// The served version that a call means, with the registry's errors. It stays during Decode.
using FindServed = absl::FunctionRef<absl::StatusOr<const ServedModel*>(const ModelSpec&)>;

// What a message may ask of its call, beside its head.
struct CallWishes {
  std::optional<int> priority;          // in place of the head's
  Duration timeout = Duration::zero();  // from its arrival on, if that is sooner than the head's
                                        // deadline; zero: none
};

// All that an RPC adds, for one call: its messages. Its method makes it of what path and head of
// the call say, which may be the model, the version, the signature or wishes for the reply. Knows
// nothing of calls and queues. Threading: one thread at a time.
class InferCodec {
 public:
  virtual ~InferCodec() = default;
  // Bytes to what is asked, as DecodePredict. Calls `find` once, with the model that message, path
  // or head name.
  // Sets the door first, for metrics.
  virtual absl::Status Decode(std::string_view message, FindServed find, Inference* asked) = 0;
  // The version that `spec` means, which `find` asks for. A codec may have one already.
  virtual absl::StatusOr<ServedHandle> Acquire(const ModelRegistry& registry,
                                               const ModelSpec& spec) {
    return registry.Acquire(spec.name, {spec.version, spec.label});
  }
  // After Decode.
  virtual CallWishes wishes() const { return {}; }
  // Outputs to bytes, in place of what `*reply` holds. Afterwards the call is over.
  virtual absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) = 0;
  // Whether Decode takes so long that the transport's thread should not do it.
  virtual bool IsSlow(std::string_view message) const { return message.size() > kSmallMessage; }
  // Whether clients refuse large replies unless they are told not to, as those of gRPC do.
  virtual bool HasReplyLimit() const { return true; }

  static constexpr size_t kSmallMessage = size_t{1} << 20;
};

// Where a call keeps its codec: in its own memory.
class CodecPlace {
 public:
  static constexpr size_t kBytes = 64;  // a codec that needs more keeps it elsewhere

  CodecPlace() = default;
  ~CodecPlace() {
    if (codec_ != nullptr) codec_->~InferCodec();
  }
  CodecPlace(const CodecPlace&) = delete;
  CodecPlace& operator=(const CodecPlace&) = delete;

  // Once.
  template <typename Codec, typename... Args>
  void Make(Args&&... args) {
    static_assert(sizeof(Codec) <= kBytes && alignof(Codec) <= alignof(std::max_align_t));
    codec_ = new (memory_) Codec(std::forward<Args>(args)...);
  }
  InferCodec& operator*() { return *codec_; }
  InferCodec* operator->() { return codec_; }

 private:
  alignas(std::max_align_t) std::byte memory_[kBytes];
  InferCodec* codec_ = nullptr;
};

// Makes the codec of a call, or refuses the call by its head.
using OpenCodec = std::function<absl::Status(const CallHead& head, CodecPlace* place)>;

// Opens a call whose codec `open` makes, for doors whose calls have more than a CallHead to say
// what is asked. As a Method otherwise; who calls it checks the role.
using OpenInference = std::function<absl::StatusOr<std::shared_ptr<CallHandler>>(
    const CallHead& head, std::shared_ptr<Responder> responder,
    absl::FunctionRef<absl::Status(CodecPlace* place)> open)>;
OpenInference InferenceDoor(const ApiContext& context);

// A unary inference RPC. Its caller may set the metadata floe-priority. Errors and lines about slow
// requests name the request's id. The reply may come from a worker's thread.
Method InferMethod(const ApiContext& context, OpenCodec open);

}  // namespace floe::server
