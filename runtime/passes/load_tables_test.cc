// Lookup tables from a GraphDef to answers. What files and tensors mean is TensorFlow 2.21's doing.
#include "runtime/passes/load_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "model/import/import.h"
#include "model/op_def.h"
#include "model/tables.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"

namespace floe {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Type(const std::string& name, const std::string& type) {
  return absl::StrCat(" attr { key: '", name, "' value { type: DT_", type, " } }");
}
std::string Const(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& values) {
  return absl::StrCat("node { name: '", name, "' op: 'Const'", Type("dtype", type),
                      " attr { key: 'value' value { tensor { dtype: DT_", type, " tensor_shape { ",
                      shape, " } ", values, " } } } }\n");
}
std::string Table(const std::string& name, const std::string& key, const std::string& value,
                  const std::string& more = "", const std::string& op = "HashTableV2") {
  return absl::StrCat("node { name: '", name, "' op: '", op, "'", Type("key_dtype", key),
                      Type("value_dtype", value), more, " }\n");
}
std::string SharedName(const std::string& name) {
  return absl::StrCat(" attr { key: 'shared_name' value { s: '", name, "' } }");
}
std::string Op(const std::string& name, const std::string& op,
               const std::vector<std::string>& inputs, const std::string& attrs = "") {
  std::string text = absl::StrCat("node { name: '", name, "' op: '", op, "'");
  for (const std::string& input : inputs) absl::StrAppend(&text, " input: '", input, "'");
  return absl::StrCat(text, attrs, " }\n");
}

// Looks `x` up; words unknown give -1.
std::string Lookup(const std::string& table) {
  return Const("none", "INT64", "", "int64_val: -1") +
         Op("x", "Placeholder", {},
            Type("dtype", "STRING") +
                " attr { key: 'shape' value { shape { dim { size: -1 } } } }") +
         Op("y", "LookupTableFindV2", {table, "x", "none"},
            Type("Tin", "STRING") + Type("Tout", "INT64"));
}
std::string Words(const std::string& name, const std::vector<std::string>& words) {
  std::string values;
  for (const std::string& word : words) absl::StrAppend(&values, "string_val: '", word, "' ");
  return Const(name, "STRING", absl::StrCat("dim { size: ", words.size(), " }"), values);
}
std::string NumberList(const std::string& name, const std::vector<int64_t>& numbers) {
  std::string values;
  for (const int64_t number : numbers) absl::StrAppend(&values, "int64_val: ", number, " ");
  return Const(name, "INT64", absl::StrCat("dim { size: ", numbers.size(), " }"), values);
}
std::string FromTensors(const std::string& name, const std::string& table,
                        const std::string& op = "InitializeTableV2") {
  return Words(name + "_keys", {"a", "b"}) + NumberList(name + "_values", {10, 20}) +
         Op(name, op, {table, name + "_keys", name + "_values"});
}
std::string FromFile(const std::string& name, const std::string& table, const std::string& file) {
  return Const(name + "_path", "STRING", "", absl::StrCat("string_val: '", file, "'")) +
         Op(name, "InitializeTableFromTextFileV2", {table, name + "_path"},
            " attr { key: 'key_index' value { i: -2 } }"
            " attr { key: 'value_index' value { i: -1 } }");
}

class LoadTablesTest : public testing::Test {
 protected:
  LoadTablesTest()
      : root_(fs::path(testing::TempDir()) / absl::StrCat("tables-", getpid())),
        directory_(root_ / "model") {
    fs::create_directories(directory_ / "assets");
  }
  ~LoadTablesTest() override { fs::remove_all(root_); }

  void Write(const fs::path& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary) << text;
  }

  absl::StatusOr<ModelHandle> Load(const std::string& graph,
                                   const std::vector<std::string>& init_nodes = {}) const {
    ImportOptions options;
    options.fetches = {"y"};
    FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportBytes(graph, options));
    return Model::Create({{},
                          std::move(imported.graph),
                          std::move(imported.signatures),
                          init_nodes,
                          directory_.string()},
                         {});
  }

  static std::vector<int64_t> Ask(const Model& model, std::vector<std::string> words) {
    const auto plan =
        model.Find("")->default_variant().Bind({Shape({static_cast<int64_t>(words.size())})});
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ((*plan)->why_not_batchable(), "");
    ExecContext context;
    EXPECT_TRUE(context.Prepare(*plan, static_cast<int64_t>(words.size())).ok());
    context.BindInput(0, words.data());
    const absl::Status status = context.Run();
    EXPECT_TRUE(status.ok()) << status;
    const TensorView y = context.Output(0);
    return {y.as<int64_t>(), y.as<int64_t>() + y.elements()};
  }
  std::vector<int64_t> Answers(const std::string& graph, const std::vector<std::string>& words,
                               const std::vector<std::string>& init_nodes = {}) const {
    const auto model = Load(graph, init_nodes);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? Ask(**model, words) : std::vector<int64_t>();
  }
  std::string Error(const std::string& graph,
                    const std::vector<std::string>& init_nodes = {}) const {
    const auto model = Load(graph, init_nodes);
    EXPECT_FALSE(model.ok());
    return std::string(model.status().message());
  }

  const fs::path root_, directory_;
};

TEST_F(LoadTablesTest, InitialisersOfTablesInUseRunByThemselves) {
  EXPECT_THAT(Answers(Table("t", "STRING", "INT64") + FromTensors("init", "t") + Lookup("t"),
                      {"b", "c", "a", "b"}),
              ElementsAre(20, -1, 10, 20));
}

TEST_F(LoadTablesTest, KeysAreComputedByTheKernels) {
  const std::string graph = Table("t", "STRING", "INT64") + Words("k", {"A", "B"}) +
                            Op("keys", "StringLower", {"k"}) + NumberList("v", {1, 2}) +
                            Op("values", "AddV2", {"v", "v"}, Type("T", "INT64")) +
                            Op("init", "InitializeTableV2", {"t", "keys", "values"}) + Lookup("t");
  EXPECT_THAT(Answers(graph, {"a", "b", "A"}), ElementsAre(2, 4, -1));
}

// The table that a branch gives stays the model's: the next request chooses it again.
TEST_F(LoadTablesTest, ATableMayBeChosenByEveryRequest) {
  const std::string branch =
      " attr { key: 'Tin' value { list { type: DT_RESOURCE type: DT_RESOURCE } } }"
      " attr { key: 'Tout' value { list { type: DT_RESOURCE } } }"
      " attr { key: 'then_branch' value { func { name: 'first' } } }"
      " attr { key: 'else_branch' value { func { name: 'second' } } }";
  const auto function = [](const std::string& name, const std::string& given) {
    return "function { signature { name: '" + name +
           "' input_arg { name: 'a' type: DT_RESOURCE } input_arg { name: 'b' type: DT_RESOURCE } "
           "output_arg { name: 'r' type: DT_RESOURCE } } ret { key: 'r' value: '" +
           given + "' } }";
  };
  const auto model = Load(Table("t", "STRING", "INT64") + FromTensors("init", "t") +
                          Table("u", "STRING", "INT64") +
                          absl::StrReplaceAll(FromTensors("fill", "u"), {{"20", "21"}}) +
                          Op("p", "Placeholder", {},
                             Type("dtype", "BOOL") + " attr { key: 'shape' value { shape {} } }") +
                          Op("chosen", "If", {"p", "t", "u"}, branch) + Lookup("chosen") +
                          "library { " + function("first", "a") + function("second", "b") + " }");
  ASSERT_TRUE(model.ok()) << model.status();
  const CompiledSignature& signature = (*model)->Find("")->default_variant();
  const int words = signature.signature().inputs[0].key == "x" ? 0 : 1;
  const auto plan = signature.Bind(words == 0 ? std::vector<Shape>{Shape({1}), Shape()}
                                              : std::vector<Shape>{Shape(), Shape({1})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::string word = "b";
  ExecContext context;
  for (const bool first : {true, true, false, false, true}) {
    ASSERT_TRUE(context.Prepare(*plan, 1).ok());
    context.BindInput(words, &word);
    context.BindInput(1 - words, &first);
    const absl::Status status = context.Run();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(*context.Output(0).as<int64_t>(), first ? 20 : 21);
  }
}

TEST_F(LoadTablesTest, AGroupOfInitialisersIsRunByName) {
  const std::string graph = Table("t", "STRING", "INT64") + FromTensors("first", "t") +
                            Words("k", {"a"}) + NumberList("v", {7}) +
                            Op("second", "InitializeTableV2", {"t", "k", "v"}) +
                            Op("init_all_tables", "NoOp", {"^second"}) + Lookup("t");
  EXPECT_THAT(Answers(graph, {"a", "b"}, {"init_all_tables"}), ElementsAre(7, -1));
  EXPECT_THAT(Answers(graph, {"a", "b"}, {"first"}), ElementsAre(10, 20));
  EXPECT_THAT(Error(graph),
              testing::AllOf(HasSubstr("'t' was filled by 'first'"), HasSubstr("init_nodes")));
  EXPECT_THAT(Error(graph, {"init_all_table"}), HasSubstr("nearest: 'init_all_tables'"));
}

TEST_F(LoadTablesTest, ASharedNameMeansOneTable) {
  const std::string graph = Table("t", "STRING", "INT64", SharedName("words")) +
                            Table("again", "STRING", "INT64", SharedName("words")) +
                            FromTensors("init", "again") + Lookup("t");
  EXPECT_THAT(Answers(graph, {"a"}), ElementsAre(10));
  EXPECT_THAT(Error(absl::StrReplaceAll(graph, {{"name: 't' op: 'HashTableV2' attr { key: "
                                                 "'key_dtype' value { type: DT_STRING",
                                                 "name: 't' op: 'HashTableV2' attr { key: "
                                                 "'key_dtype' value { type: DT_INT64"}})),
              HasSubstr("shares the table of 't'"));
}

TEST_F(LoadTablesTest, ATableWithoutANameIsItsOwn) {
  EXPECT_THAT(Error(Table("t", "STRING", "INT64") + Table("other", "STRING", "INT64") +
                    FromTensors("init", "other") + Lookup("t")),
              HasSubstr("table 't' is never filled"));
}

TEST_F(LoadTablesTest, FilesAreLookedForBeneathTheModel) {
  Write(directory_ / "vocab.txt", "a\nb\nc\n");
  Write(directory_ / "assets" / "only_here.txt", "b\na\n");
  Write(root_ / "outside.txt", "a\n");
  const auto graph = [](const std::string& file) {
    return Table("t", "STRING", "INT64") + FromFile("init", "t", file) + Lookup("t");
  };
  EXPECT_THAT(Answers(graph("vocab.txt"), {"c", "a", "?"}), ElementsAre(2, 0, -1));
  EXPECT_THAT(Answers(graph("/where/it/was/trained/vocab.txt"), {"c"}), ElementsAre(2));
  EXPECT_THAT(Answers(graph("/where/it/was/trained/only_here.txt"), {"a"}), ElementsAre(1));
  EXPECT_THAT(Answers(graph((directory_ / "assets/only_here.txt").string()), {"a"}),
              ElementsAre(1));
  EXPECT_THAT(Error(graph("../outside.txt")), HasSubstr("leads out of its directory"));
  EXPECT_THAT(Error(graph((root_ / "outside.txt").string())),
              HasSubstr("is not in the model's directory"));
  fs::create_symlink("../outside.txt", directory_ / "link.txt");
  EXPECT_THAT(Error(graph("link.txt")), HasSubstr("leads out of its directory"));
  EXPECT_THAT(Error(graph("assets")), HasSubstr("not a regular file"));
  fs::create_symlink("assets/only_here.txt", directory_ / "inside.txt");
  EXPECT_THAT(Answers(graph("inside.txt"), {"a"}), ElementsAre(1));
}

TEST_F(LoadTablesTest, ATableThatNoOutputUsesIsLeftAlone) {
  EXPECT_THAT(Answers(Table("t", "STRING", "INT64") + FromTensors("init", "t") +
                          Table("other", "STRING", "INT64") +
                          FromFile("init_other", "other", "missing.txt") + Lookup("t"),
                      {"b"}),
              ElementsAre(20));
}

TEST_F(LoadTablesTest, OutputsMayWaitForTheInitialiser) {
  const std::string graph =
      Table("t", "STRING", "INT64") + FromTensors("init", "t") +
      absl::StrReplaceAll(Lookup("t"),
                          {{"'none' attr { key: 'Tin'", "'none' input: '^init' attr { key: 'Tin'"},
                           {"input: 'none' attr", "input: 'none' input: '^init' attr"}});
  EXPECT_THAT(graph, HasSubstr("^init"));
  EXPECT_THAT(Answers(graph, {"a"}), ElementsAre(10));
}

TEST_F(LoadTablesTest, TablesThatRequestsWouldFillAreRefused) {
  EXPECT_THAT(Error(Table("t", "STRING", "INT64") + Lookup("t") + NumberList("v", {1}) +
                    Op("init", "InitializeTableV2", {"t", "x", "v"})),
              HasSubstr("cannot depend on what requests feed"));
  EXPECT_THAT(Error(Table("t", "STRING", "INT64") + Lookup("t")),
              HasSubstr("the graph has no initialiser for it"));
}

TEST_F(LoadTablesTest, MutableTablesKeepTheLastValueAndMayStayEmpty) {
  const std::string table = Table("t", "STRING", "INT64", "", "MutableHashTableV2");
  const std::string twice = Words("k", {"a", "a"}) + NumberList("v", {1, 2}) +
                            Op("init", "LookupTableImportV2", {"t", "k", "v"});
  EXPECT_THAT(Answers(table + twice + Lookup("t"), {"a", "b"}), ElementsAre(2, -1));
  EXPECT_THAT(Answers(table + Lookup("t"), {"a"}), ElementsAre(-1));
  EXPECT_THAT(Error(table + twice + FromTensors("more", "t", "LookupTableInsertV2") + Lookup("t")),
              HasSubstr("is changed by 'init', 'more'"));
  const std::string insert = FromTensors("more", "t", "LookupTableInsertV2");
  EXPECT_THAT(Error(Table("t", "STRING", "INT64") + insert + Lookup("t")),
              HasSubstr("'t' is no MutableHashTable"));
  EXPECT_THAT(Error(table + FromTensors("init", "t") + Lookup("t")),
              HasSubstr("'t' is no HashTable"));
  // TensorFlow's StaticHashTable.
  EXPECT_THAT(Answers(Table("t", "STRING", "INT64") +
                          FromTensors("init", "t", "LookupTableImportV2") + Lookup("t"),
                      {"b"}),
              ElementsAre(20));
}

TEST_F(LoadTablesTest, ContradictionsAreNamed) {
  const std::string twice = Words("k", {"a", "a"}) + NumberList("v", {1, 2}) +
                            Op("init", "InitializeTableV2", {"t", "k", "v"});
  EXPECT_THAT(Error(Table("t", "STRING", "INT64") + twice + Lookup("t")),
              HasSubstr("'init' (InitializeTable): key 'a' has two different values"));
  EXPECT_THAT(Error(Table("t", "INT64", "INT64") + twice + Lookup("t")),
              HasSubstr("keys of string and values of int64 for a table of int64 -> int64"));
  EXPECT_THAT(Error(Table("t", "FLOAT", "INT64") + Lookup("t")),
              HasSubstr("no table maps float32 to int64"));
  EXPECT_THAT(Error(Table("t", "STRING", "STRING") + Words("k", {"a"}) + Words("v", {"b"}) +
                    Op("init", "InitializeTableV2", {"t", "k", "v"}) + Lookup("t")),
              HasSubstr("asks for string -> int64 in a table of string -> string"));
}

TEST_F(LoadTablesTest, TheSizeIsAConstantAndTablesCountAsWeights) {
  std::string words;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&words, "a word of the vocabulary, ", i, "\n");
  Write(directory_ / "vocab.txt", words);
  const std::string table = Table("t", "STRING", "INT64") + FromFile("init", "t", "vocab.txt");
  const auto size = Load(table + Op("y", "LookupTableSizeV2", {"t"}));
  ASSERT_TRUE(size.ok()) << size.status();
  const auto plan = (*size)->Find("")->default_variant().Bind({});
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  ASSERT_TRUE(context.Run().ok());
  EXPECT_EQ(*context.Output(0).as<int64_t>(), 1000);

  const auto lookup = Load(table + Lookup("t"));
  ASSERT_TRUE(lookup.ok()) << lookup.status();
  EXPECT_GT((*lookup)->weight_bytes(), 60'000u);
  EXPECT_LT((*lookup)->weight_bytes(), 300'000u);
}

// Every level names the level below twice: 2^40 ways down, 40 bodies.
TEST(LoadTables, SharedBodiesAreSearchedOnce) {
  Graph graph;
  Node table;
  table.name = "t";
  table.op = FindOp("MutableHashTable");
  table.attrs.Set("key_dtype", DType::kString);
  table.attrs.Set("value_dtype", DType::kInt64);
  graph.Add(std::move(table));
  for (int level = 0; level < 40; ++level) {
    const auto body = std::make_shared<const Graph>(std::move(graph));
    graph = Graph();
    Node branch;
    branch.name = "b";
    branch.op = FindOp("If");
    branch.subgraphs = {body, body};
    graph.Add(std::move(branch));
  }
  ASSERT_TRUE(LoadTables(&graph, {{}, "", {0}}, {}).ok());
  const Graph* level = &graph;
  while (!level->node(0).subgraphs.empty()) {
    ASSERT_EQ(level->node(0).subgraphs[0], level->node(0).subgraphs[1]);
    level = level->node(0).subgraphs[0].get();
  }
  EXPECT_EQ(level->node(0).op->name, "Const");
}

TEST(TableObject, FindsInEveryPairOfTypes) {
  for (const DType key : {DType::kInt32, DType::kInt64}) {
    for (const DType value : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
                              DType::kUInt8, DType::kBool, DType::kComplex128}) {
      const auto table = TableObject::Create(TableKind::kFilledOnce, key, value, Shape({2}));
      ASSERT_TRUE(table.ok()) << table.status();
      const int64_t wide[] = {-1, INT64_MIN + 5};
      const int32_t narrow[] = {-1, INT32_MIN};
      const TensorView keys{key, Shape({2}),
                            key == DType::kInt32 ? const_cast<int32_t*>(narrow)
                                                 : static_cast<void*>(const_cast<int64_t*>(wide))};
      Tensor values = Tensor::Allocate(value, Shape({2, 2})),
             fallback = Tensor::Allocate(value, Shape({2})),
             out = Tensor::Allocate(value, Shape({2, 2}));
      for (size_t i = 0; i < values.bytes(); ++i)
        static_cast<char*>(values.mutable_data())[i] = static_cast<char>(i % 100 + 1);
      std::memset(fallback.mutable_data(), 0, fallback.bytes());
      TensorView first = keys, first_values = values.view();
      first.shape = Shape({1});
      first_values.shape = Shape({1, 2});
      ASSERT_TRUE((*table)->Insert(first, first_values).ok());
      ASSERT_TRUE((*table)->Find(keys, fallback.view(), out.view()).ok());
      EXPECT_EQ(std::memcmp(out.data(), values.data(), values.bytes() / 2), 0);
      EXPECT_EQ(
          std::memcmp(out.as<char>() + values.bytes() / 2, fallback.data(), values.bytes() / 2), 0);
    }
  }
}

}  // namespace
}  // namespace floe
