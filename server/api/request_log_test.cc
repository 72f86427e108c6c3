#include "server/api/request_log.h"

#include <gtest/gtest.h>

#include "base/tf_record.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace floe::server {
namespace {

namespace pb = tensorflow::serving;

TEST(RequestLog, RecordsArePredictionLogs) {
  std::string file;
  const RequestLog log([&](const std::string& model, std::string record) {
    EXPECT_EQ(model, "m");
    file += record;
  });
  pb::PredictRequest predict;
  predict.mutable_model_spec()->set_signature_name("s");
  pb::PredictResponse answer;
  answer.mutable_model_spec()->mutable_version()->set_value(3);
  pb::RegressionResponse regressed;
  regressed.mutable_result()->add_regressions()->set_value(1.5f);
  log.Add(Door::kPredict, "m", predict.SerializeAsString(), answer.SerializeAsString());
  log.Add(Door::kRegress, "m", "", regressed.SerializeAsString());
  log.Add(Door::kClassify, "m", "", "");
  TfRecordReader reader(file);
  std::vector<pb::PredictionLog> read;
  for (std::string_view record;;) {
    const auto more = reader.Next(&record);
    ASSERT_TRUE(more.ok()) << more.status();
    if (!*more) break;
    ASSERT_TRUE(read.emplace_back().ParseFromArray(record.data(), static_cast<int>(record.size())));
  }
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].predict_log().request().model_spec().signature_name(), "s");
  EXPECT_EQ(read[0].predict_log().response().model_spec().version().value(), 3);
  EXPECT_EQ(read[1].regress_log().response().result().regressions(0).value(), 1.5f);
  EXPECT_TRUE(read[2].has_classify_log());
}

TEST(RequestLog, SomeRequestsOfDoorsThatHaveALog) {
  EXPECT_TRUE(RequestLog::Takes(Door::kPredict, 1));
  EXPECT_FALSE(RequestLog::Takes(Door::kPredict, 0));
  EXPECT_TRUE(RequestLog::Takes(Door::kHttpPredict, 1));
  EXPECT_TRUE(RequestLog::Takes(Door::kModelInfer, 1));
  EXPECT_FALSE(RequestLog::Takes(Door::kHttpClassify, 1));
  int taken = 0;
  for (int i = 0; i < 10'000; ++i) taken += RequestLog::Takes(Door::kRegress, 10) ? 1 : 0;
  EXPECT_GT(taken, 800);
  EXPECT_LT(taken, 1200);
}

}  // namespace
}  // namespace floe::server
