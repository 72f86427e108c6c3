#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <future>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "server/api/api.h"
#include "server/api/fakes_for_test.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {
namespace {

using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPath[] = "/tensorflow.serving.PredictionService/Predict";
constexpr char kX[] =
    "inputs { key: 'x' value { dtype: DT_FLOAT float_val: [1, 2] tensor_shape { dim { size: 1 } "
    "dim { size: 2 } } } }";
constexpr char kIds[] =
    "inputs { key: 'ids' value { dtype: DT_INT64 int64_val: 300 tensor_shape { dim { size: 1 } } } "
    "}";

class Predict : public testing::Test {
 protected:
  Predict() {
    served_ = std::make_shared<FakeServed>(MakeTestModel("mnist", 4));
    registry_.models["mnist"] = served_;
    registry_.statuses["mnist"] = {};
    RegisterApi({registry_, health_}, &table_);
  }

  static std::string Encode(const std::string& text) {
    PredictRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "model_spec { name: 'mnist' } " + text, &request));
    return request.SerializeAsString();
  }

  // Answers y = x, label = ids, switch = false.
  void AnswerDirectly() {
    served_->on_submit = [this](Request request) {
      ++submitted_;
      const auto& inputs = request.asked->signature->def().inputs;
      TensorView by_name[2];
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].key == "x") by_name[0] = request.asked->inputs[i];
        if (inputs[i].key == "ids") by_name[1] = request.asked->inputs[i];
      }
      bool off = false;
      std::vector<TensorView> outputs;
      for (const SignatureTensor& output : request.asked->signature->def().outputs) {
        outputs.push_back(output.key == "y"       ? by_name[0]
                          : output.key == "label" ? by_name[1]
                                                  : TensorView{DType::kBool, Shape(), &off});
      }
      AnswerWith(request, absl::OkStatus(), outputs);
    };
  }

  PredictResponse Ok(const std::string& text,
                     const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
    AnswerDirectly();
    const auto responder = CallUnary(table_, kPath, Encode(text), metadata);
    EXPECT_TRUE(responder->status.ok()) << responder->status;
    EXPECT_EQ(responder->finishes, 1);
    PredictResponse response;
    EXPECT_EQ(responder->messages.size(), 1u);
    if (!responder->messages.empty()) {
      EXPECT_TRUE(response.ParseFromString(responder->messages[0]));
    }
    return response;
  }

  // The error of a request that never reaches the model.
  std::string Refused(const std::string& bytes) {
    const auto responder = CallUnary(table_, kPath, bytes);
    EXPECT_EQ(responder->finishes, 1);
    EXPECT_TRUE(responder->messages.empty());
    return responder->status.ToString();
  }

  FakeRegistry registry_;
  HealthState health_;
  MethodTable table_;
  std::shared_ptr<FakeServed> served_;
  int submitted_ = 0;
};

TEST_F(Predict, AnswersWithTypedFields) {
  const PredictResponse response = Ok(std::string(kX) + kIds);
  EXPECT_EQ(response.model_spec().name(), "mnist");
  EXPECT_EQ(response.model_spec().version().value(), 4);
  EXPECT_EQ(response.model_spec().signature_name(), "serving_default");
  ASSERT_EQ(response.outputs_size(), 3);
  EXPECT_THAT(response.outputs().at("y").float_val(), ElementsAre(1, 2));
  EXPECT_EQ(response.outputs().at("y").tensor_shape().dim(1).size(), 2);
  EXPECT_THAT(response.outputs().at("label").int64_val(), ElementsAre(300));
  EXPECT_THAT(response.outputs().at("switch").bool_val(), ElementsAre(false));
}

TEST_F(Predict, ContentOnRequest) {
  EXPECT_EQ(Ok(std::string(kX) + kIds, {{"floe-reply", "content"}})
                .outputs()
                .at("y")
                .tensor_content()
                .size(),
            8u);
  served_->reply = ReplyFormat::kContent;
  EXPECT_EQ(Ok(std::string(kX) + kIds).outputs().at("y").tensor_content().size(), 8u);
  EXPECT_THAT(Ok(std::string(kX) + kIds, {{"floe-reply", "typed"}}).outputs().at("y").float_val(),
              ElementsAre(1, 2));
  served_->reply = ReplyFormat::kTyped;
  MethodTable table;
  RegisterApi({.registry = registry_, .health = health_, .content_replies = true}, &table);
  const auto responder = CallUnary(table, kPath, Encode(std::string(kX) + kIds));
  PredictResponse response;
  ASSERT_TRUE(response.ParseFromString(responder->messages.at(0)));
  EXPECT_EQ(response.outputs().at("y").tensor_content().size(), 8u);
  const auto refused =
      CallUnary(table, kPath, Encode(std::string(kX) + kIds), {{"floe-reply", "json"}});
  EXPECT_THAT(refused->status.ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'json'")));
}

TEST_F(Predict, PriorityAndCallerReachTheQueue) {
  int priority = 0;
  uint64_t caller = 0;
  served_->on_submit = [&](Request request) {
    priority = request.priority;
    caller = request.principal;
    AnswerWith(request, absl::CancelledError(""));
  };
  const std::string message = Encode(std::string(kX) + kIds);
  CallUnary(table_, kPath, message);
  EXPECT_EQ(priority, kDefaultPriority);
  CallUnary(table_, kPath, message, {{"floe-priority", "1"}});
  EXPECT_EQ(priority, 1);
  EXPECT_EQ(caller, 12u);
  for (const char* text : {"0", "4", "10", "", "high", "-1"}) {
    const auto responder = CallUnary(table_, kPath, message, {{"floe-priority", text}});
    EXPECT_EQ(responder->status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(responder->status.message()), HasSubstr("1 (first) to 3 (last)"));
  }
}

TEST_F(Predict, OutputFilter) {
  const PredictResponse response = Ok(std::string(kX) + kIds + "output_filter: 'label'");
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_THAT(response.outputs().at("label").int64_val(), ElementsAre(300));
  EXPECT_THAT(Refused(Encode(std::string(kX) + kIds + "output_filter: 'lable'")),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'lable'; nearest: 'label'")));
  EXPECT_THAT(Refused(Encode(std::string(kX) + kIds + "output_filter: ['y', 'y']")),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("twice")));
}

TEST_F(Predict, MissingAndExtraInputsListBothSets) {
  for (const std::string& request :
       {Encode(kX),
        Encode(std::string(kX) + kIds + "inputs { key: 'idz' value { dtype: DT_FLOAT } }")}) {
    EXPECT_THAT(Refused(request), AllOf(HasSubstr("INVALID_ARGUMENT"),
                                        HasSubstr("takes inputs 'x', 'ids', 'training' (optional)"),
                                        HasSubstr("'x' were sent")));
  }
}

TEST_F(Predict, SpecErrors) {
  PredictRequest request;
  EXPECT_THAT(Refused(request.SerializeAsString()),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'mnist'")));
  request.mutable_model_spec()->set_name("mnits");
  EXPECT_THAT(Refused(request.SerializeAsString()), HasSubstr("NOT_FOUND"));
  request.mutable_model_spec()->set_name("mnist");
  request.mutable_model_spec()->mutable_version()->set_value(5);
  EXPECT_THAT(Refused(request.SerializeAsString()), HasSubstr("NOT_FOUND"));
  request.mutable_model_spec()->set_version_label("stable");
  EXPECT_THAT(Refused(request.SerializeAsString()),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'stable'")));
  request.mutable_model_spec()->clear_version_label();
  request.mutable_model_spec()->set_signature_name("classify");
  EXPECT_THAT(Refused(request.SerializeAsString()),
              AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("'classify'"),
                    HasSubstr("'serving_default'")));
  EXPECT_THAT(Refused("\x0a\xff"), HasSubstr("INVALID_ARGUMENT"));
}

TEST_F(Predict, InputErrors) {
  EXPECT_THAT(Refused(Encode(std::string(kIds) +
                             "inputs { key: 'x' value { dtype: DT_DOUBLE double_val: 1 } }")),
              AllOf(HasSubstr("INVALID_ARGUMENT"),
                    HasSubstr("takes float32, but float64 was sent; cast it first, in NumPy with "
                              "x.astype(\"float32\")")));
  EXPECT_THAT(
      Refused(Encode(std::string(kIds) +
                     "inputs { key: 'x' value { dtype: DT_FLOAT tensor_content: 'abc' } }")),
      AllOf(HasSubstr("'x'"), HasSubstr("needs 4 bytes")));
}

TEST_F(Predict, ModelErrorsPassThrough) {
  served_->on_submit = [](Request request) {
    AnswerWith(request, absl::ResourceExhaustedError("queue full"));
  };
  EXPECT_THAT(Refused(Encode(std::string(kX) + kIds)), HasSubstr("RESOURCE_EXHAUSTED: queue full"));
}

TEST_F(Predict, AnswersLaterAndKeepsInputsUntilThen) {
  std::optional<Request> waiting;
  served_->on_submit = [&](Request request) { waiting = std::move(request); };
  const auto responder =
      CallUnary(table_, kPath, Encode(std::string(kX) + kIds + "output_filter: 'y'"));
  EXPECT_EQ(responder->finishes, 0);
  ASSERT_TRUE(waiting.has_value());
  EXPECT_NE(waiting->cancel, nullptr);
  EXPECT_EQ(waiting->deadline, TimePoint::max());
  ASSERT_EQ(waiting->asked->inputs.size(), 3u);
  EXPECT_EQ(waiting->asked->inputs[2].dtype, DType::kInvalid);  // training was not fed
  // The caller's message is gone by now but for what the request holds.
  std::vector<TensorView> outputs(3, waiting->asked->inputs[0]);
  waiting->complete(Outputs(outputs), {});
  waiting.reset();
  ASSERT_EQ(responder->finishes, 1);
  PredictResponse response;
  ASSERT_TRUE(response.ParseFromString(responder->messages.at(0)));
  EXPECT_THAT(response.outputs().at("y").float_val(), ElementsAre(1, 2));
}

TEST_F(Predict, AWorkerWithMoreToDoLeavesSendingToAnotherThread) {
  std::optional<Request> waiting;
  served_->on_submit = [&](Request request) { waiting = std::move(request); };
  for (const bool more : {false, true}) {
    const auto responder = CallUnary(table_, kPath, Encode(std::string(kX) + kIds));
    ASSERT_TRUE(waiting.has_value());
    waiting->complete(absl::AbortedError("no run"), {.more_waits = more});
    waiting.reset();
    EXPECT_EQ(responder->finishes, 1);
    EXPECT_EQ(responder->status.code(), absl::StatusCode::kAborted);
    EXPECT_EQ(responder->deferred, more);
  }
}

TEST_F(Predict, TheWaitingRequestDoesNotHoldTheServedModel) {
  std::optional<Request> waiting;
  served_->on_submit = [&](Request request) { waiting = std::move(request); };
  CallUnary(table_, kPath, Encode(std::string(kX) + kIds));
  ASSERT_TRUE(waiting.has_value());
  const std::weak_ptr<FakeServed> served = served_;
  registry_.models.clear();
  served_.reset();
  EXPECT_TRUE(served.expired());
  AnswerWith(*waiting, absl::UnavailableError("stopping"));
}

// A reply that finds no memory is none, whatever its outputs hold.
TEST_F(Predict, RepliesArePaidForBeforeTheyAreWritten) {
  const MemoryBudget memory(1000);
  ApiContext context{registry_, health_};
  context.memory = &memory;
  MethodTable table;
  RegisterApi(context, &table);
  AnswerDirectly();
  const auto call = [&](int rows) {
    const std::string content(static_cast<size_t>(rows) * 2 * sizeof(float), '\0');
    PredictRequest request;
    request.mutable_model_spec()->set_name("mnist");
    for (const char* const key : {"x", "ids"}) {
      tensorflow::TensorProto& input = (*request.mutable_inputs())[key];
      input.set_dtype(key[0] == 'x' ? tensorflow::DT_FLOAT : tensorflow::DT_INT64);
      input.mutable_tensor_shape()->add_dim()->set_size(rows);
      if (key[0] == 'x') input.mutable_tensor_shape()->add_dim()->set_size(2);
      input.set_tensor_content(content);
    }
    return CallUnary(table, kPath, request.SerializeAsString());
  };
  EXPECT_TRUE(call(10)->status.ok());
  const auto refused = call(100);
  EXPECT_TRUE(absl::IsResourceExhausted(refused->status)) << refused->status;
  EXPECT_THAT(std::string(refused->status.message()), HasSubstr("memory_limit is 1000 bytes"));
  EXPECT_THAT(refused->messages, ::testing::IsEmpty());
  EXPECT_EQ(memory.in_use(), 0);
}

TEST_F(Predict, LargeMessagesAreDecodedOnAnotherThread) {
  std::string ids;
  for (int i = 0; i < 600'000; ++i) ids += "int64_val: 1000 ";
  const auto submitted = std::make_shared<std::promise<std::thread::id>>();
  served_->on_submit = [submitted](Request request) {
    AnswerWith(request, absl::AbortedError("seen"));
    submitted->set_value(std::this_thread::get_id());
  };
  CallUnary(table_, kPath,
            Encode(std::string(kX) + "inputs { key: 'ids' value { dtype: DT_INT64 " + ids +
                   "tensor_shape { dim { size: 600000 } } } }"));
  EXPECT_NE(submitted->get_future().get(), std::this_thread::get_id());
}

// An error carries the id of its request, in its message and behind it.
TEST_F(Predict, ErrorsNameTheRequest) {
  const auto first = CallUnary(table_, kPath, "no message"), second = CallUnary(table_, kPath, "x");
  ASSERT_EQ(first->trailers.size(), 1u);
  EXPECT_EQ(first->trailers[0].first, "x-request-id");
  EXPECT_THAT(std::string(first->status.message()),
              testing::EndsWith(" [request '" + first->trailers[0].second + "']"));
  EXPECT_NE(first->trailers[0].second, second->trailers.at(0).second);

  CallHead head;
  head.cancel = std::make_shared<CancelToken>();
  head.request_id = "mine-7";
  const auto named = std::make_shared<FakeResponder>();
  Invoke(*table_.Find(kPath), head, Message{"x", nullptr}, named);
  EXPECT_THAT(std::string(named->status.message()), testing::EndsWith(" [request 'mine-7']"));
  EXPECT_EQ(named->trailers.at(0).second, "mine-7");
}

TEST_F(Predict, TheQueueKnowsWhenTheCallArrived) {
  TimePoint arrived;
  served_->on_submit = [&](Request request) {
    arrived = request.arrived;
    AnswerWith(request, absl::AbortedError("seen"));
  };
  CallHead head;
  head.cancel = std::make_shared<CancelToken>();
  for (const TimePoint sent : {TimePoint(std::chrono::seconds(5)), TimePoint::min()}) {
    head.arrived = sent;
    const auto bytes = std::make_shared<const std::string>(Encode(std::string(kX) + kIds));
    Invoke(*table_.Find(kPath), head, Message{*bytes, bytes}, std::make_shared<FakeResponder>());
    EXPECT_EQ(arrived, sent == TimePoint::min() ? TimePoint::max() : sent);
  }
}

// Clients refuse such replies by default, and the server sees no error.
TEST_F(Predict, ReplyBeyondWhatClientsTakeIsLoggedOnceForEachModel) {
  std::vector<float> values(1 << 20);  // 4 MiB, without the rest of the message
  int64_t rows = 0;
  auto other = std::make_shared<FakeServed>(MakeTestModel("other", 1));
  registry_.models["other"] = other;
  served_->on_submit = other->on_submit = [&](Request request) {
    const TensorView y{DType::kFloat32, Shape({rows, 2}), values.data()};
    AnswerWith(request, absl::OkStatus(), std::vector<TensorView>(3, y));
  };
  const auto usual = spdlog::default_logger();
  std::ostringstream said;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(said);
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("predict_test", sink));
  spdlog::default_logger()->set_pattern("%l: %v");
  const auto said_for = [&](const std::string& model, int64_t with_rows) {
    rows = with_rows;
    said.str("");
    PredictRequest request;
    request.ParseFromString(Encode(absl::StrCat(kX, kIds, "output_filter: 'y'")));
    request.mutable_model_spec()->set_name(model);
    const auto done = CallUnary(table_, kPath, request.SerializeAsString());
    EXPECT_TRUE(done->status.ok()) << done->status;
    return said.str();
  };
  EXPECT_EQ(said_for("mnist", (1 << 19) - 100), "");
  EXPECT_THAT(said_for("mnist", 1 << 19),
              AllOf(HasSubstr("info: model 'mnist'"), HasSubstr("a reply has 4.0 MiB"),
                    HasSubstr("grpc.max_receive_message_length")));
  EXPECT_EQ(said_for("mnist", 1 << 19), "");
  EXPECT_THAT(said_for("other", 1 << 19), HasSubstr("model 'other'"));
  spdlog::set_default_logger(usual);
}

// Requests that never come to the queue count too.
TEST_F(Predict, RefusedRequestsAreCounted) {
  PredictRequest request;
  request.mutable_model_spec()->set_name("mnist");
  const auto responder = CallUnary(table_, kPath, request.SerializeAsString());
  EXPECT_EQ(responder->status.code(), absl::StatusCode::kInvalidArgument) << "inputs are missing";
  EXPECT_THAT(served_->refused, ElementsAre(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace floe::server
