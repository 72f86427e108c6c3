#include "server/request/parsed_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/status.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sends one tensor, given in protobuf's text form, and reads it back.
class TensorInput : public testing::Test {
 protected:
  absl::StatusOr<TensorView> Read(const std::string& text, int64_t max_bytes = 1 << 20) {
    tensorflow::TensorProto proto;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
    bytes_ = proto.SerializeAsString();
    storage_.emplace(max_bytes);
    parsed_ = ParsedTensor();
    EXPECT_TRUE(ParseTensor(bytes_, &parsed_));
    FLOE_ASSIGN_OR_RETURN(CheckedTensor checked, CheckTensor("x", parsed_));
    FLOE_RETURN_IF_ERROR(storage_->Charge(checked.bytes));
    FLOE_RETURN_IF_ERROR(DecodeValues(parsed_.values, &*storage_, &checked.view));
    return checked.view;
  }

  template <typename T>
  std::vector<T> Values(const std::string& text) {
    const absl::StatusOr<TensorView> view = Read(text);
    EXPECT_TRUE(view.ok()) << view.status();
    if (!view.ok()) return {};
    std::vector<T> values(static_cast<size_t>(view->elements()));
    std::memcpy(values.data(), view->data, values.size() * sizeof(T));
    return values;
  }

  std::string Error(const std::string& text, int64_t max_bytes = 1 << 20) {
    return Read(text, max_bytes).status().ToString();
  }

 private:
  std::string bytes_;
  ParsedTensor parsed_;
  std::optional<InputStorage> storage_;
};

TEST_F(TensorInput, ReadsEveryList) {
  const std::string two = " tensor_shape { dim { size: 2 } } ";
  EXPECT_THAT(Values<float>("dtype: DT_FLOAT float_val: [1.5, -2]" + two), ElementsAre(1.5f, -2.f));
  EXPECT_THAT(Values<double>("dtype: DT_DOUBLE double_val: [1.5, -2]" + two),
              ElementsAre(1.5, -2.0));
  EXPECT_THAT(Values<int32_t>("dtype: DT_INT32 int_val: [7, -2]" + two), ElementsAre(7, -2));
  EXPECT_THAT(Values<int16_t>("dtype: DT_INT16 int_val: [7, -2]" + two), ElementsAre(7, -2));
  EXPECT_THAT(Values<uint16_t>("dtype: DT_UINT16 int_val: [7, 65535]" + two),
              ElementsAre(7, 65535));
  EXPECT_THAT(Values<int8_t>("dtype: DT_INT8 int_val: [7, -2]" + two), ElementsAre(7, -2));
  EXPECT_THAT(Values<uint8_t>("dtype: DT_UINT8 int_val: [7, 255]" + two), ElementsAre(7, 255));
  EXPECT_THAT(Values<int8_t>("dtype: DT_QINT8 int_val: [7, -2]" + two), ElementsAre(7, -2));
  EXPECT_THAT(Values<uint16_t>("dtype: DT_QUINT16 int_val: [7, 65535]" + two),
              ElementsAre(7, 65535));
  EXPECT_THAT(Values<int32_t>("dtype: DT_QINT32 int_val: [7, -2]" + two), ElementsAre(7, -2));
  EXPECT_THAT(Values<int64_t>("dtype: DT_INT64 int64_val: [7, -2]" + two), ElementsAre(7, -2));
  EXPECT_THAT(Values<uint8_t>("dtype: DT_BOOL bool_val: [true, false]" + two), ElementsAre(1, 0));
  EXPECT_THAT(Values<uint16_t>("dtype: DT_HALF half_val: [15360, 49152]" + two),
              ElementsAre(15360, 49152));
  EXPECT_THAT(Values<uint32_t>("dtype: DT_UINT32 uint32_val: [7, 4294967295]" + two),
              ElementsAre(7u, 4294967295u));
  EXPECT_THAT(Values<uint64_t>("dtype: DT_UINT64 uint64_val: [7, 18446744073709551615]" + two),
              ElementsAre(7u, ~uint64_t{0}));
  EXPECT_THAT(Values<float>("dtype: DT_COMPLEX64 scomplex_val: [1, 2, 3, 4]" + two).size(), 2u);
}

TEST_F(TensorInput, RepeatsTheLastValue) {
  const std::string shape = " tensor_shape { dim { size: 2 } dim { size: 2 } } ";
  EXPECT_THAT(Values<float>("dtype: DT_FLOAT float_val: [1, 2]" + shape), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(Values<int64_t>("dtype: DT_INT64 int64_val: 9" + shape), ElementsAre(9, 9, 9, 9));
  EXPECT_THAT(Values<float>("dtype: DT_FLOAT" + shape), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Values<float>("dtype: DT_FLOAT float_val: 3"), ElementsAre(3));  // no shape: a scalar
}

TEST_F(TensorInput, ContentMustHaveTheShapesSize) {
  EXPECT_THAT(Values<int16_t>("dtype: DT_INT16 tensor_content: '\\001\\000\\377\\377' tensor_shape "
                              "{ dim { size: 2 } }"),
              ElementsAre(1, -1));
  const std::string error = Error(
      "dtype: DT_FLOAT tensor_content: '12345' tensor_shape { dim { size: 2 } dim { size: 3 } }");
  for (const char* part : {"INVALID_ARGUMENT", "'x'", "[2,3]", "24", "5"})
    EXPECT_THAT(error, HasSubstr(part));
  EXPECT_THAT(Error("dtype: DT_FLOAT tensor_content: '1234' tensor_shape { dim { size: 0 } }"),
              HasSubstr("needs 0 bytes"));
  EXPECT_THAT(Error("dtype: DT_BOOL tensor_content: '\\007'"), HasSubstr("byte 7"));
  EXPECT_THAT(Error("dtype: DT_STRING tensor_content: 'ab'"), HasSubstr("string_val"));
}

TEST_F(TensorInput, RefusesBadShapes) {
  EXPECT_THAT(Error("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }"), HasSubstr("negative"));
  EXPECT_THAT(Error("dtype: DT_FLOAT tensor_shape { unknown_rank: true }"),
              HasSubstr("unknown rank"));
  EXPECT_THAT(Error("dtype: DT_FLOAT tensor_shape { dim { size: 4611686018427387904 } dim { size: "
                    "4611686018427387904 } }"),
              HasSubstr("too many elements"));
  EXPECT_THAT(Error("dtype: DT_FLOAT float_val: 1 tensor_shape { dim { size: 9000000000 } }"),
              HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_THAT(Error("dtype: DT_FLOAT float_val: 1 tensor_shape { dim { size: 3 } }", 11),
              HasSubstr("--grpc_max_message_bytes"));
}

TEST_F(TensorInput, RefusesValuesInTheWrongPlace) {
  EXPECT_THAT(Error("dtype: DT_FLOAT int_val: 1"),
              HasSubstr("values in int_val, but float32 is read from float_val"));
  EXPECT_THAT(Error("dtype: DT_FLOAT float_val: [1, 2]"), HasSubstr("2 values"));
  EXPECT_THAT(Error("dtype: DT_FLOAT float_val: 1 tensor_content: '1234'"), HasSubstr("both"));
  EXPECT_THAT(Error("dtype: DT_FLOAT float_val: 1 int_val: 1"), HasSubstr("more than one list"));
  EXPECT_THAT(Error("float_val: 1"), HasSubstr("no dtype"));
  EXPECT_THAT(Error("dtype: DT_INT4"), HasSubstr("29"));
  EXPECT_THAT(Error("dtype: DT_RESOURCE"), HasSubstr("resource"));
  EXPECT_THAT(Error("dtype: DT_COMPLEX64 scomplex_val: [1, 2, 3] tensor_shape { dim { size: 2 } }"),
              HasSubstr("middle"));
}

TEST_F(TensorInput, ReadsStrings) {
  const auto view =
      Read("dtype: DT_STRING string_val: ['a', 'bc'] tensor_shape { dim { size: 3 } }");
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->as<std::string>()[0], "a");
  EXPECT_EQ(view->as<std::string>()[2], "bc");
  EXPECT_THAT(
      Error("dtype: DT_STRING string_val: 'abcdefghij' tensor_shape { dim { size: 3 } }", 120),
      HasSubstr("RESOURCE_EXHAUSTED"));
}

}  // namespace
}  // namespace floe::server
