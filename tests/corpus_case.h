// One case of a corpus, the one beside the checkout or the project's own (tests/op_case_file.h):
// running it in this process, comparing with TensorFlow's answers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/local_model.h"
#include "model/import/import.h"
#include "model/tensor.h"

namespace floe::corpus {

// What is known of a random output: every element's range, their mean and standard deviation.
struct ValueBounds {
  double low = 0, high = 0, mean = 0, deviation = 0;
};

struct CorpusTensor {
  std::string name;  // "node:0"
  Tensor value;
  std::optional<ValueBounds> bounds;  // instead of the values of `value`
};

// A graph of the case: the main one, or another form of the same model.
struct CorpusVariant {
  std::string name;                  // "case", or "case/variant"
  std::filesystem::path graph;       // empty: the graph is `text`
  std::string text;                  // a GraphDef in text form
  std::vector<std::string> outputs;  // by position those of the case
};

struct CorpusCase {
  std::filesystem::path folder;         // where assets are
  std::vector<CorpusVariant> variants;  // the main graph first
  std::vector<CorpusTensor> inputs, outputs;
  std::vector<std::string> init_ops;
  double rtol = 0, atol = 0, mtol = 0;  // mtol 0: no clamping
  bool values = true;                   // false: only dtypes and shapes are compared
  std::string fails;                    // the run must fail with a message that has these words
  bool repeats = true;                  // false: a second run draws other numbers
  bool batchable = false;               // its rows must be proved independent
};

// INVALID_ARGUMENT names what is missing. nlohmann::json's exceptions pass for a malformed
// case.json.
absl::StatusOr<CorpusCase> ReadCorpusCase(const std::filesystem::path& folder);

// The variant's graph with the case's inputs and outputs, as `floectl run` names them, before it is
// compiled.
absl::StatusOr<ImportedModel> ImportCorpusCase(const CorpusCase& c, const CorpusVariant& variant);

// Compiles it with the case's initialisers and files.
absl::StatusOr<cli::LocalModel> CompileCorpusCase(const CorpusCase& c, ImportedModel imported,
                                                  const CompileOptions& compile = {});

// One tensor for each input of the signature, in its order; invalid where the case feeds nothing.
absl::StatusOr<std::vector<Tensor>> InputsOf(const CorpusCase& c, const SignatureDef& def);

// OK when the graph gives the case's answers, twice in one context and once more over memory filled
// otherwise, to the same bits; else the first error or difference.
absl::Status RunCorpusCase(const CorpusCase& c, const CorpusVariant& variant,
                           const CompileOptions& compile = {});

// The same for a model that CompileCorpusCase made.
absl::Status RunCompiledCase(const CorpusCase& c, const cli::LocalModel& model);

// The outputs of one run of it.
absl::StatusOr<std::vector<Tensor>> AnswersOf(const CorpusCase& c, const cli::LocalModel& model);

// As RunCorpusCase, with the graph's constants fed as well and nothing but dtypes declared (with
// `ranks`: and ranks), so that all that depends on them is found out only when the graph runs.
absl::Status RunUndeclaredCase(const CorpusCase& c, const CorpusVariant& variant, bool ranks);

// The outputs of the run that `context` holds against the case's.
absl::Status CompareOutputs(const CorpusCase& c, const ExecContext& context);

// The same dtype, shape and bits, or strings.
bool SameBits(const TensorView& a, const TensorView& b);

// The same bits, but any NaN is like another: of two that meet the processor takes the first, and
// which is the first differs between a compiler's vector and its scalar code.
bool SameBitsButNaN(const TensorView& a, const TensorView& b);

// The first difference in dtype, shape or values. NaN equals NaN; `c` gives the tolerances.
absl::Status CompareTensors(const CorpusCase& c, const TensorView& got, const TensorView& want);

}  // namespace floe::corpus
