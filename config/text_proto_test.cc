#include "config/text_proto.h"

#include "config/mistakes_for_test.h"
#include "tensorflow_serving/config/model_server_config.pb.h"
#include "tensorflow_serving/servables/tensorflow/session_bundle_config.pb.h"

namespace floe {
namespace {

using tensorflow::serving::BatchingParameters;
using tensorflow::serving::ModelServerConfig;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Message>
std::vector<std::string> TextMistakes(const std::string& text) {
  Message message;
  return MistakesOf(ParseTextProto(text, "dir/f", &message, nullptr));
}

TEST(TextProto, WhatTheTextSaysIsReadAndWhatWasThereGoes) {
  BatchingParameters message;
  message.set_pad_variable_length_inputs(true);
  const absl::Status status =
      ParseTextProto("# comment\nmax_batch_size: { value: 7 }, allowed_batch_sizes: [1, 2];", "f",
                     &message, nullptr);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(message.max_batch_size().value(), 7);
  EXPECT_EQ(message.allowed_batch_sizes_size(), 2);
  EXPECT_FALSE(message.pad_variable_length_inputs());
}

TEST(TextProto, PlacesAreFileAndLine) {
  BatchingParameters message;
  TextPlaces places;
  ASSERT_TRUE(ParseTextProto("\nmax_batch_size {\n  value: 1 }\nallowed_batch_sizes: 1\n"
                             "allowed_batch_sizes: 2",
                             "f", &message, &places)
                  .ok());
  EXPECT_EQ(PlaceOf("f", places, message, "max_batch_size"), "f:2");
  EXPECT_EQ(PlaceOf("f", places, message, "allowed_batch_sizes"), "f:4");
  EXPECT_EQ(PlaceOf("f", places, message, "num_batch_threads"), "f") << "not in the text";
  EXPECT_EQ(PlaceOf("f", places, message, "no_field"), "f");
}

TEST(TextProto, EveryUnknownFieldIsAMistake) {
  EXPECT_THAT(
      TextMistakes<BatchingParameters>("max_batch_sise { value: 1 }\n"
                                       "max_enqueued_batches { valeu: 1 }\n"
                                       "7: 1\n"),
      ElementsAre(AllOf(StartsWith("dir/f:1: unknown field 'max_batch_sise' of BatchingParameters; "
                                   "nearest: 'max_batch_size'; expected one of "),
                        HasSubstr("pad_variable_length_inputs")),
                  "dir/f:2: unknown field 'valeu' of Int64Value; nearest: 'value'; expected one of "
                  "value",
                  StartsWith("dir/f:3: unknown field '7' of BatchingParameters; ")))
      << "all of them, not only the first";
  EXPECT_THAT(TextMistakes<BatchingParameters>("\n[some.extension] { a: 1 }"),
              ElementsAre(AllOf(StartsWith("dir/f:2: "), HasSubstr("some.extension"))));
}

TEST(TextProto, WrongTypesAndBrokenTextsNameTheLine) {
  struct Case {
    const char *text, *line, *words;
  };
  for (const Case& c :
       {Case{"allowed_batch_sizes: 1\nallowed_batch_sizes: x", "dir/f:2: ", "integer"},
        Case{"max_batch_size {\n  value: 1.5\n}", "dir/f:2: ", "1.5"},
        Case{"pad_variable_length_inputs: maybe", "dir/f:1: ", "pad_variable_length_inputs"},
        Case{"thread_pool_name {\n value: \"a\n\" }", "dir/f:2: ", "cross line"},
        Case{"max_batch_size { value: 99999999999999999999 }", "dir/f:1: ", "range"},
        Case{"max_batch_size {\n", "dir/f:2: ", "identifier"},
        Case{"pad_variable_length_inputs: true\npad_variable_length_inputs: false",
             "dir/f:2: ", "\"pad_variable_length_inputs\" is specified multiple times"}})
    EXPECT_THAT(TextMistakes<BatchingParameters>(c.text),
                testing::Contains(AllOf(StartsWith(std::string(c.line) + "not valid text format: "),
                                        HasSubstr(c.words))))
        << c.text;
}

TEST(TextProto, DeprecatedFieldsAreAccepted) {
  EXPECT_THAT(
      TextMistakes<ModelServerConfig>("model_config_list { config { model_type: TENSORFLOW } }"),
      ElementsAre("(none)"));
  EXPECT_THAT(TextMistakes<ModelServerConfig>("model_config_list { config { model_type: CAFFE } }"),
              ElementsAre(AllOf(StartsWith("dir/f:1: "), HasSubstr("CAFFE"))));
}

TEST(TextProto, NestingIsBounded) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a {";
  EXPECT_THAT(TextMistakes<BatchingParameters>(deep).back(), HasSubstr("too deep"));
}

}  // namespace
}  // namespace floe
