#include "tests/island_check.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/local_model.h"

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

absl::StatusOr<std::vector<Tensor>> Outputs(const CorpusCase& c, const cli::LocalModel& model) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, InputsOf(c, model.def()));
  FLOE_ASSIGN_OR_RETURN(const cli::BoundCall call, cli::BindCall(*model.signature, inputs));
  ExecContext context;
  FLOE_RETURN_IF_ERROR(cli::RunCall(call, context));
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < c.outputs.size(); ++k)
    outputs.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
  return outputs;
}

absl::StatusOr<cli::LocalModel> Compile(const CorpusCase& c, const CorpusVariant& variant,
                                        const CompileOptions& compile) {
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportCorpusCase(c, variant));
  return CompileCorpusCase(c, std::move(imported), compile);
}

}  // namespace

absl::StatusOr<int> CheckIslands(const CorpusCase& c, const CorpusVariant& variant,
                                 DeviceKind device) {
  const CompileOptions with{.islands = Placement{.device = device, .all = true}};
  FLOE_RETURN_IF_ERROR(RunCorpusCase(c, variant, with));
  if (!c.fails.empty()) return 0;
  FLOE_ASSIGN_OR_RETURN(const cli::LocalModel islands, Compile(c, variant, with));
  const int nodes = NodesInIslands(islands.signature->default_variant());
  if (device != kHostDevice || nodes == 0 || !c.values || !c.repeats) return nodes;
  FLOE_ASSIGN_OR_RETURN(const cli::LocalModel plain, Compile(c, variant, {}));
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> got, Outputs(c, islands));
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> want, Outputs(c, plain));
  for (size_t k = 0; k < want.size(); ++k) {
    if (!c.outputs[k].bounds.has_value() && !SameBitsButNaN(got[k].view(), want[k].view()))
      return absl::DataLossError(
          absl::StrCat("output '", c.outputs[k].name, "' has other bits in an island"));
  }
  return nodes;
}

}  // namespace floe::corpus
