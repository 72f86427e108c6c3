// The probe's request and its answer, and the thread that feeds the watchdog.
#include "server/daemon/probe.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/registry/local_registry.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {

namespace {

constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";

std::string ProbeRequest() {
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(kProbeModel);
  tensorflow::TensorProto& x = (*request.mutable_inputs())["x"];
  x.set_dtype(tensorflow::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(1);
  x.mutable_tensor_shape()->add_dim()->set_size(1);
  x.add_float_val(21);
  return request.SerializeAsString();
}

absl::Status CheckReply(const std::string& reply) {
  tensorflow::serving::PredictResponse response;
  if (!response.ParseFromString(reply))
    return absl::InternalError("the answer is no PredictResponse");
  const auto y = response.outputs().find("y");
  if (y == response.outputs().end()) return absl::InternalError("the answer has no output 'y'");
  float value = 0;
  if (y->second.float_val_size() == 1) value = y->second.float_val(0);
  if (y->second.tensor_content().size() == sizeof value)
    y->second.tensor_content().copy(reinterpret_cast<char*>(&value), sizeof value);
  if (value != 42)
    return absl::InternalError(absl::StrCat("the answer is ", value, " instead of 42"));
  return absl::OkStatus();
}

// Waits for the answer. Threading: any thread.
class AwaitedReply : public Responder {
 public:
  void Write(std::string&& message) override {
    MutexLock lock(mutex_);
    reply_ = message;
  }
  using Responder::Finish;
  void Finish(const absl::Status& status, const Trailers&) override {
    MutexLock lock(mutex_);
    if (!status_) status_ = status;
    changed_.NotifyAll();
  }
  absl::StatusOr<std::string> Await(TimePoint deadline) {
    MutexLock lock(mutex_);
    while (!status_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    if (!status_) return absl::DeadlineExceededError("no answer came in time");
    if (!status_->ok()) return *status_;
    return reply_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::string reply_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status AskProbeModel(const MethodTable& methods, Duration timeout, CancelToken* cancel) {
  const Method* const predict = methods.Find(kPredict);
  if (predict == nullptr) return absl::InternalError("there is no Predict");
  const auto reply = std::make_shared<AwaitedReply>();
  const auto bytes = std::make_shared<const std::string>(ProbeRequest());
  CallHead call;
  call.path = kPredict;
  call.local = true;
  call.cancel = std::make_shared<CancelToken>();
  cancel->SetListener(reply.get(), [reply] { reply->Finish(absl::CancelledError("given up")); });
  Invoke(*predict, call, Message{*bytes, bytes}, reply);
  const absl::StatusOr<std::string> came = reply->Await(Clock::Steady().Now() + timeout);
  cancel->ClearListener(reply.get());
  call.cancel->Cancel();
  return came.ok() ? CheckReply(*came) : came.status();
}

Probe::Probe(Options options)
    : options_(std::move(options)), thread_(1, {"probe", 0, {}}, [this] {
        Step();
        const Duration pause = std::min<Duration>(options_.interval, std::chrono::seconds(1));
        return std::min(options_.clock->Now() + pause, next_ask_);
      }) {}

void Probe::Drain() {
  draining_ = true;
  thread_.Post([] {});  // it steps afterwards
}

void Probe::Stop() {
  stopping_ = true;
  cancel_.Cancel();
  thread_.Stop();
}

void Probe::Step() {
  const TimePoint now = options_.clock->Now();
  options_.watch_models(now);
  if (now < next_ask_) return;
  next_ask_ = now + options_.interval;
  const absl::Status status = draining_ ? absl::OkStatus() : options_.ask(Timeout(), &cancel_);
  if (status.ok()) {
    options_.feed();
    if (failures_ >= kFailuresToReport) {
      spdlog::info("the server answers its own probe again");
      options_.on_change(true);
    }
    failures_ = 0;
    return;
  }
  if (draining_ || stopping_) return;  // a call while the listeners close is no failure
  spdlog::warn("the server did not answer its own probe: {}", status.ToString());
  if (++failures_ == kFailuresToReport) options_.on_change(false);
}

}  // namespace floe::server
