// Classify, Regress and MultiInference: the codecs of requests with tf.Examples, and the call that
// runs several tasks.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/api/infer_call.h"
#include "server/api/methods.h"
#include "server/request/decode_examples.h"
#include "server/request/encode_examples.h"
#include "server/request/wire_writer.h"

namespace floe::server {
namespace {

constexpr int64_t kSmallTaskReply = 64 << 10;  // the memory limit is not asked for it
constexpr uint32_t kResults = 1;               // of MultiInferenceResponse

class ExamplesCodec : public InferCodec {
 public:
  explicit ExamplesCodec(const ExampleCall& call) : call_(call) {}

  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    asked->door = call_.method == ExampleMethod::kClassify ? Door::kClassify : Door::kRegress;
    const auto model = [&](const ModelSpec& spec) -> absl::StatusOr<ModelHandle> {
      FLOE_ASSIGN_OR_RETURN(const ServedModel* const served, find(spec));
      return served->model();
    };
    return DecodeExamples(message, call_, model, asked);
  }

  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    return EncodeExamples(asked, outputs, call_.method, /*as_task=*/false, reply);
  }

 private:
  const ExampleCall call_;
};

// One task of a MultiInference. Its message is the whole request, and its version that of all.
class TaskCodec : public InferCodec {
 public:
  struct Task {
    InferenceTask task;
    std::shared_ptr<const ExamplesField> input;
    bool check_method_name = false;
  };
  TaskCodec(std::unique_ptr<Task> task, ServedHandle served)
      : task_(std::move(task)), served_(std::move(served)) {}

  absl::StatusOr<ServedHandle> Acquire(const ModelRegistry&, const ModelSpec&) override {
    return std::move(served_);
  }

  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    asked->door = Door::kMultiInference;
    const auto model = [&](const ModelSpec& spec) -> absl::StatusOr<ModelHandle> {
      FLOE_ASSIGN_OR_RETURN(const ServedModel* const served, find(spec));
      return served->model();
    };
    return DecodeTask(task_->task, *task_->input, message.size(), task_->check_method_name, model,
                      asked);
  }

  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    return EncodeExamples(asked, outputs, task_->task.method, /*as_task=*/true, reply);
  }

 private:
  const std::unique_ptr<Task> task_;
  ServedHandle served_;  // until it is decoded
};

// Runs each task as a call of its own, and answers once all have ended: with the results in the
// order of the tasks, or with the error of the first one that failed.
class MultiInferenceCall : public CallHandler,
                           public std::enable_shared_from_this<MultiInferenceCall> {
 public:
  struct Context {
    ApiContext api;
    OpenInference door;
  };
  MultiInferenceCall(std::shared_ptr<const Context> context, CallHead head,
                     std::shared_ptr<Responder> responder)
      : context_(std::move(context)), head_(std::move(head)), responder_(std::move(responder)) {}

  void OnMessage(Message message) override {
    MultiInferenceFields fields;
    ServedHandle served;
    const absl::Status status =
        CatchOutOfMemory([&] { return Prepare(message, &fields, &served); });
    if (!status.ok()) return responder_->Finish(status);
    for (size_t i = 0; i < fields.tasks.size(); ++i) Begin(i, fields.tasks[i], served, message);
  }

 private:
  class Answer;
  struct Result {
    absl::Status status;
    Trailers trailers;
    std::string bytes;
    MemoryShare paid;
  };

  // Before any task is begun.
  absl::Status Prepare(const Message& message, MultiInferenceFields* fields, ServedHandle* served);
  void Begin(size_t index, const InferenceTask& task, const ServedHandle& served,
             const Message& message);
  void Answered(size_t index, Result result);
  void Reply();

  const std::shared_ptr<const Context> context_;
  const CallHead head_;
  const std::shared_ptr<Responder> responder_;
  std::shared_ptr<const ExamplesField> input_;
  Mutex mutex_;
  size_t left_ ABSL_GUARDED_BY(mutex_) = 0;  // of the results
  std::vector<Result> results_;  // each is written once, before left_ says so; of the tasks' order
};

class MultiInferenceCall::Answer : public Responder {
 public:
  Answer(std::shared_ptr<MultiInferenceCall> call, size_t index)
      : call_(std::move(call)), index_(index) {}
  void Write(std::string&& message) override { result_.bytes = std::move(message); }
  using Responder::Finish;
  void Finish(const absl::Status& status, const Trailers& trailers) override {
    result_.status = status.ok() ? Pay() : status;
    result_.trailers = trailers;
    call_->Answered(index_, std::move(result_));
  }

 private:
  // For the result while it waits for the others.
  absl::Status Pay() {
    const auto bytes = static_cast<int64_t>(result_.bytes.size());
    const MemoryBudget* const memory = call_->context_->api.memory;
    if (memory == nullptr || bytes <= kSmallTaskReply) return absl::OkStatus();
    FLOE_ASSIGN_OR_RETURN(result_.paid, memory->Take(bytes));
    return absl::OkStatus();
  }

  const std::shared_ptr<MultiInferenceCall> call_;
  const size_t index_;
  Result result_;
};

absl::Status MultiInferenceCall::Prepare(const Message& message, MultiInferenceFields* fields,
                                         ServedHandle* served) {
  FLOE_RETURN_IF_ERROR(ReadMultiInferenceFields(message.bytes, fields));
  const ModelSpec& spec = fields->tasks[0].model;
  FLOE_RETURN_IF_ERROR(head_.caller.CheckModel(spec.name));
  FLOE_ASSIGN_OR_RETURN(*served,
                        context_->api.registry.Acquire(spec.name, {spec.version, spec.label}));
  input_ = std::make_shared<const ExamplesField>(std::move(fields->input));
  results_.resize(fields->tasks.size());
  const MutexLock lock(mutex_);
  left_ = results_.size();
  return absl::OkStatus();
}

void MultiInferenceCall::Begin(size_t index, const InferenceTask& task, const ServedHandle& served,
                               const Message& message) {
  std::shared_ptr<CallHandler> call;
  const absl::Status opened = CatchOutOfMemory([&]() -> absl::Status {
    auto codec = std::make_unique<TaskCodec::Task>(
        TaskCodec::Task{task, input_, context_->api.check_method_names});
    FLOE_ASSIGN_OR_RETURN(call,
                          context_->door(head_, std::make_shared<Answer>(shared_from_this(), index),
                                         [&](CodecPlace* place) {
                                           place->Make<TaskCodec>(std::move(codec), served);
                                           return absl::OkStatus();
                                         }));
    return absl::OkStatus();
  });
  if (!opened.ok()) return Answered(index, {opened, {}, {}, {}});
  call->OnMessage(message);
}

void MultiInferenceCall::Answered(size_t index, Result result) {
  results_[index] = std::move(result);
  {
    MutexLock lock(mutex_);
    if (--left_ > 0) return;
  }
  Reply();
}

void MultiInferenceCall::Reply() {
  size_t bytes = 0;
  for (const Result& result : results_) {
    if (!result.status.ok()) return responder_->Finish(result.status, result.trailers);
    bytes += BytesFieldSize(kResults, result.bytes.size());
  }
  absl::Status status = CheckReplySize(bytes);
  if (!status.ok()) return responder_->Finish(status);
  std::string reply;
  status = CatchOutOfMemory([&] {
    reply.reserve(bytes);
    for (Result& result : results_) {
      AppendBytesField(kResults, result.bytes, &reply);
      std::string().swap(result.bytes);
      result.paid = {};
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return responder_->Finish(status);
  responder_->Write(std::move(reply));
  responder_->Finish(absl::OkStatus(), results_[0].trailers);
}

Method ExamplesMethod(const ApiContext& context, ExampleMethod method) {
  return InferMethod(context, [call = ExampleCall{method, context.check_method_names}](
                                  const CallHead&, CodecPlace* place) {
    place->Make<ExamplesCodec>(call);
    return absl::OkStatus();
  });
}

}  // namespace

Method ClassifyMethod(const ApiContext& context) {
  return ExamplesMethod(context, ExampleMethod::kClassify);
}

Method RegressMethod(const ApiContext& context) {
  return ExamplesMethod(context, ExampleMethod::kRegress);
}

Method MultiInferenceMethod(const ApiContext& context) {
  const auto shared = std::make_shared<const MultiInferenceCall::Context>(
      MultiInferenceCall::Context{context, InferenceDoor(context)});
  return {{.role = MethodRole::kInference, .is_inference = true},
          [shared](const CallHead& head, std::shared_ptr<Responder> responder) {
            return std::make_shared<MultiInferenceCall>(shared, head, std::move(responder));
          }};
}

}  // namespace floe::server
