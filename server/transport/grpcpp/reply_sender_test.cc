#include "server/transport/grpcpp/reply_sender.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "server/transport/tests/transport_for_test.h"

namespace floe::server {
namespace {

class SentBy final : public DeferredReply {
 public:
  explicit SentBy(std::function<void()> send) : send_(std::move(send)) {}
  void Send() override { send_(); }

 private:
  const std::function<void()> send_;
};

TEST(ReplySender, SendsOnAThreadOfItsOwn) {
  ReplySender sender;
  ASSERT_TRUE(sender.Start().ok());
  std::promise<std::thread::id> sent;
  SentBy reply([&sent] { sent.set_value(std::this_thread::get_id()); });
  ASSERT_TRUE(sender.Post(&reply));
  EXPECT_NE(sent.get_future().get(), std::this_thread::get_id());
}

TEST(ReplySender, TakesNoMoreThanItCanSendSoon) {
  std::promise<void> began, go_on, over;
  int sent = 0;
  SentBy first([&] {
    began.set_value();
    go_on.get_future().wait();
  });
  SentBy next([&sent] { ++sent; });
  SentBy last([&over] { over.set_value(); });
  ReplySender sender;
  ASSERT_TRUE(sender.Start().ok());
  ASSERT_TRUE(sender.Post(&first));
  began.get_future().wait();
  for (int i = 0; i < ReplySender::kMostWaiting; ++i) ASSERT_TRUE(sender.Post(&next));
  EXPECT_FALSE(sender.Post(&next));
  go_on.set_value();
  // There is room again, and what was posted is sent in order.
  while (!sender.Post(&last)) std::this_thread::yield();
  over.get_future().wait();
  EXPECT_EQ(sent, ReplySender::kMostWaiting);
}

using DeferredReplies = TransportTest;

// More at a time than the sender takes, so that some are sent by the thread that finishes.
TEST_P(DeferredReplies, RepliesOfThreadsWithMoreToDoAllArrive) {
  Open();
  constexpr int kCalls = 2 * ReplySender::kMostWaiting;
  std::vector<std::unique_ptr<ClientCall>> calls;
  calls.reserve(kCalls);
  for (int i = 0; i < kCalls; ++i) calls.push_back(Call("/test/Hold", "m"));
  ASSERT_TRUE(arrived_.Reaches(kCalls));
  for (int i = 0; i < kCalls; ++i) {
    const auto held = TakeHeld();
    held.second->Write("late");
    held.second->Defer();
    held.second->Finish(i % 2 == 0 ? absl::OkStatus() : absl::AbortedError("as asked"));
  }
  int answered = 0, aborted = 0;
  for (const auto& call : calls) {
    ASSERT_TRUE(call->done.Reaches(1));
    if (call->status.ok() && Text(call->reply) == "late") ++answered;
    if (call->status.error_code() == grpc::StatusCode::ABORTED) ++aborted;
  }
  EXPECT_EQ(answered, kCalls / 2);
  EXPECT_EQ(aborted, kCalls / 2);
}

TEST_P(DeferredReplies, ACallerThatLeftBeforeADeferredReplyHurtsNobody) {
  Open();
  const auto call = Call("/test/Hold", "m");
  ASSERT_TRUE(arrived_.Reaches(1));
  call->context.TryCancel();
  ASSERT_TRUE(cancelled_.Reaches(1));
  {
    const auto held = TakeHeld();
    held.second->Write("late");
    held.second->Defer();
    held.second->Finish(absl::OkStatus());
  }
  ASSERT_TRUE(call->done.Reaches(1));
  EXPECT_EQ(call->status.error_code(), grpc::StatusCode::CANCELLED);
  transport_->Shutdown(Soon());  // which waits for the call's end here
}

FLOE_FOR_EACH_TRANSPORT(DeferredReplies);

}  // namespace
}  // namespace floe::server
