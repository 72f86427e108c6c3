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

absl::Status RunUnit(const std::string& bytes) { return LoadAndRun(bytes, ChoicesOf(bytes)); }

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  tensorflow::GraphDef graph;
  constexpr int kBytesOnceIn = 30;
  if (random.OneIn(kBytesOnceIn) || !Parse(bytes, &graph)) return MutateBytes(bytes, max_size);
  Templates::Shared().Learn(graph);
  GraphMutator mutator(&graph, &random);
  for (int changes = 1 + random.Below(random.OneIn(4) ? 6 : 2); changes > 0; --changes)
    mutator.Mutate();
  return Form(graph, random);
}

std::string CrossUnits(const std::string& bytes, const std::string& others, Random& random) {
  tensorflow::GraphDef graph, other;
  if (!Parse(bytes, &graph) || !Parse(others, &other)) return "";
  GraphMutator(&graph, &random).Splice(other);
  return Form(graph, random);
}

}  // namespace floe::fuzz
