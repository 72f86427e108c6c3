// ModelInfer: the codec of ModelInferRequest and ModelInferResponse. ModelStreamInfer: each message
// is a ModelInfer of its own, and their replies go back in order.
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/wire_reader.h"
#include "server/api/infer_call.h"
#include "server/api/kserve.h"
#include "server/request/decode_infer.h"
#include "server/request/encode_infer.h"

namespace floe::server {
namespace {

// Of a stream: calls in progress or with an unsent reply, and the bytes of their messages and
// replies. Beyond either no message is read. One call goes on whatever its size.
constexpr size_t kMostStreamCalls = 32;
constexpr int64_t kMostStreamBytes = int64_t{8} << 20;
constexpr size_t kMostStreamErrorBytes = 4096;   // in a reply
constexpr int64_t kSmallStreamReply = 64 << 10;  // the memory limit is not asked for it

class KServeCodec : public InferCodec {
 public:
  explicit KServeCodec(bool in_stream) : in_stream_(in_stream) {}

  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    asked->door = in_stream_ ? Door::kModelStreamInfer : Door::kModelInfer;
    const auto model = [&](const ModelSpec& spec) -> absl::StatusOr<ModelHandle> {
      FLOE_ASSIGN_OR_RETURN(const ServedModel* const served, find(spec));
      return served->model();
    };
    return DecodeInfer(message, model, asked, &wishes_);
  }

  CallWishes wishes() const override { return {wishes_.priority, wishes_.timeout}; }

  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    return EncodeInfer(asked, outputs, {wishes_.id, wishes_.typed, in_stream_}, reply);
  }

 private:
  InferWishes wishes_;
  const bool in_stream_;
};

Method KServeMethod(const ApiContext& context, bool in_stream) {
  return InferMethod(context, [in_stream](const CallHead&, CodecPlace* place) {
    place->Make<KServeCodec>(in_stream);
    return absl::OkStatus();
  });
}

// The request's id, if its bytes are one.
std::string IdOf(std::string_view message) {
  std::string_view id;
  if (!ForEachBytesField(message, 3, [&id](uint32_t field, std::string_view part) {
        if (field == 3) id = part;
        return true;
      }))
    return "";
  return std::string(id);
}

// A reply that says why there is none.
std::string ErrorMessage(const absl::Status& status, std::string_view id) {
  inference::ModelStreamInferResponse reply;
  reply.set_error_message(
      Printable(absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message()),
                kMostStreamErrorBytes));
  reply.mutable_infer_response()->set_id(Printable(id, kMostStreamErrorBytes));
  return reply.SerializeAsString();
}

// A stream has trailers of its own alone, so those of a message are parameters of its reply. A
// message that stands behind another one is merged into it.
void AppendTrailers(const Trailers& trailers, std::string* reply) {
  if (trailers.empty()) return;
  inference::ModelStreamInferResponse more;
  auto& parameters = *more.mutable_infer_response()->mutable_parameters();
  for (const auto& [name, value] : trailers) {
    int64_t micros = 0;
    const bool is_time = name == kQueueTimeKey || name == kRunTimeKey;
    if (is_time && absl::SimpleAtoi(value, &micros))
      parameters[name].set_int64_param(micros);
    else
      parameters[name].set_string_param(value);
  }
  more.AppendToString(reply);
}

// A stream. Whoever changes its state takes its turn with the responder, unless another thread is
// at it, which then does what the change asks for. Threading: any.
class InferStream : public CallHandler, public std::enable_shared_from_this<InferStream> {
 public:
  // `one` answers each message, and outlives the call; so does `memory`, which may be null.
  InferStream(const Method& one, const MemoryBudget* memory, CallHead head,
              std::shared_ptr<Responder> responder)
      : one_(one), memory_(memory), head_(std::move(head)), responder_(std::move(responder)) {}

  void OnMessage(Message message) override;
  void OnHalfClose() override { End(absl::OkStatus()); }
  void OnWritable() override { Turn(); }
  bool OnDrain() override;

 private:
  // A message's place in the order.
  struct Slot {
    int64_t bytes = 0;  // of its message, then of its reply
    bool answered = false;
    std::string reply;
    MemoryShare paid;
  };
  class Answer;
  enum class Next : uint8_t { kNothing, kWrite, kPause, kResume, kFinish };

  void Answered(uint64_t number, std::string reply, MemoryShare paid);
  void End(const absl::Status& status);
  Next Decide(Slot* slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Turn();

  const Method& one_;
  const MemoryBudget* const memory_;
  const CallHead head_;
  const std::shared_ptr<Responder> responder_;

  Mutex mutex_;
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;               // the number of the first slot
  int64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;           // of all slots
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;                // a thread is at the responder
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;              // the responder was told
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // once all are answered
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// Takes the answer to one message.
class InferStream::Answer : public Responder {
 public:
  Answer(std::shared_ptr<InferStream> stream, uint64_t number, std::string id)
      : stream_(std::move(stream)), number_(number), id_(std::move(id)) {}
  void Write(std::string&& message) override { reply_ = std::move(message); }
  using Responder::Finish;
  void Finish(const absl::Status& status, const Trailers& trailers) override {
    MemoryShare paid;
    const absl::Status all = status.ok() ? Pay(&paid) : status;
    std::string reply = all.ok() ? std::move(reply_) : ErrorMessage(all, id_);
    AppendTrailers(trailers, &reply);
    stream_->Answered(number_, std::move(reply), std::move(paid));
  }

 private:
  // For the reply while it waits for those before it.
  absl::Status Pay(MemoryShare* paid) const {
    const auto bytes = static_cast<int64_t>(reply_.size());
    if (stream_->memory_ == nullptr || bytes <= kSmallStreamReply) return absl::OkStatus();
    FLOE_ASSIGN_OR_RETURN(*paid, stream_->memory_->Take(bytes));
    return absl::OkStatus();
  }

  const std::shared_ptr<InferStream> stream_;
  const uint64_t number_;
  const std::string id_;
  std::string reply_;
};

void InferStream::OnMessage(Message message) {
  uint64_t number;
  {
    MutexLock lock(mutex_);
    if (end_.has_value()) return;
    number = first_ + slots_.size();
    Slot& slot = slots_.emplace_back();
    slot.bytes = static_cast<int64_t>(message.bytes.size());
    held_bytes_ += slot.bytes;
  }
  Turn();
  CallHead head = head_;
  head.arrived = Clock::Steady().Now();
  const auto answer = std::make_shared<Answer>(shared_from_this(), number, IdOf(message.bytes));
  Invoke(one_, head, std::move(message), answer);
}

void InferStream::Answered(uint64_t number, std::string reply, MemoryShare paid) {
  {
    MutexLock lock(mutex_);
    Slot& slot = slots_[number - first_];
    held_bytes_ += static_cast<int64_t>(reply.size()) - slot.bytes;
    slot.bytes = static_cast<int64_t>(reply.size());
    slot.answered = true;
    slot.reply = std::move(reply);
    slot.paid = std::move(paid);
  }
  Turn();
}

bool InferStream::OnDrain() {
  End(absl::UnavailableError("the server is shutting down"));
  return true;
}

void InferStream::End(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    if (!end_.has_value()) end_ = status;
  }
  Turn();
}

InferStream::Next InferStream::Decide(Slot* slot) {
  if (finished_) return Next::kNothing;
  if (!slots_.empty() && slots_.front().answered && responder_->Credit() > 0) {
    *slot = std::move(slots_.front());
    slots_.pop_front();
    ++first_;
    held_bytes_ -= slot->bytes;
    return Next::kWrite;
  }
  const bool full = slots_.size() >= kMostStreamCalls || held_bytes_ > kMostStreamBytes;
  if (full && !paused_) {
    paused_ = true;
    return Next::kPause;
  }
  if (paused_ && slots_.size() <= kMostStreamCalls / 2 && held_bytes_ <= kMostStreamBytes / 2) {
    paused_ = false;
    return Next::kResume;
  }
  if (!end_.has_value() || !slots_.empty()) return Next::kNothing;
  finished_ = true;
  return Next::kFinish;
}

void InferStream::Turn() {
  {
    MutexLock lock(mutex_);
    if (busy_) return;
    busy_ = true;
  }
  for (;;) {
    Slot slot;
    Next next;
    absl::Status how;
    {
      MutexLock lock(mutex_);
      next = Decide(&slot);
      if (next == Next::kFinish) how = *end_;
      if (next == Next::kNothing) busy_ = false;
    }
    switch (next) {
      case Next::kNothing:
        return;
      case Next::kWrite:
        responder_->Write(std::move(slot.reply));
        break;
      case Next::kPause:
        responder_->Pause();
        break;
      case Next::kResume:
        responder_->Resume();
        break;
      case Next::kFinish:
        responder_->Finish(how);
        break;
    }
  }
}

}  // namespace

Method ModelInferMethod(const ApiContext& context) { return KServeMethod(context, false); }

Method ModelStreamInferMethod(const ApiContext& context) {
  const auto one = std::make_shared<const Method>(KServeMethod(context, true));
  return {
      {.kind = MethodKind::kStream,
       .role = MethodRole::kInference,
       .bulk = true,
       .is_inference = true},
      [one, memory = context.memory](const CallHead& head, std::shared_ptr<Responder> responder) {
        return std::make_shared<InferStream>(*one, memory, head, std::move(responder));
      }};
}

}  // namespace floe::server
