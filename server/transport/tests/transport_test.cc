// The transport with a real grpc++ client over real sockets.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/retry_after.h"
#include "server/transport/tests/transport_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(TransportTest, UnaryRoundTrips) {
  Open();
  for (const size_t size : {size_t{0}, size_t{5}, size_t{511}, size_t{100000}, size_t{3000000}}) {
    std::string message(size, 'a');
    for (size_t i = 0; i < size; ++i) message[i] = static_cast<char>(i * 7);
    const auto call = Finished("/test/Echo", message);
    ASSERT_TRUE(call->status.ok()) << call->status.error_message();
    ASSERT_EQ(Text(call->reply), message) << size;
  }
}

TEST_F(TransportTest, ErrorsKeepCodeAndMessage) {
  Open();
  const auto failed = Finished("/test/Fail", "x\xc3\xa4");
  EXPECT_EQ(failed->status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(failed->status.error_message(), "no: x\xc3\xa4");
  const auto long_text = Finished("/test/Fail", std::string(100000, 'y'));
  EXPECT_EQ(long_text->status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(long_text->status.error_message(), StartsWith("no: yyy"));
  const auto unknown = Finished("/test/Ecko", "x");
  EXPECT_EQ(unknown->status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(unknown->status.error_message(),
              AllOf(HasSubstr("'/test/Ecko'"), HasSubstr("'/test/Echo'")));
}

// A client that retries would wait for minutes if nobody told it when to come again.
TEST_F(TransportTest, RefusalsSayWhenToComeAgain) {
  Open();
  const auto refused = Finished("/test/FullAtFirst", "x");
  EXPECT_EQ(refused->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailers = refused->context.GetServerTrailingMetadata();
  const auto hint = trailers.find("grpc-retry-pushback-ms");
  ASSERT_NE(hint, trailers.end());
  EXPECT_EQ(hint->second, "5");
  calls_ = 0;
  Connect(transport_->addresses().at(0), R"({"methodConfig": [{"name": [{}], "retryPolicy": {
      "maxAttempts": 2, "initialBackoff": "600s", "maxBackoff": "600s", "backoffMultiplier": 1,
      "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]})");
  const auto retried = Finished("/test/FullAtFirst", "x");
  EXPECT_TRUE(retried->status.ok()) << retried->status.error_message();
  EXPECT_EQ(Text(retried->reply), "room");
  EXPECT_EQ(calls_, 2);
}

TEST_F(TransportTest, TooLargeARequestNamesTheFlag) {
  TransportOptions options;
  options.max_message_bytes = 1000;
  Open(options);
  EXPECT_TRUE(Finished("/test/Echo", std::string(1000, 'a'))->status.ok());
  // The default limit of grpc++ itself is 4 MiB: both sizes must reach ours.
  for (const size_t size : {size_t{1001}, size_t{5000000}}) {
    const auto call = Finished("/test/Echo", std::string(size, 'a'));
    EXPECT_EQ(call->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(call->status.error_message(),
                AllOf(HasSubstr(std::to_string(size)), HasSubstr("1000"),
                      HasSubstr("--grpc_max_message_bytes")));
  }
}

TEST_F(TransportTest, MetadataAndDeadlineArrive) {
  Open();
  auto with = std::make_unique<ClientCall>();
  with->context.AddMetadata("floe-reply", "content");
  with->context.set_deadline(std::chrono::system_clock::now() + std::chrono::hours(2));
  with->Start(stub_.get(), "/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(1));
  {
    MutexLock lock(mutex_);
    const CallHead& info = infos_.back();
    EXPECT_EQ(info.path, "/test/Hold");
    ASSERT_NE(info.FindMetadata("floe-reply"), nullptr);
    EXPECT_EQ(*info.FindMetadata("floe-reply"), "content");
    EXPECT_EQ(info.FindMetadata("floe-other"), nullptr);
    const auto left = info.deadline - Clock::Steady().Now();
    EXPECT_GT(left, std::chrono::minutes(119));
    EXPECT_LT(left, std::chrono::minutes(121));
  }
  auto [message, responder] = TakeHeld();
  EXPECT_EQ(message.bytes, "m");
  responder->Write("later");
  std::thread([responder = responder] { responder->Finish(absl::OkStatus()); }).join();
  ASSERT_TRUE(with->done.Reaches(1));
  EXPECT_EQ(Text(with->reply), "later");

  const auto without = Call("/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(2));
  {
    MutexLock lock(mutex_);
    EXPECT_EQ(infos_.back().deadline, TimePoint::max());
  }
  TakeHeld().second->Finish(absl::AbortedError("enough"));
  ASSERT_TRUE(without->done.Reaches(1));
  EXPECT_EQ(without->status.error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(TransportTest, ACallersDepartureRaisesTheToken) {
  Open();
  const auto call = Call("/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(1));
  call->context.TryCancel();
  ASSERT_TRUE(cancelled_.Reaches(1));
  ASSERT_TRUE(call->done.Reaches(1));
  EXPECT_EQ(call->status.error_code(), grpc::StatusCode::CANCELLED);
  auto [message, responder] = TakeHeld();
  EXPECT_EQ(message.bytes, "m");  // still there
  responder->Write("too late");
  responder->Finish(absl::OkStatus());
  responder->Finish(absl::InternalError("twice"));
}

TEST_F(TransportTest, APassedDeadlineRaisesTheToken) {
  Open();
  ASSERT_TRUE(Finished("/test/Echo", "m")->status.ok());  // connected
  auto call = std::make_unique<ClientCall>();
  call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  call->Start(stub_.get(), "/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(1));
  ASSERT_TRUE(cancelled_.Reaches(1));
  ASSERT_TRUE(call->done.Reaches(1));
  EXPECT_EQ(call->status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  TakeHeld().second->Finish(absl::DeadlineExceededError("late"));
}

TEST_F(TransportTest, NoMessageIsAnError) {
  Open();
  ClientStream stream;
  stream.Start(stub_.get(), "/test/Echo");
  stream.HalfClose();
  stream.Release();
  ASSERT_TRUE(stream.done.Reaches(1));
  EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(TransportTest, StreamsBothWays) {
  Open();
  ClientStream stream;
  stream.Start(stub_.get(), "/test/Chat");
  stream.Send("a");
  ASSERT_TRUE(stream.got.Reaches(1));
  stream.Send("b");
  stream.HalfClose();
  stream.Release();
  ASSERT_TRUE(stream.done.Reaches(1));
  EXPECT_TRUE(stream.status.ok());
  EXPECT_THAT(stream.received, ElementsAre("echo a", "echo b", "end"));
  EXPECT_TRUE(over_.Reaches(1));
}

TEST_F(TransportTest, ManyWritesAtOnceKeepTheirOrder) {
  Open();
  ClientStream stream;
  stream.Start(stub_.get(), "/test/Chat");
  stream.Send("burst");
  stream.Send("burst");  // read when the first has gone out
  stream.HalfClose();
  stream.Release();
  ASSERT_TRUE(stream.done.Reaches(1));
  EXPECT_TRUE(stream.status.ok());
  ASSERT_EQ(stream.received.size(), 2u * kBurst + 1);
  for (int i = 0; i < 2 * kBurst; ++i) {
    EXPECT_EQ(stream.received[static_cast<size_t>(i)], std::to_string(i % kBurst));
  }
}

TEST_F(TransportTest, StreamsEndWithErrors) {
  Open();
  ClientStream failing, large;
  failing.Start(stub_.get(), "/test/Chat");
  failing.Send("fail");
  failing.Release();
  ASSERT_TRUE(failing.done.Reaches(1));
  EXPECT_EQ(failing.status.error_code(), grpc::StatusCode::DATA_LOSS);
  large.Start(stub_.get(), "/test/Chat");
  large.Send(std::string(100'000, 'a'));  // streams carry little
  large.Release();
  ASSERT_TRUE(large.done.Reaches(1));
  EXPECT_EQ(large.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(over_.Reaches(2));
}

TEST_F(TransportTest, ACancelledStreamIsOver) {
  Open();
  ClientStream stream;
  stream.Start(stub_.get(), "/test/Chat");
  stream.Send("a");
  ASSERT_TRUE(stream.got.Reaches(1));
  stream.context.TryCancel();
  stream.Release();
  ASSERT_TRUE(stream.done.Reaches(1));
  EXPECT_TRUE(cancelled_.Reaches(1));
  EXPECT_TRUE(over_.Reaches(1));
}

TEST_F(TransportTest, ManyCallsAtOnce) {
  Open();
  constexpr int kCalls = 100;
  std::vector<std::unique_ptr<ClientCall>> calls;
  calls.reserve(kCalls);
  for (int i = 0; i < kCalls; ++i) calls.push_back(Call("/test/Hold", std::to_string(i)));
  ASSERT_TRUE(arrived_.Reaches(kCalls));
  // Answered from several threads, last first.
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kCalls / 4; ++i) {
        auto [message, responder] = TakeHeld();
        responder->Write("re " + std::string(message.bytes));
        responder->Finish(absl::OkStatus());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(calls[static_cast<size_t>(i)]->done.Reaches(1));
    EXPECT_EQ(Text(calls[static_cast<size_t>(i)]->reply), "re " + std::to_string(i));
  }
}

TEST_F(TransportTest, ShutdownWaitsForCallsAndEndsStreams) {
  Open();
  ClientStream stream;
  stream.Start(stub_.get(), "/test/Chat");
  stream.Send("a");
  ASSERT_TRUE(stream.got.Reaches(1));
  const auto call = Call("/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(1));
  Event down;
  std::thread shutting([&] {
    transport_->Shutdown(Soon());
    down.Raise();
  });
  stream.Release();
  ASSERT_TRUE(stream.done.Reaches(1));
  EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(over_.Reaches(1));
  auto [message, responder] = TakeHeld();
  responder->Write("finished in time");
  responder->Finish(absl::OkStatus());
  ASSERT_TRUE(call->done.Reaches(1));
  EXPECT_TRUE(call->status.ok()) << call->status.error_message();
  EXPECT_EQ(Text(call->reply), "finished in time");
  EXPECT_TRUE(down.Reaches(1));
  shutting.join();
  EXPECT_EQ(Finished("/test/Echo", "x")->status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TransportTest, RunningOutOfMemoryEndsTheCallAlone) {
  Open();
  EXPECT_EQ(Finished("/test/OutOfMemory", "m")->status.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Finished("/test/Echo", "m")->status.ok());
  transport_->Shutdown(TimePoint::max());  // which waits for calls that have not ended
}

TEST_F(TransportTest, ShutdownLosesNoCallOfClientsThatCanGoElsewhere) {
  TransportOptions options;
  options.time_to_leave = 2 * kPatience;
  Open(options);
  const auto second = Make();
  ASSERT_TRUE(second->Start({{"127.0.0.1:0"}}).ok());
  // Tried in this order.
  Connect("ipv4:" + transport_->addresses().at(0) + "," + second->addresses().at(0));
  auto stream = std::make_unique<ClientStream>();
  stream->Start(stub_.get(), "/test/Chat");
  stream->Send("a");
  auto held = Call("/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(1));
  Event down;
  std::thread shutting([&] {
    transport_->Shutdown(TimePoint::max());
    down.Raise();
  });
  stream->Release();
  ASSERT_TRUE(stream->done.Reaches(1));  // clients were asked to leave before
  stream.reset();
  const int kCalls = 100;
  for (int i = 0; i < kCalls; ++i) {
    const auto call = Finished("/test/Echo", "m");
    ASSERT_TRUE(call->status.ok()) << i << ": " << call->status.error_message();
  }
  TakeHeld().second->Finish(absl::AbortedError("the call that was begun before"));
  ASSERT_TRUE(held->done.Reaches(1));
  EXPECT_EQ(held->status.error_code(), grpc::StatusCode::ABORTED);
  held.reset();  // whose context holds the connection
  EXPECT_TRUE(down.Reaches(1)) << "a client that left is waited for";
  shutting.join();
}

TEST_F(TransportTest, ShutdownCancelsAtItsDeadline) {
  Open();
  const auto call = Call("/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(1));
  std::thread shutting([&] { transport_->Shutdown(Clock::Steady().Now()); });
  ASSERT_TRUE(cancelled_.Reaches(1));
  TakeHeld().second->Finish(absl::CancelledError("stopped"));
  shutting.join();
  ASSERT_TRUE(call->done.Reaches(1));
  EXPECT_FALSE(call->status.ok());
  transport_->Shutdown(Soon());  // again: nothing is left to do
}

TEST_F(TransportTest, Listeners) {
  Open();
  EXPECT_THAT(transport_->addresses(), ElementsAre(StartsWith("127.0.0.1:")));
  auto second = Make();
  const std::string taken = transport_->addresses()[0];
  EXPECT_THAT(second->Start({{"127.0.0.1:0"}, {taken}}).ToString(),
              HasSubstr("cannot listen on " + taken));
  EXPECT_FALSE(Make()->Start({}).ok());

  const std::string path =
      testing::TempDir() + "floe_transport_" + std::to_string(getpid()) + ".sock";
  const std::string abstract = "unix-abstract:floe_transport_test_" + std::to_string(getpid());
  auto local = Make();
  ASSERT_TRUE(local->Start({{"unix:" + path}, {abstract}, {"127.0.0.1:0"}}).ok());
  ASSERT_EQ(local->addresses().size(), 3u);
  for (const std::string& address : local->addresses()) {
    Connect(address);
    EXPECT_TRUE(Finished("/test/Echo", address)->status.ok()) << address;
  }
}

TEST_F(TransportTest, ChannelArgumentsReachGrpc) {
  transport_ = MakeNetTransport(
      methods_, {}, {{"grpc.max_concurrent_streams", "1"}, {"grpc.primary_user_agent", "text"}});
  ASSERT_TRUE(transport_->Start({{"127.0.0.1:0"}}).ok());
  Connect(transport_->addresses().at(0));
  const auto first = Call("/test/Hold", "1");
  ASSERT_TRUE(arrived_.Reaches(1));
  auto second = std::make_unique<ClientCall>();
  second->context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  second->Start(stub_.get(), "/test/Echo", "2");
  ASSERT_TRUE(second->done.Reaches(1));
  EXPECT_EQ(second->status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);  // it never got a stream
  TakeHeld().second->Finish(absl::AbortedError("enough"));
  ASSERT_TRUE(first->done.Reaches(1));
}

}  // namespace
}  // namespace floe::server
