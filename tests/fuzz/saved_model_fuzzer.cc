// Any bytes as a saved_model.pb, with a checkpoint beside it that the seeds share: import, compile,
// bind and two runs, within small limits.
#include "base/budget.h"
#include "base/status.h"
#include "model/import/savedmodel/saved_model.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/graph_mutator.h"
#include "tests/fuzz/proto_mutator.h"
#include "tests/fuzz/run_model.h"

namespace floe::fuzz {
namespace {

constexpr char kDirectory[] = FLOE_SOURCE_DIR "/tests/fuzz/saved_model";

absl::Status LoadAndRun(const std::string& bytes, Random random) {
  ImportOptions import;
  import.limits = kLimits;
  Budget budget(import.limits);
  const BudgetScope scope(&budget);
  auto imported =
      CatchOutOfMemory([&] { return ImportSavedModelBytes(bytes, kDirectory, import); });
  FLOE_RETURN_IF_ERROR(imported.status());
  return CompileAndRun(*std::move(imported), random);
}

void Mutate(tensorflow::SavedModel* saved, Random& random) {
  if (saved->meta_graphs_size() == 0 || random.OneIn(3)) {
    ProtoMutator(&random).Mutate(saved);
    return;
  }
  const int meta = random.Below(saved->meta_graphs_size());
  GraphMutator(saved->mutable_meta_graphs(meta)->mutable_graph_def(), &random).Mutate();
}

}  // namespace

absl::Status RunUnit(const std::string& bytes) { return LoadAndRun(bytes, ChoicesOf(bytes)); }

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  tensorflow::SavedModel saved;
  constexpr int kBytesOnceIn = 30;
  if (random.OneIn(kBytesOnceIn) || !saved.ParseFromString(bytes))
    return MutateBytes(bytes, max_size);
  for (const auto& meta : saved.meta_graphs()) Templates::Shared().Learn(meta.graph_def());
  for (int changes = 1 + random.Below(random.OneIn(4) ? 6 : 2); changes > 0; --changes)
    Mutate(&saved, random);
  return saved.SerializeAsString();
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  tensorflow::SavedModel first, second;
  if (!first.ParseFromString(one) || !second.ParseFromString(other)) return one;
  ProtoMutator(&random).CrossOver(&first, second);
  return first.SerializeAsString();
}

}  // namespace floe::fuzz
