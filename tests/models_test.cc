// The reference models beside the checkout: TensorFlow's answers, and the same bits for a row
// whatever its batch, position and thread count.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/local_model.h"

namespace floe::cli {
namespace {

const std::filesystem::path kModels =
    std::filesystem::path(FLOE_SOURCE_DIR) / ".." / "shared" / "models";

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

class ReferenceModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::filesystem::path folder = kModels / GetParam();
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "needs ../shared";
    auto read = ReadCase(folder);
    ASSERT_TRUE(read.ok()) << read.status();
    case_ = *std::move(read);
    LocalOptions options;
    for (const auto& [name, tensor] : case_.outputs) options.fetches.push_back(name);
    auto loaded = LoadLocal((folder / "graph.pb").string(), options);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model_ = *std::move(loaded);
    auto inputs = MatchInputs(model_.def(), case_.inputs, {});
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    inputs_ = *std::move(inputs);
  }

  // All outputs of one call.
  std::vector<Tensor> Run(const std::vector<Tensor>& inputs, ExecContext& context) {
    auto call = BindCall(*model_.signature, inputs);
    EXPECT_TRUE(call.ok()) << call.status();
    const absl::Status status = RunCall(*call, context);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<Tensor> outputs;
    for (size_t k = 0; k < model_.def().outputs.size(); ++k)
      outputs.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
    return outputs;
  }

  // Rows [first, first + rows) of every input that has rows.
  std::vector<Tensor> Rows(int64_t first, int64_t rows) const {
    std::vector<Tensor> part = inputs_;
    for (Tensor& t : part) {
      if (!t.valid() || t.shape().rank() == 0) continue;
      Shape shape = t.shape();
      const size_t row_bytes = t.bytes() / shape.dim(0);
      shape.set_dim(0, rows);
      Tensor some = Tensor::Allocate(t.dtype(), shape);
      std::memcpy(some.mutable_data(), t.as<char>() + first * row_bytes, rows * row_bytes);
      t = some;
    }
    return part;
  }

  int64_t AllRows() const {
    int64_t rows = 1;
    for (const Tensor& t : inputs_) {
      if (t.valid() && t.shape().rank() > 0) rows = t.shape().dim(0);
    }
    return rows;
  }

  Case case_;
  LocalModel model_;
  std::vector<Tensor> inputs_;
};

TEST_P(ReferenceModel, GivesTensorFlowsAnswers) {
  ExecContext context;
  const std::vector<Tensor> outputs = Run(inputs_, context);
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

TEST_P(ReferenceModel, ARowHasTheSameBitsInEveryBatchAndThreadCount) {
  const int64_t all = AllRows();
  if (all < 2) return;  // a case of one row has nothing to compare
  const int64_t largest = std::min<int64_t>(all, 33);
  ExecContext alone;
  std::vector<Tensor> single;
  for (int64_t r = 0; r < largest; ++r) single.push_back(Run(Rows(r, 1), alone)[0]);
  for (int threads : {1, 3}) {
    ExecContext context(threads);
    for (int64_t rows : {int64_t{2}, int64_t{3}, int64_t{7}, int64_t{16}, largest}) {
      if (rows > largest) continue;
      const int64_t first = largest - rows;
      const Tensor batch = Run(Rows(first, rows), context)[0];
      for (int64_t r = 0; r < rows; ++r) {
        const Tensor& want = single[first + r];
        ASSERT_EQ(std::memcmp(batch.as<char>() + r * want.bytes(), want.data(), want.bytes()), 0)
            << "row " << first + r << " in a batch of " << rows << " on " << threads << " threads";
      }
    }
  }
}

std::vector<const char*> Models() {
  std::vector<const char*> models = {
      "tiny_dense", "mnist_beginner", "mnist_expert",   "dqn",
      "small_140",  "small_1400",     "small_flat_400", "mobilenet_v2"};
#if !defined(__SANITIZE_ADDRESS__)
  models.push_back("medium_1400");  // 270 GFLOP a call: half an hour under AddressSanitizer
#endif
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceModel, testing::ValuesIn(Models()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace floe::cli
