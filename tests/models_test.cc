// The reference models beside the checkout, and those in the folder that FLOE_MODELS names:
// TensorFlow's answers, and the same bits for a row whatever its batch, its place there, the
// threads, the load and the thread it runs on, on each instruction set by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "cli/local_model.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cuda/order_for_test.h"

namespace floe::cli {
namespace {

constexpr int64_t kMostRows = 33;

struct Case {
  nlohmann::json description;
  NamedTensors inputs, outputs;
};

absl::StatusOr<Case> ReadCase(const std::filesystem::path& folder) {
  Case c;
  c.description = nlohmann::json::parse(std::ifstream(folder / "case.json"));
  FLOE_ASSIGN_OR_RETURN(const NamedTensors arrays, ReadNpz((folder / "io.npz").string()));
  for (const auto& [name, tensor] : arrays) {
    if (name.rfind("in__", 0) == 0) c.inputs.emplace_back(name.substr(4), tensor);
    if (name.rfind("out__", 0) == 0) c.outputs.emplace_back(name.substr(5), tensor);
  }
  return c;
}

LocalModel Load(const std::string& folder, const Case& c,
                std::optional<Placement> islands = std::nullopt) {
  LocalOptions options;
  options.compile.islands = std::move(islands);
  for (const auto& [name, tensor] : c.outputs) options.fetches.push_back(name);
  auto loaded = LoadLocal(folder + "/graph.pb", options);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : LocalModel();
}

class ReferenceModel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam().empty()) GTEST_SKIP() << "needs ../shared";
    auto read = ReadCase(GetParam());
    ASSERT_TRUE(read.ok()) << read.status();
    case_ = *std::move(read);
    model_ = Load(GetParam(), case_);
    ASSERT_NE(model_.signature, nullptr);
    auto inputs = MatchInputs(model_.def(), case_.inputs, {});
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    inputs_ = *std::move(inputs);
  }

  // All outputs of one call.
  static std::vector<Tensor> Run(const LocalModel& model, const std::vector<Tensor>& inputs,
                                 ExecContext& context) {
    auto call = BindCall(*model.signature, inputs);
    EXPECT_TRUE(call.ok()) << call.status();
    if (!call.ok()) return {};
    // What memory held before must not show: answers that should agree come from different fills.
    static std::atomic<int> runs{0};
    context.CheckMemory(runs++ % 2 == 0 ? MemoryFill::kOnes : MemoryFill::kStripes);
    const absl::Status status = RunCall(*call, context);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<Tensor> outputs;
    for (size_t k = 0; k < model.def().outputs.size() && status.ok(); ++k)
      outputs.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
    return outputs;
  }

  // Rows [first, first + rows) of every input. There are as many as one likes: the case's own in
  // turn, each time around a little darker.
  std::vector<Tensor> Rows(int64_t first, int64_t rows) const {
    std::vector<Tensor> part = inputs_;
    for (Tensor& t : part) {
      if (!t.valid() || t.shape().rank() == 0) continue;
      Shape shape = t.shape();
      const int64_t all = shape.dim(0), row_bytes = static_cast<int64_t>(t.bytes()) / all;
      shape.set_dim(0, rows);
      Tensor some = Tensor::Allocate(t.dtype(), shape);
      for (int64_t r = 0; r < rows; ++r) {
        char* to = static_cast<char*>(some.mutable_data()) + r * row_bytes;
        std::memcpy(to, t.as<char>() + (first + r) % all * row_bytes, row_bytes);
        Darken(t.dtype(), to, row_bytes, (first + r) / all);
      }
      t = some;
    }
    return part;
  }

  static void Darken(DType dtype, char* row, int64_t bytes, int64_t times) {
    if (dtype == DType::kFloat32) {
      auto* values = reinterpret_cast<float*>(row);
      for (int64_t i = 0; i < bytes / 4; ++i) values[i] *= 1 - .02f * static_cast<float>(times);
    } else if (dtype == DType::kUInt8) {
      for (int64_t i = 0; i < bytes; ++i)
        row[i] = static_cast<char>(static_cast<uint8_t>(row[i]) * (50 - times) / 50);
    }
  }

  // The batches tried: all sizes where that takes seconds, some where it takes minutes.
  std::vector<int64_t> Batches(const LocalModel& model) const {
    const auto call = BindCall(*model.signature, Rows(0, 1));
    EXPECT_TRUE(call.ok()) << call.status();
    const double flops = call.ok() ? call->plan->Flops(1) : 0;
    if (flops > 1e9 * kScale) return {2, 5};
    if (flops > 3e7 * kScale) return {2, 3, 7, 16};
    std::vector<int64_t> batches;
    for (int64_t rows = 2; rows <= kMostRows; ++rows) batches.push_back(rows);
    return batches;
  }

  using Answers = std::vector<std::vector<Tensor>>;  // of each row by itself, all outputs
  Answers Alone(const LocalModel& model, int64_t rows, ExecContext& context) const {
    Answers answers;
    for (int64_t r = 0; r < rows; ++r) answers.push_back(Run(model, Rows(r, 1), context));
    return answers;
  }

  void ExpectSameBits(const LocalModel& model, const Answers& alone, int64_t first, int64_t rows,
                      ExecContext& context, const std::string& how) const {
    const std::vector<Tensor> batch = Run(model, Rows(first, rows), context);
    for (size_t k = 0; k < batch.size(); ++k) {
      for (int64_t r = 0; r < rows; ++r) {
        const Tensor& want = alone[first + r][k];
        ASSERT_EQ(batch[k].bytes(), want.bytes() * rows);
        ASSERT_EQ(std::memcmp(batch[k].as<char>() + r * want.bytes(), want.data(), want.bytes()), 0)
            << "output " << k << ", row " << first + r << " at place " << r << " of " << rows
            << ", " << how;
      }
    }
  }

  void ExpectTensorFlowsAnswers(const std::vector<Tensor>& outputs) const {
    const double rtol = case_.description["rtol"], atol = case_.description["atol"];
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Tensor& want = case_.outputs[k].second;
      ASSERT_EQ(outputs[k].shape(), want.shape());
      ASSERT_EQ(outputs[k].dtype(), want.dtype());
      for (int64_t i = 0; i < want.elements(); ++i) {
        const double w = want.as<float>()[i];
        ASSERT_NEAR(outputs[k].as<float>()[i], w, atol + rtol * std::abs(w))
            << case_.outputs[k].first << " element " << i;
      }
    }
  }

  static int CountIslands(const LocalModel& model) {
    const Graph& graph = model.signature->default_variant().graph();
    return static_cast<int>(
        std::count_if(graph.nodes().begin(), graph.nodes().end(),
                      [](const Node& node) { return node.op->name == "OnDevice"; }));
  }

#ifdef FLOE_SANITIZED
  static constexpr double kScale = .01;
#else
  static constexpr double kScale = 1;
#endif
  // With sanitizers it takes minutes beyond its answers.
  static bool IsLong() { return kScale < 1 && absl::StrContains(GetParam(), "ssd_mobilenet"); }
  Case case_;
  LocalModel model_;
  std::vector<Tensor> inputs_;
};

TEST_P(ReferenceModel, GivesTensorFlowsAnswers) {
  ExecContext context;
  ExpectTensorFlowsAnswers(Run(model_, inputs_, context));
}

TEST_P(ReferenceModel, HasTheSameBitsInIslandsOfTheHost) {
  const LocalModel islands = Load(GetParam(), case_, Placement{.all = true});
  ASSERT_NE(islands.signature, nullptr);
  ExecContext context, plain;
  const std::vector<Tensor> got = Run(islands, inputs_, context),
                            want = Run(model_, inputs_, plain);
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].bytes(), want[k].bytes());
    EXPECT_EQ(std::memcmp(got[k].data(), want[k].data(), got[k].bytes()), 0) << "output " << k;
  }
}

// The kernels for GPUs, on the host, in three orders of threads and blocks. A model whose calls
// take minutes there is left out.
TEST_P(ReferenceModel, GivesTensorFlowsAnswersOnTheEmulatedDevice) {
  const LocalModel islands =
      Load(GetParam(), case_, Placement{.device = DeviceKind::kCuda, .small = true});
  ASSERT_NE(islands.signature, nullptr);
  const auto call = BindCall(*islands.signature, Rows(0, 1));
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(CountIslands(islands), 1);
  // The island is all that there is. SSD's loops and suppression stay on the host.
  const bool stays = absl::StrContains(GetParam(), "ssd_mobilenet");
  EXPECT_EQ(call->plan->steps().size() > 1, stays);
  if (IsLong()) return;
  const double flops = call->plan->Flops(1), most = 3e9 * kScale;  // some ten seconds
  if (flops > most) return;
  ExecContext context;
  ExpectTensorFlowsAnswers(Run(islands, inputs_, context));
  const int64_t rows = std::min<int64_t>(3, static_cast<int64_t>(most / flops) - 1);
  if (rows <= 1) return;
  Answers alone;
  {
    const cuda::ScopedEmulatorOptions scoped({cuda::EmulatorOrder::kBackward});
    alone = Alone(islands, rows, context);
  }
  const cuda::ScopedEmulatorOptions scoped({cuda::EmulatorOrder::kShuffled, 1});
  ExpectSameBits(islands, alone, 0, rows, context, "emulated");
}

TEST_P(ReferenceModel, ARowHasTheSameBitsInEveryBatchPlaceAndThreadCount) {
  if (IsLong()) return;
  const std::vector<int64_t> batches = Batches(model_);
  const int64_t largest = batches.back();
  ExecContext context;
  const Answers alone = Alone(model_, largest, context);
  for (int threads : {1, 2, 3}) {
    ExecContext several(threads);
    for (const int64_t rows : batches) {
      const std::string how = std::to_string(threads) + " threads";
      ExpectSameBits(model_, alone, 0, rows, several, how);
      ExpectSameBits(model_, alone, largest - rows, rows, several, how);
    }
  }
}

TEST_P(ReferenceModel, ARowHasTheSameBitsOverLoadsAndCallers) {
  if (IsLong()) return;
  ExecContext context;
  const Answers alone = Alone(model_, 3, context);
  const LocalModel again = Load(GetParam(), case_);
  ASSERT_NE(again.signature, nullptr);
  ExpectSameBits(again, alone, 0, 3, context, "another load");
  std::thread([&] {
    ExecContext own;
    ExpectSameBits(model_, alone, 0, 3, own, "another thread");
  }).join();
}

TEST_P(ReferenceModel, ARowHasTheSameBitsOnEachInstructionSet) {
  if (IsLong()) return;
  for (const int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    const LocalModel lowered = Load(GetParam(), case_);
    if (lowered.signature != nullptr) {
      const int64_t rows = std::min<int64_t>(Batches(lowered).back(), 5);
      ExecContext context, several(3);
      const Answers alone = Alone(lowered, rows, context);
      ExpectSameBits(lowered, alone, 0, rows, several, hwy::TargetName(isa));
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

// Every folder with a graph and answers. An empty path stands for "there are none".
std::vector<std::string> Models() {
  std::vector<std::string> models;
  const char* more = std::getenv("FLOE_MODELS");
  for (const std::filesystem::path& folder :
       {std::filesystem::path(FLOE_SOURCE_DIR) / ".." / "shared" / "models",
        std::filesystem::path(more == nullptr ? "" : more)}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
#ifdef FLOE_SANITIZED
      if (entry.path().filename() == "medium_1400") continue;  // 270 GFLOP a call: half an hour
#endif
      if (std::filesystem::exists(entry.path() / "io.npz", none))
        models.push_back(entry.path().string());
    }
  }
  std::sort(models.begin(), models.end());
  if (models.empty()) models.emplace_back();
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceModel, testing::ValuesIn(Models()), [](const auto& info) {
  return info.param.empty() ? "none" : std::filesystem::path(info.param).filename().string();
});

}  // namespace
}  // namespace floe::cli
