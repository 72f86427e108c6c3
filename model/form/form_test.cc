// The binary form: what is written comes back, and what was damaged is refused.
#include "model/form/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "base/mapped_file.h"
#include "model/form/layout.h"
#include "model/op_def.h"

namespace floe {
namespace {

using testing::HasSubstr;

// ---- building ----

Node MakeNode(const std::string& op, const std::string& name, std::vector<ValueRef> inputs = {}) {
  Node node;
  node.op = FindOp(op);
  EXPECT_NE(node.op, nullptr) << op;
  node.name = name;
  node.inputs = std::move(inputs);
  node.num_outputs = node.op->outputs < 0 ? 1 : node.op->outputs;
  return node;
}

int AddInput(Graph* graph, const std::string& name, DType dtype) {
  Node node = MakeNode("Input", name);
  node.attrs.Set("dtype", dtype);
  node.attrs.Set("shape", SymShape::UnknownRank());
  return graph->Add(std::move(node));
}

int AddConst(Graph* graph, const std::string& name, const Tensor& value) {
  Node node = MakeNode("Const", name);
  node.attrs.Set("dtype", value.dtype());
  node.attrs.Set("value", value);
  return graph->Add(std::move(node));
}

Tensor Strings(const std::vector<std::string>& values) {
  Tensor t = Tensor::Allocate(DType::kString, Shape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), static_cast<std::string*>(t.mutable_data()));
  return t;
}

// x + 1 while x < 10, as a node would write it.
std::vector<std::shared_ptr<const Graph>> LoopSubgraphs(const Tensor& shared) {
  auto condition = std::make_shared<Graph>(), body = std::make_shared<Graph>();
  for (Graph* graph : {condition.get(), body.get()}) {
    graph->inputs = {AddInput(graph, "v", DType::kFloat32)};
    const int c = AddConst(graph, "c", shared);
    const bool test = graph == condition.get();
    graph->outputs = {{graph->Add(MakeNode(test ? "Less" : "Add", "r", {{0, 0}, {c, 0}})), 0}};
  }
  return {condition, body};
}

// Every kind of attribute, constants of every dtype, control flow and control edges.
FormModel EveryKind() {
  FormModel model;
  Graph& g = model.graph;
  const Tensor ten = Tensor::Scalar(DType::kFloat32, 10.0f);
  const int x = AddInput(&g, "x", DType::kFloat32);
  const int w = AddConst(&g, "w", Tensor::Vector<float>(DType::kFloat32, {1, -2, 3.5f}));
  AddConst(&g, "again", *g.node(w).attrs.Find<Tensor>("value"));
  AddConst(&g, "empty", Tensor::Allocate(DType::kInt64, Shape({0, 3})));
  AddConst(&g, "words", Strings({"", std::string("a\0b", 3), std::string(100, 'z')}));
  for (const DType dtype :
       {DType::kFloat64, DType::kInt32, DType::kUInt8, DType::kInt16, DType::kInt8,
        DType::kComplex64, DType::kInt64, DType::kBool, DType::kBFloat16, DType::kUInt16,
        DType::kComplex128, DType::kFloat16, DType::kUInt32, DType::kUInt64, DType::kQInt8,
        DType::kQUInt8, DType::kQInt16, DType::kQUInt16, DType::kQInt32}) {
    Tensor t = Tensor::Allocate(dtype, Shape({2, 3}));
    std::memset(t.mutable_data(), 1, t.bytes());
    AddConst(&g, DTypeName(dtype), t);
  }
  Node kinds = MakeNode("Add", "kinds", {{x, 0}, {w, 0}});
  kinds.control_inputs = {x, w};
  const SymShape shape({Dim::Unknown(), 0, 7});
  const std::vector<std::pair<std::string, AttrValue>> attrs = {
      {"int", int64_t{INT64_MIN}},
      {"float", -0.0f},
      {"bool", true},
      {"string", std::string("a\0b", 3)},
      {"type", DType::kInvalid},
      {"shape", shape},
      {"tensor", ten},
      {"no tensor", Tensor()},
      {"function", FunctionName{"f"}},
      {"ints", std::vector<int64_t>{1, -1}},
      {"floats", std::vector<float>{0.5f, INFINITY}},
      {"bools", std::vector<bool>{true, false, true}},
      {"strings", std::vector<std::string>{"", "s"}},
      {"types", std::vector<DType>{DType::kString, DType::kVariant}},
      {"shapes", std::vector<SymShape>{SymShape(), SymShape::UnknownRank(), shape}},
      {"functions", std::vector<FunctionName>{{"f"}, {"g"}}},
      {"no ints", std::vector<int64_t>{}},
  };
  for (const auto& [name, value] : attrs) kinds.attrs.Set(name, value);
  const int k = g.Add(std::move(kinds));
  Node loop = MakeNode("While", "loop", {{k, 0}});
  loop.subgraphs = LoopSubgraphs(ten);
  const int l = g.Add(std::move(loop));
  Node choice = MakeNode("If", "choice", {{l, 0}, {k, 0}});
  choice.subgraphs = {g.node(l).subgraphs[1], g.node(l).subgraphs[1]};
  const int c = g.Add(std::move(choice));
  Node unsupported = MakeNode("Unsupported", "odd", {{c, 0}});
  unsupported.attrs.Set("tensorflow_op", std::string("Odd"));
  unsupported.num_outputs = 3;
  g.Add(std::move(unsupported));
  g.Add(MakeNode("Assert", "assert", {{c, 0}}));

  SignatureDef def;
  SignatureTensor input{.key = "the input", .tensor_name = "x"};
  input.type = {DType::kFloat32, SymShape({Dim::Unknown(), 3})};
  input.optional = true;
  input.default_value = ten;
  def.inputs.push_back(input);
  def.outputs.push_back({.key = "y", .tensor_name = "choice"});
  def.outputs.push_back({.key = "z", .tensor_name = "odd:2"});
  model.signatures.push_back(def);
  def.name = "other";
  def.method = "classify";
  def.inputs.clear();
  model.signatures.push_back(def);
  model.init_nodes = {"assert"};
  return model;
}

// ---- comparing ----

void ExpectSame(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  if (a.dtype() == DType::kString) {
    for (int64_t i = 0; i < a.elements(); ++i)
      EXPECT_EQ(a.as<std::string>()[i], b.as<std::string>()[i]);
  } else if (a.bytes() != 0) {
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
  }
}

void ExpectSame(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  ASSERT_EQ(a.size(), b.size());
  for (int i = 0; i < a.size(); ++i) {
    const Node &p = a.node(i), &q = b.node(i);
    SCOPED_TRACE(p.name);
    EXPECT_EQ(p.name, q.name);
    EXPECT_EQ(p.op, q.op);
    EXPECT_EQ(p.inputs, q.inputs);
    EXPECT_EQ(p.control_inputs, q.control_inputs);
    EXPECT_EQ(p.num_outputs, q.num_outputs);
    ASSERT_EQ(p.attrs.values().size(), q.attrs.values().size());
    for (const auto& [name, value] : p.attrs.values()) {
      SCOPED_TRACE(name);
      const auto found = q.attrs.values().find(name);
      ASSERT_NE(found, q.attrs.values().end());
      ASSERT_EQ(value.index(), found->second.index());
      std::visit(
          [&](const auto& v) {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, Tensor>) {
              ExpectSame(v, std::get<T>(found->second));
            } else {
              EXPECT_EQ(v, std::get<T>(found->second));
            }
          },
          value);
    }
    ASSERT_EQ(p.subgraphs.size(), q.subgraphs.size());
    for (size_t k = 0; k < p.subgraphs.size(); ++k) ExpectSame(*p.subgraphs[k], *q.subgraphs[k]);
  }
}

void ExpectSame(const std::vector<SignatureTensor>& a, const std::vector<SignatureTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].key, b[i].key);
    EXPECT_EQ(a[i].tensor_name, b[i].tensor_name);
    EXPECT_EQ(a[i].type, b[i].type);
    EXPECT_EQ(a[i].optional, b[i].optional);
    ExpectSame(a[i].default_value, b[i].default_value);
  }
}

void ExpectSame(const FormModel& a, const FormModel& b) {
  ExpectSame(a.graph, b.graph);
  EXPECT_EQ(a.init_nodes, b.init_nodes);
  ASSERT_EQ(a.signatures.size(), b.signatures.size());
  for (size_t i = 0; i < a.signatures.size(); ++i) {
    EXPECT_EQ(a.signatures[i].name, b.signatures[i].name);
    EXPECT_EQ(a.signatures[i].method, b.signatures[i].method);
    ExpectSame(a.signatures[i].inputs, b.signatures[i].inputs);
    ExpectSame(a.signatures[i].outputs, b.signatures[i].outputs);
  }
}

// ---- reading ----

// At the very end of an aligned block, so that a sanitizer sees every read past it.
absl::StatusOr<FormModel> Read(const std::string& bytes, FormCheck check = FormCheck::kAll) {
  auto copy = std::make_shared<AlignedBuffer>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
  const auto* data = reinterpret_cast<const uint8_t*>(copy->data());
  return ReadForm({data, bytes.size()}, copy, check);
}

std::string Serialized(const FormModel& model) {
  const auto bytes = SerializeForm(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

form::Header HeaderOf(const std::string& bytes) {
  form::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

form::Section SectionOf(const std::string& bytes, form::SectionKind kind) {
  form::Section section;
  const size_t index = static_cast<uint32_t>(kind) - 1;
  std::memcpy(&section, bytes.data() + sizeof(form::Header) + index * sizeof section,
              sizeof section);
  return section;
}

TEST(Form, WhatIsWrittenComesBack) {
  const FormModel model = EveryKind();
  const std::string bytes = Serialized(model);
  for (const FormCheck check : {FormCheck::kStructure, FormCheck::kMetadata, FormCheck::kAll}) {
    const auto read = Read(bytes, check);
    ASSERT_TRUE(read.ok()) << read.status();
    ExpectSame(model, *read);
    EXPECT_EQ(Serialized(*read), bytes);  // nothing is lost or made up on the way
  }
}

TEST(Form, WeightsStayWhereTheyAre) {
  const FormModel model = EveryKind();
  const std::string path = testing::TempDir() + "/floe_form_test.floe";
  const absl::Status written = WriteForm(model, path);
  ASSERT_TRUE(written.ok()) << written;
  absl::StatusOr<FormModel> read;
  std::weak_ptr<const MappedFile> mapping;
  {
    const auto file = MappedFile::Open(path, 1 << 20);
    ASSERT_TRUE(file.ok()) << file.status();
    mapping = *file;
    const auto* data = reinterpret_cast<const uint8_t*>((*file)->data());
    read = ReadForm({data, (*file)->size()}, *file);
    ASSERT_TRUE(read.ok()) << read.status();
    const Tensor* w = read->graph.node(1).attrs.Find<Tensor>("value");
    EXPECT_GE(w->as<char>(), (*file)->data());
    EXPECT_LT(w->as<char>(), (*file)->data() + (*file)->size());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(w->data()) % kAlignment, 0u);
  }
  std::remove(path.c_str());
  EXPECT_FALSE(mapping.expired());
  ExpectSame(model, *read);  // the tensors keep the mapping
  read = absl::CancelledError();
  EXPECT_TRUE(mapping.expired());
}

TEST(Form, SharedConstantsAndSubgraphsAreStoredOnce) {
  const std::string bytes = Serialized(EveryKind());
  EXPECT_EQ(SectionOf(bytes, form::SectionKind::kGraphs).items, 3u);
  const auto read = Read(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->graph.node(1).attrs.Find<Tensor>("value")->data(),
            read->graph.node(2).attrs.Find<Tensor>("value")->data());
}

TEST(Form, LayoutIsAsDocumented) {
  const std::string bytes = Serialized(EveryKind());
  EXPECT_EQ(bytes.substr(0, 8),
            "\x8b"
            "FLOE\r\n\x1a");
  EXPECT_EQ(HeaderOf(bytes).version, 1u);
  EXPECT_EQ(HeaderOf(bytes).file_bytes, bytes.size());
  uint64_t end = form::kTableEnd;
  for (uint32_t kind = 1; kind <= 5; ++kind) {
    const form::Section s = SectionOf(bytes, static_cast<form::SectionKind>(kind));
    EXPECT_EQ(s.kind, kind);
    EXPECT_EQ(s.offset, AlignUp(end, kind == 5 ? 4096 : 8));
    EXPECT_EQ(s.crc, Crc32c(bytes.data() + s.offset, s.bytes));
    end = s.offset + s.bytes;
  }
  EXPECT_EQ(end, bytes.size());
}

TEST(Form, OtherVersionsAreRefusedByName) {
  std::string bytes = Serialized(EveryKind());
  bytes[8] = 2;
  auto read = Read(bytes);
  EXPECT_TRUE(absl::IsFailedPrecondition(read.status())) << read.status();
  EXPECT_THAT(ErrorOf(read.status()), HasSubstr("version 2"));
  bytes = Serialized(EveryKind());
  std::swap(bytes[12], bytes[15]);
  std::swap(bytes[13], bytes[14]);
  read = Read(bytes);
  EXPECT_TRUE(absl::IsFailedPrecondition(read.status())) << read.status();
  EXPECT_THAT(ErrorOf(read.status()), HasSubstr("byte order"));
}

TEST(Form, EveryTruncationIsAnError) {
  const std::string bytes = Serialized(EveryKind());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto read = Read(bytes.substr(0, size));
    ASSERT_FALSE(read.ok()) << size;
    if (size >= form::kTableEnd) {
      EXPECT_THAT(ErrorOf(read.status()), HasSubstr(absl::StrCat("it has ", size, " bytes")));
    }
  }
  EXPECT_FALSE(Read(bytes + "x").ok());
}

TEST(Form, EveryFlippedBitIsAnError) {
  std::string bytes = Serialized(EveryKind());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char flip = static_cast<char>(1 << (i % 8));
    bytes[i] = static_cast<char>(bytes[i] ^ flip);
    ASSERT_FALSE(Read(bytes).ok()) << "byte " << i;
    bytes[i] = static_cast<char>(bytes[i] ^ flip);
  }
  EXPECT_TRUE(Read(bytes).ok());
}

TEST(Form, WeightsAreCheckedOnlyWhenAsked) {
  std::string bytes = Serialized(EveryKind());
  const form::Section weights = SectionOf(bytes, form::SectionKind::kWeights);
  bytes[weights.offset] = static_cast<char>(bytes[weights.offset] ^ 1);
  EXPECT_TRUE(Read(bytes, FormCheck::kMetadata).ok());
  const auto read = Read(bytes, FormCheck::kAll);
  EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
  EXPECT_THAT(ErrorOf(read.status()), HasSubstr("checksum of section 5"));
}

// Without checksums nothing but the reader's own checks stands between a file and memory.
TEST(Form, DamagedContentsAreErrorsOrOtherGraphs) {
  const std::string good = Serialized(EveryKind());
  const size_t end = SectionOf(good, form::SectionKind::kWeights).offset;
  int refused = 0;
  for (size_t i = sizeof(form::Header); i < end; ++i) {
    for (const unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(value);
      const auto read = Read(bytes, FormCheck::kStructure);
      refused += read.ok() ? 0 : 1;
      // What is accepted is a graph like any other.
      if (read.ok()) {
        EXPECT_TRUE(SerializeForm(*read).ok()) << i;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Form, RandomDamage) {
  const std::string good = Serialized(EveryKind());
  const size_t end = SectionOf(good, form::SectionKind::kWeights).offset;
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int n = 1 + static_cast<int>(random() % 8); n > 0; --n) {
      const size_t at = form::kTableEnd + random() % (end - form::kTableEnd - 4);
      const uint32_t value = random() % 3 == 0 ? random() : random() % 64;
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    const auto read = Read(bytes, FormCheck::kStructure);
    if (read.ok()) {
      EXPECT_TRUE(SerializeForm(*read).ok());
    }
  }
}

// ---- single faults, made by the writer's own means ----

// The error of a file whose graph was changed after it was written: `change` edits the serialized
// bytes found by `find`.
std::string ErrorAfter(const FormModel& model, const std::string& find, size_t skip,
                       uint32_t value) {
  std::string bytes = Serialized(model);
  const form::Section graphs = SectionOf(bytes, form::SectionKind::kGraphs);
  const size_t at = bytes.find(find, graphs.offset);
  EXPECT_NE(at, std::string::npos);
  std::memcpy(bytes.data() + at + find.size() + skip, &value, sizeof value);
  const auto read = Read(bytes, FormCheck::kStructure);
  return read.ok() ? "no error" : ErrorOf(read.status());
}

TEST(Form, ErrorsNameTheNode) {
  const FormModel model = EveryKind();
  // Behind a node's name: outputs, count of inputs, node and output of the first.
  EXPECT_THAT(ErrorAfter(model, "kinds", 0, 2), HasSubstr("node 'kinds' (Add): it has 2 outputs"));
  EXPECT_THAT(ErrorAfter(model, "kinds", 8, 5000), HasSubstr("node 'kinds' (Add): an input is of"));
  EXPECT_THAT(ErrorAfter(model, "kinds", 12, 9), HasSubstr("an input is output 9 of 'x'"));
  EXPECT_THAT(ErrorAfter(model, "kinds", 8, 0xfffffff0), HasSubstr("too large"));
  EXPECT_THAT(ErrorAfter(model, "kinds", 4, 0x7fffffff), HasSubstr("cut off"));
  // A loop's subgraphs: one input, no control inputs, no attributes, two subgraphs.
  EXPECT_THAT(ErrorAfter(model, "loop", 24, 1), HasSubstr("node"));
  EXPECT_THAT(ErrorAfter(model, "loop", 28, 77), HasSubstr("subgraph 77 of 2"));
  EXPECT_THAT(ErrorAfter(model, std::string("\3\0\0\0int", 7), 0, 99),
              HasSubstr("unknown kind 99"));
}

TEST(Form, UnknownOpsAreListedTogether) {
  std::string bytes = Serialized(EveryKind());
  for (size_t at = 0; (at = bytes.find(std::string("\4\0\0\0Less", 8), at)) != std::string::npos;
       ++at)
    bytes[at + 4] = 'Q';
  for (size_t at = 0; (at = bytes.find(std::string("\5\0\0\0While", 9), at)) != std::string::npos;
       ++at)
    bytes[at + 4] = 'Q';
  const auto read = Read(bytes, FormCheck::kStructure);
  EXPECT_TRUE(absl::IsUnimplemented(read.status())) << read.status();
  EXPECT_THAT(ErrorOf(read.status()), HasSubstr("know: Qess, Qhile"));
}

// Forty graphs, each with a node that uses the one before twice, stand for 2^40.
TEST(Form, GraphsThatGrowByUseAreRefused) {
  FormModel model = EveryKind();
  auto inner = std::make_shared<Graph>();
  inner->inputs = {AddInput(inner.get(), "v", DType::kFloat32)};
  inner->outputs = {{0, 0}};
  const int levels = 25;
  for (int level = 0; level < levels; ++level) {
    auto outer = std::make_shared<Graph>();
    outer->inputs = {AddInput(outer.get(), "v", DType::kFloat32)};
    Node node = MakeNode("If", "branch", {{0, 0}, {0, 0}});
    node.subgraphs = {inner, inner};
    outer->outputs = {{outer->Add(std::move(node)), 0}};
    inner = outer;
  }
  Node node = MakeNode("If", "bomb", {{0, 0}, {0, 0}});
  node.subgraphs = {inner, inner};
  model.graph.Add(std::move(node));
  const auto bytes = SerializeForm(model);
  ASSERT_FALSE(bytes.ok());
  EXPECT_THAT(ErrorOf(bytes.status()), HasSubstr("more than 4000000 nodes"));
}

TEST(Form, WhatCannotBeStoredIsRefusedWhenWriting) {
  FormModel model = EveryKind();
  Tensor handles = Tensor::Allocate(DType::kVariant, Shape());
  model.graph.mutable_node(3).attrs.Set("value", handles);
  model.graph.mutable_node(3).attrs.Set("dtype", DType::kVariant);
  EXPECT_THAT(ErrorOf(SerializeForm(model).status()), HasSubstr("node 'empty' (Const)"));
  model = EveryKind();
  model.graph.mutable_node(0).attrs.Set("shape", SymShape({Dim::Rows()}));
  EXPECT_THAT(ErrorOf(SerializeForm(model).status()), HasSubstr("[rows] cannot be stored"));
  model = EveryKind();
  model.signatures[0].outputs[0].tensor_name = "choice:1";
  EXPECT_THAT(ErrorOf(SerializeForm(model).status()), HasSubstr("no tensor 'choice:1'"));
  model = EveryKind();
  model.signatures.clear();
  EXPECT_FALSE(SerializeForm(model).ok());
}

TEST(Form, MisalignedBytesAreRefused) {
  const std::string bytes = Serialized(EveryKind());
  AlignedBuffer buffer(bytes.size() + 1);
  std::memcpy(buffer.data() + 1, bytes.data(), bytes.size());
  const auto* data = reinterpret_cast<const uint8_t*>(buffer.data()) + 1;
  EXPECT_THAT(ErrorOf(ReadForm({data, bytes.size()}).status()), HasSubstr("aligned"));
}

}  // namespace
}  // namespace floe
