// A codec that knows its model by the call's path, as codecs of other protocols than Predict's do.
#include "server/api/infer_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "server/api/fakes_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int live_codecs = 0;

// The message is x, one row of two floats, and ids are 0. The reply is y.
class RawCodec : public InferCodec {
 public:
  RawCodec(std::string model, std::optional<int64_t> version, std::string suffix)
      : model_(std::move(model)), version_(version), suffix_(std::move(suffix)) {
    ++live_codecs;
  }
  ~RawCodec() override { --live_codecs; }

  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    FLOE_ASSIGN_OR_RETURN(const ServedModel* const served, find({model_, version_, {}}));
    FLOE_RETURN_IF_ERROR(ChooseSignature(served->model(), "", asked));
    const std::string_view y = "y";
    FLOE_RETURN_IF_ERROR(ChooseOutputs({&y, 1}, asked));
    TensorIndices sent;
    const std::vector<std::string_view> keys = {"x", "ids"};
    FLOE_RETURN_IF_ERROR(PlaceInputs(keys, asked, &sent));
    if (message.size() != 2 * sizeof(float)) return absl::InvalidArgumentError("no two floats");
    static const int64_t kIds = 0;
    for (size_t i = 0; i < sent.size(); ++i) {
      if (sent[i] == 0)
        asked->inputs[i] = {DType::kFloat32, Shape({1, 2}), const_cast<char*>(message.data())};
      if (sent[i] == 1) asked->inputs[i] = {DType::kInt64, Shape({1}), const_cast<int64_t*>(&kIds)};
    }
    return absl::OkStatus();
  }
  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    const TensorView& y = outputs[static_cast<size_t>(asked.outputs.at(0))];
    reply->assign(static_cast<const char*>(y.data), y.bytes());
    absl::StrAppend(reply, suffix_);
    return absl::OkStatus();
  }

 private:
  const std::string model_;
  const std::optional<int64_t> version_;
  const std::string suffix_;
};

class OtherCodec : public InferCodec {
 public:
  explicit OtherCodec(std::shared_ptr<RawCodec> raw) : raw_(std::move(raw)) {}
  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    return raw_->Decode(message, find, asked);
  }
  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    return raw_->Encode(asked, outputs, reply);
  }

 private:
  const std::shared_ptr<RawCodec> raw_;  // which is too large for a call's memory
};

class CodecOfACall : public testing::Test {
 protected:
  CodecOfACall() {
    served_ = registry_.models["mnist"] = std::make_shared<FakeServed>(MakeTestModel("mnist", 4));
    served_->on_submit = [this](Request request) { waiting_.push_back(std::move(request)); };
    const Method method = InferMethod(
        {.registry = registry_, .health = health_},
        [](const CallHead& head, CodecPlace* place) -> absl::Status {
          const std::vector<std::string> parts = absl::StrSplit(std::string(head.path), '/');
          if (parts.size() < 4) return absl::InvalidArgumentError("the path names no version");
          int64_t version = 0;
          if (!absl::SimpleAtoi(parts[3], &version))
            return absl::InvalidArgumentError("the version is no number");
          const std::string* const suffix = head.FindMetadata("floe-suffix");
          place->Make<OtherCodec>(
              std::make_shared<RawCodec>(parts[2], version, suffix == nullptr ? "" : *suffix));
          return absl::OkStatus();
        });
    for (const char* path : {"/models/mnist/4", "/models/mnist/5", "/models/other/4", "/models/x"})
      table_.Add(path, method);
  }
  ~CodecOfACall() override {
    waiting_.clear();
    EXPECT_EQ(live_codecs, 0);
  }

  static std::string Floats(float a, float b) {
    const float values[] = {a, b};
    return {reinterpret_cast<const char*>(values), sizeof values};
  }
  // Answers with y = x.
  void Answer(const Request& request) {
    std::vector<TensorView> outputs;
    for (const SignatureTensor& output : request.asked->signature->def().outputs)
      outputs.push_back(request.asked->inputs[output.key == "y" ? XOf(request) : 0]);
    AnswerWith(request, absl::OkStatus(), outputs);
  }
  static size_t XOf(const Request& request) {
    const auto& inputs = request.asked->signature->def().inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].key == "x") return i;
    return 0;
  }

  FakeRegistry registry_;
  HealthState health_;
  MethodTable table_;
  std::shared_ptr<FakeServed> served_;
  std::vector<Request> waiting_;
};

TEST_F(CodecOfACall, KnowsWhatPathAndHeadOfItsOwnCallSaid) {
  const auto first = CallUnary(table_, "/models/mnist/4", Floats(1, 2), {{"floe-suffix", "one"}});
  const auto second = CallUnary(table_, "/models/mnist/4", Floats(3, 4), {{"floe-suffix", "two"}});
  ASSERT_EQ(waiting_.size(), 2u);
  EXPECT_EQ(live_codecs, 2);
  EXPECT_EQ(waiting_[0].asked->model->info().version, 4);
  Answer(waiting_[1]);
  Answer(waiting_[0]);
  EXPECT_EQ(first->messages.at(0), Floats(1, 2) + "one");
  EXPECT_EQ(second->messages.at(0), Floats(3, 4) + "two");
}

TEST_F(CodecOfACall, ItsErrorsAreThoseOfTheCall) {
  EXPECT_THAT(
      CallUnary(table_, "/models/x", Floats(1, 2))->status.ToString(),
      AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("no version"), HasSubstr("[request ")));
  EXPECT_THAT(CallUnary(table_, "/models/mnist/5", Floats(1, 2))->status.ToString(),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("[request ")));
  EXPECT_THAT(CallUnary(table_, "/models/other/4", Floats(1, 2))->status.ToString(),
              HasSubstr("no model 'other'"));
  EXPECT_TRUE(served_->refused.empty());
  EXPECT_THAT(CallUnary(table_, "/models/mnist/4", "short")->status.ToString(),
              HasSubstr("no two floats"));
  EXPECT_THAT(served_->refused, testing::ElementsAre(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(waiting_.empty());
}

}  // namespace
}  // namespace floe::server
