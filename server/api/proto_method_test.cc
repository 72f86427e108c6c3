#include "server/api/proto_method.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "model/import/unfolded_bytes.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {
namespace {

using tensorflow::serving::PredictRequest;

int64_t Unfolded(const std::string& bytes) {
  return UnfoldedBytes(bytes, *PredictRequest::descriptor());
}

struct Case {
  const char* name;
  std::function<void(tensorflow::TensorProto*)> add;  // one more
};

const Case kCases[] = {
    {"empty strings", [](auto* tensor) { tensor->add_string_val(""); }},
    {"short strings", [](auto* tensor) { tensor->add_string_val("fifteen letters"); }},
    {"long strings", [](auto* tensor) { tensor->add_string_val(std::string(100, 'x')); }},
    {"dims", [](auto* tensor) { tensor->mutable_tensor_shape()->add_dim(); }},
    {"named dims",
     [](auto* tensor) {
       tensor->mutable_tensor_shape()->add_dim()->set_name("a dimension of it");
     }},
    {"variants", [](auto* tensor) { tensor->add_variant_val(); }},
    {"resources", [](auto* tensor) { tensor->add_resource_handle_val(); }},
    {"floats", [](auto* tensor) { tensor->add_float_val(1); }},
    {"small integers", [](auto* tensor) { tensor->add_int64_val(1); }},
    {"large integers", [](auto* tensor) { tensor->add_int64_val(INT64_MIN); }},
    {"booleans", [](auto* tensor) { tensor->add_bool_val(true); }},
    {"halves", [](auto* tensor) { tensor->add_half_val(1); }},
};

// Against what protobuf says that the message takes when it has read it.
TEST(Unfolding, CountsAtLeastWhatProtobufTakesAndNotMuchMore) {
  for (const Case& one : kCases) {
    PredictRequest request;
    tensorflow::TensorProto& tensor = (*request.mutable_inputs())["x"];
    for (int i = 0; i < 10'000; ++i) one.add(&tensor);
    const std::string bytes = request.SerializeAsString();
    PredictRequest read;
    ASSERT_TRUE(read.ParseFromString(bytes));
    const auto taken = static_cast<int64_t>(read.SpaceUsedLong());
    EXPECT_GE(2 * Unfolded(bytes), taken) << one.name;  // lists have room for twice as many
    EXPECT_LE(Unfolded(bytes), 6 * taken) << one.name;
  }
}

TEST(Unfolding, WhatProtobufDoesNotKnowCountsToo) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += std::string("\x78\x01\x7a\x00", 4);  // field 15
  PredictRequest read;
  ASSERT_TRUE(read.ParseFromString(bytes));
  EXPECT_GE(2 * Unfolded(bytes), static_cast<int64_t>(read.SpaceUsedLong()));
}

TEST(Unfolding, WhatCannotBeWalkedCountsAsEndless) {
  EXPECT_EQ(Unfolded("\x0a\xff"), INT64_MAX);
  EXPECT_EQ(Unfolded("\x0b\x0c"), INT64_MAX) << "a group";
  EXPECT_EQ(Unfolded(""), 0);
}

TEST(Unfolding, WhatUnfoldsTooFarIsRefusedUnread) {
  PredictRequest request;
  tensorflow::TensorProto& tensor = (*request.mutable_inputs())["x"];
  for (int i = 0; i < 100'000; ++i) tensor.add_string_val("");
  const std::string bytes = request.SerializeAsString();
  EXPECT_TRUE(CheckUnfolding(bytes, *PredictRequest::descriptor(), 20 << 20).ok());
  const absl::Status refused = CheckUnfolding(bytes, *PredictRequest::descriptor(), 2 << 20);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("--grpc_max_message_bytes"), std::string::npos) << refused;
  EXPECT_TRUE(CheckUnfolding("", *PredictRequest::descriptor(), 0).ok());
}

}  // namespace
}  // namespace floe::server
