// Messages as JSON, read again by protobuf's own reader.
#include "server/api/rest/proto_json.h"

#include <gtest/gtest.h>

#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "kserve/grpc_service.pb.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace floe::server {
namespace {

std::string JsonOf(const google::protobuf::Message& message) {
  std::string json;
  AppendProtoJson(message, &json);
  return json;
}

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

TEST(ProtoJson, FieldsHaveTheirNamesAndDefaults) {
  EXPECT_EQ(JsonOf(FromText<inference::ModelMetadataResponse>(
                "name: 'a\"b' versions: '3' inputs { name: 'x' datatype: 'FP32' shape: -1 "
                "shape: 9007199254740993 }")),
            R"({"name":"a\"b","versions":["3"],"platform":"","inputs":[{"name":"x",)"
            R"("datatype":"FP32","shape":[-1,9007199254740993]}],"outputs":[]})");
  EXPECT_EQ(JsonOf(FromText<inference::ServerLiveResponse>("")), R"({"live":false})");
}

TEST(ProtoJson, UnsetMessagesAndMembersOfOneofsAreLeftOut) {
  EXPECT_EQ(JsonOf(FromText<inference::InferParameter>("")), "{}");
  EXPECT_EQ(JsonOf(FromText<inference::InferParameter>("int64_param: 0")), R"({"int64_param":0})");
  EXPECT_EQ(JsonOf(FromText<inference::InferParameter>("double_param: 0.1")),
            R"({"double_param":0.1})");
  EXPECT_EQ(JsonOf(FromText<inference::InferParameter>("double_param: nan")),
            R"({"double_param":null})");
}

TEST(ProtoJson, ProtobufReadsTheSameAgain) {
  const auto written = FromText<inference::ModelInferRequest>(
      "model_name: 'm' parameters { key: 'a' value { bool_param: true } } parameters { key: 'b' "
      "value { string_param: '\\n\\t\\001' } } inputs { name: 'x' shape: [ 2, 3 ] contents { "
      "int64_contents: -9223372036854775808 uint64_contents: 18446744073709551615 fp32_contents: "
      "0.1 fp64_contents: 1e300 bool_contents: true bytes_contents: '\\000\\377' } }");
  inference::ModelInferRequest read;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(JsonOf(written), &read).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(written, read))
      << read.DebugString();
}

TEST(ProtoJson, EnumsAreNames) {
  EXPECT_EQ(JsonOf(FromText<tensorflow::AttrValue>("type: DT_HALF")), R"({"type":"DT_HALF"})");
}

}  // namespace
}  // namespace floe::server
