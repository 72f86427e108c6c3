// `bench` and `profile` from argument list to figures.
#include <fstream>
#include <map>

#include "cli/floectl_for_test.h"
#include "cli/npz.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::string MeasuredGraphFile() { return WriteText("measured.pbtxt", kGraph); }

// y = neg(x after three rounds of x = exp(x)); the rounds are counted by add.
std::string LoopFile() {
  return WriteText("measured_loop.pbtxt", R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 } } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
node { name: "loop" op: "While" input: "zero" input: "x"
  attr { key: "cond" value { func { name: "test" } } } attr { key: "body" value { func { name: "step" } } }
  attr { key: "T" value { list { type: DT_INT32 type: DT_FLOAT } } } }
node { name: "y" op: "Neg" input: "loop:1" attr { key: "T" value { type: DT_FLOAT } } }
library {
  function { signature { name: "test" input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT }
                         output_arg { name: "again" type: DT_BOOL } }
    node_def { name: "three" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 } } } }
    node_def { name: "less" op: "Less" input: "i" input: "three:output:0" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "again" value: "less:z:0" } }
  function { signature { name: "step" input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT }
                         output_arg { name: "i_next" type: DT_INT32 } output_arg { name: "x_next" type: DT_FLOAT } }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
    node_def { name: "add" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "exp" op: "Exp" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "i_next" value: "add:z:0" } ret { key: "x_next" value: "exp:y:0" } }
})");
}

// Two rows.
std::string MeasuredInputFile() {
  std::string path = testing::TempDir() + "measured.npz";
  const Tensor rows = Tensor::Vector<float>(DType::kFloat32, {1, 1, 2, -1}).Reshaped({2, 2});
  EXPECT_TRUE(WriteNpz(path, {{"input", rows}}).ok());
  return path;
}

json Json(const std::vector<std::string>& args) {
  const Outcome outcome = Floectl(args);
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

TEST(Profile, ANameIsAModelOfAServer) {
  const Outcome outcome = Floectl({"profile", "nobody", "--target", "127.0.0.1:1"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("there is no file 'nobody'"));
  EXPECT_THAT(outcome.err, HasSubstr("127.0.0.1:1"));
}

TEST(Bench, ReportsFiguresInOrder) {
  const Outcome outcome = Floectl({"bench", MeasuredGraphFile(), "--seconds", "0.02", "--batch",
                                   "3", "--threads", "2", "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["batch"], 3);
  EXPECT_EQ(json["threads"], 2);
  EXPECT_GT(json["calls"], 0);
  EXPECT_GT(json["min_us"], 0);
  EXPECT_LE(json["min_us"], json["p50_us"]);
  EXPECT_LE(json["p50_us"], json["p99_us"]);
  EXPECT_GT(json["first_us"], 0);
  EXPECT_GT(json["load_ms"], 0);
  EXPECT_GT(json["peak_rss_bytes"], 1 << 20);
}

TEST(Bench, BatchDefaultsToTheRowsOfTheInputs) {
  const Outcome outcome =
      Floectl({"bench", MeasuredGraphFile(), "-s", "0.01", "-i", MeasuredInputFile(), "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["batch"], 2);
  const Outcome more = Floectl(
      {"bench", MeasuredGraphFile(), "-s", "0.01", "-i", MeasuredInputFile(), "-b", "5", "--json"});
  EXPECT_EQ(nlohmann::json::parse(more.out)["batch"], 5);
}

TEST(Bench, AListOfBatchesIsARowForEach) {
  const json rows = Json({"bench", MeasuredGraphFile(), "-s", "0.01", "-b", "1,5,3", "--json"});
  ASSERT_EQ(rows.size(), 3u);
  std::vector<int> batches;
  for (const json& row : rows) {
    batches.push_back(row["batch"]);
    EXPECT_GT(row["p50_us"], 0);
    EXPECT_LE(row["p50_us"], row["p99_us"]);
    EXPECT_NEAR(row["rows_per_second"],
                row["batch"].get<double>() * 1e6 / row["mean_us"].get<double>(),
                row["rows_per_second"].get<double>() * 0.01);
  }
  EXPECT_THAT(batches, ElementsAre(1, 5, 3));
  const Outcome text = Floectl({"bench", MeasuredGraphFile(), "-s", "0.01", "-b", "7,9"});
  EXPECT_THAT(text.out, HasSubstr("batch  p50 us"));
  EXPECT_THAT(text.out, HasSubstr("\n7 "));
  EXPECT_THAT(text.out, HasSubstr("\n9 "));
  // One batch is an object, whatever the number of rows.
  EXPECT_TRUE(Json({"bench", MeasuredGraphFile(), "-s", "0.01", "-b", "7", "--json"}).is_object());
}

const json* StepOf(const json& profile, const std::string& name) {
  for (const json& step : profile["steps"])
    if (step["name"] == name) return &step;
  ADD_FAILURE() << "no step " << name << " in " << profile.dump(2);
  return nullptr;
}

TEST(Profile, AStepHasTheCostsThatInspectEstimates) {
  const json profile = Json({"profile", MeasuredGraphFile(), "--runs", "50", "-b", "8", "--json"});
  EXPECT_EQ(profile["runs"], 50);
  EXPECT_EQ(profile["batch"], 8);
  EXPECT_GT(profile["unobserved_us"], 0);
  ASSERT_EQ(profile["steps"].size(), 1u);
  const json& step = profile["steps"][0];
  const json plan =
      Json({"inspect", MeasuredGraphFile(), "--plan", "--rows", "8", "--json"})["plan"];
  for (const char* key : {"name", "op", "route", "flops", "bytes"})
    EXPECT_EQ(step[key], plan["steps"][0][key]) << key;
  EXPECT_GE(step["flops"], 8 * 12);
  EXPECT_GE(step["bytes"], (8 * 2 + 2 * 3 + 3 + 8 * 3) * 4);
  EXPECT_EQ(step["calls"], 1);
  const double us = step["time_us"];
  EXPECT_GT(us, 0);
  EXPECT_NEAR(step["gflops_per_second"], step["flops"].get<double>() / us / 1e3, 0.01);
  EXPECT_NEAR(step["gigabytes_per_second"], step["bytes"].get<double>() / us / 1e3, 0.05);
  EXPECT_EQ(profile["ops"][0]["op"], step["op"]);
  EXPECT_EQ(profile["ops"][0]["time_us"], step["time_us"]);
}

TEST(Profile, TimesAndSharesAddUpToTheRun) {
  const json profile = Json(
      {"profile", MeasuredGraphFile(), "--seconds", "0.05", "--disable-pass", "all", "--json"});
  ASSERT_EQ(profile["steps"].size(), 3u);
  const double run_us = profile["total"]["time_us"];
  const double rounding = 0.001 / run_us + 1e-5;  // times are to a nanosecond, shares to 1e-5
  double us = profile["between_steps_us"], share = us / run_us, last = 1e30;
  EXPECT_GT(us, 0);
  for (const json& step : profile["steps"]) {
    EXPECT_GT(step["time_us"], 0);
    EXPECT_LE(step["time_us"], last) << "not sorted";
    last = step["time_us"];
    us += last;
    share += step["share"].get<double>();
    EXPECT_NEAR(step["share"], last / run_us, rounding);
  }
  EXPECT_NEAR(us, run_us, 0.01);
  EXPECT_NEAR(share, 1, 4 * rounding);
}

TEST(Profile, StepsOfALoopAreCountedWithinIt) {
  const json profile = Json({"profile", LoopFile(), "--runs", "20", "--json"});
  const json *const loop = StepOf(profile, "loop"), *const exp = StepOf(profile, "exp"),
                    *const less = StepOf(profile, "less");
  ASSERT_TRUE(loop != nullptr && exp != nullptr && less != nullptr);
  EXPECT_EQ((*loop)["calls"], 1);
  EXPECT_FALSE(loop->contains("within"));
  EXPECT_EQ((*exp)["calls"], 3);
  EXPECT_EQ((*exp)["within"], "loop");
  EXPECT_EQ((*exp)["flops"].get<double>(), 3 * 4);
  EXPECT_EQ((*exp)["bytes"], 3 * 2 * 4 * 4);
  EXPECT_EQ((*less)["calls"], 4);
  double inside = 0;
  for (const json& step : profile["steps"])
    if (step.contains("within")) inside += step["time_us"].get<double>();
  EXPECT_GT(inside, 0);
  EXPECT_NEAR((*loop)["total_us"], (*loop)["time_us"].get<double>() + inside, 0.01);
}

TEST(Profile, TextHasEveryColumnAndTheTotal) {
  const Outcome outcome = Floectl({"profile", LoopFile(), "--runs", "20"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  for (const char* part : {"TIME us", "SHARE", "CALLS", "GFLOP/s", "GB/s", "ROUTE", "loop > exp",
                           "between steps", "100.0 %", "total", "ops\n"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
}

TEST(Profile, TheTraceHasEveryCallInsideItsCaller) {
  const std::string path = testing::TempDir() + "trace.json";
  ASSERT_EQ(Floectl({"profile", LoopFile(), "--runs", "2", "--trace", path}).code, kExitOk);
  std::ifstream file(path);
  const json trace = json::parse(file, nullptr, false);
  ASSERT_TRUE(trace.contains("traceEvents"));
  std::map<std::string, int> counts;
  std::map<std::string, std::pair<double, double>> first;  // the first of each: start, end
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    ASSERT_EQ(event["ph"], "X");
    const double start = event["ts"], length = event["dur"];
    EXPECT_GE(start, 0);
    EXPECT_GE(length, 0);
    const std::string name = event["name"];
    if (counts[name]++ == 0) first[name] = {start, start + length};
    if (name == "exp") {
      EXPECT_EQ(event["args"]["flops"], 4);
    }
  }
  EXPECT_EQ(counts["run"], 10);
  EXPECT_EQ(counts["loop"], 10);
  EXPECT_EQ(counts["exp"], 30);
  EXPECT_EQ(counts["y"], 10);
  const double rounding = 0.002;
  for (const auto& [inner, outer] : {std::pair{"loop", "run"}, {"exp", "loop"}, {"y", "run"}}) {
    EXPECT_GE(first[inner].first, first[outer].first - rounding) << inner;
    EXPECT_LE(first[inner].second, first[outer].second + rounding) << inner;
  }
  EXPECT_GE(first["y"].first, first["loop"].second - rounding);
}

TEST(Profile, ATraceThatCannotBeWrittenNamesItsFile) {
  const Outcome outcome = Floectl(
      {"profile", MeasuredGraphFile(), "--runs", "1", "--trace", "/nonexistent/trace.json"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/trace.json"));
}

}  // namespace
}  // namespace floe::cli
