#include "model/import/import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/aligned_buffer.h"
#include "base/budget.h"
#include "base/mapped_file.h"
#include "base/nearest.h"
#include "base/status.h"
#include "model/form/form.h"
#include "model/import/graphdef/graphdef.h"
#include "model/op_def.h"
#include "tensorflow/core/framework/graph.pb.h"

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
  return absl::InvalidArgumentError(absl::StrCat("not a GraphDef in text form: ", error.text()));
}

absl::Status ParseBinary(const char* data, size_t size, tensorflow::GraphDef* def) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(data),
                                                static_cast<int>(size));
  stream.SetRecursionLimit(kMaxDepth);
  if (def->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a GraphDef: malformed or cut off near byte ",
                                                 stream.CurrentPosition(), " of ", size));
}

// What tools and configuration may name: every output of every node.
std::vector<std::string> AllTensorNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    for (int k = 0; k < node.num_outputs; ++k) names.push_back(TensorNameOf(node.name, k));
  }
  return names;
}

class SignatureBuilder {
 public:
  SignatureBuilder(const Graph& graph, const ImportOptions& options)
      : graph_(graph), options_(options) {
    for (int i = 0; i < graph.size(); ++i) index_[graph.node(i).name] = i;
  }

  absl::StatusOr<SignatureDef> Build() {
    SignatureDef signature;
    FLOE_RETURN_IF_ERROR(AddOutputs(&signature));
    FLOE_RETURN_IF_ERROR(AddInputs(&signature));
    return signature;
  }

 private:
  static bool IsInput(const Node& node) {
    return node.op->name == "Input" || node.op->name == "PlaceholderWithDefault";
  }

  absl::StatusOr<SignatureTensor> InputOf(const std::string& key, const Node& node) const {
    SignatureTensor input{.key = key, .tensor_name = node.name};
    input.type.dtype = node.attrs.Type("dtype");
    input.type.shape = node.attrs.Get<SymShape>("shape", SymShape::UnknownRank());
    const auto configured = options_.placeholder_defaults.find(node.name);
    if (configured != options_.placeholder_defaults.end()) {
      input.optional = true;
      input.default_value = configured->second;
    } else if (node.op->name == "PlaceholderWithDefault") {
      input.optional = true;
      const Node& from = graph_.node(node.inputs[0].node);
      if (const Tensor* value = from.attrs.Find<Tensor>("value");
          value != nullptr && from.op->name == "Const")
        input.default_value = *value;
    } else if (node.name == "keras_learning_phase" && input.type.dtype == DType::kBool) {
      input.optional =
          true;  // Keras on TF1 leaves it behind in every frozen graph; serving is not training
      input.default_value = Tensor::Scalar(DType::kBool, false);
    }
    if (input.default_value.valid() && input.default_value.dtype() != input.type.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("the default of placeholder '", node.name, "' is ",
                       DTypeName(input.default_value.dtype()), ", the placeholder is ",
                       DTypeName(input.type.dtype)));
    }
    return input;
  }

  absl::Status AddInputs(SignatureDef* signature) const {
    for (const auto& [name, value] : options_.placeholder_defaults) {
      const auto found = index_.find(name);
      if (found == index_.end() || !IsInput(graph_.node(found->second))) {
        return NotFound("placeholder_defaults", name, PlaceholderNames());
      }
    }
    if (!options_.input_aliases.empty()) {
      for (const auto& [key, tensor] : options_.input_aliases) {
        FLOE_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(tensor));
        const auto found = index_.find(name.node);
        if (found == index_.end() || name.output != 0 || !IsInput(graph_.node(found->second))) {
          return NotFound(absl::StrCat("input '", key, "'"), tensor, PlaceholderNames());
        }
        FLOE_ASSIGN_OR_RETURN(SignatureTensor input, InputOf(key, graph_.node(found->second)));
        signature->inputs.push_back(std::move(input));
      }
      return AddDefaulted(signature);
    }
    const std::vector<bool> needed = NeededBy(*signature);
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (!IsInput(node) || (!needed[i] && IsLeftover(node))) continue;
      FLOE_ASSIGN_OR_RETURN(SignatureTensor input, InputOf(node.name, node));
      if (!needed[i] && !input.optional) MakeIgnored(&input);
      signature->inputs.push_back(std::move(input));
    }
    return absl::OkStatus();
  }

  // The placeholders that the chosen inputs leave out, the outputs need and a default feeds.
  absl::Status AddDefaulted(SignatureDef* signature) const {
    std::set<std::string> taken, keys;
    for (const SignatureTensor& input : signature->inputs) {
      taken.insert(input.tensor_name);
      keys.insert(input.key);
    }
    const std::vector<bool> needed = NeededBy(*signature);
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (!needed[i] || !IsInput(node) || taken.contains(node.name)) continue;
      // One with a default of its own passes that on, as in TensorFlow.
      if (node.op->name != "Input" && !options_.placeholder_defaults.contains(node.name)) continue;
      FLOE_ASSIGN_OR_RETURN(SignatureTensor input, InputOf(node.name, node));
      if (!input.default_value.valid()) continue;
      if (keys.contains(node.name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "signature.inputs: '", node.name, "' names another input, and placeholder '", node.name,
            "' keeps its own name; choose another"));
      }
      signature->inputs.push_back(std::move(input));
    }
    return absl::OkStatus();
  }

  // What TensorFlow's lowering of control flow leaves behind, by the dozen; nobody feeds those.
  static bool IsLeftover(const Node& node) {
    return node.name.find("unused_control_flow_input") != std::string::npos;
  }

  // A placeholder that no output reads may be fed, and need not be.
  static void MakeIgnored(SignatureTensor* input) {
    input->optional = true;
    Shape shape;
    if (input->type.shape.rank_known()) {
      for (Dim dim : input->type.shape.dims()) shape.push_back(dim.known() ? dim.size() : 1);
    }
    constexpr int64_t kMaxBytes = 1 << 20;
    const size_t element = DTypeSize(input->type.dtype);
    if (element == 0 || !CheckedElements(shape.dims(), element, kMaxBytes).ok()) return;
    input->default_value = Tensor::Allocate(input->type.dtype, shape);
    const size_t bytes = input->default_value.bytes();
    if (bytes != 0) std::memset(input->default_value.mutable_data(), 0, bytes);
  }

  std::vector<bool> NeededBy(const SignatureDef& signature) const {
    std::vector<bool> needed(graph_.size(), false);
    for (const SignatureTensor& output : signature.outputs) {
      const absl::StatusOr<TensorName> name = ParseTensorName(output.tensor_name);
      needed[index_.at(name->node)] = true;
    }
    for (int i = graph_.size() - 1; i >= 0; --i) {
      if (!needed[i]) continue;
      for (const ValueRef& in : graph_.node(i).inputs) needed[in.node] = true;
      for (int control : graph_.node(i).control_inputs) needed[control] = true;
    }
    return needed;
  }

  absl::Status AddOutput(const std::string& key, const std::string& tensor,
                         SignatureDef* signature) const {
    FLOE_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(tensor));
    const auto found = index_.find(name.node);
    if (found == index_.end() || name.output >= graph_.node(found->second).num_outputs) {
      return NotFound(key == tensor ? "output" : absl::StrCat("output '", key, "'"), tensor,
                      AllTensorNames(graph_));
    }
    signature->outputs.push_back({.key = key, .tensor_name = TensorNameOf(name.node, name.output)});
    return absl::OkStatus();
  }

  absl::Status AddOutputs(SignatureDef* signature) const {
    if (!options_.fetches.empty()) {
      for (const std::string& fetch : options_.fetches)
        FLOE_RETURN_IF_ERROR(AddOutput(fetch, fetch, signature));
      return absl::OkStatus();
    }
    if (!options_.output_aliases.empty()) {
      for (const auto& [key, tensor] : options_.output_aliases)
        FLOE_RETURN_IF_ERROR(AddOutput(key, tensor, signature));
      return absl::OkStatus();
    }
    for (const std::string& sink : SinkNames(graph_))
      FLOE_RETURN_IF_ERROR(AddOutput(sink, sink, signature));
    if (signature->outputs.empty()) {
      return absl::InvalidArgumentError(
          "the graph has no outputs: every node is consumed by another, a constant or a "
          "placeholder; "
          "name the outputs in the configuration (signature.outputs)");
    }
    return absl::OkStatus();
  }

  std::vector<std::string> PlaceholderNames() const {
    std::vector<std::string> names;
    for (const Node& node : graph_.nodes()) {
      if (IsInput(node)) names.push_back(node.name);
    }
    return names;
  }

  absl::Status NotFound(const std::string& what, const std::string& name,
                        const std::vector<std::string>& candidates) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the graph has no '", name,
                     "'; nearest: ", QuotedList(NearestNames(name, candidates)),
                     "; sinks of the graph: ", QuotedList(SinkNames(graph_))));
  }

  const Graph& graph_;
  const ImportOptions& options_;
  std::map<std::string, int> index_;
};

absl::Span<const uint8_t> BytesOf(const char* data, size_t size) {
  return {reinterpret_cast<const uint8_t*>(data), size};
}

// True when the options choose inputs, defaults or outputs other than the file's.
bool ChoosesSignature(const ImportOptions& options) {
  return !options.fetches.empty() || !options.input_aliases.empty() ||
         !options.output_aliases.empty() || !options.placeholder_defaults.empty();
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
    FLOE_ASSIGN_OR_RETURN(SignatureDef signature, SignatureBuilder(model.graph, options).Build());
    model.signatures = {std::move(signature)};
  }
  return model;
}

absl::StatusOr<ImportedModel> ImportGraphDef(const char* data, size_t size,
                                             const ImportOptions& options) {
  if (size == 0) return absl::InvalidArgumentError("the file is empty");
  if (size > INT32_MAX)
    return absl::InvalidArgumentError(
        absl::StrCat("a GraphDef of ", size, " bytes is past protobuf's limit of 2 GiB"));
  SilenceProtobuf();
  const bool text = LooksLikeText(data, size);
  tensorflow::GraphDef def;
  FLOE_RETURN_IF_ERROR(text ? ParseText(data, size, &def) : ParseBinary(data, size, &def));
  if (def.node_size() == 0) return absl::InvalidArgumentError("the graph has no nodes");
  ImportedModel model;
  model.format = text ? "GraphDef (text)" : "GraphDef (binary)";
  FLOE_ASSIGN_OR_RETURN(model.graph, GraphFromGraphDef(&def));
  FLOE_ASSIGN_OR_RETURN(SignatureDef signature, SignatureBuilder(model.graph, options).Build());
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
          absl::StrCat("'", name, "' is not a tensor name (NODE or NODE:NUMBER)"));
    }
  }
  if (parsed.node.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not a tensor name (NODE or NODE:NUMBER)"));
  return parsed;
}

absl::StatusOr<ImportedModel> ImportFile(const std::string& path, const ImportOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path, options.max_file_bytes));
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
