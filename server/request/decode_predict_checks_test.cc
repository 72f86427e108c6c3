// What a request is compared with before it is answered: the signature of its model.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/api/fakes_for_test.h"
#include "server/request/decode_predict.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kXText[] =
    "inputs { key: 'x' value { dtype: DT_FLOAT float_val: [1, 2] "
    "tensor_shape { dim { size: 1 } dim { size: 2 } } } }";
constexpr char kIdsText[] =
    "inputs { key: 'ids' value { dtype: DT_INT64 int64_val: 300 "
    "tensor_shape { dim { size: 1 } } } }";

// What is asked of version 4 of the test model: x and ids must be fed, training need not.
class DecodePredictChecks : public testing::Test {
 protected:
  absl::Status Decode(const std::string& text) {
    tensorflow::serving::PredictRequest message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
    bytes_ = message.SerializeAsString();
    asked_ = std::make_unique<Inference>();
    asked_->storage = InputStorage(1 << 20);
    return DecodePredict(
        bytes_,
        [&](const ModelSpec& spec) {
          named_ = spec.name;
          return model_;
        },
        asked_.get());
  }
  std::string Refused(const std::string& text) {
    const absl::Status status = Decode(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  const ModelHandle model_ = MakeTestModel("mnist", 4);
  std::string bytes_, named_;
  std::unique_ptr<Inference> asked_;
};

TEST_F(DecodePredictChecks, FillsInputsInTheSignaturesOrder) {
  const absl::Status filled = Decode(std::string("model_spec { name: 'm' }") + kIdsText + kXText);
  ASSERT_TRUE(filled.ok()) << filled;
  EXPECT_EQ(named_, "m");
  EXPECT_EQ(asked_->model, model_);
  EXPECT_EQ(ModelAndSignature(*asked_), "model 'mnist' version 4, signature 'serving_default'");
  const auto& inputs = asked_->inputs;
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].shape, Shape({1, 2}));
  ASSERT_EQ(inputs[1].dtype, DType::kInt64);
  EXPECT_EQ(inputs[1].as<int64_t>()[0], 300);
  EXPECT_EQ(inputs[2].dtype, DType::kInvalid) << "it has a default, which is not sent";
  EXPECT_THAT(asked_->outputs, ElementsAre(0, 1, 2));
  EXPECT_EQ(asked_->held_bytes, bytes_.size() + sizeof(int64_t)) << "and the id, decoded";
}

TEST_F(DecodePredictChecks, AnOptionalInputMayBeSent) {
  const absl::Status filled =
      Decode(std::string(kXText) + kIdsText +
             "inputs { key: 'training' value { dtype: DT_BOOL bool_val: true tensor_shape { } } }");
  ASSERT_TRUE(filled.ok()) << filled;
  ASSERT_EQ(asked_->inputs[2].dtype, DType::kBool);
  EXPECT_TRUE(*asked_->inputs[2].as<bool>());
}

TEST_F(DecodePredictChecks, SignaturesByNameAndDefault) {
  const std::string inputs = std::string(kXText) + kIdsText;
  EXPECT_TRUE(Decode(inputs).ok());
  EXPECT_TRUE(Decode(inputs + "model_spec { signature_name: 'serving_default' }").ok());
  const absl::Status none = Decode("model_spec { signature_name: 'classify' }");
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.message(),
            "model 'mnist' version 4 has no signature 'classify'; it has 'serving_default'");
}

TEST_F(DecodePredictChecks, WrongInputsAreListedBesideTheRightOnes) {
  const std::string both =
      "model 'mnist' version 4, signature 'serving_default' takes inputs 'x', "
      "'ids', 'training' (optional), but ";
  EXPECT_EQ(Refused(""), both + "(none) were sent");
  EXPECT_EQ(Refused(kXText), both + "'x' were sent");
  EXPECT_THAT(Refused(std::string(kXText) + kIdsText + "inputs { key: 'trainin' value { } }"),
              AllOf(StartsWith(both + "'ids', 'trainin', 'x' were sent"),
                    HasSubstr("unknown 'trainin'; nearest: 'training'")));
}

TEST_F(DecodePredictChecks, AnotherDTypeIsNamed) {
  EXPECT_EQ(Refused(std::string(kIdsText) + "inputs { key: 'x' value { dtype: DT_DOUBLE } }"),
            "input 'x': model 'mnist' version 4, signature 'serving_default' takes float32, but "
            "float64 was sent; cast it first, in NumPy with x.astype(\"float32\")");
}

TEST_F(DecodePredictChecks, AShapeTheModelDoesNotTakeIsRefusedBeforeAnythingIsAllocated) {
  EXPECT_EQ(Refused("inputs { key: 'x' value { dtype: DT_FLOAT float_val: 1 "
                    "tensor_shape { dim { size: 1000 } dim { size: 67 } } } }" +
                    std::string(kIdsText)),
            "input 'x' has shape [1000,67], the model takes [?,2]");
  EXPECT_EQ(asked_->held_bytes, bytes_.size());
}

TEST_F(DecodePredictChecks, ValuesThatStandForManyArePending) {
  const absl::Status filled =
      Decode(std::string(kXText) +
             "inputs { key: 'ids' value { dtype: DT_INT64 int64_val: [3, 4] "
             "tensor_shape { dim { size: 100000 } } } }");
  ASSERT_TRUE(filled.ok()) << filled;
  EXPECT_NE(asked_->inputs[0].data, nullptr) << "lies in the message";
  EXPECT_EQ(asked_->inputs[1].shape, Shape({100'000}));
  EXPECT_EQ(asked_->inputs[1].data, nullptr);
  EXPECT_EQ(asked_->held_bytes, bytes_.size());
  ASSERT_NE(asked_->pending, nullptr);
  ASSERT_TRUE(asked_->pending->Decode().ok());
  const auto* const ids = asked_->inputs[1].as<int64_t>();
  ASSERT_NE(ids, nullptr);
  EXPECT_EQ(ids[0], 3);
  EXPECT_EQ(ids[1], 4);
  EXPECT_EQ(ids[99'999], 4);
  EXPECT_TRUE(asked_->pending->Decode().ok());
  EXPECT_EQ(asked_->inputs[1].as<int64_t>(), ids) << "decoded twice";
}

TEST_F(DecodePredictChecks, WhatWouldTakeTooMuchIsRefusedAtOnce) {
  const absl::Status filled = Decode(std::string(kXText) +
                                     "inputs { key: 'ids' value { dtype: DT_INT64 int64_val: 3 "
                                     "tensor_shape { dim { size: 1000000000 } } } }");
  EXPECT_TRUE(absl::IsResourceExhausted(filled)) << filled;
  EXPECT_EQ(asked_->pending, nullptr);
}

}  // namespace
}  // namespace floe::server
