#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/form/cursor.h"
#include "model/form/form.h"
#include "model/form/layout.h"
#include "model/op_def.h"
#include "model/verify.h"

namespace floe {
namespace {

using form::AttrKind;
using form::Cursor;
using Span = absl::Span<const uint8_t>;

absl::Status Damaged(const std::string& why) {
  return absl::DataLossError(absl::StrCat("the file is damaged: ", why));
}

// Header and section table, checked against the file's length.
class FormFile {
 public:
  FormFile(Span bytes, FormCheck check) : bytes_(bytes), check_(check) {}

  absl::Status Open() {
    if (!IsForm(bytes_)) return Bad("not a file in floe's form");
    form::Header header{};
    std::memcpy(&header, bytes_.data(), std::min(bytes_.size(), sizeof header));
    if (bytes_.size() >= 16 && header.byte_order != form::kByteOrder)
      return absl::FailedPreconditionError(
          "the file was written on a machine of another byte order; convert it on this one");
    if (bytes_.size() >= 12 && header.version != form::kVersion)
      return absl::FailedPreconditionError(absl::StrCat(
          "the file has version ", header.version, " of floe's form, this build reads ",
          form::kVersion, "; convert the original again"));
    if (bytes_.size() < form::kTableEnd)
      return Damaged(absl::StrCat("it has ", bytes_.size(), " bytes, less than its header"));
    if (header.file_bytes != bytes_.size())
      return Damaged(
          absl::StrCat("it has ", bytes_.size(), " bytes, its header says ", header.file_bytes));
    std::memcpy(table_, bytes_.data() + sizeof header, sizeof table_);
    const uint32_t crc = std::exchange(header.crc, 0);
    if (check_ != FormCheck::kStructure &&
        Crc32c(table_, sizeof table_, Crc32c(&header, sizeof header)) != crc)
      return Damaged("the checksum of its header is wrong");
    if (header.sections != form::kSections || !IsZero({bytes_.data() + 32, 32}))
      return Damaged("its header is not one of this version");
    return CheckTable();
  }

  Span section(form::SectionKind kind) const {
    const form::Section& s = table_[static_cast<uint32_t>(kind) - 1];
    return bytes_.subspan(s.offset, s.bytes);
  }
  uint64_t items(form::SectionKind kind) const {
    return table_[static_cast<uint32_t>(kind) - 1].items;
  }

 private:
  static bool IsZero(Span bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; });
  }

  // Sections lie one behind the other, as the layout says, so none can overlap and no byte is
  // unaccounted for.
  absl::Status CheckTable() const {
    uint64_t end = form::kTableEnd;
    for (int k = 0; k < form::kSections; ++k) {
      const form::Section& s = table_[k];
      const bool weights = k + 1 == form::kSections;
      const uint64_t begin =
          AlignUp(end, weights ? form::kWeightsAlignment : form::kSectionAlignment);
      if (s.kind != static_cast<uint32_t>(k) + 1 || s.offset != begin || begin > bytes_.size() ||
          s.bytes > bytes_.size() - begin)
        return Damaged(absl::StrCat("section ", k + 1, " is not where it should be"));
      if (!IsZero(bytes_.subspan(end, begin - end)))
        return Damaged(absl::StrCat("there are bytes in front of section ", k + 1));
      const bool checked = weights ? check_ == FormCheck::kAll : check_ != FormCheck::kStructure;
      if (checked && Crc32c(bytes_.data() + begin, s.bytes) != s.crc)
        return Damaged(absl::StrCat("the checksum of section ", k + 1, " is wrong"));
      end = begin + s.bytes;
    }
    if (end != bytes_.size() || table_[form::kSections - 1].items != 0)
      return Damaged("there are bytes behind its last section");
    return absl::OkStatus();
  }

  const Span bytes_;
  const FormCheck check_;
  form::Section table_[form::kSections] = {};
};

// The sections' contents, in the order in which they build on each other.
class FormReader {
 public:
  FormReader(const FormFile& file, std::shared_ptr<const void> owner)
      : file_(file),
        owner_(std::move(owner)),
        weights_(file.section(form::SectionKind::kWeights)) {}

  absl::StatusOr<FormModel> Read() {
    FLOE_RETURN_IF_ERROR(ReadItems(form::SectionKind::kTensors, "tensor",
                                   [this](Cursor& c) { tensors_.push_back(ReadTensor(c)); }));
    FLOE_RETURN_IF_ERROR(
        ReadItems(form::SectionKind::kGraphs, "graph", [this](Cursor& c) { ReadGraph(c); }));
    if (!unknown_ops_.empty())
      return absl::UnimplementedError(absl::StrCat(
          "the file has ops that this build does not know: ", absl::StrJoin(unknown_ops_, ", ")));
    if (graphs_.empty()) return Bad("the file has no graph");
    FormModel model;
    FLOE_RETURN_IF_ERROR(ReadItems(form::SectionKind::kSignatures, "signature", [&](Cursor& c) {
      model.signatures.push_back(ReadSignature(c));
    }));
    FLOE_RETURN_IF_ERROR(ReadItems(form::SectionKind::kPreparation, "preparation",
                                   [&](Cursor& c) { model.init_nodes.push_back(c.String()); }));
    model.graph = std::move(*graphs_.back().graph);
    FLOE_RETURN_IF_ERROR(VerifyGraph(model.graph));
    FLOE_RETURN_IF_ERROR(VerifySignatures(model.graph, model.signatures));
    FLOE_RETURN_IF_ERROR(CheckPreparation(model));
    return model;
  }

 private:
  // What bounds the graphs below one while they are still being put together.
  struct Built {
    std::shared_ptr<Graph> graph;
    int depth = 1;
    int64_t nodes = 0;  // with subgraphs, each as often as it is used
  };

  template <typename ReadOne>
  absl::Status ReadItems(form::SectionKind kind, const char* what, ReadOne read) {
    Cursor cursor(file_.section(kind));
    const uint64_t items = file_.items(kind);
    for (uint64_t i = 0; i < items && cursor.ok(); ++i) {
      read(cursor);
      if (!cursor.ok()) return Annotate(cursor.status(), absl::StrCat(what, " ", i));
    }
    if (!cursor.AtEnd()) return Bad(absl::StrCat("bytes are left behind the last ", what));
    return absl::OkStatus();
  }

  static DType ReadType(Cursor& c) {
    const uint32_t number = c.U32();
    if (number == 0) return DType::kInvalid;
    const auto dtype = DTypeFromNumber(number < 256 ? static_cast<int>(number) : -1);
    if (!dtype.ok() || static_cast<uint32_t>(*dtype) != number) {
      c.Fail(absl::StrCat("unknown dtype number ", number));
      return DType::kInvalid;
    }
    return *dtype;
  }

  static bool ReadBool(Cursor& c) {
    const uint32_t value = c.U32();
    if (value > 1) c.Fail(absl::StrCat("a bool of ", value));
    return value == 1;
  }

  static SymShape ReadShape(Cursor& c) {
    const uint32_t rank = c.U32();
    if (rank == form::kNone) return SymShape::UnknownRank();
    if (rank > form::kMaxRank) c.Fail(absl::StrCat("a shape of rank ", rank));
    SymShape shape;
    for (uint32_t axis = 0; axis < rank && c.ok(); ++axis) {
      const int64_t dim = c.I64();
      if (dim < -1) c.Fail(absl::StrCat("a dimension of ", dim));
      shape.push_back(dim < 0 ? Dim::Unknown() : Dim(dim));
    }
    return shape;
  }

  Tensor ReadTensor(Cursor& c) {
    const DType dtype = ReadType(c);
    const SymShape open = ReadShape(c);
    if (!c.ok()) return {};
    if (dtype == DType::kInvalid || IsHandle(dtype) || !open.concrete()) {
      c.Fail(absl::StrCat(DTypeName(dtype), open.ToString(), " is not the type of a constant"));
      return {};
    }
    const Shape shape = open.At(1);
    const size_t element = std::max<size_t>(DTypeSize(dtype), 1);
    const auto elements = CheckedElements(shape.dims(), element, INT64_MAX);
    if (!elements.ok()) {
      c.Fail(std::string(elements.status().message()));
      return {};
    }
    if (dtype == DType::kString) return ReadStrings(c, shape, *elements);
    return Weights(c, dtype, shape, static_cast<uint64_t>(*elements) * element);
  }

  static Tensor ReadStrings(Cursor& c, const Shape& shape, int64_t elements) {
    if (!c.Has(static_cast<uint64_t>(elements), sizeof(uint32_t))) return {};
    Tensor tensor = Tensor::Allocate(DType::kString, shape);
    auto* strings = static_cast<std::string*>(tensor.mutable_data());
    for (int64_t i = 0; i < elements && c.ok(); ++i) strings[i] = c.String();
    return tensor;
  }

  Tensor Weights(Cursor& c, DType dtype, const Shape& shape, uint64_t bytes) {
    const uint64_t offset = c.U64();
    if (!c.ok()) return {};
    if (offset % kAlignment != 0 || offset > weights_.size() || bytes > weights_.size() - offset) {
      c.Fail(absl::StrCat(bytes, " bytes at offset ", offset, " are not within the ",
                          weights_.size(), " of the weights"));
      return {};
    }
    const uint8_t* data = weights_.data() + offset;
    // Any other byte is not a value of C++'s bool.
    if (dtype == DType::kBool && std::any_of(data, data + bytes, [](uint8_t b) { return b > 1; })) {
      c.Fail("a bool that is neither true nor false");
      return {};
    }
    return Tensor::Borrow(dtype, shape, owner_, data);
  }

  Tensor TensorNumber(Cursor& c) const {
    const uint32_t number = c.U32();
    if (number == form::kNone) return {};
    if (number < tensors_.size()) return tensors_[number];
    c.Fail(absl::StrCat("tensor ", number, " of ", tensors_.size()));
    return {};
  }

  template <typename T, typename ReadOne>
  static AttrValue ReadList(Cursor& c, ReadOne read) {
    std::vector<T> values(c.Count(sizeof(uint32_t)));
    for (size_t i = 0; i < values.size() && c.ok(); ++i) values[i] = read(c);
    return values;
  }

  AttrValue ReadAttr(Cursor& c) const {
    const auto integer = [](Cursor& in) { return in.I64(); };
    const auto real = [](Cursor& in) { return in.F32(); };
    const auto text = [](Cursor& in) { return in.String(); };
    const auto function = [](Cursor& in) { return FunctionName{in.String()}; };
    const uint32_t kind = c.U32();
    switch (static_cast<AttrKind>(kind)) {
      case AttrKind::kInt:
        return c.I64();
      case AttrKind::kFloat:
        return c.F32();
      case AttrKind::kBool:
        return ReadBool(c);
      case AttrKind::kString:
        return c.String();
      case AttrKind::kType:
        return ReadType(c);
      case AttrKind::kShape:
        return ReadShape(c);
      case AttrKind::kTensor:
        return TensorNumber(c);
      case AttrKind::kFunction:
        return function(c);
      case AttrKind::kInts:
        return ReadList<int64_t>(c, integer);
      case AttrKind::kFloats:
        return ReadList<float>(c, real);
      case AttrKind::kBools:
        return ReadList<bool>(c, ReadBool);
      case AttrKind::kStrings:
        return ReadList<std::string>(c, text);
      case AttrKind::kTypes:
        return ReadList<DType>(c, ReadType);
      case AttrKind::kShapes:
        return ReadList<SymShape>(c, ReadShape);
      case AttrKind::kFunctions:
        return ReadList<FunctionName>(c, function);
    }
    c.Fail(absl::StrCat("an attribute of the unknown kind ", kind));
    return false;
  }

  static std::vector<ValueRef> ReadRefs(Cursor& c) {
    std::vector<ValueRef> refs(c.Count(2 * sizeof(uint32_t)));
    for (ValueRef& ref : refs) {
      ref.node = c.Index();
      ref.output = c.Index();
    }
    return refs;
  }

  static std::vector<int> ReadIndices(Cursor& c) {
    std::vector<int> indices(c.Count(sizeof(uint32_t)));
    for (int& index : indices) index = c.Index();
    return indices;
  }

  Node ReadNode(Cursor& c, Built* built) {
    const std::string op = c.String();
    Node node;
    node.name = c.String();
    node.op = FindOp(op);
    if (node.op == nullptr && c.ok()) unknown_ops_.insert(op);
    node.num_outputs = c.Index();
    node.inputs = ReadRefs(c);
    node.control_inputs = ReadIndices(c);
    for (size_t n = c.Count(2 * sizeof(uint32_t)); n > 0 && c.ok(); --n) {
      const std::string name = c.String();
      if (node.attrs.Has(name)) c.Fail(absl::StrCat("attribute ", Quoted(name), " is there twice"));
      node.attrs.Set(name, ReadAttr(c));
    }
    for (int number : ReadIndices(c)) {
      if (number >= static_cast<int>(graphs_.size())) {
        c.Fail(absl::StrCat("subgraph ", number, " of ", graphs_.size()));
        break;
      }
      const Built& inner = graphs_[number];
      built->depth = std::max(built->depth, inner.depth + 1);
      built->nodes += inner.nodes;
      node.subgraphs.push_back(inner.graph);
    }
    if (!c.ok()) c.Locate(absl::StrCat("node ", Quoted(node.name), " (", op, ")"));
    return node;
  }

  void ReadGraph(Cursor& c) {
    Built built;
    built.graph = std::make_shared<Graph>();
    // A node's shortest form: seven numbers.
    const size_t nodes = c.Count(7 * sizeof(uint32_t));
    built.nodes = static_cast<int64_t>(nodes);
    for (size_t i = 0; i < nodes && c.ok(); ++i) {
      built.graph->Add(ReadNode(c, &built));
      // Checked here, too, because a few graphs that use each other twice stand for very many.
      if (built.nodes > kMaxGraphNodes || built.depth > kMaxGraphDepth)
        c.Fail(absl::StrCat("more than ", kMaxGraphNodes, " nodes or ", kMaxGraphDepth, " levels"));
    }
    built.graph->inputs = ReadIndices(c);
    built.graph->outputs = ReadRefs(c);
    graphs_.push_back(std::move(built));
  }

  SignatureDef ReadSignature(Cursor& c) const {
    SignatureDef def;
    def.name = c.String();
    def.method = c.String();
    for (auto* tensors : {&def.inputs, &def.outputs}) {
      tensors->resize(c.Count(6 * sizeof(uint32_t)));
      for (SignatureTensor& t : *tensors) {
        t.key = c.String();
        t.tensor_name = c.String();
        t.type.dtype = ReadType(c);
        t.type.shape = ReadShape(c);
        t.optional = ReadBool(c);
        t.default_value = TensorNumber(c);
      }
    }
    return def;
  }

  static absl::Status CheckPreparation(const FormModel& model) {
    std::set<std::string> names;
    for (const Node& node : model.graph.nodes()) names.insert(node.name);
    for (const std::string& name : model.init_nodes) {
      if (names.count(name) == 0)
        return Bad(absl::StrCat(Quoted(name), ", to be run first, is not in the graph"));
    }
    return absl::OkStatus();
  }

  const FormFile& file_;
  const std::shared_ptr<const void> owner_;
  const Span weights_;
  std::vector<Tensor> tensors_;
  std::vector<Built> graphs_;
  std::set<std::string> unknown_ops_;
};

}  // namespace

bool IsForm(absl::Span<const uint8_t> bytes) {
  return bytes.size() >= sizeof form::kMagic &&
         std::memcmp(bytes.data(), form::kMagic, sizeof form::kMagic) == 0;
}

absl::StatusOr<FormModel> ReadForm(absl::Span<const uint8_t> bytes,
                                   std::shared_ptr<const void> owner, FormCheck check) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0)
    return Bad(absl::StrCat("the bytes of a file must be aligned to ", kAlignment));
  FormFile file(bytes, check);
  FLOE_RETURN_IF_ERROR(file.Open());
  return FormReader(file, std::move(owner)).Read();
}

}  // namespace floe
