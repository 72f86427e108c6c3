#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/aligned_buffer.h"
#include "base/atomic_file.h"
#include "base/crc32c.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/form/form.h"
#include "model/form/layout.h"
#include "model/op_def.h"
#include "model/verify.h"

namespace floe {
namespace {

using Sink = absl::FunctionRef<absl::Status(const void* data, size_t size)>;

// A section under construction: values appended as they lie in memory.
class Bytes {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Count(size_t n) { Put(static_cast<uint32_t>(n)); }
  void String(const std::string& s) {
    Count(s.size());
    text_ += s;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Numbers tensors and lays out their values. One buffer under several attributes is stored once.
class TensorTable {
 public:
  absl::StatusOr<uint32_t> Add(const Tensor& tensor) {
    if (!tensor.valid()) return form::kNone;
    const Key key(tensor.data(), tensor.dtype(),
                  {tensor.shape().dims().begin(), tensor.shape().dims().end()});
    const auto found = numbers_.find(key);
    if (found != numbers_.end()) return found->second;
    if (IsHandle(tensor.dtype()))
      return Bad(absl::StrCat("a tensor of ", DTypeName(tensor.dtype()), " cannot be stored"));
    bytes_.Put(static_cast<uint32_t>(tensor.dtype()));
    bytes_.Count(tensor.shape().rank());
    for (int64_t dim : tensor.shape().dims()) bytes_.Put(dim);
    if (tensor.dtype() == DType::kString) {
      for (int64_t i = 0; i < tensor.elements(); ++i) bytes_.String(tensor.as<std::string>()[i]);
    } else {
      bytes_.Put(Place(tensor));
    }
    const auto number = static_cast<uint32_t>(numbers_.size());
    numbers_.emplace(key, number);
    kept_.push_back(tensor);  // its address is a key
    return number;
  }

  size_t size() const { return numbers_.size(); }
  const std::string& records() const { return bytes_.text(); }
  uint64_t weight_bytes() const { return weight_bytes_; }

  absl::Status EmitWeights(Sink sink) const {
    static constexpr char kZeros[kAlignment] = {};
    uint64_t at = 0;
    for (const auto& [offset, tensor] : placed_) {
      FLOE_RETURN_IF_ERROR(sink(kZeros, offset - at));
      FLOE_RETURN_IF_ERROR(sink(tensor.data(), tensor.bytes()));
      at = offset + tensor.bytes();
    }
    return absl::OkStatus();
  }

 private:
  using Key = std::tuple<const void*, DType, std::vector<int64_t>>;

  uint64_t Place(const Tensor& tensor) {
    if (tensor.bytes() == 0) return 0;
    const auto [found, fresh] =
        offsets_.emplace(std::make_pair(tensor.data(), tensor.bytes()), AlignUp(weight_bytes_));
    if (fresh) {
      placed_.emplace_back(found->second, tensor);
      weight_bytes_ = found->second + tensor.bytes();
    }
    return found->second;
  }

  Bytes bytes_;
  std::map<Key, uint32_t> numbers_;
  std::vector<Tensor> kept_;
  std::map<std::pair<const void*, size_t>, uint64_t> offsets_;
  std::vector<std::pair<uint64_t, Tensor>> placed_;  // by offset
  uint64_t weight_bytes_ = 0;
};

static_assert(
    std::is_same_v<AttrValue,
                   std::variant<int64_t, float, bool, std::string, DType, SymShape, Tensor,
                                FunctionName, std::vector<int64_t>, std::vector<float>,
                                std::vector<bool>, std::vector<std::string>, std::vector<DType>,
                                std::vector<SymShape>, std::vector<FunctionName>>>,
    "form::AttrKind numbers these alternatives; new ones go to the end of both");

class GraphWriter {
 public:
  explicit GraphWriter(TensorTable* tensors) : tensors_(*tensors) {}

  absl::StatusOr<uint32_t> Add(const Graph& graph) {
    Bytes bytes;  // subgraphs come first, into the section itself
    bytes.Count(graph.nodes().size());
    for (const Node& node : graph.nodes()) {
      const absl::Status status = AddNode(node, &bytes);
      if (!status.ok())
        return Annotate(status, absl::StrCat("node ", Quoted(node.name), " (", node.op->name, ")"));
    }
    bytes.Count(graph.inputs.size());
    for (int input : graph.inputs) bytes.Count(input);
    AddRefs(graph.outputs, &bytes);
    text_ += bytes.text();
    return count_++;
  }

  absl::Status AddSignature(const SignatureDef& def, Bytes* bytes) {
    bytes->String(def.name);
    bytes->String(def.method);
    for (const auto* tensors : {&def.inputs, &def.outputs}) {
      bytes->Count(tensors->size());
      for (const SignatureTensor& t : *tensors) {
        const absl::Status status = AddSignatureTensor(t, bytes);
        if (!status.ok())
          return Annotate(status,
                          absl::StrCat("signature ", Quoted(def.name), ", ", Quoted(t.key)));
      }
    }
    return absl::OkStatus();
  }

  const std::string& records() const { return text_; }
  uint32_t size() const { return count_; }

 private:
  static void AddRefs(const std::vector<ValueRef>& refs, Bytes* bytes) {
    bytes->Count(refs.size());
    for (const ValueRef& ref : refs) {
      bytes->Count(ref.node);
      bytes->Count(ref.output);
    }
  }

  absl::Status AddNode(const Node& node, Bytes* bytes) {
    bytes->String(node.op->name);
    bytes->String(node.name);
    bytes->Count(node.num_outputs);
    AddRefs(node.inputs, bytes);
    bytes->Count(node.control_inputs.size());
    for (int control : node.control_inputs) bytes->Count(control);
    bytes->Count(node.attrs.values().size());
    for (const auto& [name, value] : node.attrs.values()) {
      bytes->String(name);
      bytes->Put(static_cast<uint32_t>(value.index()) + 1);  // AttrKind counts in this order
      const absl::Status status =
          std::visit([&](const auto& v) { return AddValue(v, bytes); }, value);
      if (!status.ok()) return Annotate(status, absl::StrCat("attribute ", Quoted(name)));
    }
    bytes->Count(node.subgraphs.size());
    for (const auto& subgraph : node.subgraphs) {
      const auto found = numbers_.find(subgraph.get());
      uint32_t number = 0;
      if (found != numbers_.end()) {
        number = found->second;
      } else {
        FLOE_ASSIGN_OR_RETURN(number, Add(*subgraph));
        numbers_[subgraph.get()] = number;
      }
      bytes->Put(number);
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status AddValue(const T& value, Bytes* bytes) {
    return AddOne(value, bytes);
  }
  template <typename T>
  absl::Status AddValue(const std::vector<T>& values, Bytes* bytes) {
    bytes->Count(values.size());
    for (const T& value : values) FLOE_RETURN_IF_ERROR(AddOne(value, bytes));
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status AddOne(T value, Bytes* bytes) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, DType>) {
      bytes->Put(static_cast<uint32_t>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      bytes->Put(value);
    } else if constexpr (std::is_same_v<T, FunctionName>) {
      bytes->String(value.name);
    } else {
      bytes->String(value);
    }
    return absl::OkStatus();
  }
  absl::Status AddOne(const Tensor& value, Bytes* bytes) {
    FLOE_ASSIGN_OR_RETURN(const uint32_t number, tensors_.Add(value));
    bytes->Put(number);
    return absl::OkStatus();
  }
  absl::Status AddOne(const SymShape& shape, Bytes* bytes) {
    bytes->Put(shape.rank_known() ? static_cast<uint32_t>(shape.rank()) : form::kNone);
    for (Dim dim : shape.dims()) {
      if (dim.has_rows() || (dim.known() && dim.size() < 0))
        return Bad(absl::StrCat("shape ", shape.ToString(), " cannot be stored"));
      bytes->Put(dim.known() ? dim.size() : int64_t{-1});
    }
    return absl::OkStatus();
  }

  absl::Status AddSignatureTensor(const SignatureTensor& t, Bytes* bytes) {
    if (t.type.list != nullptr) return Bad("a list cannot be stored");
    bytes->String(t.key);
    bytes->String(t.tensor_name);
    FLOE_RETURN_IF_ERROR(AddOne(t.type.dtype, bytes));
    FLOE_RETURN_IF_ERROR(AddOne(t.type.shape, bytes));
    FLOE_RETURN_IF_ERROR(AddOne(t.optional, bytes));
    return AddOne(t.default_value, bytes);
  }

  TensorTable& tensors_;
  std::string text_;
  uint32_t count_ = 0;
  std::map<const Graph*, uint32_t> numbers_;
};

class FormWriter {
 public:
  explicit FormWriter(const FormModel& model) : model_(model), graphs_(&tensors_) {}

  absl::Status Write(Sink sink) {
    FLOE_RETURN_IF_ERROR(VerifyGraph(model_.graph));
    FLOE_RETURN_IF_ERROR(VerifySignatures(model_.graph, model_.signatures));
    FLOE_RETURN_IF_ERROR(graphs_.Add(model_.graph).status());
    Bytes signatures, preparation;
    for (const SignatureDef& def : model_.signatures)
      FLOE_RETURN_IF_ERROR(graphs_.AddSignature(def, &signatures));
    for (const std::string& node : model_.init_nodes) preparation.String(node);

    Describe(form::SectionKind::kTensors, tensors_.size(), tensors_.records());
    Describe(form::SectionKind::kGraphs, graphs_.size(), graphs_.records());
    Describe(form::SectionKind::kSignatures, model_.signatures.size(), signatures.text());
    Describe(form::SectionKind::kPreparation, model_.init_nodes.size(), preparation.text());
    FLOE_RETURN_IF_ERROR(DescribeWeights());
    FinishHeader();
    FLOE_RETURN_IF_ERROR(sink(front_.data(), front_.size()));
    return tensors_.EmitWeights(sink);
  }

 private:
  form::Section& Begin(form::SectionKind kind, size_t items, size_t alignment) {
    front_.resize(AlignUp(front_.size(), alignment));
    form::Section& section = table_[static_cast<uint32_t>(kind) - 1];
    section = {static_cast<uint32_t>(kind), 0, front_.size(), 0, items};
    return section;
  }

  void Describe(form::SectionKind kind, size_t items, const std::string& bytes) {
    form::Section& section = Begin(kind, items, form::kSectionAlignment);
    section.crc = Crc32c(bytes.data(), bytes.size());
    section.bytes = bytes.size();
    front_ += bytes;
  }

  absl::Status DescribeWeights() {
    form::Section& section = Begin(form::SectionKind::kWeights, 0, form::kWeightsAlignment);
    section.bytes = tensors_.weight_bytes();
    return tensors_.EmitWeights([&section](const void* data, size_t size) {
      section.crc = Crc32c(data, size, section.crc);
      return absl::OkStatus();
    });
  }

  void FinishHeader() {
    form::Header header{};
    std::memcpy(header.magic, form::kMagic, sizeof form::kMagic);
    header.version = form::kVersion;
    header.byte_order = form::kByteOrder;
    header.file_bytes = front_.size() + tensors_.weight_bytes();
    header.sections = form::kSections;
    const uint32_t crc = Crc32c(&header, sizeof header);
    header.crc = Crc32c(table_, sizeof table_, crc);
    std::memcpy(front_.data(), &header, sizeof header);
    std::memcpy(front_.data() + sizeof header, table_, sizeof table_);
  }

  const FormModel& model_;
  TensorTable tensors_;
  GraphWriter graphs_;
  form::Section table_[form::kSections] = {};
  std::string front_ = std::string(form::kTableEnd, '\0');  // all but the weights
};

}  // namespace

absl::StatusOr<std::string> SerializeForm(const FormModel& model) {
  std::string bytes;
  FLOE_RETURN_IF_ERROR(FormWriter(model).Write([&bytes](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return absl::OkStatus();
  }));
  return bytes;
}

absl::Status WriteForm(const FormModel& model, const std::string& path) {
  FLOE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  FLOE_RETURN_IF_ERROR(FormWriter(model).Write(
      [&file](const void* data, size_t size) { return file.Write(data, size); }));
  return file.Commit();
}

}  // namespace floe
