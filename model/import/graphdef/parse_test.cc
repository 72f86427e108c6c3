// Reading in pieces: the same message as protobuf's, and no memory for anything but the message.
#include "model/import/graphdef/parse.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/memory_budget.h"
#include "model/import/tensor_proto.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace floe {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::MessageDifferencer;
using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

class ParseFileTest : public testing::Test {
 protected:
  ~ParseFileTest() override { fs::remove(path_); }
  std::string Write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_;
  }
  absl::StatusOr<ParsedGraphDef> Parse(const std::string& bytes) const {
    auto file = InputFile::Open(Write(bytes), INT64_MAX);
    return file.ok() ? ParseGraphDefFile(&*file) : file.status();
  }
  const std::string path_ =
      (fs::path(testing::TempDir()) / ("parse-" + std::to_string(getpid()))).string();
};

tensorflow::TensorProto* AddConst(tensorflow::NodeDef* node, const std::string& name, size_t bytes,
                                  char filling) {
  node->set_name(name);
  node->set_op("Const");
  (*node->mutable_attr())["dtype"].set_type(tensorflow::DT_UINT8);
  tensorflow::TensorProto* const tensor = (*node->mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(tensorflow::DT_UINT8);
  tensor->mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(bytes));
  tensor->set_tensor_content(std::string(bytes, filling));
  return tensor;
}

// Small and large nodes by turns, some of them in a function, and large fields of other kinds.
tensorflow::GraphDef Mixed() {
  tensorflow::GraphDef def;
  for (int i = 0; i < 3000; ++i) {
    tensorflow::NodeDef* const node = def.add_node();
    if (i % 1000 == 999) {
      AddConst(node, absl::StrCat("large", i), 2 * kMiB + static_cast<size_t>(i), 'a');
      node->add_input(absl::StrCat("^n", i - 1));
      node->set_device("/cpu:0");
    } else {
      node->set_name(absl::StrCat("n", i));
      node->set_op("NoOp");
      (*node->mutable_attr())["k"].set_i(-i);
    }
  }
  tensorflow::NodeDef* const typed = def.add_node();
  AddConst(typed, "typed", 0, 'a')->mutable_float_val()->Resize(kMiB, 1.5f);
  (*typed->mutable_attr())["text"].set_s(std::string(kMiB, 's'));
  tensorflow::FunctionDef* const function = def.mutable_library()->add_function();
  function->mutable_signature()->set_name("f");
  AddConst(function->add_node_def(), "inner", kMiB, 'i');
  (*function->mutable_ret())["y"] = "inner:output:0";
  def.mutable_versions()->set_producer(1395);
  return def;
}

// Of a field with a length.
std::string Field(int number, const std::string& value) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  size_t size = value.size();
  for (; size >= 128; size >>= 7) out.push_back(static_cast<char>(size | 128));
  return out + static_cast<char>(size) + value;
}

TEST_F(ParseFileTest, GivesWhatProtobufGives) {
  const tensorflow::GraphDef def = Mixed();
  const auto parsed = Parse(def.SerializeAsString());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(parsed->text);
  EXPECT_TRUE(MessageDifferencer::Equals(*parsed->def, def));
  const auto text = Parse(def.DebugString());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(text->text);
  EXPECT_TRUE(MessageDifferencer::Equals(*text->def, def));
}

// Messages in several parts, fields that come twice or in another order, and fields that nobody
// knows: the last value counts, and messages are merged.
TEST_F(ParseFileTest, MergesAsProtobufDoes) {
  const std::string large(kMiB, 'l'), larger(kMiB + 1, 'm');
  const std::string content = Field(4, large), key = Field(1, "value");
  const auto node = [](const std::string& fields) { return Field(1, Field(1, "n") + fields); };
  const auto attribute = [&](const std::string& tensor) {
    return Field(5, key + Field(2, Field(8, tensor)));
  };
  for (const std::string& bytes : {
           node(attribute(content + Field(4, "small"))),
           node(attribute(Field(4, "small") + content)),
           node(attribute(content + Field(4, larger) + std::string("\x08\x01"))),
           node(attribute(content) + attribute("\x08\x01")),
           node(attribute("\x08\x01") + attribute(content)),
           node(Field(5, Field(2, Field(8, content)) + key)),
           node(Field(5, Field(2, Field(8, content)))),
           node(Field(5, Field(1, "other") + Field(2, Field(8, content)) + key + "\x18\x07")),
           node(Field(5, key + Field(2, Field(8, content)) + Field(2, Field(8, "\x08\x01")))),
           node(Field(5, key + Field(2, Field(8, content) + "\x18\x05"))),
           node(Field(5, key + Field(2, "\x18\x05" + Field(8, content) + Field(8, "\x18\x02")))),
           Field(15, std::string(kMiB, '\0')) + node(Field(14, large) + attribute(content)),
           Field(2, Field(1, Field(3, Field(1, "n") + attribute(content)))) +
               Field(2, Field(1, Field(3, Field(1, "m")))) + node(""),
           node(attribute(Field(5, std::string(4 * kMiB, '\0')) + content)),
           node(attribute(Field(5, large) + Field(5, "four") + Field(5, large))),
           node(attribute(Field(6, large) + Field(6, "eight ..") + Field(5, large))),
       }) {
    tensorflow::GraphDef expected;
    ASSERT_TRUE(expected.ParseFromString(bytes));
    const auto parsed = Parse(bytes);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_TRUE(MessageDifferencer::Equals(*parsed->def, expected));
  }
}

TEST_F(ParseFileTest, MalformedBytesAreRefusedWhereverTheyLie) {
  const std::string good = Mixed().SerializeAsString();
  for (size_t cut = good.size() - 1; cut > 1000; cut -= std::min<size_t>(cut, 698765)) {
    const auto parsed = Parse(good.substr(0, cut));
    tensorflow::GraphDef expected;
    EXPECT_EQ(parsed.ok(), expected.ParseFromString(good.substr(0, cut))) << cut;
    if (parsed.ok()) continue;
    EXPECT_THAT(std::string(parsed.status().message()),
                AllOf(HasSubstr("near byte "), HasSubstr(absl::StrCat(" of ", cut))));
  }
  const std::string large(kMiB, 'l');
  for (const std::string& bytes : {
           Field(1, Field(5, Field(1, "\xff") + Field(2, Field(8, Field(4, large))))),
           Field(1, Field(5, Field(2, Field(8, Field(4, large) + '\0')))),
           Field(1, Field(5, Field(2, Field(8, Field(4, large) + "\x22\x01")))),
           Field(1, Field(14, large) + "\x0c"),
           Field(1, Field(5, Field(1, "value") + Field(2, Field(8, Field(5, large + "?"))))),
           Field(1, Field(5, Field(2, "\x42\x80\x80\x80\x80\x70" + large))),
           Field(1, large) + "\x0a",
       }) {
    tensorflow::GraphDef expected;
    ASSERT_FALSE(expected.ParseFromString(bytes));
    EXPECT_TRUE(absl::IsInvalidArgument(Parse(bytes).status()));
  }
}

TEST_F(ParseFileTest, SaysWhatElseTheFileIs) {
  tensorflow::MetaGraphDef meta;
  meta.mutable_meta_info_def()->set_meta_graph_version("one");
  AddConst(meta.mutable_graph_def()->add_node(), "c", 3 * kMiB, 'c');
  EXPECT_THAT(std::string(Parse(meta.SerializeAsString()).status().message()),
              HasSubstr("this is a MetaGraphDef"));
  EXPECT_THAT(
      std::string(Parse("\x08\x01" + Field(2, std::string(3 * kMiB, 'm'))).status().message()),
      HasSubstr("this is a SavedModel"));
  EXPECT_THAT(std::string(Parse("").status().message()), HasSubstr("is empty"));
}

// Three constants of 8 MiB: a copy of any of them would not fit.
TEST_F(ParseFileTest, TakesNoMoreMemoryThanTheMessageHas) {
  tensorflow::GraphDef def;
  for (const char* name : {"a", "b", "c"}) AddConst(def.add_node(), name, 8 * kMiB, *name);
  const std::string bytes = def.SerializeAsString();
  for (const auto& [limit, fits] : {std::pair(size_t{30}, true), std::pair(size_t{22}, false)}) {
    const MemoryBudget memory(static_cast<int64_t>(limit * kMiB));
    const MemoryScope scope(memory);
    const auto parsed = Parse(bytes);
    EXPECT_EQ(parsed.ok(), fits) << parsed.status();
    if (!fits) {
      EXPECT_TRUE(absl::IsResourceExhausted(parsed.status())) << parsed.status();
    }
    EXPECT_LT(memory.in_use(), static_cast<int64_t>(kMiB));  // its constants pay for themselves
  }
  const MemoryBudget memory(static_cast<int64_t>(16 * kMiB));
  const MemoryScope scope(memory);
  std::string list(12 * kMiB, 'l');  // and lists lie in memory once
  list = Field(1, Field(5, Field(1, "value") + Field(2, Field(8, Field(5, list)))));
  EXPECT_TRUE(Parse(list).ok());
  std::string text;
  for (size_t i = 0; i < kMiB; ++i) text += "node{}";
  EXPECT_TRUE(absl::IsResourceExhausted(Parse(text).status()));
  EXPECT_EQ(memory.in_use(), 0);
}

TEST(TensorFromProto, TakesALongListAsItIs) {
  constexpr int kCount = 100'000;
  tensorflow::TensorProto proto;
  proto.set_dtype(tensorflow::DT_FLOAT);
  proto.mutable_tensor_shape()->add_dim()->set_size(kCount);
  proto.mutable_float_val()->Reserve(kCount);
  for (int i = 0; i < kCount; ++i) proto.add_float_val(static_cast<float>(i));
  const float* const values = proto.float_val().data();
  auto tensor = TensorFromProto(&proto);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->as<float>(), values);
  proto.Clear();
  EXPECT_EQ(tensor->as<float>()[kCount - 1], static_cast<float>(kCount - 1));
  proto.set_dtype(tensorflow::DT_FLOAT);  // fewer values than elements
  proto.mutable_tensor_shape()->add_dim()->set_size(kCount + 1);
  proto.mutable_float_val()->Reserve(kCount);
  for (int i = 0; i < kCount; ++i) proto.add_float_val(static_cast<float>(i));
  tensor = TensorFromProto(&proto);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->as<float>()[kCount], static_cast<float>(kCount - 1));
}

}  // namespace
}  // namespace floe
