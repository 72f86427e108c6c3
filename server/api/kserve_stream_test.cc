// ModelStreamInfer: the order of replies, errors between them, how many calls there are at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/kserve_for_test.h"

namespace floe::server {
namespace {

using inference::ModelInferRequest;
using inference::ModelStreamInferResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A stream whose client may read slowly.
class StreamResponder : public FakeResponder {
 public:
  int64_t Credit() const override { return credit; }
  void Pause() override {
    EXPECT_FALSE(paused);
    paused = true;
  }
  void Resume() override {
    EXPECT_TRUE(paused);
    paused = false;
  }
  bool paused = false;
  int64_t credit = 1;
};

class InferStreamTest : public KServe {
 protected:
  InferStreamTest() {
    Serve("FP32", MakeEcho("FP32", "DT_FLOAT")).on_submit = [this](Request request) {
      held_.push_back(std::move(request));
    };
    head_.path = InferPath("ModelStreamInfer");
    head_.cancel = std::make_shared<CancelToken>();
    const Method* const method = table_.Find(InferPath("ModelStreamInfer"));
    EXPECT_TRUE(method->info().bulk);
    handler_ = method->Open(head_, responder_).value();
  }

  void Send(const std::string& id, const std::string& datatype = "FP32", int64_t rows = 1) {
    ModelInferRequest request;
    request.set_model_name("FP32");
    request.set_id(id);
    auto* const x = request.add_inputs();
    x->set_name("x");
    x->set_datatype(datatype);
    x->add_shape(rows);
    x->add_shape(2);
    request.add_raw_input_contents(std::string(static_cast<size_t>(rows) * 8, 'f'));
    const auto bytes = std::make_shared<const std::string>(request.SerializeAsString());
    handler_->OnMessage({*bytes, bytes});
  }

  // Runs the request that came as number `i`.
  void Answer(size_t i) {
    const std::vector<TensorView> outputs = {held_[i].asked->inputs[0]};
    AnswerWith(held_[i], absl::OkStatus(), outputs);
    held_[i] = Request();
  }

  ModelStreamInferResponse Reply(size_t i) const {
    ModelStreamInferResponse reply;
    EXPECT_LT(i, responder_->messages.size());
    if (i < responder_->messages.size()) {
      EXPECT_TRUE(reply.ParseFromString(responder_->messages[i]));
    }
    return reply;
  }

  CallHead head_;
  std::vector<Request> held_;
  std::shared_ptr<StreamResponder> responder_ = std::make_shared<StreamResponder>();
  std::shared_ptr<CallHandler> handler_;
};

TEST_F(InferStreamTest, KeepsTheOrder) {
  for (const char* id : {"a", "b", "c"}) Send(id);
  ASSERT_EQ(held_.size(), 3u) << "they run at the same time";
  Answer(2);
  Answer(1);
  EXPECT_TRUE(responder_->messages.empty());
  Answer(0);
  ASSERT_EQ(responder_->messages.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const ModelStreamInferResponse reply = Reply(i);
    EXPECT_EQ(reply.error_message(), "");
    EXPECT_EQ(reply.infer_response().id(), std::string(1, static_cast<char>('a' + i)));
    EXPECT_EQ(reply.infer_response().raw_output_contents(0), "ffffffff");
    EXPECT_TRUE(reply.infer_response().parameters().at("triton_final_response").bool_param());
    EXPECT_EQ(reply.ByteSizeLong(), responder_->messages[i].size());
  }
  handler_->OnHalfClose();
  EXPECT_EQ(responder_->finishes, 1);
  EXPECT_TRUE(responder_->status.ok());
}

TEST_F(InferStreamTest, ABadMessageIsAnsweredInItsPlace) {
  Send("a");
  Send("bad", "FP64");
  const auto garbage = std::make_shared<const std::string>("\xff\xff garbage");
  handler_->OnMessage({*garbage, garbage});
  Send("d");
  EXPECT_TRUE(responder_->messages.empty());
  Answer(0);
  ASSERT_EQ(responder_->messages.size(), 3u);
  EXPECT_THAT(Reply(1).error_message(),
              AllOf(HasSubstr("INVALID_ARGUMENT: input 'x'"), HasSubstr("takes FP32, but FP64")));
  EXPECT_EQ(Reply(1).infer_response().id(), "bad");
  EXPECT_THAT(Reply(2).error_message(), HasSubstr("not a valid inference.ModelInferRequest"));
  handler_->OnHalfClose();
  EXPECT_EQ(responder_->finishes, 0) << "one is to be answered";
  Answer(1);
  EXPECT_EQ(Reply(3).infer_response().id(), "d");
  EXPECT_EQ(responder_->finishes, 1);
}

TEST_F(InferStreamTest, ReadsNoMoreThanItAnswers) {
  for (int i = 0; i < 31; ++i) Send("");
  EXPECT_FALSE(responder_->paused);
  Send("");
  EXPECT_TRUE(responder_->paused);
  for (size_t i = 0; i < 16; ++i) Answer(i);
  EXPECT_FALSE(responder_->paused);
  EXPECT_EQ(responder_->messages.size(), 16u);
}

TEST_F(InferStreamTest, LargeMessagesCountByTheirBytes) {
  Send("", "FP32", 100'000);
  for (int i = 0; i < 12; ++i) Send("", "FP32", 100'000);
  EXPECT_TRUE(responder_->paused) << "13 of 0.8 MB are more than 8 MiB";
}

TEST_F(InferStreamTest, WritesNoMoreThanIsRead) {
  responder_->credit = 0;
  Send("a");
  Send("b");
  Answer(0);
  Answer(1);
  EXPECT_TRUE(responder_->messages.empty());
  responder_->credit = 1;
  handler_->OnWritable();
  EXPECT_EQ(responder_->messages.size(), 2u);
}

TEST_F(InferStreamTest, DrainAnswersWhatWasSent) {
  Send("a");
  EXPECT_TRUE(handler_->OnDrain());
  Send("late");
  EXPECT_EQ(held_.size(), 1u);
  EXPECT_EQ(responder_->finishes, 0);
  Answer(0);
  EXPECT_EQ(Reply(0).infer_response().id(), "a");
  ASSERT_EQ(responder_->finishes, 1);
  EXPECT_EQ(responder_->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(responder_->messages.size(), 1u);
}

}  // namespace
}  // namespace floe::server
