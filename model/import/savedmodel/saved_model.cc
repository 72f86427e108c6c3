#include "model/import/savedmodel/saved_model.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_beneath.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/read_file.h"
#include "base/status.h"
#include "model/import/checkpoint/tensor_bundle.h"
#include "model/import/graphdef/graphdef.h"
#include "model/import/message_ptr.h"
#include "model/import/parse_message.h"
#include "model/import/savedmodel/freeze_meta_graph.h"
#include "model/import/savedmodel/meta_graph.h"
#include "model/import/signature.h"
#include "tensorflow/core/protobuf/fingerprint.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace floe {
namespace {

constexpr int64_t kMaxFingerprintBytes = 1 << 16;

// A line each for people who ask what the file is.
void AddFacts(const tensorflow::MetaGraphDef& meta, const std::string& directory,
              ImportedModel* model) {
  const auto& info = meta.meta_info_def();
  model->facts.emplace_back("tags", absl::StrJoin(info.tags(), ", "));
  if (!info.tensorflow_version().empty())
    model->facts.emplace_back("written by TensorFlow", Escaped(info.tensorflow_version()));
  const auto file = ReadFileBeneath(directory, "fingerprint.pb", kMaxFingerprintBytes);
  tensorflow::FingerprintDef fingerprint;
  if (!file.ok() || !fingerprint.ParseFromString(*file)) return;
  std::string text = absl::StrCat(fingerprint.saved_model_checksum());
  if (!fingerprint.uuid().empty()) absl::StrAppend(&text, ", uuid ", Escaped(fingerprint.uuid()));
  model->facts.emplace_back("fingerprint", std::move(text));
}

class Importer {
 public:
  Importer(std::string directory, const ImportOptions& options)
      : directory_(std::move(directory)), options_(options) {}

  absl::StatusOr<ImportedModel> Import(tensorflow::MetaGraphDef* meta) {
    ImportedModel model;
    AddFacts(*meta, directory_, &model);
    model.asset_directory = directory_;
    // With tensors of their own choice people mean the graph, and its signatures say nothing.
    const bool bare = !options_.fetches.empty() || !options_.output_aliases.empty();
    FreezeRequest request;
    if (bare) {
      FLOE_ASSIGN_OR_RETURN(request.signatures, Chosen(*meta));
    } else {
      request.signatures = ReadSignatures(meta);
    }
    request.init_nodes = InitNodes(*meta);
    request.restore_op = meta->saver_def().restore_op_name();
    request.objects = CapturedVariables(*meta);
    for (const auto& [node, file] : AssetFiles(*meta)) request.assets[node] = "assets/" + file;
    const OpenCheckpoint open = [this] { return Checkpoint(); };
    FLOE_ASSIGN_OR_RETURN(FrozenGraph frozen,
                          FreezeGraph(std::move(request), open, meta->mutable_graph_def()));
    // What one signature has wrong is no reason to refuse the others.
    const bool several = frozen.signatures.size() > 1;
    FLOE_ASSIGN_OR_RETURN(
        model.graph,
        GraphFromGraphDef(meta->mutable_graph_def(), {.keep_broken = several}, &frozen.variables));
    model.left_out = std::move(frozen.left_out);
    if (bare) {
      FLOE_ASSIGN_OR_RETURN(SignatureDef signature, BuildSignature(&model.graph, options_));
      model.signatures.push_back(std::move(signature));
      return model;
    }
    for (SignatureDef& def : frozen.signatures) {
      const std::string name = def.name;
      absl::StatusOr<SignatureDef> signature =
          CompleteSignature(&model.graph, std::move(def), options_);
      if (!signature.ok()) return Annotate(signature.status(), "signature " + Quoted(name));
      model.signatures.push_back(*std::move(signature));
    }
    return model;
  }

 private:
  // One signature, of the options. Where it is fed is cut when its types are known.
  absl::StatusOr<std::vector<FileSignature>> Chosen(const tensorflow::MetaGraphDef& meta) const {
    std::set<std::string> names;
    for (const auto& node : meta.graph_def().node()) names.insert(node.name());
    const HasNode has = [&names](const std::string& node) { return names.count(node) != 0; };
    FileSignature signature;
    signature.def.name = "";
    for (const std::string& fetch : ChoiceOf(options_).fetches) {
      const auto name = FindTensorName(fetch, has);
      if (!name.has_value())
        return absl::InvalidArgumentError(
            absl::StrCat("output ", Quoted(fetch), ": the graph has no such node; nearest: ",
                         QuotedList(NearestNames(fetch, {names.begin(), names.end()}))));
      signature.def.outputs.push_back(
          {.key = fetch, .tensor_name = TensorNameOf(name->node, name->output)});
    }
    return std::vector<FileSignature>{signature};
  }

  absl::StatusOr<TensorBundle*> Checkpoint() {
    if (bundle_ == nullptr) {
      FLOE_ASSIGN_OR_RETURN(bundle_,
                            TensorBundle::Open(CheckpointOf(directory_), options_.max_file_bytes));
    }
    return bundle_.get();
  }

  const std::string directory_;
  const ImportOptions& options_;
  std::unique_ptr<TensorBundle> bundle_;
};

struct Parsed {
  MessagePtr<tensorflow::SavedModel> saved = NewMessage<tensorflow::SavedModel>();
  MemoryShare memory;
  bool text = false;
};

absl::StatusOr<std::unique_ptr<Parsed>> Parse(std::string_view bytes) {
  auto parsed = std::make_unique<Parsed>();
  parsed->text = LooksLikeText(bytes);
  FLOE_RETURN_IF_ERROR(ParsePaid(bytes, parsed->saved.get(), &parsed->memory));
  return parsed;
}

absl::StatusOr<ImportedModel> ImportParsed(std::unique_ptr<Parsed> parsed,
                                           const std::string& directory,
                                           const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(tensorflow::MetaGraphDef * meta,
                        ChooseMetaGraph(options.tags, parsed->saved.get()));
  FLOE_ASSIGN_OR_RETURN(ImportedModel model, Importer(directory, options).Import(meta));
  model.format = parsed->text ? "SavedModel (text)" : "SavedModel (binary)";
  return model;
}

}  // namespace

absl::StatusOr<ImportedModel> ImportSavedModelBytes(std::string_view bytes,
                                                    const std::string& directory,
                                                    const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Parsed> parsed, Parse(bytes));
  return ImportParsed(std::move(parsed), directory, options);
}

absl::StatusOr<ImportedModel> ImportSavedModel(const std::string& file,
                                               const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(FileBytes bytes, ReadFile(file, options.max_file_bytes));
  if (options.identity && bytes.identity != *options.identity)
    return absl::AbortedError(absl::StrCat(file, " has changed since it was looked at"));
  const auto import = [&]() -> absl::StatusOr<ImportedModel> {
    FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Parsed> parsed, Parse(bytes.view()));
    bytes.data.reset();  // the message has its own copy
    return ImportParsed(std::move(parsed), DirectoryOf(file), options);
  };
  absl::StatusOr<ImportedModel> model = import();
  return model.ok() ? std::move(model) : Annotate(model.status(), file);
}

}  // namespace floe
