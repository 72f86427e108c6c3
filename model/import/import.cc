#include "model/import/import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/aligned_buffer.h"
#include "base/budget.h"
#include "base/mapped_file.h"
#include "base/memory_budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/form/form.h"
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

absl::Span<const uint8_t> BytesOf(const char* data, size_t size) {
  return {reinterpret_cast<const uint8_t*>(data), size};
}

// True when the options choose inputs, defaults or outputs other than the file's.
bool ChoosesSignature(const ImportOptions& options) {
  return !options.fetches.empty() || !options.input_aliases.empty() ||
         !options.output_aliases.empty() || !options.placeholder_defaults.empty();
}

// Whether some tensor is to be fed that is no input of the file's signatures.
bool FeedsInside(const ImportedModel& model, const ImportOptions& options) {
  std::set<std::string> nodes, inputs;
  for (const Node& node : model.graph.nodes()) nodes.insert(node.name);
  for (const SignatureDef& signature : model.signatures) {
    for (const SignatureTensor& input : signature.inputs)
      inputs.insert({input.key, input.tensor_name});
  }
  return std::any_of(options.feeds.begin(), options.feeds.end(), [&](const auto& feed) {
    const std::optional<TensorName> name =
        FindTensorName(feed.name, [&](const std::string& node) { return nodes.count(node) != 0; });
    return name.has_value() && inputs.count(feed.name) == 0 &&
           inputs.count(TensorNameOf(name->node, name->output)) == 0;
  });
}

// The file's signature, with other tensors as inputs too.
absl::StatusOr<SignatureDef> SignatureWithFeeds(ImportedModel* model, ImportOptions options) {
  const SignatureDef stored = model->signatures.front();
  for (const SignatureTensor& output : stored.outputs)
    options.output_aliases[output.key] = output.tensor_name;
  FLOE_ASSIGN_OR_RETURN(SignatureDef signature, BuildSignature(&model->graph, options));
  for (SignatureTensor& input : signature.inputs) {
    for (const SignatureTensor& known : stored.inputs) {
      if (input.tensor_name == known.tensor_name) input.key = known.key;
    }
  }
  return signature;
}

// `owner` keeps the bytes.
absl::StatusOr<ImportedModel> ImportForm(absl::Span<const uint8_t> bytes,
                                         std::shared_ptr<const void> owner,
                                         const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(FormModel form, ReadForm(bytes, std::move(owner)));
  ImportedModel model;
  model.format = "floe (binary)";
  model.graph = std::move(form.graph);
  model.signatures = std::move(form.signatures);
  if (ChoosesSignature(options)) {
    FLOE_ASSIGN_OR_RETURN(SignatureDef signature, BuildSignature(&model.graph, options));
    model.signatures = {std::move(signature)};
  } else if (FeedsInside(model, options)) {
    FLOE_ASSIGN_OR_RETURN(SignatureDef signature, SignatureWithFeeds(&model, options));
    model.signatures = {std::move(signature)};
  }
  return model;
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

absl::StatusOr<ImportedModel> ImportGraphDef(const char* data, size_t size,
                                             const ImportOptions& options) {
  if (size == 0) return absl::InvalidArgumentError("the file is empty");
  if (size > INT32_MAX)
    return absl::InvalidArgumentError(
        absl::StrCat("a GraphDef of ", size, " bytes is past protobuf's limit of 2 GiB"));
  SilenceProtobuf();
  const bool text = LooksLikeText(data, size);
  FLOE_RETURN_IF_ERROR(CheckNoOtherFormat({data, size}));
  FLOE_ASSIGN_OR_RETURN(MemoryShare message,
                        TakeForParsing({data, size}, text, *tensorflow::GraphDef::descriptor()));
  tensorflow::GraphDef def;
  const absl::Status parsed = text ? ParseText(data, size, &def) : ParseBinary(data, size, &def);
  if (!parsed.ok()) {
    tensorflow::GraphDef().Swap(&def);  // makes room
    message = MemoryShare();
    FLOE_ASSIGN_OR_RETURN(
        message, TakeForParsing({data, size}, text, *tensorflow::MetaGraphDef::descriptor()));
    FLOE_RETURN_IF_ERROR(CheckNoMetaGraph({data, size}));
    return parsed;
  }
  if (def.node_size() == 0) return absl::InvalidArgumentError("the graph has no nodes");
  // Constants take over what they hold of the message, and pay for it themselves.
  (void)message.Resize(std::max<int64_t>(0, message.bytes() - static_cast<int64_t>(size)));
  ImportedModel model;
  model.format = text ? "GraphDef (text)" : "GraphDef (binary)";
  FLOE_ASSIGN_OR_RETURN(model.graph, GraphFromGraphDef(&def, ChoiceOf(options)));
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
  FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path, options.max_file_bytes));
  if (options.identity && file->identity() != *options.identity)
    return absl::AbortedError(absl::StrCat(path, " has changed since it was looked at"));
  const absl::Span<const uint8_t> bytes = BytesOf(file->data(), file->size());
  absl::StatusOr<ImportedModel> model = Within(options.limits, [&] {
    return IsForm(bytes) ? ImportForm(bytes, file, options)
                         : ImportGraphDef(file->data(), file->size(), options);
  });
  if (file->damaged())  // whatever was made of it
    return absl::UnavailableError(
        absl::StrCat(path, " was cut short, or could not be read, while it was loaded"));
  if (!model.ok()) return Annotate(model.status(), path);
  if (IsForm(bytes)) model->file = file;
  return model;
}

absl::StatusOr<ImportedModel> ImportBytes(const std::string& bytes, const ImportOptions& options) {
  return Within(options.limits, [&]() -> absl::StatusOr<ImportedModel> {
    if (!IsForm(BytesOf(bytes.data(), bytes.size())))
      return ImportGraphDef(bytes.data(), bytes.size(), options);
    auto copy = std::make_shared<AlignedBuffer>(bytes.size());
    std::memcpy(copy->data(), bytes.data(), bytes.size());
    const auto* data = reinterpret_cast<const uint8_t*>(copy->data());
    return ImportForm({data, bytes.size()}, std::move(copy), options);
  });
}

}  // namespace floe
