// Any bytes as a model file: import, compile, bind and two runs, within small limits.
#include "base/status.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/graph_mutator.h"
#include "tests/fuzz/run_model.h"

namespace floe::fuzz {
namespace {

absl::Status LoadAndRun(const std::string& bytes, Random random) {
  ImportOptions import;
  import.limits = kLimits;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportBytes(bytes, import));
  return CompileAndRun(std::move(imported), random);
}

// The file as a message, from either form.
bool Parse(const std::string& bytes, tensorflow::GraphDef* graph) {
  google::protobuf::TextFormat::Parser text;
  class Silent : public google::protobuf::io::ErrorCollector {
    void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  } silent;
  text.RecordErrorsTo(&silent);
  return graph->ParseFromString(bytes) || text.ParseFromString(bytes, graph);
}

std::string Form(const tensorflow::GraphDef& graph, Random& random) {
  std::string bytes;
  constexpr int kTextOnceIn = 40;
  if (!random.OneIn(kTextOnceIn)) return graph.SerializeAsString();
  google::protobuf::TextFormat::PrintToString(graph, &bytes);
  return bytes;
}

}  // namespace
}  // namespace floe::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const floe::fuzz::UnitTimer timer;
  const absl::Status ran = floe::fuzz::LoadAndRun(
      std::string(reinterpret_cast<const char*>(data), size), floe::fuzz::ChoicesOf(data, size));
  floe::fuzz::Report(ran);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  tensorflow::GraphDef graph;
  constexpr int kBytesOnceIn = 30;
  if (random.OneIn(kBytesOnceIn) || !Parse(bytes, &graph))
    return Give(MutateBytes(bytes, max_size), data, max_size);
  Templates::Shared().Learn(graph);
  GraphMutator mutator(&graph, &random);
  for (int changes = 1 + random.Below(random.OneIn(4) ? 6 : 2); changes > 0; --changes)
    mutator.Mutate();
  return Give(Form(graph, random), data, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_out_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  tensorflow::GraphDef graph, other;
  if (!Parse(std::string(reinterpret_cast<const char*>(data1), size1), &graph) ||
      !Parse(std::string(reinterpret_cast<const char*>(data2), size2), &other))
    return 0;
  GraphMutator(&graph, &random).Splice(other);
  return Give(Form(graph, random), out, max_out_size);
}
