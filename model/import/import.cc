#include "model/import/import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/quoted.h"
#include "base/read_file.h"
#include "base/status.h"
#include "model/import/graphdef/graphdef.h"
#include "model/import/other_formats.h"
#include "model/import/signature.h"
#include "model/import/unfolded_bytes.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace floe {
namespace {

// Text form holds no control bytes but white space; a binary GraphDef has them within its first
// fields.
bool LooksLikeText(const char* data, size_t size) {
  constexpr size_t kProbe = 512;
  return size != 0 && std::none_of(data, data + std::min(size, kProbe), [](char c) {
           const auto u = static_cast<unsigned char>(c);
           return (u < 0x20 && c != '\n' && c != '\r' && c != '\t') || u == 0x7f;
         });
}

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty())
      text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

constexpr int kMaxDepth = 100;  // of nested messages

// Errors are returned; protobuf's own lines on stderr would only let a hostile file fill the log.
void SilenceProtobuf() {
  static const bool once = (google::protobuf::SetLogHandler(nullptr), true);
  (void)once;
}

absl::Status ParseText(const char* data, size_t size, tensorflow::GraphDef* def) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxDepth);
  google::protobuf::io::ArrayInputStream stream(data, static_cast<int>(size));
  if (parser.Parse(&stream, def)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("not a GraphDef in text form: ", Escaped(error.text())));
}

absl::Status ParseBinary(const char* data, size_t size, tensorflow::GraphDef* def) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(data),
                                                static_cast<int>(size));
  stream.SetRecursionLimit(kMaxDepth);
  if (def->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a GraphDef: malformed or cut off near byte ",
                                                 stream.CurrentPosition(), " of ", size));
}

GraphChoice ChoiceOf(const ImportOptions& options) {
  GraphChoice choice;
  choice.fetches = options.fetches;
  if (choice.fetches.empty()) {
    for (const auto& [key, tensor] : options.output_aliases) choice.fetches.push_back(tensor);
  }
  for (const auto& [key, tensor] : options.input_aliases) choice.feeds.push_back(tensor);
  for (const ImportOptions::Feed& feed : options.feeds) choice.feeds.push_back(feed.name);
  return choice;
}

// The memory of the message; what cannot be walked counts as the worst.
absl::StatusOr<MemoryShare> TakeForParsing(std::string_view bytes, bool text,
                                           const google::protobuf::Descriptor& message) {
  if (MemoryScope::Current() == nullptr) return MemoryShare();
  const int64_t unfolded = text ? UnfoldedTextBytes(bytes) : UnfoldedBytes(bytes, message);
  const int64_t worst = static_cast<int64_t>(bytes.size()) * kUnfoldedMessage / 2;
  return TakeMemory(std::min(unfolded, worst));
}

struct ParsedGraphDef {
  tensorflow::GraphDef def;
  bool text = false;
  MemoryShare memory;  // what `def` takes beyond the size of the file
};

absl::StatusOr<ParsedGraphDef> ParseGraphDef(std::string_view bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("the file is empty");
  if (bytes.size() > INT32_MAX)
    return absl::InvalidArgumentError(
        absl::StrCat("a GraphDef of ", bytes.size(), " bytes is past protobuf's limit of 2 GiB"));
  SilenceProtobuf();
  ParsedGraphDef graph;
  graph.text = LooksLikeText(bytes.data(), bytes.size());
  FLOE_RETURN_IF_ERROR(CheckNoOtherFormat(bytes));
  FLOE_ASSIGN_OR_RETURN(graph.memory, TakeForParsing(bytes, graph.text,
                                                     *tensorflow::GraphDef::descriptor()));
  const absl::Status parsed = graph.text ? ParseText(bytes.data(), bytes.size(), &graph.def)
                                         : ParseBinary(bytes.data(), bytes.size(), &graph.def);
  if (!parsed.ok()) {
    tensorflow::GraphDef().Swap(&graph.def);  // makes room
    graph.memory = MemoryShare();
    FLOE_ASSIGN_OR_RETURN(graph.memory,
                          TakeForParsing(bytes, graph.text, *tensorflow::MetaGraphDef::descriptor()));
    FLOE_RETURN_IF_ERROR(CheckNoMetaGraph(bytes));
    return parsed;
  }
  if (graph.def.node_size() == 0) return absl::InvalidArgumentError("the graph has no nodes");
  // Constants take over what they hold of the message, and pay for it themselves.
  (void)graph.memory.Resize(
      std::max<int64_t>(0, graph.memory.bytes() - static_cast<int64_t>(bytes.size())));
  return graph;
}

absl::StatusOr<ImportedModel> ImportParsed(ParsedGraphDef graph, const ImportOptions& options) {
  ImportedModel model;
  model.format = graph.text ? "GraphDef (text)" : "GraphDef (binary)";
  FLOE_ASSIGN_OR_RETURN(model.graph, GraphFromGraphDef(&graph.def, ChoiceOf(options)));
  FLOE_ASSIGN_OR_RETURN(SignatureDef signature, BuildSignature(&model.graph, options));
  model.signatures.push_back(std::move(signature));
  return model;
}

// What `import` returns, within the limits.
template <typename Body>
absl::StatusOr<ImportedModel> Within(const ResourceLimits& limits, const Body& import) {
  Budget budget(limits);
  const BudgetScope scope(&budget);
  return CatchOutOfMemory(import);
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
  FLOE_RETURN_IF_ERROR(CheckNoSavedModelDirectory(path));
  FLOE_ASSIGN_OR_RETURN(FileBytes file, ReadFile(path, options.max_file_bytes));
  if (options.identity && file.identity != *options.identity)
    return absl::AbortedError(absl::StrCat(path, " has changed since it was looked at"));
  absl::StatusOr<ImportedModel> model =
      Within(options.limits, [&]() -> absl::StatusOr<ImportedModel> {
        FLOE_ASSIGN_OR_RETURN(ParsedGraphDef graph, ParseGraphDef(file.view()));
        file.data.reset();  // the message has its own copy
        return ImportParsed(std::move(graph), options);
      });
  return model.ok() ? std::move(model) : Annotate(model.status(), path);
}

absl::StatusOr<ImportedModel> ImportBytes(const std::string& bytes, const ImportOptions& options) {
  return Within(options.limits, [&]() -> absl::StatusOr<ImportedModel> {
    FLOE_ASSIGN_OR_RETURN(ParsedGraphDef graph, ParseGraphDef(bytes));
    return ImportParsed(std::move(graph), options);
  });
}

}  // namespace floe
