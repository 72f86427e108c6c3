// No rule passes an option or an argument over that it does not know.
#include "model/import/keras/read_log.h"

#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/import/keras/layer.h"
#include "model/import/keras/model.h"

namespace floe::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A functional model of one layer, called with a tensor of [batch, dims...] and further arguments.
absl::Status Call(const std::string& class_name, const std::string& dims,
                  const std::string& options, const std::string& kwargs, int version = 3) {
  const bool operation = absl::StartsWith(class_name, "ops.");
  const std::string tensor =
      R"({"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}})";
  const auto json = ParseJson(absl::StrCat(
      R"({"class_name": "Functional", "config": {"name": "m", "layers": [
           {"class_name": "InputLayer", "name": "x",
            "config": {"name": "x", "batch_shape": [null)",
      dims, R"(]}, "inbound_nodes": []},
           {"class_name": ")",
      operation ? class_name.substr(4) : class_name, R"(", "name": "y", "module": ")",
      operation ? "keras.src.ops.numpy" : "keras.layers", R"(", "config": {"name": "y")", options,
      R"(}, "inbound_nodes": [{"args": [)", tensor, R"(], "kwargs": {)", kwargs,
      R"(}}]}], "input_layers": [["x", 0, 0]], "output_layers": [["y", 0, 0]]}})"));
  if (!json.ok()) return json.status();
  GraphBuilder b;
  ModelFile file{.version = version};
  file.asset = [](const std::string&) -> absl::StatusOr<std::string> {
    return absl::NotFoundError("none");
  };
  BuildModel(b, file, LayerObject{&*json, {}});
  return b.status();
}

TEST(ReadLog, EveryRuleRefusesAnOptionThatItDoesNotKnow) {
  int tried = 0;
  for (const std::string& name : LayerNames()) {
    for (const char* const dims : {"", ", 4", ", 4, 4", ", 4, 4, 3", ", 2, 4, 4, 3"}) {
      if (!Call(name, dims, "", "").ok()) continue;
      const absl::Status status = Call(name, dims, R"(, "option_of_tomorrow": 7)", "");
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << name;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("layer 'y'"), HasSubstr("'option_of_tomorrow' is 7"),
                        HasSubstr("model.export()")))
          << name;
      const absl::Status argument = Call(name, dims, "", R"("argument_of_tomorrow": 7)");
      EXPECT_THAT(std::string(argument.message()),
                  HasSubstr("argument 'argument_of_tomorrow' of its call is 7"))
          << name;
      ++tried;
      break;
    }
  }
  EXPECT_GT(tried, 150);
}

TEST(ReadLog, WhatChangesNoAnswerMayBeThere) {
  for (const char* const option :
       {R"(, "trainable": false)", R"(, "kernel_initializer": "zeros")", R"(, "seed": 7)",
        R"(, "_note": 7)", R"(, "option_of_tomorrow": null)"})
    EXPECT_TRUE(Call("ReLU", ", 4", option, "").ok()) << option;
  // What an operation has is an argument of its function.
  EXPECT_FALSE(Call("ops.Relu", ", 4", R"(, "dtype": "float16")", "").ok());
}

TEST(ReadLog, ACallThatInsistsOnTrainingIsRefusedInKeras2) {
  EXPECT_TRUE(Call("ReLU", ", 4", "", R"("training": true)").ok());
  EXPECT_TRUE(Call("ReLU", ", 4", "", R"("training": false)", 2).ok());
  EXPECT_THAT(std::string(Call("ReLU", ", 4", "", R"("training": true)", 2).message()),
              HasSubstr("'training' of its call is true"));
}

TEST(ReadLog, MasksOfNoneSayNothing) {
  EXPECT_TRUE(Call("ReLU", ", 4", "", R"("mask": [null, null])").ok());
  EXPECT_TRUE(Call("ReLU", ", 4", "", R"("mask": {"a": null})").ok());
  EXPECT_FALSE(Call("ReLU", ", 4", "", R"("other": [null, 1])").ok());
}

}  // namespace
}  // namespace floe::keras
