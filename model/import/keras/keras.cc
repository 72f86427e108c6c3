#include "model/import/keras/keras.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_beneath.h"
#include "base/memory_budget.h"
#include "base/quoted.h"
#include "base/read_file.h"
#include "base/status.h"
#include "model/import/keras/archive.h"
#include "model/import/keras/hdf5_file.h"
#include "model/import/keras/json.h"
#include "model/import/keras/model.h"
#include "model/import/keras/weights.h"
#include "model/import/signature.h"
#include "model/import/within_limits.h"

namespace floe {
namespace {

using keras::Archive;
using keras::Hdf5File;
using keras::Json;
using keras::LayerWeights;

constexpr const char* kConfig = "config.json";
constexpr const char* kMetadata = "metadata.json";
constexpr const char* kWeights = "model.weights.h5";
constexpr int64_t kMaxAssetBytes = int64_t{1} << 28;

bool IsHdf5(std::string_view bytes) { return bytes.substr(0, 8) == "\x89HDF\r\n\x1a\n"; }
bool IsZip(std::string_view bytes) { return bytes.substr(0, 4) == "PK\x03\x04"; }

// Bytes and who keeps them.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::string_view view;
};

// A tensor's bytes.
Bytes BytesOf(const Tensor& tensor) {
  auto owner = std::make_shared<Tensor>(tensor);
  const auto* data = static_cast<const char*>(owner->data());
  return {owner, {data, owner->bytes()}};
}

std::string_view ViewOf(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), tensor.bytes()};
}

// A whole file that the thread's memory budget pays for.
absl::StatusOr<Bytes> ReadBytes(const std::string& path, const ImportOptions& options,
                                bool the_model) {
  struct Held {
    MemoryShare share;
    FileBytes file;
  };
  std::error_code unknown;
  const uintmax_t size = std::filesystem::file_size(path, unknown);
  auto held = std::make_shared<Held>();
  if (!unknown) {
    FLOE_ASSIGN_OR_RETURN(held->share,
                          TakeMemory(static_cast<int64_t>(std::min<uintmax_t>(size, INT64_MAX))));
  }
  FLOE_ASSIGN_OR_RETURN(held->file, ReadFile(path, options.max_file_bytes));
  if (the_model && options.identity && held->file.identity != *options.identity)
    return absl::AbortedError(absl::StrCat(path, " has changed since it was looked at"));
  const std::string_view view = held->file.view();
  return Bytes{std::move(held), view};
}

int VersionOf(const std::string& keras_version, const Json& model) {
  if (!keras_version.empty()) return keras_version[0] >= '3' ? 3 : 2;
  // Keras 3 renamed the option of input layers.
  return absl::StrContains(
             model.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace),
             "\"batch_shape\"")
             ? 3
             : 2;
}

// Outputs in the order and with the keys of the model, unless the options choose others.
absl::StatusOr<SignatureDef> SignatureOf(Graph* graph, const keras::ModelEnds& ends,
                                         const ImportOptions& options) {
  ImportOptions chosen = options;
  const bool own = options.output_aliases.empty() && options.fetches.empty();
  if (own) {
    for (const auto& [key, value] : ends.outputs)
      chosen.output_aliases[key] = TensorNameOf(graph->node(value.node).name, value.output);
  }
  FLOE_ASSIGN_OR_RETURN(SignatureDef signature, BuildSignature(graph, chosen));
  if (!own) return signature;
  std::vector<SignatureTensor> outputs;
  for (const auto& [key, value] : ends.outputs) {
    const auto found = std::find_if(signature.outputs.begin(), signature.outputs.end(),
                                    [&key = key](const auto& out) { return out.key == key; });
    if (found != signature.outputs.end()) outputs.push_back(*found);
  }
  signature.outputs = std::move(outputs);
  return signature;
}

absl::StatusOr<LayerWeights> WeightsOf(const Hdf5File& file, const Json& model, int version) {
  if (file.Has("layers") || file.Has("_layer_checkpoint_dependencies"))
    return keras::WeightsByPlace(&file, model);
  return keras::WeightsInOrder(&file, file.Has("model_weights") ? "model_weights" : "", model,
                               version);
}

absl::StatusOr<ImportedModel> ModelOf(const Json& model, const keras::ModelFile& file,
                                      const Hdf5File& hdf5, const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const LayerWeights weights, WeightsOf(hdf5, model, file.version));
  keras::GraphBuilder b;
  const keras::ModelEnds ends = keras::BuildModel(b, file, {&model, weights});
  FLOE_RETURN_IF_ERROR(b.status());
  ImportedModel imported;
  imported.graph = std::move(b.graph());
  imported.graph.inputs.clear();  // signatures name tensors
  imported.format = file.version < 3 ? "Keras 2" : "Keras 3";
  FLOE_ASSIGN_OR_RETURN(SignatureDef signature, SignatureOf(&imported.graph, ends, options));
  imported.signatures.push_back(std::move(signature));
  return imported;
}

absl::StatusOr<ImportedModel> Build(const Json& model, const keras::ModelFile& file,
                                    const Hdf5File& hdf5, const ImportOptions& options) {
  absl::StatusOr<ImportedModel> built = ModelOf(model, file, hdf5, options);
  // What follows from a file that ended its parser tells nothing.
  if (!hdf5.status().ok()) return Annotate(hdf5.status(), "HDF5");
  return built;
}

// ---- .keras ----

absl::StatusOr<ImportedModel> ImportArchive(const Bytes& bytes, const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const Archive archive, Archive::Open(bytes.view));
  if (!archive.Has(kConfig))
    return absl::InvalidArgumentError(
        absl::StrCat("this is a zip archive without a ", kConfig,
                     ", no model of Keras; unpack it and name the model inside"));
  FLOE_ASSIGN_OR_RETURN(const Tensor config, archive.Read(kConfig));
  MemoryShare share;
  FLOE_ASSIGN_OR_RETURN(const Json model, keras::ParseJson(ViewOf(config), &share));
  std::string version;
  if (archive.Has(kMetadata)) {
    FLOE_ASSIGN_OR_RETURN(const Tensor text, archive.Read(kMetadata));
    FLOE_ASSIGN_OR_RETURN(const Json metadata, keras::ParseJson(ViewOf(text)));
    version = keras::Text(metadata, "keras_version");
  }
  keras::ModelFile file{.version = VersionOf(version, model)};
  file.asset = [&](const std::string& path) -> absl::StatusOr<std::string> {
    FLOE_ASSIGN_OR_RETURN(const Tensor text, archive.Read("assets/" + path));
    return std::string(ViewOf(text));
  };
  if (!archive.Has(kWeights))
    return absl::InvalidArgumentError(
        absl::StrCat("the archive has no ", kWeights, "; save the model again with model.save()"));
  FLOE_ASSIGN_OR_RETURN(const Tensor h5, archive.Read(kWeights));
  const Bytes weights = BytesOf(h5);
  FLOE_ASSIGN_OR_RETURN(const auto hdf5, Hdf5File::Open(weights.view, weights.owner));
  return Build(model, file, *hdf5, options);
}

// ---- .h5, and weights with a configuration beside them ----

absl::StatusOr<std::string> NoAsset(const std::string& path) {
  return absl::NotFoundError(
      absl::StrCat("the file has no asset ", Quoted(path), "; save the model as .keras"));
}

// Files that may hold the configuration of a model whose weights are `path`.
std::vector<std::string> Beside(const std::filesystem::path& path) {
  std::string stem = path.stem().string();
  if (absl::EndsWith(stem, ".weights")) stem.resize(stem.size() - 8);
  std::vector<std::string> files;
  for (const std::string& name : {stem + ".json", std::string("model.json"), std::string(kConfig)})
    files.push_back((path.parent_path() / name).string());
  return files;
}

absl::StatusOr<ImportedModel> ImportBeside(const Hdf5File& hdf5, const std::string& path,
                                           const ImportOptions& options) {
  for (const std::string& name : Beside(path)) {
    std::error_code none;
    if (!std::filesystem::exists(name, none)) continue;
    FLOE_ASSIGN_OR_RETURN(const Bytes text, ReadBytes(name, options, /*the_model=*/false));
    MemoryShare share;
    absl::StatusOr<Json> model = keras::ParseJson(text.view, &share);
    if (!model.ok()) return Annotate(model.status(), name);
    if (keras::Text(*model, "class_name").empty()) continue;  // of something else
    std::string version = keras::Text(*model, "keras_version");
    const auto metadata = std::filesystem::path(name).parent_path() / kMetadata;
    if (version.empty() && std::filesystem::exists(metadata, none)) {
      FLOE_ASSIGN_OR_RETURN(const Bytes about, ReadBytes(metadata.string(), options, false));
      FLOE_ASSIGN_OR_RETURN(const Json parsed, keras::ParseJson(about.view));
      version = keras::Text(parsed, "keras_version");
    }
    keras::ModelFile file{.version = VersionOf(version, *model)};
    file.asset = [&](const std::string& asset) -> absl::StatusOr<std::string> {
      return ReadFileBeneath(DirectoryOf(name), "assets/" + asset, kMaxAssetBytes);
    };
    return Build(*model, file, hdf5, options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("an HDF5 file without a model: it has no attribute 'model_config', and none of ",
                   Beside(path)[0],
                   ", model.json and config.json is beside it; save the whole "
                   "model with model.save(), or write model.to_json() to ",
                   Beside(path)[0]));
}

absl::StatusOr<ImportedModel> ImportHdf5(const Bytes& bytes, const std::string& path,
                                         const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const auto hdf5, Hdf5File::Open(bytes.view, bytes.owner));
  FLOE_ASSIGN_OR_RETURN(const auto config, hdf5->Strings("", "model_config"));
  if (config.empty()) return ImportBeside(*hdf5, path, options);
  MemoryShare share;
  FLOE_ASSIGN_OR_RETURN(const Json model, keras::ParseJson(config[0], &share));
  FLOE_ASSIGN_OR_RETURN(const auto version, hdf5->Strings("", "keras_version"));
  keras::ModelFile file{.version = VersionOf(version.empty() ? "" : version[0], model)};
  file.asset = NoAsset;
  return Build(model, file, *hdf5, options);
}

absl::StatusOr<ImportedModel> ImportWhole(const Bytes& bytes, const std::string& path,
                                          const ImportOptions& options) {
  if (IsZip(bytes.view)) return ImportArchive(bytes, options);
  if (IsHdf5(bytes.view)) return ImportHdf5(bytes, path, options);
  return absl::InvalidArgumentError("neither a .keras archive nor an HDF5 file");
}

absl::StatusOr<ImportedModel> ImportPath(const std::string& path, const ImportOptions& options) {
  std::error_code none;
  std::string file = path;
  const bool folder = std::filesystem::is_directory(path, none);
  if (folder) file = (std::filesystem::path(path) / kWeights).string();
  FLOE_ASSIGN_OR_RETURN(const Bytes bytes, ReadBytes(file, options, !folder));
  return ImportWhole(bytes, file, options);
}

}  // namespace

absl::StatusOr<ImportedModel> ImportKeras(const std::string& path, const ImportOptions& options) {
  absl::StatusOr<ImportedModel> model = WithinLimits(
      options.limits, [&]() -> absl::StatusOr<ImportedModel> { return ImportPath(path, options); });
  return model.ok() ? std::move(model) : Annotate(model.status(), path);
}

absl::StatusOr<ImportedModel> ImportKerasBytes(std::string_view bytes,
                                               const ImportOptions& options) {
  return WithinLimits(options.limits, [&]() -> absl::StatusOr<ImportedModel> {
    Tensor copy = Tensor::Allocate(DType::kUInt8, {static_cast<int64_t>(bytes.size())});
    if (!bytes.empty()) std::memcpy(copy.mutable_data(), bytes.data(), bytes.size());
    return ImportWhole(BytesOf(copy), "", options);
  });
}

}  // namespace floe
