// The tool from argument list to output, on a graph small enough to compute by hand.
#include <fstream>
#include <map>

#include "cli/floectl_for_test.h"
#include "cli/npz.h"
#include "cli/string_array.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string GraphFile() { return WriteText("tiny.pbtxt", kGraph); }

// Two rows: (1, 1) and (2, -1).
std::string InputFile(const std::string& key) {
  std::string path = testing::TempDir() + "in.npz";
  const Tensor rows = Tensor::Vector<float>(DType::kFloat32, {1, 1, 2, -1}).Reshaped({2, 2});
  EXPECT_TRUE(WriteNpz(path, {{key, rows}}).ok());
  return path;
}

std::vector<float> Floats(const std::string& path, const std::string& name) {
  const auto arrays = ReadNpz(path);
  EXPECT_TRUE(arrays.ok()) << arrays.status();
  const Tensor* const tensor = arrays.ok() ? FindTensor(*arrays, name) : nullptr;
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  return std::vector<float>(tensor->as<float>(), tensor->as<float>() + tensor->elements());
}

// (1,1) * w + b = (5-10, 7, 9+.5); (2,-1) * w + b = (-2-10, -1, 0+.5)
const auto kScores = ElementsAre(-5, 7, 9.5, -12, -1, 0.5);
const auto kPositive = ElementsAre(0, 7, 9.5, 0, 0, 0.5);

TEST(Usage, EveryCommandExplainsItselfWithAnExample) {
  for (const std::string command :
       {"status", "predict", "inspect", "run", "bench", "profile", "ops", "log-level"}) {
    const Outcome outcome = Floectl({command, "--help"});
    EXPECT_EQ(outcome.code, kExitOk) << command;
    EXPECT_THAT(outcome.out, HasSubstr("Example:\n  floectl " + command));
    EXPECT_EQ(outcome.err, "");
  }
  EXPECT_THAT(Floectl({"--help"}).out, HasSubstr("Exit codes"));
  EXPECT_EQ(Floectl({"--version"}).out, "floectl 0.1.0\n");
}

TEST(Usage, MistakesExitWith2AndSayWhatIsWrong) {
  const std::vector<std::vector<std::string>> mistakes = {
      {},
      {"frobnicate"},
      {"run"},
      {"run", "x.pb", "--outputs"},
      {"run", "x.pb", "--outputs", "o.npz", "--gemm", "magic"},
      {"run", "x.pb", "--outputs", "o.npz", "--shape", "a=b"},
      {"bench", "x.pb", "--batch", "0"},
      {"bench", "x.pb", "--batch", "1,0"},
      {"profile", "x.pb", "--runs", "0"},
      {"inspect", "x.pb", "--unknown"},
      {"predict", "model", "nonsense"},
      {"predict", "model", "=1"},
      {"status", "--timeout", "never"},
  };
  for (const auto& args : mistakes) {
    const Outcome outcome = Floectl(args);
    EXPECT_EQ(outcome.code, kExitUsage) << testing::PrintToString(args);
    EXPECT_NE(outcome.err, "") << testing::PrintToString(args);
    EXPECT_EQ(outcome.out, "") << testing::PrintToString(args);
  }
  EXPECT_THAT(Floectl({"predict", "m", "nonsense"}).err, HasSubstr("NAME=@FILE.npy"));
}

TEST(Usage, WhatIsUnknownNamesTheNearest) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"statuss"}, "floectl has no command 'statuss'; nearest: 'status'"},
      {{"statuss", "--target", "x"}, "floectl has no command 'statuss'; nearest: 'status'"},
      {{"zzzzzzzz"}, "floectl has no command 'zzzzzzzz'; commands: 'status'"},
      {{"config", "shw"}, "floectl config has no command 'shw'; nearest: 'show'"},
      {{"status", "--tarjet=x"}, "floectl status has no flag '--tarjet'; nearest: '--target'"},
      {{"run", "x.pb", "--outptus", "o"},
       "floectl run has no flag '--outptus'; nearest: '--outputs'"},
      {{"status", "extra"}, "floectl status takes no argument 'extra'"},
      {{"status", "-p", "8500"},
       "floectl status has no flag '-p': the server is named by --target"},
      {{"predict", "m", "--host", "h"},
       "no flag '--host': the server is named by --target HOST:PORT"},
      {{"inspect", "--\x1b[31m"}, "'--\\x1b[31m'"},
  };
  for (const auto& [args, words] : mistakes) {
    const Outcome outcome = Floectl(args);
    EXPECT_EQ(outcome.code, kExitUsage) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Usage, ATargetIsNoUrl) {
  for (const std::string scheme : {"http", "https", "grpc"}) {
    const Outcome outcome = Floectl({"status", "--target", scheme + "://localhost:8500/v1"});
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr("is a URL; expected HOST:PORT or unix:PATH, such as "
                                       "localhost:8500\n"));
  }
}

TEST(Usage, FailuresExitWith1NameTheCommandAndTheFile) {
  for (const std::string command : {"inspect", "bench", "profile"}) {
    const Outcome outcome = Floectl({command, "/nonexistent/graph.pb"});
    EXPECT_EQ(outcome.code, kExitFailed);
    EXPECT_THAT(outcome.err, HasSubstr("floectl " + command + ": NOT_FOUND: "));
    EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/graph.pb"));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Run, WritesAllOutputsOfTheSignature) {
  const std::string out = testing::TempDir() + "out.npz";
  const Outcome outcome =
      Floectl({"run", GraphFile(), "--inputs", InputFile("input"), "--outputs", out});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.out, "positive float32[2,3]\n");
  EXPECT_THAT(Floats(out, "positive"), kPositive);
}

TEST(Run, FetchesNamedTensors) {
  const std::string out = testing::TempDir() + "out.npz";
  const Outcome outcome = Floectl({"run", GraphFile(), "-i", InputFile("input"), "-o", out,
                                   "--fetch", "scores:0", "--fetch", "positive", "--stored"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(Floats(out, "scores"), kScores);
  EXPECT_THAT(Floats(out, "positive"), kPositive);
}

TEST(Run, InputsGoByEveryFormOfTheirName) {
  const std::string out = testing::TempDir() + "out.npz";
  for (const std::string name : {"input", "input:0", "input__0"}) {
    const Outcome outcome = Floectl({"run", GraphFile(), "-i", InputFile(name), "-o", out});
    ASSERT_EQ(outcome.code, kExitOk) << name << ": " << outcome.err;
    EXPECT_THAT(Floats(out, "positive"), kPositive);
  }
}

TEST(Run, ByPositionIgnoresNames) {
  const std::string out = testing::TempDir() + "out.npz";
  const std::vector<std::string> args = {"run", GraphFile(), "-i", InputFile("arr_0"), "-o", out};
  const Outcome by_name = Floectl(args);
  EXPECT_EQ(by_name.code, kExitFailed);
  EXPECT_THAT(by_name.err, HasSubstr("'arr_0' names no input"));
  EXPECT_THAT(by_name.err, HasSubstr("'input'"));
  std::vector<std::string> by_position = args;
  by_position.push_back("--by-position");
  ASSERT_EQ(Floectl(by_position).code, kExitOk);
  EXPECT_THAT(Floats(out, "positive"), kPositive);
}

TEST(Run, WrongTensorsAreExplained) {
  const std::string in = testing::TempDir() + "wrong.npz", out = testing::TempDir() + "out.npz";
  ASSERT_TRUE(
      WriteNpz(in, {{"input", Tensor::Vector<double>(DType::kFloat64, {1, 1}).Reshaped({1, 2})}})
          .ok());
  EXPECT_THAT(Floectl({"run", GraphFile(), "-i", in, "-o", out}).err,
              HasSubstr("is float64, the model takes float32"));
  ASSERT_TRUE(
      WriteNpz(in, {{"input", Tensor::Vector<float>(DType::kFloat32, {1, 1, 1}).Reshaped({1, 3})}})
          .ok());
  EXPECT_THAT(Floectl({"run", GraphFile(), "-i", in, "-o", out}).err, HasSubstr("input"));
  EXPECT_EQ(Floectl({"run", GraphFile(), "-o", out}).code, kExitFailed);
  const Tensor one = Tensor::Vector<float>(DType::kFloat32, {1, 1}).Reshaped({1, 2});
  ASSERT_TRUE(WriteNpz(in, {{"input", one}, {"input__0", one}}).ok());
  EXPECT_THAT(Floectl({"run", GraphFile(), "-i", in, "-o", out}).err,
              HasSubstr("second one for input 'input'"));
}

TEST(Run, AnInputOfAnyRankMayBeAScalar) {
  const std::string graph = WriteText("scalar.pbtxt", R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { unknown_rank: true } } } }
node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "shape" value { shape { unknown_rank: true } } } }
node { name: "y" op: "Tile" input: "x" input: "n" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tmultiples" value { type: DT_INT32 } } })");
  const std::string in = testing::TempDir() + "scalar.npz", out = testing::TempDir() + "tiled.npz";
  ASSERT_TRUE(WriteNpz(in, {{"x", Tensor::Scalar<float>(DType::kFloat32, 7)},
                            {"n", Tensor::Allocate(DType::kInt32, Shape({0}))}})
                  .ok());
  const Outcome outcome = Floectl({"run", graph, "--inputs", in, "--outputs", out});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(Floats(out, "y"), ElementsAre(7));
}

TEST(Run, AFileOfSoundIsAScalarWhateverWasDeclared) {
  const std::string graph = WriteText("sound.pbtxt", R"(
node { name: "wav_data" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } attr { key: "shape" value { shape { unknown_rank: true } } } }
node { name: "sound" op: "DecodeWav" input: "wav_data" })");
  const std::string in = testing::TempDir() + "wav.npz", out = testing::TempDir() + "sound.npz";
  const std::string wav(
      "RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
      "data\4\0\0\0\0\x40\0\xc0",
      48);
  std::string sent("\x30\0\0\0", 4);
  sent += wav;
  ASSERT_TRUE(
      WriteNpz(in, {{"wav_data", Tensor::Vector(DType::kUInt8,
                                                std::vector<uint8_t>(sent.begin(), sent.end()))}})
          .ok());
  const Outcome outcome =
      Floectl({"run", graph, "--inputs", in, "--outputs", out, "--fetch", "sound"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(Floats(out, "sound"), ElementsAre(0.5, -0.5));
}

TEST(Run, UnknownFetchNamesTheNearest) {
  const Outcome outcome =
      Floectl({"run", GraphFile(), "-i", InputFile("input"), "-o", "o.npz", "--fetch", "scorse"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("'scores'"));
}

TEST(Run, InitialisersFillTablesFromFilesBesideTheModel) {
  WriteText("vocabulary.txt", "one\ntwo\nthree\n");
  const std::string graph = WriteText("table.pbtxt", R"(
    node { name: "path" op: "Const" attr { key: "dtype" value { type: DT_STRING } } attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape {} string_val: "vocabulary.txt" } } } }
    node { name: "table" op: "HashTableV2" attr { key: "key_dtype" value { type: DT_STRING } } attr { key: "value_dtype" value { type: DT_INT64 } } }
    node { name: "fill" op: "InitializeTableFromTextFileV2" input: "table" input: "path" attr { key: "key_index" value { i: -2 } } attr { key: "value_index" value { i: -1 } } }
    node { name: "init_all" op: "NoOp" input: "^fill" }
    node { name: "size" op: "LookupTableSizeV2" input: "table" })");
  const std::string out = testing::TempDir() + "out.npz";
  const Outcome filled =
      Floectl({"run", graph, "-o", out, "--fetch", "size", "--init", "init_all"});
  ASSERT_EQ(filled.code, kExitOk) << filled.err;
  const auto arrays = ReadNpz(out);
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  EXPECT_EQ(*FindTensor(*arrays, "size")->as<int64_t>(), 3);
  EXPECT_EQ(Floectl({"run", graph, "-o", out, "--fetch", "size"}).code, kExitOk);
  const Outcome unknown = Floectl({"run", graph, "-o", out, "--fetch", "size", "--init", "init"});
  EXPECT_EQ(unknown.code, kExitFailed);
  EXPECT_THAT(unknown.err, HasSubstr("nearest: 'init_all'"));
}

TEST(Run, EveryGemmBackendThatIsAlwaysThereAgrees) {
  const std::string out = testing::TempDir() + "out.npz";
  for (const std::string gemm : {"auto", "native", "reference"}) {
    ASSERT_EQ(
        Floectl({"run", GraphFile(), "-i", InputFile("input"), "-o", out, "--gemm", gemm}).code,
        kExitOk);
    EXPECT_THAT(Floats(out, "positive"), kPositive) << gemm;
  }
}

TEST(Inspect, TellsWhatIsInTheFile) {
  const Outcome outcome =
      Floectl({"inspect", GraphFile(), "--json", "--nodes", "--plan", "--rows", "8"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["format"], "GraphDef (text)");
  EXPECT_EQ(json["signatures"][0]["name"], "serving_default");
  EXPECT_EQ(json["signatures"][0]["inputs"][0],
            nlohmann::json::parse(
                R"({"key":"input","tensor":"input","dtype":"float32","shape":[-1,2]})"));
  EXPECT_EQ(json["signatures"][0]["outputs"][0]["key"], "positive");
  EXPECT_EQ(json["ops"], nlohmann::json::parse(R"({"BiasAdd":1,"Input":1,"MatMul":1,"Relu":1})"));
  EXPECT_EQ(json["parameters"], 9);
  EXPECT_GE(json["weight_bytes"], 9 * 4);
  EXPECT_GE(json["flops_per_row"],
            12);  // 6 multiplications, 6 additions; more or less for bias and relu
  EXPECT_LE(json["flops_per_row"], 24);
  EXPECT_EQ(json["batchable"], true);
  EXPECT_GE(json["arena_bytes"]["8"], json["arena_bytes"]["1"]);
  EXPECT_EQ(json["nodes"].size(), 6u);
  EXPECT_EQ(json["nodes"].back(),
            nlohmann::json::parse(R"({"name":"positive","op":"Relu","type":"float32[rows,3]"})"));
  const auto& plan = json["plan"];
  EXPECT_EQ(plan["rows"], 8);
  EXPECT_GE(plan["steps"].size(), 1u);
  EXPECT_EQ(plan["steps"].back()["outputs"][0]["type"], "float32[8,3]");
  EXPECT_EQ(plan["steps"].back()["outputs"][0]["bytes"], 8 * 3 * 4);
  EXPECT_THAT(std::string(plan["steps"].back()["outputs"][0]["place"]), HasSubstr("arena +"));
  // Input, result and scratch are alive together, and the arena holds them.
  EXPECT_EQ(plan["largest_step_bytes"], 8 * (2 + 3) * 4);
  EXPECT_GE(plan["live_bytes"], plan["largest_step_bytes"]);
  EXPECT_GE(plan["arena_bytes"], plan["live_bytes"]);
}

TEST(Inspect, ThePlanKeepsRowsOpenUnlessTheyAreGiven) {
  const Outcome outcome = Floectl({"inspect", GraphFile(), "--plan"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("float32[rows,3]"));
  EXPECT_THAT(outcome.out, HasSubstr("arena +"));
  EXPECT_THAT(outcome.out, HasSubstr("packed weights"));
}

// y: a convolution of one tap that doubles its input.
std::string ConvFile() {
  return WriteText("conv.pbtxt", R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 1 } dim { size: 2 } dim { size: 1 } } } } }
node { name: "w" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } dim { size: 1 } dim { size: 1 } dim { size: 1 } }
    float_val: 2 } } } }
node { name: "y" op: "Conv2D" input: "x" input: "w"
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "padding" value { s: "VALID" } }
  attr { key: "strides" value { list { i: [1, 1, 1, 1] } } } })");
}

TEST(Route, IsShownWithTheOthersAndCanBeForced) {
  const auto choice = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"inspect", ConvFile(), "--json", "--plan"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = Floectl(args);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return nlohmann::json::parse(outcome.out)["plan"]["steps"][0]["choice"];
  };
  const auto chosen = choice({});
  EXPECT_EQ(chosen["chosen"], "gemm");
  EXPECT_EQ(chosen["offers"][0]["route"], "gemm");
  EXPECT_GT(chosen["offers"][0]["cost_us"], 0);
  EXPECT_EQ(choice({"--route", "y=reference"})["chosen"], "reference");
  EXPECT_EQ(choice({"--gemm", "reference"})["chosen"], "reference");
  EXPECT_THAT(Floectl({"inspect", ConvFile(), "--plan"}).out, HasSubstr("reference"));

  const std::string in = testing::TempDir() + "conv.npz", out = testing::TempDir() + "out.npz";
  const Tensor x = Tensor::Vector<float>(DType::kFloat32, {3, 4}).Reshaped({1, 1, 2, 1});
  ASSERT_TRUE(WriteNpz(in, {{"x", x}}).ok());
  ASSERT_EQ(Floectl({"run", ConvFile(), "-i", in, "-o", out, "--route", "y=reference"}).code,
            kExitOk);
  EXPECT_THAT(Floats(out, "y"), ElementsAre(6, 8));
}

TEST(Route, NamesThatAreNoneAreExplained) {
  const Outcome route = Floectl({"inspect", ConvFile(), "--plan", "--route", "y=winograd"});
  EXPECT_EQ(route.code, kExitFailed);
  EXPECT_THAT(route.err, HasSubstr("has no route 'winograd'; its routes are gemm"));
  const Outcome node = Floectl({"inspect", ConvFile(), "--plan", "--route", "z=gemm"});
  EXPECT_EQ(node.code, kExitFailed);
  EXPECT_THAT(node.err, HasSubstr("no node 'z' has routes to choose from; nearest: 'y'"));
  EXPECT_EQ(Floectl({"inspect", ConvFile(), "--route", "gemm"}).code, kExitUsage);
}

TEST(DisablePass, ChangesThePlanAndNotTheAnswers) {
  const auto steps = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"inspect", GraphFile(), "--json", "--plan"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = Floectl(args);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return nlohmann::json::parse(outcome.out)["plan"]["steps"].size();
  };
  EXPECT_EQ(steps({}), 1u);
  EXPECT_EQ(steps({"--disable-pass", "fuse_epilogues", "--disable-pass", "fuse_elementwise"}), 3u);
  EXPECT_EQ(steps({"--disable-pass", "all"}), 3u);
  const std::string out = testing::TempDir() + "out.npz";
  ASSERT_EQ(
      Floectl({"run", GraphFile(), "-i", InputFile("input"), "-o", out, "--disable-pass", "all"})
          .code,
      kExitOk);
  EXPECT_THAT(Floats(out, "positive"), kPositive);
}

TEST(DisablePass, AnUnknownNameIsAUsageErrorThatListsThem) {
  const Outcome outcome = Floectl({"inspect", GraphFile(), "--disable-pass", "everything"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("fold_constants"));
}

TEST(Inspect, TextHasTheSameFacts) {
  const Outcome outcome = Floectl({"inspect", GraphFile(), "--nodes"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("signature serving_default"));
  EXPECT_THAT(outcome.out, HasSubstr("batchable"));
  EXPECT_THAT(outcome.out, HasSubstr("float32[rows,3]"));
}

// A bool placeholder switches between 10 * input and input, as TensorFlow 1's cond does.
constexpr char kSwitched[] = R"(
node { name: "input" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "keras_learning_phase" op: "Placeholder"
  attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape { } } } }
node { name: "ten" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 10 } } } }
node { name: "switch" op: "Switch" input: "input" input: "keras_learning_phase"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "times" op: "Mul" input: "switch:1" input: "ten" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "as_is" op: "Identity" input: "switch" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "merge" op: "Merge" input: "as_is" input: "times"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 2 } } }
node { name: "result" op: "Neg" input: "merge" attr { key: "T" value { type: DT_FLOAT } } }
)";

TEST(Run, OptionalInputsHaveTheirDefaultUntilFed) {
  const std::string graph = WriteText("switched.pbtxt", kSwitched);
  const std::string in = testing::TempDir() + "phase.npz", out = testing::TempDir() + "out.npz";
  const Outcome plain = Floectl({"run", graph, "-i", InputFile("input"), "-o", out});
  ASSERT_EQ(plain.code, kExitOk) << plain.err;
  EXPECT_THAT(Floats(out, "result"), ElementsAre(-1, -1, -2, 1));
  const Tensor rows = Tensor::Vector<float>(DType::kFloat32, {1, 1, 2, -1}).Reshaped({2, 2});
  for (const bool phase : {false, true}) {
    ASSERT_TRUE(WriteNpz(in, {{"input", rows},
                              {"keras_learning_phase", Tensor::Scalar(DType::kBool, phase)}})
                    .ok());
    const Outcome fed = Floectl({"run", graph, "-i", in, "-o", out});
    ASSERT_EQ(fed.code, kExitOk) << fed.err;
    const float factor = phase ? -10 : -1;
    EXPECT_THAT(Floats(out, "result"), ElementsAre(factor, factor, 2 * factor, -factor));
  }
}

TEST(Inspect, TypesOfAGraphWithSwitches) {
  const Outcome outcome =
      Floectl({"inspect", WriteText("switched.pbtxt", kSwitched), "--json", "--nodes"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["signatures"][0]["inputs"][1]["optional"], true);
  std::map<std::string, std::string> types;
  for (const auto& node : json["nodes"]) types[node["name"]] = node["type"];
  EXPECT_EQ(types["result"], "float32[rows,2]");
  EXPECT_EQ(types["ten"], "float32[]");
  EXPECT_EQ(types["times"], "float32[rows,2]");  // also in the branch that is not taken
  EXPECT_EQ(types["switch"], "float32[rows,2], float32[rows,2]");
}

TEST(Inspect, ShowsWhatItCanOfAGraphThatCannotRun) {
  const std::string path =
      WriteText("unsupported.pbtxt",
                std::string(kGraph) + R"(node { name: "odd" op: "FancyOp" input: "positive" })");
  const Outcome outcome = Floectl({"inspect", path});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("UNIMPLEMENTED"));
  EXPECT_THAT(outcome.err, HasSubstr("FancyOp"));
  EXPECT_THAT(outcome.out, HasSubstr("FancyOp"));
  EXPECT_THAT(outcome.out, HasSubstr("BiasAdd"));
}

}  // namespace
}  // namespace floe::cli
