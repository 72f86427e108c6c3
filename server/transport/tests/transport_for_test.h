// A transport with a few methods, and the clients that tests call it with.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/retry_after.h"
#include "server/net/net_transport.h"
#include "server/transport/tests/methods_for_test.h"

namespace floe::server {

// Long enough for a loaded machine; tests that work never wait for it.
inline constexpr auto kPatience = std::chrono::seconds(60);

inline constexpr auto kRetryAfter = std::chrono::milliseconds(5);

inline TimePoint Soon() { return Clock::Steady().Now() + kPatience; }

// Counts up; tests wait for a count.
class Event {
 public:
  void Raise() {
    MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  testing::AssertionResult Reaches(int count) {
    const TimePoint until = Soon();
    MutexLock lock(mutex_);
    while (count_ < count) {
      if (!changed_.WaitUntil(mutex_, until) && count_ < count) {
        return testing::AssertionFailure() << count_ << " of " << count << " came";
      }
    }
    return testing::AssertionSuccess();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

inline grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

inline std::string Text(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.Valid() || !buffer.DumpToSingleSlice(&slice).ok()) return "(none)";
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// A unary call in progress at the client.
struct ClientCall {
  grpc::ClientContext context;
  grpc::ByteBuffer request, reply;
  grpc::Status status;
  Event done;

  void Start(grpc::GenericStub* stub, const std::string& path, const std::string& message) {
    request = Buffer(message);
    stub->UnaryCall(&context, path, {}, &request, &reply, [this](grpc::Status s) {
      status = std::move(s);
      done.Raise();
    });
  }
};

// A stream in progress at the client: sends one message after another, reads until the end.
class ClientStream : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  void Start(grpc::GenericStub* stub, const std::string& path) {
    stub->PrepareBidiStreamingCall(&context, path, {}, this);
    StartRead(&incoming_);
    AddHold();
    StartCall();
  }
  void Send(const std::string& message) {
    outgoing_ = Buffer(message);
    ++sent_;
    StartWrite(&outgoing_);
    ASSERT_TRUE(written.Reaches(sent_));
  }
  void HalfClose() { StartWritesDone(); }
  // No more is sent by the test.
  void Release() { RemoveHold(); }

  grpc::ClientContext context;
  std::vector<std::string> received;  // read after `got` or `done`
  grpc::Status status;
  Event written, got, done;

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    received.push_back(Text(incoming_));
    got.Raise();
    StartRead(&incoming_);
  }
  void OnWriteDone(bool) override { written.Raise(); }
  void OnDone(const grpc::Status& s) override {
    status = s;
    done.Raise();
  }

  grpc::ByteBuffer incoming_, outgoing_;
  int sent_ = 0;
};

inline constexpr int kBurst = 100;

// Echoes each message; says "end" when the caller half-closes.
class EchoHandler : public CallHandler {
 public:
  EchoHandler(std::shared_ptr<Responder> responder, Event* over)
      : responder_(std::move(responder)), over_(*over) {}
  void OnMessage(Message message) override {
    if (message.bytes == "fail") return responder_->Finish(absl::DataLossError("as asked"));
    if (message.bytes == "burst") {
      for (int i = 0; i < kBurst; ++i) responder_->Write(std::to_string(i));
    } else {
      responder_->Write("echo " + std::string(message.bytes));
    }
  }
  void OnHalfClose() override {
    responder_->Write("end");
    responder_->Finish(absl::OkStatus());
  }
  void OnDone() override { over_.Raise(); }

 private:
  const std::shared_ptr<Responder> responder_;
  Event& over_;
};

class TransportTest : public testing::Test {
 protected:
  TransportTest() {
    methods_.AddUnary("/test/Echo",
                      [](const CallHead&, const Message& message, const auto& responder) {
                        responder->Write(std::string(message.bytes));
                        responder->Finish(absl::OkStatus());
                      });
    methods_.AddUnary(
        "/test/Fail", [](const CallHead&, const Message& message, const auto& responder) {
          responder->Finish(absl::FailedPreconditionError("no: " + std::string(message.bytes)));
        });
    methods_.AddUnary(
        "/test/FullAtFirst", [this](const CallHead&, const Message&, const auto& responder) {
          if (calls_++ > 0) {
            responder->Write("room");
            responder->Finish(absl::OkStatus());
          } else {
            responder->Finish(WithRetryAfter(absl::ResourceExhaustedError("full"), kRetryAfter));
          }
        });
    methods_.AddUnary("/test/OutOfMemory",
                      [](const CallHead&, const Message&, const auto&) { throw std::bad_alloc(); });
    // Keeps the call for the test to answer.
    methods_.AddUnary("/test/Hold", [this](const CallHead& info, Message message,
                                           std::shared_ptr<Responder> responder) {
      info.cancel->SetListener(this, [this] { cancelled_.Raise(); });
      MutexLock lock(mutex_);
      infos_.push_back(info);
      held_.emplace_back(std::move(message), std::move(responder));
      arrived_.Raise();
    });
    methods_.AddStream("/test/Chat",
                       [this](const CallHead& info, std::shared_ptr<Responder> responder) {
                         info.cancel->SetListener(this, [this] { cancelled_.Raise(); });
                         return std::make_shared<EchoHandler>(std::move(responder), &over_);
                       });
  }

  std::unique_ptr<Transport> Make(const TransportOptions& options = {}) {
    return MakeNetTransport(methods_, options);
  }
  void Open(TransportOptions options = {}, const std::string& listener = "127.0.0.1:0") {
    transport_ = Make(options);
    const absl::Status status = transport_->Start({{listener}});
    ASSERT_TRUE(status.ok()) << status;
    Connect(transport_->addresses().at(0));
  }
  void Connect(const std::string& address, const std::string& service_config = "{}") {
    grpc::ChannelArguments args;
    args.SetServiceConfigJSON(service_config);
    args.SetMaxReceiveMessageSize(-1);
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args));
  }

  std::unique_ptr<ClientCall> Call(const std::string& path, const std::string& message) {
    auto call = std::make_unique<ClientCall>();
    call->Start(stub_.get(), path, message);
    return call;
  }
  std::unique_ptr<ClientCall> Finished(const std::string& path, const std::string& message) {
    auto call = Call(path, message);
    EXPECT_TRUE(call->done.Reaches(1));
    return call;
  }

  std::pair<Message, std::shared_ptr<Responder>> TakeHeld() {
    MutexLock lock(mutex_);
    auto held = std::move(held_.back());
    held_.pop_back();
    return held;
  }

  TestMethods methods_;
  Mutex mutex_;
  std::vector<CallHead> infos_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<Message, std::shared_ptr<Responder>>> held_ ABSL_GUARDED_BY(mutex_);
  Event arrived_, cancelled_, over_;
  std::atomic<int> calls_{0};
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace floe::server
