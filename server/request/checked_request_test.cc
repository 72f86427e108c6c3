#include "server/request/checked_request.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/api/fakes_for_test.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kX[] =
    "inputs { key: 'x' value { dtype: DT_FLOAT float_val: [1, 2] "
    "tensor_shape { dim { size: 1 } dim { size: 2 } } } }";
constexpr char kIds[] =
    "inputs { key: 'ids' value { dtype: DT_INT64 int64_val: 300 "
    "tensor_shape { dim { size: 1 } } } }";

// A request against version 4 of the test model: x and ids must be fed, training need not.
class CheckedRequestTest : public testing::Test {
 protected:
  absl::Status Choose(const std::string& text) {
    tensorflow::serving::PredictRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request));
    bytes_ = request.SerializeAsString();
    checked_ = std::make_unique<CheckedRequest>(1 << 20);
    const absl::Status read = checked_->Decode(bytes_);
    EXPECT_TRUE(read.ok()) << read;
    return checked_->ChooseSignature(MakeTestModel("mnist", 4));
  }
  absl::Status Fill(const std::string& text) {
    const absl::Status chosen = Choose(text);
    return chosen.ok() ? checked_->Fill(&filled_) : chosen;
  }
  std::string Refused(const std::string& text) {
    const absl::Status status = Fill(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  std::string bytes_;
  std::unique_ptr<CheckedRequest> checked_;
  Request filled_;
};

TEST_F(CheckedRequestTest, FillsInputsInTheSignaturesOrder) {
  const absl::Status filled = Fill(std::string(kIds) + kX);
  ASSERT_TRUE(filled.ok()) << filled;
  EXPECT_EQ(filled_.model, checked_->model());
  EXPECT_EQ(filled_.signature, &checked_->signature());
  ASSERT_THAT(Keys(checked_->signature().def().inputs), ElementsAre("x", "ids", "training"));
  ASSERT_EQ(filled_.inputs.size(), 3u);
  EXPECT_EQ(filled_.inputs[0].shape, Shape({1, 2}));
  ASSERT_EQ(filled_.inputs[1].dtype, DType::kInt64);
  EXPECT_EQ(filled_.inputs[1].as<int64_t>()[0], 300);
  EXPECT_EQ(filled_.inputs[2].dtype, DType::kInvalid) << "it has a default, which is not sent";
}

TEST_F(CheckedRequestTest, AnOptionalInputMayBeSent) {
  const absl::Status filled =
      Fill(std::string(kX) + kIds +
           "inputs { key: 'training' value { dtype: DT_BOOL bool_val: true tensor_shape { } } }");
  ASSERT_TRUE(filled.ok()) << filled;
  ASSERT_EQ(filled_.inputs[2].dtype, DType::kBool);
  EXPECT_TRUE(*filled_.inputs[2].as<bool>());
}

TEST_F(CheckedRequestTest, SignaturesByNameAndDefault) {
  EXPECT_TRUE(Choose("").ok());
  EXPECT_EQ(checked_->ModelAndSignature(), "model 'mnist' version 4, signature 'serving_default'");
  EXPECT_TRUE(Choose("model_spec { signature_name: 'serving_default' }").ok());
  const absl::Status none = Choose("model_spec { signature_name: 'classify' }");
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.message(),
            "model 'mnist' version 4 has no signature 'classify'; it has 'serving_default'");
}

TEST_F(CheckedRequestTest, WrongInputsAreListedBesideTheRightOnes) {
  const std::string both =
      "model 'mnist' version 4, signature 'serving_default' takes inputs 'x', "
      "'ids', 'training' (optional), but ";
  EXPECT_EQ(Refused(""), both + "(none) were sent");
  EXPECT_EQ(Refused(kX), both + "'x' were sent");
  EXPECT_THAT(Refused(std::string(kX) + kIds + "inputs { key: 'trainin' value { } }"),
              AllOf(StartsWith(both + "'ids', 'trainin', 'x' were sent"),
                    HasSubstr("unknown 'trainin'; nearest: 'training'")));
}

TEST_F(CheckedRequestTest, AnotherDTypeIsNamed) {
  EXPECT_EQ(Refused(std::string(kIds) + "inputs { key: 'x' value { dtype: DT_DOUBLE } }"),
            "input 'x': model 'mnist' version 4, signature 'serving_default' takes float32, but "
            "float64 was sent");
}

TEST_F(CheckedRequestTest, AShapeTheModelDoesNotTakeIsRefusedBeforeAnythingIsAllocated) {
  EXPECT_EQ(Refused(std::string(kIds) + "inputs { key: 'x' value { dtype: DT_FLOAT float_val: 1 "
                                        "tensor_shape { dim { size: 1000 } dim { size: 67 } } } }"),
            "input 'x' has shape [1000,67], the model takes [?,2]");
  EXPECT_EQ(checked_->decoded_bytes(), 0u);
}

TEST_F(CheckedRequestTest, ValuesThatStandForManyArePending) {
  const absl::Status filled = Fill(std::string(kX) +
                                   "inputs { key: 'ids' value { dtype: DT_INT64 int64_val: [3, 4] "
                                   "tensor_shape { dim { size: 100000 } } } }");
  ASSERT_TRUE(filled.ok()) << filled;
  EXPECT_NE(filled_.inputs[0].data, nullptr) << "lies in the message";
  EXPECT_EQ(filled_.inputs[1].shape, Shape({100'000}));
  EXPECT_EQ(filled_.inputs[1].data, nullptr);
  EXPECT_EQ(checked_->decoded_bytes(), 0u);
  ASSERT_NE(filled_.pending, nullptr);
  ASSERT_TRUE(filled_.pending->Decode().ok());
  const auto* const ids = filled_.inputs[1].as<int64_t>();
  ASSERT_NE(ids, nullptr);
  EXPECT_EQ(ids[0], 3);
  EXPECT_EQ(ids[1], 4);
  EXPECT_EQ(ids[99'999], 4);
  EXPECT_TRUE(filled_.pending->Decode().ok());
  EXPECT_EQ(filled_.inputs[1].as<int64_t>(), ids) << "decoded twice";
}

TEST_F(CheckedRequestTest, WhatWouldTakeTooMuchIsRefusedAtOnce) {
  const absl::Status filled = Fill(std::string(kX) +
                                   "inputs { key: 'ids' value { dtype: DT_INT64 int64_val: 3 "
                                   "tensor_shape { dim { size: 1000000000 } } } }");
  EXPECT_TRUE(absl::IsResourceExhausted(filled)) << filled;
  EXPECT_EQ(filled_.pending, nullptr);
}

}  // namespace
}  // namespace floe::server
