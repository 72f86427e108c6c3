#include "server/daemon/probe.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/registry/local_registry.h"
#include "server/transport/grpcpp/unary_client.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {

absl::Status AskProbeModel(const std::string& address, Duration timeout, CancelToken* cancel) {
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(kProbeModel);
  tensorflow::TensorProto& x = (*request.mutable_inputs())["x"];
  x.set_dtype(tensorflow::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(1);
  x.mutable_tensor_shape()->add_dim()->set_size(1);
  x.add_float_val(21);
  const auto reply = CallOnce(address, "/tensorflow.serving.PredictionService/Predict",
                              request.SerializeAsString(), timeout, cancel);
  if (reply.status().code() == absl::StatusCode::kResourceExhausted) return absl::OkStatus();
  if (!reply.ok()) return reply.status();
  tensorflow::serving::PredictResponse response;
  if (!response.ParseFromString(*reply))
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

Probe::~Probe() { Stop(); }

void Probe::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Probe::Drain() {
  {
    MutexLock lock(mutex_);
    draining_ = true;
  }
  wake_.NotifyAll();
}

void Probe::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  cancel_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void Probe::Step() {
  const TimePoint now = options_.clock->Now();
  options_.watch_models(now);
  if (now < next_ask_) return;
  next_ask_ = now + options_.interval;
  bool draining;
  {
    MutexLock lock(mutex_);
    draining = draining_;
  }
  const int64_t refused = options_.refused();
  absl::Status status = draining ? absl::OkStatus() : options_.ask(Patience(), &cancel_);
  if (options_.refused() > refused) status = absl::OkStatus();
  if (status.ok()) {
    options_.feed();
    if (failures_ >= kFailuresToReport) {
      spdlog::info("the server answers its own probe again");
      options_.on_change(true);
    }
    failures_ = 0;
    return;
  }
  {
    // Asked while the listeners went: no failure.
    MutexLock lock(mutex_);
    if (draining_ || stop_) return;
  }
  spdlog::warn("the server did not answer its own probe: {}", status.ToString());
  if (++failures_ == kFailuresToReport) options_.on_change(false);
}

void Probe::Run() {
  const Duration pause = std::min<Duration>(options_.interval, std::chrono::seconds(1));
  mutex_.Lock();
  while (!stop_) {
    mutex_.Unlock();
    Step();
    mutex_.Lock();
    if (!stop_) wake_.WaitUntil(mutex_, std::min(options_.clock->Now() + pause, next_ask_));
  }
  mutex_.Unlock();
}

}  // namespace floe::server
