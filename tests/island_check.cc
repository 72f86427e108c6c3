#include "tests/island_check.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "cli/local_model.h"
#include "kernels/cuda/order_for_test.h"

namespace floe::corpus {
namespace {

int NodesInIslands(const CompiledSignature& program) {
  int nodes = 0;
  for (int i = 0; i < program.graph().size(); ++i) {
    for (const auto& inside : program.subprograms(i)) {
      if (program.graph().node(i).op->name != "OnDevice") {
        nodes += NodesInIslands(*inside);
        continue;
      }
      for (int k = 0; k < inside->graph().size(); ++k) nodes += inside->kernel(k) != nullptr;
    }
  }
  return nodes;
}

absl::StatusOr<cli::LocalModel> Compile(const CorpusCase& c, const CorpusVariant& variant,
                                        const CompileOptions& compile) {
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportCorpusCase(c, variant));
  return CompileCorpusCase(c, std::move(imported), compile);
}

absl::Status ExpectSameAnswers(const CorpusCase& c, const std::vector<Tensor>& got,
                               const std::vector<Tensor>& want, absl::string_view where) {
  for (size_t k = 0; k < want.size(); ++k) {
    if (!c.outputs[k].bounds.has_value() && !SameBitsButNaN(got[k].view(), want[k].view()))
      return absl::DataLossError(
          absl::StrCat("output '", c.outputs[k].name, "' has other bits ", where));
  }
  return absl::OkStatus();
}

// The very bits that the host gives without islands. Sanitizers learn nothing by it.
absl::Status CompareWithHost(const CorpusCase& c, const CorpusVariant& variant,
                             const cli::LocalModel& islands) {
#ifdef FLOE_SANITIZED
  return absl::OkStatus();
#endif
  FLOE_ASSIGN_OR_RETURN(const cli::LocalModel plain, Compile(c, variant, {}));
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> got, AnswersOf(c, islands));
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> want, AnswersOf(c, plain));
  return ExpectSameAnswers(c, got, want, "in an island");
}

// The bits of every other order of threads and blocks.
absl::Status CompareOrders(const CorpusCase& c, const cli::LocalModel& islands) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> want, AnswersOf(c, islands));
  for (const cuda::EmulatorOptions& order :
       {cuda::EmulatorOptions{cuda::EmulatorOrder::kBackward},
        cuda::EmulatorOptions{cuda::EmulatorOrder::kShuffled, 1}}) {
    const cuda::ScopedEmulatorOptions scoped(order);
    FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> got, AnswersOf(c, islands));
    FLOE_RETURN_IF_ERROR(ExpectSameAnswers(c, got, want, "in another order of threads"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> CheckIslands(const CorpusCase& c, const CorpusVariant& variant,
                                 DeviceKind device) {
  FLOE_ASSIGN_OR_RETURN(const cli::LocalModel islands,
                        Compile(c, variant, {.islands = Placement{.device = device, .all = true}}));
  const int nodes = NodesInIslands(islands.signature->default_variant());
  // What has no island runs as it does without a device, which other tests look at.
  if (nodes == 0 && device != kHostDevice) return 0;
  FLOE_RETURN_IF_ERROR(RunCompiledCase(c, islands));
  if (!c.fails.empty()) return 0;
  if (nodes == 0 || !c.values || !c.repeats) return nodes;
  FLOE_RETURN_IF_ERROR(device == kHostDevice ? CompareWithHost(c, variant, islands)
                                             : CompareOrders(c, islands));
  return nodes;
}

}  // namespace floe::corpus
