#include "server/request/encode_predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "server/request/parsed_tensor.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {
namespace {

using tensorflow::TensorProto;
using tensorflow::serving::PredictResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

PredictResponse Reply(const std::vector<ReplyOutput>& outputs, ReplyEncoding encoding) {
  std::string bytes = "what was there before";
  const absl::Status status =
      EncodePredictReply({"model", 7, "serving_default"}, outputs, encoding, &bytes);
  EXPECT_TRUE(status.ok()) << status;
  PredictResponse response;
  if (status.ok()) {
    EXPECT_TRUE(response.ParseFromString(bytes));
    EXPECT_EQ(bytes.size(), response.ByteSizeLong()) << "nothing unknown, nothing superfluous";
  }
  return response;
}

template <typename T>
TensorProto One(DType dtype, std::vector<T> values,
                ReplyEncoding encoding = ReplyEncoding::kTyped) {
  const TensorView view{dtype, Shape({static_cast<int64_t>(values.size())}), values.data()};
  return Reply({{"y", view}}, encoding).outputs().at("y");
}

TEST(PredictReply, SpecAndShape) {
  std::vector<float> values(6, 1.f);
  const PredictResponse response = Reply({{"b", {DType::kFloat32, Shape({3, 1, 2}), values.data()}},
                                          {"a", {DType::kFloat32, Shape(), values.data()}}},
                                         ReplyEncoding::kTyped);
  EXPECT_EQ(response.model_spec().name(), "model");
  EXPECT_EQ(response.model_spec().version().value(), 7);
  EXPECT_EQ(response.model_spec().signature_name(), "serving_default");
  ASSERT_EQ(response.outputs_size(), 2);
  const auto& shape = response.outputs().at("b").tensor_shape();
  ASSERT_EQ(shape.dim_size(), 3);
  EXPECT_EQ(shape.dim(0).size(), 3);
  EXPECT_EQ(shape.dim(1).size(), 1);
  EXPECT_EQ(shape.dim(2).size(), 2);
  EXPECT_TRUE(response.outputs().at("a").has_tensor_shape());
  EXPECT_EQ(response.outputs().at("a").tensor_shape().dim_size(), 0);
}

TEST(PredictReply, TypedLists) {
  EXPECT_THAT(One<float>(DType::kFloat32, {1.5f, -INFINITY}).float_val(),
              ElementsAre(1.5f, -INFINITY));
  EXPECT_THAT(One<double>(DType::kFloat64, {1.5, 1e300}).double_val(), ElementsAre(1.5, 1e300));
  EXPECT_THAT(One<int32_t>(DType::kInt32, {1, -1, INT32_MIN}).int_val(),
              ElementsAre(1, -1, INT32_MIN));
  EXPECT_THAT(One<int16_t>(DType::kInt16, {300, -300}).int_val(), ElementsAre(300, -300));
  EXPECT_THAT(One<uint16_t>(DType::kUInt16, {300, 65535}).int_val(), ElementsAre(300, 65535));
  EXPECT_THAT(One<int8_t>(DType::kInt8, {3, -3}).int_val(), ElementsAre(3, -3));
  EXPECT_THAT(One<uint8_t>(DType::kUInt8, {3, 255}).int_val(), ElementsAre(3, 255));
  EXPECT_THAT(One<int64_t>(DType::kInt64, {3, INT64_MIN}).int64_val(), ElementsAre(3, INT64_MIN));
  EXPECT_THAT(One<uint8_t>(DType::kBool, {1, 0}).bool_val(), ElementsAre(true, false));
  EXPECT_THAT(One<uint16_t>(DType::kFloat16, {0x3c00, 0xc000}).half_val(),
              ElementsAre(0x3c00, 0xc000));
  EXPECT_THAT(One<uint16_t>(DType::kBFloat16, {0x3f80}).half_val(), ElementsAre(0x3f80));
  EXPECT_THAT(One<uint32_t>(DType::kUInt32, {4294967295u}).uint32_val(), ElementsAre(4294967295u));
  EXPECT_THAT(One<uint64_t>(DType::kUInt64, {~uint64_t{0}}).uint64_val(),
              ElementsAre(~uint64_t{0}));
  EXPECT_THAT(One<std::string>(DType::kString, {"", std::string(300, 'x')}).string_val(),
              ElementsAre("", std::string(300, 'x')));
  float complex_values[] = {1, 2};
  const TensorView complex_view{DType::kComplex64, Shape({1}), complex_values};
  EXPECT_THAT(Reply({{"y", complex_view}}, ReplyEncoding::kTyped).outputs().at("y").scomplex_val(),
              ElementsAre(1, 2));
}

TEST(PredictReply, ContentForAllButStrings) {
  const TensorProto numbers = One<int32_t>(DType::kInt32, {1, -1}, ReplyEncoding::kContent);
  EXPECT_EQ(numbers.tensor_content(), std::string("\1\0\0\0\377\377\377\377", 8));
  EXPECT_EQ(numbers.int_val_size(), 0);
  EXPECT_THAT(One<std::string>(DType::kString, {"a"}, ReplyEncoding::kContent).string_val(),
              ElementsAre("a"));
}

TEST(PredictReply, EmptyOutputsHaveNoValues) {
  float nothing = 0;
  const TensorView view{DType::kFloat32, Shape({0, 3}), &nothing};
  for (const ReplyEncoding encoding : {ReplyEncoding::kTyped, ReplyEncoding::kContent}) {
    const PredictResponse response = Reply({{"y", view}}, encoding);
    const TensorProto& y = response.outputs().at("y");
    EXPECT_EQ(y.dtype(), tensorflow::DT_FLOAT);
    ASSERT_EQ(y.tensor_shape().dim_size(), 2);
    EXPECT_EQ(y.tensor_shape().dim(0).size(), 0);
    EXPECT_EQ(y.tensor_shape().dim(1).size(), 3);
    EXPECT_EQ(y.float_val_size(), 0);
    EXPECT_TRUE(y.tensor_content().empty());
  }
}

TEST(PredictReply, RandomIntegersSurvive) {
  std::mt19937_64 rng(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> values(static_cast<size_t>(rng() % 300));
    for (int64_t& value : values) value = static_cast<int64_t>(rng() >> (rng() % 64));
    const TensorProto y = One<int64_t>(DType::kInt64, values);
    ASSERT_TRUE(
        std::equal(values.begin(), values.end(), y.int64_val().begin(), y.int64_val().end()));
  }
}

TEST(PredictReply, RefusesWhatAMessageCannotHold) {
  float value = 0;
  const TensorView huge{DType::kFloat32, Shape({1 << 30}), &value};  // its size alone is looked at
  const auto refused = [](const TensorView& output) {
    std::string reply;
    return EncodePredictReply({"m", 1, "s"}, {{"y", output}}, ReplyEncoding::kTyped, &reply);
  };
  EXPECT_EQ(refused(huge).code(), absl::StatusCode::kOutOfRange);
  const TensorView handle{DType::kResource, Shape(), &value};
  EXPECT_THAT(refused(handle).ToString(), HasSubstr("resource"));
}

}  // namespace
}  // namespace floe::server
