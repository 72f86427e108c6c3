#include "server/loading/warm_up_requests.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/tf_record.h"
#include "server/executor/test_models_for_test.h"
#include "server/loading/prepare.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace floe::server {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of kTwiceGraph, two rows.
constexpr char kPredict[] =
    R"(predict_log { request { model_spec { name: "another" version { value: 7 } }
  inputs { key: "x" value { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 2 } }
                            float_val: [1, 2, 3, 4] } } } })";

class WarmUpRequests : public testing::Test {
 protected:
  WarmUpRequests()
      : root_(testing::TempDir() + "floe_warm_up_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_ + "/assets.extra");
    // A model that has a place on disk.
    auto imported = ImportBytes(kTwiceGraph, {});
    EXPECT_TRUE(imported.ok());
    model_ = *Model::Create({{"test", 1, root_ + "/saved_model.pb"},
                             std::move(imported->graph),
                             std::move(imported->signatures),
                             {},
                             {}},
                            {});
    config_.name = "test";
    options_.replay_recorded = true;
  }
  ~WarmUpRequests() override { fs::remove_all(root_); }

  static std::string Record(const std::string& text) {
    tensorflow::serving::PredictionLog log;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &log));
    return log.SerializeAsString();
  }
  void Write(const std::vector<std::string>& records) {
    std::string file;
    for (const std::string& record : records) AppendTfRecord(record, &file);
    std::ofstream(path_()) << file;
  }
  std::string path_() const { return root_ + "/assets.extra/tf_serving_warmup_requests"; }
  std::string Refusal() {
    const auto setup = PrepareScheduler(*model_, config_, options_);
    return setup.ok() ? "served" : std::string(setup.status().message());
  }

  const std::string root_;
  ModelHandle model_;
  ModelConfig config_;
  PrepareOptions options_;
};

TEST_F(WarmUpRequests, EachRecordRunsInOrderWhateverModelItNames) {
  std::string other = kPredict;
  other.replace(other.find("[1, 2, 3, 4]"), 12, "[5, 6, 7, 8]");
  Write({Record(kPredict), Record("predict_streamed_log {}"), Record(other)});
  std::vector<float> firsts;
  std::vector<std::string> notes;
  const auto run = [&](const Inference& asked) {
    EXPECT_EQ(asked.signature, model_->Find(""));
    EXPECT_EQ(asked.inputs[0].shape, Shape({2, 2}));
    firsts.push_back(asked.inputs[0].as<float>()[0]);
    return absl::OkStatus();
  };
  ASSERT_TRUE(ReplayWarmUpRequests(path_(), *model_, run, &notes).ok());
  EXPECT_THAT(firsts, ElementsAre(1, 5));
  EXPECT_THAT(notes, ElementsAre("warm-up: 2 recorded requests, 1 skipped that are streams"));
}

TEST_F(WarmUpRequests, AVersionIsReadyWithThem) {
  EXPECT_EQ(Refusal(), "served") << "there need be none";
  Write({Record(kPredict)});
  config_.workers = 2;
  config_.batching.max_batch_size = 1;  // in two runs
  options_.replays = 3;
  const auto setup = PrepareScheduler(*model_, config_, options_);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_THAT(setup->notes, testing::Contains("warm-up: 1 recorded requests"));
}

TEST_F(WarmUpRequests, AFailureKeepsTheVersionOutAndNamesTheRecord) {
  std::string wrong = kPredict;
  wrong.replace(wrong.find("\"x\""), 3, "\"z\"");
  Write({Record(kPredict), Record(wrong)});
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("assets.extra/tf_serving_warmup_requests: record 2"),
                               HasSubstr("'z'")));
  std::string shape = kPredict;
  shape.replace(shape.find("dim { size: 2 } dim { size: 2 }"), 31,
                "dim { size: 1 } dim { size: 4 }");
  Write({Record(shape)});
  EXPECT_THAT(Refusal(), HasSubstr("record 1"));
  Write({Record(kPredict), "no message"});
  EXPECT_THAT(Refusal(), HasSubstr("record 2: it is no PredictionLog"));
  Write({Record(kPredict), ""});
  EXPECT_THAT(Refusal(), HasSubstr("record 2: it is no PredictionLog"));
  std::string filter = kPredict;
  filter.insert(filter.find("model_spec"), "output_filter: 'nope' ");
  Write({Record(filter)});
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("record 1: "), HasSubstr("has no output 'nope'")));
  Write({Record("predict_log { request { model_spec { signature_name: 'other' } } }")});
  EXPECT_THAT(Refusal(), HasSubstr("no signature 'other'"));
  Write({Record(kPredict)});
  fs::resize_file(path_(), fs::file_size(path_()) - 1);
  EXPECT_THAT(Refusal(), HasSubstr("record 1: the file ends"));
  options_.warm_up_optional = true;
  const auto setup = PrepareScheduler(*model_, config_, options_);
  ASSERT_TRUE(setup.ok());
  EXPECT_THAT(setup->notes, testing::Contains(HasSubstr("the file ends")));
  options_.replay_recorded = false;
  EXPECT_EQ(Refusal(), "served");
}

TEST_F(WarmUpRequests, OnlyAFileThatIsNotThereIsNone) {
  const std::string folder = root_ + "/assets.extra";
  fs::create_symlink("nowhere", path_());
  EXPECT_THAT(Refusal(), HasSubstr("warm-up with assets.extra/tf_serving_warmup_requests"));
  fs::remove_all(folder);
  EXPECT_EQ(Refusal(), "served");
  fs::create_symlink("assets.extra", folder);
  EXPECT_THAT(Refusal(), HasSubstr("cannot look into '" + folder));
  fs::remove(folder);
  fs::create_symlink("nowhere", folder);
  EXPECT_THAT(Refusal(), HasSubstr("cannot look into '" + folder));
  fs::remove(folder);
  std::ofstream(folder) << "a file";
  EXPECT_EQ(Refusal(), "served");
}

TEST_F(WarmUpRequests, AThousandAtMost) {
  Write(std::vector<std::string>(1000, Record(kPredict)));
  EXPECT_EQ(Refusal(), "served");
  Write(std::vector<std::string>(1001, Record(kPredict)));
  EXPECT_THAT(Refusal(), HasSubstr("more than 1000 records"));
}

}  // namespace
}  // namespace floe::server
