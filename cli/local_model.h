// Running a model file in this process: what `run`, `inspect`, `bench` and `profile` share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cli/npz.h"
#include "model/import/import.h"
#include "runtime/exec_context.h"
#include "runtime/made_up_inputs.h"
#include "runtime/model.h"

namespace floe::cli {

struct LocalOptions {
  CompileOptions compile;
  std::vector<std::string> fetches;        // tensors instead of a signature's outputs
  std::vector<ImportOptions::Feed> feeds;  // may be inputs, wherever in the graph they are
  std::string signature;                   // empty: serving_default, or the only one
  std::vector<std::string> init_nodes;     // as of Model::Source
  std::vector<std::string> tags;           // as of ImportOptions
  bool any_signature = false;              // without serving_default the first one will do
};

// For --device: `cpu`, `cuda` (the first) or `cuda:N`. Opens the device, and sends islands to it.
// `libraries`: as of the server's key gpu_libraries. Errors say why there is none, and the way out.
absl::Status UseDevice(const std::string& device, const std::string& libraries,
                       CompileOptions* options);

// A loaded file and one of its signatures.
struct LocalModel {
  ModelHandle model;
  const Signature* signature = nullptr;  // lives in `model`
  std::string format;

  const SignatureDef& def() const { return signature->def(); }
};

// Import and compile errors as they come; NOT_FOUND lists the signatures there are.
absl::StatusOr<LocalModel> LoadLocal(const std::string& path, const LocalOptions& options);
// The same from what was imported already from `path`.
absl::StatusOr<LocalModel> CompileLocal(ImportedModel imported, const std::string& path,
                                        const LocalOptions& options);

// Which input a name means: its key or tensor name, with or without ":0", ':' also as "__".
// INVALID_ARGUMENT with the nearest names otherwise.
absl::StatusOr<int> FindInput(const SignatureDef& def, const std::string& array);

// What arrays may feed: a string tensor comes as bytes, so uint8 tells no type.
std::vector<ImportOptions::Feed> FeedsOf(const NamedTensors& arrays);

struct MatchOptions {
  bool by_position = false;  // the i-th array feeds the i-th input
  // By array name: shapes of string arrays, where the declared shape leaves them open.
  std::vector<std::pair<std::string, Shape>> string_shapes;
  // Asked which inputs of unknown rank its ops take as scalars; null: none.
  const Signature* signature = nullptr;
};
// One tensor for each input of the signature, invalid where nothing was given. Strings arrive as in
// cli/string_array.h. INVALID_ARGUMENT for names that match nothing, two arrays for one input,
// wrong dtypes.
absl::StatusOr<std::vector<Tensor>> MatchInputs(const SignatureDef& def, const NamedTensors& arrays,
                                                const MatchOptions& options);

// A call with its plan: ready to be run any number of times on one context. Keeps the inputs alive.
struct BoundCall {
  const CompiledSignature* variant = nullptr;
  std::shared_ptr<const Plan> plan;
  std::vector<Tensor> inputs;  // in the order of the variant
  int64_t rows = 1;
};
absl::StatusOr<BoundCall> BindCall(const Signature& signature, absl::Span<const Tensor> inputs);
// Outputs are read from `context` in the order of the signature's outputs.
absl::Status RunCall(const BoundCall& call, ExecContext& context);

// Made-up inputs, and a call with them.
struct MadeUpCall {
  MadeUpInputs made;
  BoundCall call;
};
// Errors as of MakeUpInputs.
absl::StatusOr<MadeUpCall> MakeUpCall(const Signature& signature, const MadeUpOptions& options);

// "name:0" -> "name", "name:1" -> "name__1": a tensor's key in an .npz file.
std::string ArrayName(const std::string& tensor_name);

// The same array with `rows` rows, repeating them in turn. Its rank is 1 or more.
absl::StatusOr<Tensor> TakeRows(const Tensor& tensor, int64_t rows);

// The same arrays with `rows` rows, repeating them in turn, for the inputs with rows of the variant
// chosen for `inputs`.
absl::StatusOr<std::vector<Tensor>> WithRows(const Signature& signature,
                                             absl::Span<const Tensor> inputs, int64_t rows);

}  // namespace floe::cli
