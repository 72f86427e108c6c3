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
}  // namespace floe::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const floe::fuzz::UnitTimer timer;
  floe::fuzz::Report(floe::fuzz::LoadAndRun(std::string(reinterpret_cast<const char*>(data), size),
                                            floe::fuzz::ChoicesOf(data, size)));
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  tensorflow::SavedModel saved;
  constexpr int kBytesOnceIn = 30;
  if (random.OneIn(kBytesOnceIn) || !saved.ParseFromString(bytes))
    return Give(MutateBytes(bytes, max_size), data, max_size);
  for (const auto& meta : saved.meta_graphs()) Templates::Shared().Learn(meta.graph_def());
  for (int changes = 1 + random.Below(random.OneIn(4) ? 6 : 2); changes > 0; --changes)
    Mutate(&saved, random);
  return Give(saved.SerializeAsString(), data, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_out_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  tensorflow::SavedModel first, second;
  if (!first.ParseFromArray(data1, static_cast<int>(size1)) ||
      !second.ParseFromArray(data2, static_cast<int>(size2)))
    return Give(std::string(reinterpret_cast<const char*>(data1), size1), out, max_out_size);
  ProtoMutator(&random).CrossOver(&first, second);
  return Give(first.SerializeAsString(), out, max_out_size);
}
