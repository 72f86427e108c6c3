// A transport with methods and routes of a test's.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/net/h2_client_for_test.h"
#include "server/net/net_transport.h"
#include "server/transport/tests/methods_for_test.h"

namespace floe::server {

class ChatHandler : public CallHandler {
 public:
  explicit ChatHandler(std::shared_ptr<Responder> responder) : responder_(std::move(responder)) {}
  void OnMessage(Message message) override { responder_->Write(std::string(message.bytes)); }
  void OnHalfClose() override { responder_->Finish(absl::OkStatus()); }

 private:
  const std::shared_ptr<Responder> responder_;
};

// Whose answer others give.
class SilentHandler : public HttpHandler {
 public:
  void OnEnd() override {}
};

class NetServer : public testing::Test {
 protected:
  NetServer() {
    methods_.AddUnary("/t/Echo", [](const CallHead&, const Message& message, const auto& to) {
      to->Write(std::string(message.bytes));
      to->Finish(absl::OkStatus());
    });
    // Answered by a thread of the method's own.
    methods_.AddUnary("/t/Later", [this](const CallHead&, const Message& message, const auto& to) {
      const MutexLock lock(mutex_);
      threads_.emplace_back([to, bytes = std::string(message.bytes)]() mutable {
        to->Write(std::move(bytes));
        to->Finish(absl::OkStatus());
      });
    });
    methods_.AddUnary("/t/Hold", [this](const CallHead& head, const Message&, const auto& to) {
      head.cancel->SetListener(this, [this] {
        const MutexLock lock(mutex_);
        ++cancelled_;
        changed_.NotifyAll();
      });
      const MutexLock lock(mutex_);
      held_.push_back(to);
      changed_.NotifyAll();
    });
    methods_.AddUnary("/t/Fail", [](const CallHead&, const Message&, const auto& to) {
      to->Finish(absl::NotFoundError("no \xc3\xa4\n"), {{"a-bin", std::string("\0\x01", 2)}});
    });
    methods_.AddStream("/t/Chat", [](const CallHead&, std::shared_ptr<Responder> to) {
      return std::make_shared<ChatHandler>(std::move(to));
    });
  }
  ~NetServer() override {
    JoinThreads();
    for (const auto& one : Held()) one->Finish(absl::CancelledError("the test is over"));
  }
  void JoinThreads() {
    std::vector<std::thread> threads;
    {
      const MutexLock lock(mutex_);
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<std::shared_ptr<Responder>> Held() {
    const MutexLock lock(mutex_);
    return std::exchange(held_, {});
  }
  void AwaitCancelled(int count) {
    const MutexLock lock(mutex_);
    while (cancelled_ < count) changed_.Wait(mutex_);
  }
  void AwaitHeld(size_t count) {
    const MutexLock lock(mutex_);
    while (held_.size() < count) changed_.Wait(mutex_);
  }

  void Open(const TransportOptions& options = {}, const ChannelArguments& arguments = {}) {
    server_ = MakeNetTransport(methods_, options, arguments, &routes_);
    const absl::Status started = server_->Start({{"127.0.0.1:0"}});
    ASSERT_TRUE(started.ok()) << started;
    address_ = server_->addresses().at(0);
  }
  // The connection of a client that the server cut is at its end, and counted.
  void ExpectCut(H2Client* client, EndReason reason) {
    client->AwaitEnd();
    while (server_->connections().open > 0) std::this_thread::yield();
    EXPECT_EQ(server_->ends().count(reason), 1) << NameOf(reason);
    H2Client neighbour(address_);
    EXPECT_EQ(neighbour.Await(neighbour.Call("/t/Echo", Framed("x"))).code(), "0");
  }

  // GET /events: an answer that is begun and goes on by Events(). GET /later: one that is not.
  void AddEvents() {
    for (const std::string path : {"/events", "/later"})
      routes_.Add({"GET", path, MethodRole::kHealth, 0,
                   [this, path](const HttpHead&, std::shared_ptr<HttpResponder> to) {
                     const MutexLock lock(mutex_);
                     if (path == "/events") to->Begin(HttpReply{.status = 200, .body = "begun"});
                     events_.push_back(std::move(to));
                     return std::make_shared<SilentHandler>();
                   }});
  }
  std::vector<std::shared_ptr<HttpResponder>> Events() {
    const MutexLock lock(mutex_);
    return events_;
  }

  TestMethods methods_;
  HttpRoutes routes_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Responder>> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<HttpResponder>> events_ ABSL_GUARDED_BY(mutex_);
  int cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<NetTransport> server_;
  std::string address_;
};

}  // namespace floe::server
