#include "model/import/import.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/read_file.h"
#include "base/status.h"
#include "model/import/format.h"
#include "model/import/graphdef/graphdef.h"
#include "model/import/graphdef/parse.h"
#include "model/import/keras/keras.h"
#include "model/import/savedmodel/saved_model.h"
#include "model/import/signature.h"
#include "model/import/within_limits.h"

namespace floe {
namespace {

absl::StatusOr<ImportedModel> ImportParsed(ParsedGraphDef graph, const ImportOptions& options) {
  ImportedModel model;
  model.format = graph.text ? "GraphDef (text)" : "GraphDef (binary)";
  FLOE_ASSIGN_OR_RETURN(model.graph, GraphFromGraphDef(graph.def.get(), ChoiceOf(options)));
  FLOE_ASSIGN_OR_RETURN(SignatureDef signature, BuildSignature(&model.graph, options));
  model.signatures.push_back(std::move(signature));
  return model;
}

absl::StatusOr<ImportedModel> ImportGraphFile(const std::string& path,
                                              const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path, options.max_file_bytes));
  if (options.identity && file.identity() != *options.identity)
    return absl::AbortedError(absl::StrCat(path, " has changed since it was looked at"));
  absl::StatusOr<ImportedModel> model =
      WithinLimits(options.limits, [&]() -> absl::StatusOr<ImportedModel> {
        FLOE_ASSIGN_OR_RETURN(ParsedGraphDef graph, ParseGraphDefFile(&file));
        return ImportParsed(std::move(graph), options);
      });
  return model.ok() ? std::move(model) : Annotate(model.status(), path);
}

}  // namespace

absl::StatusOr<TensorName> ParseTensorName(const std::string& name) {
  TensorName parsed{name, 0};
  const size_t colon = name.rfind(':');
  if (colon != std::string::npos) {
    parsed.node = name.substr(0, colon);
    const char* begin = name.data() + colon + 1;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, parsed.output);
    if (error != std::errc() || stop != end || parsed.output < 0 || parsed.output > 65535) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(name), " is not a tensor name (NODE or NODE:NUMBER)"));
    }
  }
  if (parsed.node.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(name), " is not a tensor name (NODE or NODE:NUMBER)"));
  return parsed;
}

std::optional<TensorName> FindTensorName(const std::string& name, const HasNode& has_node) {
  if (has_node(name)) return TensorName{name, 0};
  std::string text = name;
  const size_t underscores = name.rfind("__");
  if (name.find(':') == std::string::npos && underscores != std::string::npos)
    text.replace(underscores, 2, ":");
  absl::StatusOr<TensorName> parsed = ParseTensorName(text);
  if (!parsed.ok() || !has_node(parsed->node)) return std::nullopt;
  return *std::move(parsed);
}

absl::StatusOr<ImportedModel> ImportFile(const std::string& path, const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const FoundFormat found, DetectFormat(path));
  switch (found.format) {
    case Format::kSavedModel:
      return WithinLimits(options.limits, [&] { return ImportSavedModel(found.file, options); });
    case Format::kKeras:
    case Format::kHdf5:
      return ImportKeras(path, options);
    case Format::kGraphDef:
      break;
  }
  return ImportGraphFile(path, options);
}

absl::StatusOr<ImportedModel> ImportBytes(const std::string& bytes, const ImportOptions& options) {
  return WithinLimits(options.limits, [&]() -> absl::StatusOr<ImportedModel> {
    FLOE_ASSIGN_OR_RETURN(ParsedGraphDef graph, ParseGraphDef(bytes));
    return ImportParsed(std::move(graph), options);
  });
}

}  // namespace floe
