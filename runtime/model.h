// Model: one loaded version with its signatures, ready to run. This is what server/ and cli/ use.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/exec_context.h"
#include "runtime/plan.h"

namespace floe {

// One signature as served. Optional inputs (placeholders with a constant default) are compiled in
// at their default. A request that feeds one of them something else runs another variant of the
// signature, in which they are ordinary inputs. Threading: immutable, any thread.
class Signature {
 public:
  // The signature compiled without its optional inputs, or with them as inputs.
  struct Variant {
    std::shared_ptr<const CompiledSignature> compiled;
    std::vector<int> inputs;  // of each input of `compiled`, the index in def().inputs
  };

  const SignatureDef& def() const { return def_; }
  // Index in def().inputs / def().outputs, or -1.
  int FindInput(std::string_view key) const;
  int FindOutput(std::string_view key) const;

  // Of an optional input; dtype kInvalid: it has none.
  const TensorView& DefaultOf(int input) const { return defaults_[static_cast<size_t>(input)]; }

  // What a request runs on, given which inputs it feeds. `fed[i]` null: input i is not fed. Where
  // the variant takes such an input, fed[i] is set to its default, which lives as long as this.
  // INVALID_ARGUMENT for a required input that is missing.
  absl::StatusOr<const Variant*> Choose(absl::Span<const TensorView*> fed) const;

  // The variant without optional inputs. It is the first of variants().
  const CompiledSignature& default_variant() const { return *variants_[0].compiled; }
  // "serving_default", "serving_default with 'training'": a variant with the optional inputs that
  // it takes.
  std::string NameOf(const CompiledSignature& variant) const;
  absl::Span<const Variant> variants() const { return variants_; }

 private:
  friend class Model;
  // What an input is to the variants.
  enum class Kind : uint8_t {
    kRequired,
    kIgnored,   // no output needs it: no variant has it
    kOptional,  // its default is def().inputs[i].default_value
  };

  absl::Status Compile(Graph graph, SignatureDef def, const CompileOptions& options,
                       KernelCache* cache);
  void Classify(const Graph& graph);
  // `with_optional`: the variant with the optional inputs.
  absl::StatusOr<Variant> CompileVariant(Graph graph, bool with_optional,
                                         const CompileOptions& options, KernelCache* cache) const;

  SignatureDef def_;
  std::vector<Kind> kinds_;           // by input
  std::vector<TensorView> defaults_;  // by input, of default_value
  std::vector<Variant> variants_;     // one or two
  absl::Status refused_;              // the second did not compile
};

struct ModelInfo {
  std::string name;
  int64_t version = 1;
  std::string path;
};

// Threading: immutable, any thread.
class Model {
 public:
  // Compiles every signature of an imported graph. Where the file has several, one that does not
  // compile is left out, unless none does.
  struct Source {
    ModelInfo info;
    Graph graph;                           // inputs/outputs empty: each signature selects its own
    std::vector<SignatureDef> signatures;  // at least one
    // Lookup tables (runtime/passes/load_tables.h): nodes that fill them, empty for all that do;
    // and the directory beneath which files named by the graph are opened, empty for none.
    std::vector<std::string> init_nodes;
    std::string asset_directory;
    // Signatures of the file that cannot be served, with the reason.
    std::map<std::string, absl::Status> left_out = {};
  };
  static absl::StatusOr<std::shared_ptr<const Model>> Create(Source source,
                                                             const CompileOptions& options);

  const ModelInfo& info() const { return info_; }
  // "" means serving_default; null when unknown.
  const Signature* Find(std::string_view name) const;
  using Signatures = std::map<std::string, Signature, std::less<>>;
  const Signatures& signatures() const { return signatures_; }
  // Signatures that are not served, with the reason.
  const std::map<std::string, absl::Status>& left_out() const { return left_out_; }
  size_t weight_bytes() const;
  // Of weights on a device: those that models share count for each.
  int64_t device_bytes() const;
  // Of all signatures; one that several share is there once.
  std::vector<IslandInfo> islands() const;

 private:
  static absl::StatusOr<std::shared_ptr<const Model>> CreateWithin(Source source,
                                                                   CompileOptions options);
  ModelInfo info_;
  Signatures signatures_;
  std::map<std::string, absl::Status> left_out_;
};
using ModelHandle = std::shared_ptr<const Model>;

}  // namespace floe
