// Frozen graphs of all sorts beside the checkout, fed and fetched where their descriptions say,
// inside the graph too: TensorFlow's answers for one row and for three, over memory that is filled
// in two ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "cli/local_model.h"
#include "tests/corpus_case.h"

namespace floe::cli {
namespace {

namespace fs = std::filesystem;

class FoundGraph : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam().empty()) GTEST_SKIP() << "needs ../shared";
    description_ = nlohmann::json::parse(std::ifstream(fs::path(GetParam()) / "meta.json"));
    for (const auto& fetch : description_["fetch"]) fetches_.push_back(fetch);
  }

  std::string File(const std::string& name) const { return GetParam() + "/" + name; }

  // Feeds the arrays of one file and compares with those of another.
  absl::Status Check(const std::string& in, const std::string& out) const {
    FLOE_ASSIGN_OR_RETURN(const NamedTensors arrays, ReadNpz(File(in)));
    FLOE_ASSIGN_OR_RETURN(const NamedTensors answers, ReadNpz(File(out)));
    LocalOptions options;
    options.fetches = fetches_;
    options.feeds = FeedsOf(arrays);
    FLOE_ASSIGN_OR_RETURN(const LocalModel model, LoadLocal(File("graph.pb"), options));
    MatchOptions match;
    for (const auto& [name, dims] : description_["str"].items())
      match.string_shapes.emplace_back(name, Shape(dims.get<std::vector<int64_t>>()));
    FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                          MatchInputs(model.def(), arrays, match));
    FLOE_ASSIGN_OR_RETURN(const BoundCall call, BindCall(*model.signature, inputs));
    // What a run answers may not depend on what memory held before it.
    ExecContext context;
    context.CheckMemory(MemoryFill::kOnes);
    FLOE_RETURN_IF_ERROR(RunCall(call, context));
    FLOE_RETURN_IF_ERROR(Compare(answers, context));
    std::vector<Tensor> first;
    for (size_t k = 0; k < fetches_.size(); ++k)
      first.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
    context.CheckMemory(MemoryFill::kStripes);
    FLOE_RETURN_IF_ERROR(RunCall(call, context));
    for (size_t k = 0; k < fetches_.size(); ++k) {
      if (!IsRandom(fetches_[k]) &&
          !corpus::SameBits(first[k].view(), context.Output(static_cast<int>(k))))
        return absl::DataLossError(fetches_[k] + " depends on what memory held before the run");
    }
    return absl::OkStatus();
  }

  bool IsRandom(const std::string& fetch) const {
    const auto& random = description_["random"];
    return std::find(random.begin(), random.end(), fetch) != random.end();
  }

  absl::Status Compare(const NamedTensors& answers, const ExecContext& context) const {
    corpus::CorpusCase tolerance;
    tolerance.rtol = 1e-3;
    tolerance.atol = 1e-5;
    for (size_t k = 0; k < fetches_.size(); ++k) {
      const Tensor* const want =
          FindTensor(answers, absl::StrReplaceAll(fetches_[k], {{":", "__"}}));
      if (want == nullptr) return absl::NotFoundError("no answer for " + fetches_[k]);
      tolerance.values = !IsRandom(fetches_[k]);
      FLOE_RETURN_IF_ERROR(Annotate(
          corpus::CompareTensors(tolerance, context.Output(static_cast<int>(k)), want->view()),
          fetches_[k]));
    }
    return absl::OkStatus();
  }

  nlohmann::json description_;
  std::vector<std::string> fetches_;
};

TEST_P(FoundGraph, GivesTensorFlowsAnswers) {
  const absl::Status one = Check("in1.npz", "out1.npz");
  EXPECT_TRUE(one.ok()) << one;
  if (!fs::exists(File("in3.npz"))) return;
  const absl::Status three = Check("in3.npz", "out3.npz");
  EXPECT_TRUE(three.ok()) << three;
}

// Every folder two levels below ../shared with a graph, its description and its answers. An empty
// path stands for "there are none".
std::vector<std::string> Graphs() {
  std::vector<std::string> graphs;
  std::error_code none;
  for (const auto& group :
       fs::directory_iterator(fs::path(FLOE_SOURCE_DIR) / ".." / "shared", none)) {
    for (const auto& entry : fs::directory_iterator(group.path(), none)) {
      const fs::path& folder = entry.path();
      if (fs::exists(folder / "meta.json", none) && fs::exists(folder / "out1.npz", none))
        graphs.push_back(folder.string());
    }
  }
  std::sort(graphs.begin(), graphs.end());
  if (graphs.empty()) graphs.emplace_back();
  return graphs;
}

INSTANTIATE_TEST_SUITE_P(Graphs, FoundGraph, testing::ValuesIn(Graphs()), [](const auto& info) {
  std::string name = info.param.empty() ? "none" : fs::path(info.param).filename().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace floe::cli
