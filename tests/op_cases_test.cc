// Every op against the project's own cases (tests/op_cases): TensorFlow's answers, the proof that
// rows may be batched, and that no op is without kernel, cases or its line in docs/ops.md.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/rounds_for_test.h"
#include "cli/ops_report.h"
#include "kernels/kernel.h"
#include "model/attrs.h"
#include "model/import/graphdef/known_attributes.h"
#include "model/op_def.h"
#include "runtime/passes/passes.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tests/island_check.h"
#include "tests/op_case_file.h"
#include "tests/row_check.h"

namespace floe::corpus {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = FLOE_SOURCE_DIR;

// All families and the graphs in graphs/, in the order of their names; cases named family/case.
// FLOE_CORPUS_FILTER=TEXT leaves only cases with TEXT in their names.
const std::vector<CorpusCase>& AllCases() {
  static const std::vector<CorpusCase> all = [] {
    std::vector<fs::path> files;
    const fs::path folder = kSource / "tests" / "op_cases";
    for (const fs::path& some : {folder, folder / "graphs"}) {
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(some, none)) {
        if (entry.path().extension() == ".txt") files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
    const char* filter = std::getenv("FLOE_CORPUS_FILTER");
    std::vector<CorpusCase> cases;
    for (const fs::path& file : files) {
      auto family = ReadOpCases(file);
      EXPECT_TRUE(family.ok()) << family.status();
      if (!family.ok()) continue;
      for (CorpusCase& c : *family) {
        std::string& name = c.variants[0].name;
        name = file.parent_path() == folder ? absl::StrCat(file.stem().string(), "/", name)
                                            : absl::StrCat("graphs/", name);
        if (filter == nullptr || absl::StrContains(name, filter)) cases.push_back(std::move(c));
      }
    }
    return cases;
  }();
  return all;
}

// For tests that run them in other ways than the first one does.
std::vector<CorpusCase> CasesToRepeat() {
  const std::vector<CorpusCase>& all = AllCases();
  std::vector<CorpusCase> some;
  for (size_t i = 0; i < all.size(); i += kEveryCase) some.push_back(all[i]);
  return some;
}

TEST(OpCases, GiveTensorFlowsAnswers) {
  for (const CorpusCase& c : AllCases()) {
    const absl::Status status = RunCorpusCase(c, c.variants[0]);
    EXPECT_TRUE(status.ok()) << c.variants[0].name << ": " << status.message();
  }
}

// A pass may make a graph faster, never right. Under a sanitizer, where each round takes long, the
// graphs run without all passes at once only.
TEST(OpCases, GiveThemWithoutEachPassToo) {
  std::vector<std::string> passes = {"all"};
#ifndef FLOE_SANITIZED
  for (const std::string& pass : PassNames()) passes.push_back(pass);
#endif
  for (const CorpusCase& c : CasesToRepeat()) {
    for (const std::string& pass : passes) {
      const absl::Status status = RunCorpusCase(c, c.variants[0], {.disabled_passes = {pass}});
      EXPECT_TRUE(status.ok()) << c.variants[0].name << " without " << pass << ": "
                               << status.message();
    }
  }
}

TEST(OpCases, GiveTheSameWithNothingDeclared) {
#ifdef FLOE_SANITIZED
  const std::vector<bool> declared = {false};
#else
  const std::vector<bool> declared = {false, true};
#endif
  for (const CorpusCase& c : CasesToRepeat()) {
    for (const bool ranks : declared) {
      const absl::Status status = RunUndeclaredCase(c, c.variants[0], ranks);
      EXPECT_TRUE(status.ok()) << c.variants[0].name << (ranks ? ", ranks" : ", nothing")
                               << " declared: " << status.message();
    }
  }
}

TEST(OpCases, ProvedRowsKeepTheirBitsInCompany) {
  int proved = 0;
  for (const CorpusCase& c : CasesToRepeat()) {
    const auto checked = CheckRows(c, c.variants[0]);
    EXPECT_TRUE(checked.ok()) << c.variants[0].name << ": " << checked.status().message();
    if (!checked.ok()) continue;
    EXPECT_TRUE(*checked > 0 || !c.batchable) << c.variants[0].name << " is not proved batchable";
    proved += *checked;
  }
  std::cout << proved << " signatures are proved batchable\n";
  if (std::getenv("FLOE_CORPUS_FILTER") == nullptr) {
    EXPECT_GT(proved, 500 / kEveryCase);
  }
}

// TensorFlow, and floe on the CPU, take denormals for 0; GPUs keep them.
bool HasDenormals(const std::string& name) {
  return name == "special/Sum_float32_subnormal" || name == "special/Mean_float32_subnormal";
}

// In islands of the host with the same bits; on the emulated device by its own kernels, and with
// rows that keep their bits in company there too.
TEST(OpCases, GiveTheirAnswersInIslands) {
  for (const DeviceKind device : {kHostDevice, DeviceKind::kCuda}) {
    int nodes = 0, cases = 0;
    for (const CorpusCase& c : CasesToRepeat()) {
      if (device != kHostDevice && HasDenormals(c.variants[0].name)) continue;
      const auto checked = CheckIslands(c, c.variants[0], device);
      EXPECT_TRUE(checked.ok()) << c.variants[0].name << ": " << checked.status().message();
      if (!checked.ok()) continue;
      nodes += *checked;
      cases += *checked > 0;
      if (device == kHostDevice || *checked == 0) continue;
      const auto rows = CheckRows(c, c.variants[0], {.islands = Placement{device, /*all=*/true}});
      EXPECT_TRUE(rows.ok()) << c.variants[0].name << ": " << rows.status().message();
    }
    std::cout << nodes << " nodes of " << cases << " cases are in islands of "
              << (device == kHostDevice ? "the host" : "the emulated device") << "\n";
    if (std::getenv("FLOE_CORPUS_FILTER") == nullptr) {
      EXPECT_GT(cases, 500 / kEveryCase);
    }
  }
}

// Ops with references to variables, which frozen graphs do not have, so that no such file can be
// made.
bool NeedsVariables(const std::string& name) { return absl::StartsWith(name, "Ref"); }

TEST(Ops, HaveAKernelOrAReason) {
  for (const OpDef* op : AllOps()) {
    const bool kernel = op->alias || !KernelDTypes(op->name, DeviceKind::kCpu).empty();
    if (op->tensorflow.empty()) continue;
    EXPECT_NE(kernel, op->without_kernel != nullptr)
        << op->name << " has " << (kernel ? "both a kernel and" : "neither a kernel nor")
        << " OpDef::without_kernel";
    EXPECT_TRUE(op->outputs == 0 || op->outputs == 1 || !op->output_names.empty())
        << op->name << " has " << op->outputs << " outputs but no OpDef::output_names";
  }
}

TEST(Ops, HaveCases) {
  if (std::getenv("FLOE_CORPUS_FILTER") != nullptr) return;  // not all were read
  std::set<std::string> used;
  const std::regex op("op: \"([A-Za-z0-9_]+)\"");
  for (const CorpusCase& c : AllCases()) {
    const std::string& text = c.variants[0].text;
    for (std::sregex_iterator it(text.begin(), text.end(), op), end; it != end; ++it)
      used.insert((*it)[1]);
  }
  for (const OpDef* def : AllOps()) {
    for (const std::string& name : def->tensorflow) {
      EXPECT_TRUE(used.count(name) != 0 || NeedsVariables(name))
          << name << " has no case; add one to a family in tests/op_cases and run make.py there";
    }
  }
}

// What the table of known attributes calls read is looked up by the op, or by who imports it. No
// sanitizer learns anything by it.
#ifndef FLOE_SANITIZED
TEST(Ops, ReadTheAttributesThatAreCalledRead) {
  if (std::getenv("FLOE_CORPUS_FILTER") != nullptr) return;  // not all were read
  std::set<std::pair<std::string, std::string>> seen, read;
  for (const CorpusCase& c : AllCases()) {
    tensorflow::GraphDef graph;
    if (!google::protobuf::TextFormat::ParseFromString(c.variants[0].text, &graph)) continue;
    std::set<std::string> names;
    attrs_looked_up = &names;
    (void)RunCorpusCase(c, c.variants[0], {.disabled_passes = {"all"}});
    attrs_looked_up = nullptr;
    for (const tensorflow::NodeDef& node : graph.node()) {
      for (const auto& [name, value] : node.attr()) {
        seen.emplace(node.op(), name);
        if (names.count(name) != 0) read.emplace(node.op(), name);
      }
    }
  }
  EXPECT_GT(read.size(), 500);
  for (const auto& [op, attribute] : AttributesThatOpsRead()) {
    const std::pair<std::string, std::string> one(op, attribute);
    EXPECT_TRUE(seen.count(one) != 0 || NeedsVariables(one.first))
        << "no case has " << op << " with " << attribute;
    EXPECT_TRUE(read.count(one) != 0 || seen.count(one) == 0)
        << op << " does not read " << attribute;
  }
}
#endif

TEST(Ops, AreInTheirDocument) {
  std::ifstream file(kSource / "docs" / "ops.md");
  std::stringstream there, wanted;
  there << file.rdbuf();
  cli::PrintOpsMarkdown(wanted);
  std::set<std::string> lines;
  for (std::string line; std::getline(there, line);) lines.insert(line);
  for (std::string line; std::getline(wanted, line);)
    EXPECT_EQ(lines.count(line), 1u) << "docs/ops.md lacks: " << line;
  EXPECT_EQ(there.str(), wanted.str())
      << "docs/ops.md is out of date; write it with: floectl ops --markdown > docs/ops.md";
}

}  // namespace
}  // namespace floe::corpus
