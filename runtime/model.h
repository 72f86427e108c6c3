// Model: one loaded version with its signatures, ready to run. This is what server/ and cli/ use.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "runtime/exec_context.h"
#include "runtime/plan.h"

namespace floe {

// One signature as served. Optional inputs (placeholders with a default) are compiled in at their
// default; a request that feeds them something else runs the `live` form, in which they are
// ordinary inputs. Threading: immutable, any thread.
class Signature {
 public:
  const SignatureDef& def() const { return def_; }
  // Index in def().inputs / def().outputs, or -1.
  int FindInput(std::string_view key) const;
  int FindOutput(std::string_view key) const;

  // What a request runs on, given which inputs it feeds. `fed[i]` null: input i is not fed.
  // Fills `input_of`: for each input of the returned form, the index in def().inputs.
  // INVALID_ARGUMENT for a required input that is missing.
  absl::StatusOr<const CompiledSignature*> Choose(absl::Span<const TensorView* const> fed,
                                                  const std::vector<int>** input_of) const;

  const CompiledSignature& defaults_form() const { return *defaults_; }
  // Null when there are no optional inputs, or with `why_not_live` when it cannot be compiled.
  const CompiledSignature* live_form() const { return live_.get(); }

 private:
  friend class Model;
  SignatureDef def_;
  std::shared_ptr<const CompiledSignature> defaults_, live_;
  std::vector<int> defaults_inputs_, live_inputs_;
  absl::Status why_not_live_;
};

struct ModelInfo {
  std::string name;
  int64_t version = 1;
  std::string path;
};

// Threading: immutable, any thread.
class Model {
 public:
  // Compiles every signature of an imported graph.
  struct Source {
    ModelInfo info;
    Graph graph;                           // inputs/outputs empty: each signature selects its own
    std::vector<SignatureDef> signatures;  // at least one
    // Lookup tables (runtime/passes/load_tables.h): nodes that fill them, empty for all that do;
    // and the directory beneath which files named by the graph are opened, empty for none.
    std::vector<std::string> init_nodes;
    std::string asset_directory;
    std::shared_ptr<const MappedFile> file;  // in which constants lie; null: in none
  };
  static absl::StatusOr<std::shared_ptr<const Model>> Create(Source source,
                                                             const CompileOptions& options);

  const ModelInfo& info() const { return info_; }
  // "" means serving_default; null when unknown.
  const Signature* Find(std::string_view name) const;
  using Signatures = std::map<std::string, Signature, std::less<>>;
  const Signatures& signatures() const { return signatures_; }
  size_t weight_bytes() const;
  // DATA_LOSS: constants that lie in the model's file were lost with it, so that answers from now
  // on, and the last ones, are not to be believed.
  absl::Status CheckFile() const;

 private:
  static absl::StatusOr<std::shared_ptr<const Model>> CreateWithin(Source source,
                                                                   const CompileOptions& options);
  ModelInfo info_;
  Signatures signatures_;
  std::shared_ptr<const MappedFile> file_;
};
using ModelHandle = std::shared_ptr<const Model>;

}  // namespace floe
