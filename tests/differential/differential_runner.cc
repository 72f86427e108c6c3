// Runs case files (tests/op_case_file.h) in every way that must give the same answers, and prints a
// line for each way that did not: "NAME | WAY | MESSAGE". "NAME | refused | MESSAGE" stands for a
// graph that cannot be loaded. Before each case: "case NAME", so that the last one of a crash is
// known.
//
//   differential_runner FILE...
#include <hwy/targets.h>

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "runtime/passes/passes.h"
#include "tests/op_case_file.h"
#include "tests/row_check.h"

namespace floe::corpus {
namespace {

// The case's outputs from a run with so many threads.
absl::StatusOr<std::vector<Tensor>> Outputs(const CorpusCase& c, const cli::LocalModel& model,
                                            int threads) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, InputsOf(c, model.def()));
  FLOE_ASSIGN_OR_RETURN(const cli::BoundCall call, cli::BindCall(*model.signature, inputs));
  ExecContext context(threads);
  FLOE_RETURN_IF_ERROR(cli::RunCall(call, context));
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < c.outputs.size(); ++k)
    outputs.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
  return outputs;
}

absl::Status CheckThreads(const CorpusCase& c) {
  if (!c.fails.empty()) return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportCorpusCase(c, c.variants[0]));
  FLOE_ASSIGN_OR_RETURN(const cli::LocalModel model, CompileCorpusCase(c, std::move(imported)));
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> one, Outputs(c, model, 1));
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> two, Outputs(c, model, 2));
  for (size_t k = 0; k < one.size(); ++k)
    if (!SameBitsButNaN(one[k].view(), two[k].view()))
      return absl::DataLossError(absl::StrCat("output ", k, ": not the bits of one thread"));
  return absl::OkStatus();
}

struct Way {
  std::string name;
  std::function<absl::Status(const CorpusCase&)> run;
};

std::vector<Way> Ways() {
  std::vector<Way> ways = {
      {"as it is", [](const CorpusCase& c) { return RunCorpusCase(c, c.variants[0]); }},
      {"without passes",
       [](const CorpusCase& c) {
         return RunCorpusCase(c, c.variants[0], {.disabled_passes = {"all"}});
       }},
      {"ranks declared",
       [](const CorpusCase& c) { return RunUndeclaredCase(c, c.variants[0], true); }},
      {"nothing declared",
       [](const CorpusCase& c) { return RunUndeclaredCase(c, c.variants[0], false); }},
      {"rows", [](const CorpusCase& c) { return CheckRows(c, c.variants[0]).status(); }},
      {"two threads", CheckThreads},
  };
  for (const int64_t isa : hwy::SupportedAndGeneratedTargets()) {
    ways.push_back({hwy::TargetName(isa), [isa](const CorpusCase& c) {
                      hwy::SetSupportedTargetsForTest(isa);
                      const absl::Status status = RunCorpusCase(c, c.variants[0]);
                      hwy::SetSupportedTargetsForTest(0);
                      return status;
                    }});
  }
  return ways;
}

void Print(const std::string& name, const std::string& way, const absl::Status& status) {
  std::cout << name << " | " << way << " | "
            << absl::StrReplaceAll(std::string(status.message()), {{"\n", " "}}) << std::endl;
}

void RunCase(const CorpusCase& c, const std::vector<Way>& ways) {
  const std::string& name = c.variants[0].name;
  std::cout << "case " << name << std::endl;
  auto imported = ImportCorpusCase(c, c.variants[0]);
  if (!imported.ok()) return Print(name, "refused", imported.status());
  if (const auto model = CompileCorpusCase(c, *std::move(imported)); !model.ok())
    return Print(name, "refused", model.status());
  for (const Way& way : ways)
    if (const absl::Status status = way.run(c); !status.ok()) Print(name, way.name, status);
}

}  // namespace
}  // namespace floe::corpus

int main(int argc, char** argv) {
  using namespace floe::corpus;
  const std::vector<Way> ways = Ways();
  for (int i = 1; i < argc; ++i) {
    const auto cases = ReadOpCases(argv[i]);
    if (!cases.ok()) {
      std::cerr << cases.status() << "\n";
      return 2;
    }
    for (const CorpusCase& c : *cases) RunCase(c, ways);
  }
  return 0;
}
