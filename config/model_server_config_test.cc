#include "config/model_server_config.h"

#include "config/mistakes_for_test.h"
#include "tensorflow_serving/config/model_server_config.pb.h"

namespace floe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

ModelListContext FileContext() {
  ModelListContext context;
  context.file = "m.config";
  context.directory = "/etc/floe";
  return context;
}

std::vector<std::string> ConfigMistakes(const std::string& text) {
  std::vector<std::string> notes;
  return MistakesOf(ParseModelServerConfig(text, FileContext(), &notes).status());
}

TEST(ModelServerConfig, EveryFieldIsRead) {
  std::vector<std::string> notes;
  const auto models = ParseModelServerConfig(R"(
# two models
model_config_list {
  config {
    name: "digits"
    base_path: "/srv/digits"
    model_platform: "tensorflow"
    model_version_policy { specific { versions: 7 versions: 3 versions: 7 } }
    version_labels { key: "stable" value: 3 }
    version_labels { key: "canary" value: 7 }
  }
  config: {
    name: 'other',
    base_path: 'models/other',
    model_version_policy: { latest: {} }
    logging_config { sampling_config { sampling_rate: 0.1 } }
  }
  config { name: "rest" base_path: "/r" model_type: TENSORFLOW model_version_policy { all {} } }
  config { name: "two" base_path: "/t" model_version_policy { latest { num_versions: 2 } } }
})",
                                             FileContext(), &notes);
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 4u);
  const ModelConfig& digits = (*models)[0];
  EXPECT_EQ(digits.name, "digits");
  EXPECT_EQ(digits.base_path, "/srv/digits");
  EXPECT_EQ(digits.where, "m.config:4");
  EXPECT_EQ(digits.versions.kind, VersionPolicy::Kind::kSpecific);
  EXPECT_THAT(digits.versions.specific, ElementsAre(3, 7));
  EXPECT_THAT(digits.version_labels, ElementsAre(Pair("canary", 7), Pair("stable", 3)));
  EXPECT_EQ((*models)[1].base_path, "/etc/floe/models/other");
  EXPECT_EQ((*models)[1].versions, VersionPolicy()) << "latest{} without a number means 1";
  EXPECT_EQ((*models)[1].versions.latest, 1);
  EXPECT_EQ((*models)[2].versions.kind, VersionPolicy::Kind::kAll);
  EXPECT_EQ((*models)[3].versions.latest, 2);
  EXPECT_THAT(notes, ElementsAre(AllOf(StartsWith("m.config:16: "), HasSubstr("logging_config"))));
}

TEST(ModelServerConfig, ModelsOfTheSameNameLendTheRest) {
  std::vector<ModelConfig> known(1);
  known[0].name = "a";
  known[0].base_path = "/old";
  known[0].workers = 3;
  known[0].versions.latest = 5;
  known[0].version_labels = {{"x", 1}};
  ModelListContext context = FileContext();
  context.known = &known;
  context.defaults.workers = 2;
  std::vector<std::string> notes;
  const auto models = ParseModelServerConfig(
      "model_config_list { config { name: 'a' base_path: '/new' } config { name: 'b' base_path: "
      "'/b' } }",
      context, &notes);
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_EQ((*models)[0].workers, 3);
  EXPECT_EQ((*models)[0].base_path, "/new");
  EXPECT_EQ((*models)[0].versions, VersionPolicy()) << "what a list can say, it says";
  EXPECT_THAT((*models)[0].version_labels, IsEmpty());
  EXPECT_EQ((*models)[1].workers, 2);
}

TEST(ModelServerConfig, MistakesNameLineFieldAndFix) {
  EXPECT_THAT(
      ConfigMistakes(R"(model_config_list {
  config { name: "a" }
  config {
    base_path: "gs://bucket/b"
    model_platform: "caffe"
  }
  config {
    name: "a"
    base_path: "/x"
    model_version_policy { specific {} }
    version_labels { key: "l" value: -1 }
  }
})"),
      ElementsAre(
          AllOf(StartsWith("m.config:2: model_config_list.config[0].base_path: is missing"),
                HasSubstr("expected base_path:")),
          StartsWith("m.config:3: model_config_list.config[1].name: is missing"),
          AllOf(StartsWith("m.config:4: model_config_list.config[1].base_path: 'gs://bucket/b'"),
                HasSubstr("expected the path")),
          AllOf(StartsWith("m.config:5: model_config_list.config[1].model_platform: 'caffe'"),
                HasSubstr("expected \"tensorflow\"")),
          AllOf(StartsWith("m.config:10: "), HasSubstr("specific names no version")),
          AllOf(StartsWith("m.config:11: "), HasSubstr("label 'l' has version -1")),
          "m.config:7: the model name 'a' is taken (m.config:2); names must differ"));
}

TEST(ModelServerConfig, EveryUnknownFieldIsNamed) {
  EXPECT_THAT(
      ConfigMistakes(
          "model_config_list {\n  config {\n    nam: \"a\"\n    base_pth: \"/x\"\n  }\n}\n"),
      ElementsAre(AllOf(StartsWith("m.config:3: unknown field 'nam' of ModelConfig; nearest: "
                                   "'name'; expected one of name, base_path"),
                        HasSubstr("version_labels")),
                  StartsWith("m.config:4: unknown field 'base_pth' of ModelConfig; nearest: "
                             "'base_path'")));
}

TEST(ModelServerConfig, BrokenTextNamesTheLine) {
  EXPECT_THAT(ConfigMistakes("model_config_list {\n  config {\n    name: 3\n"),
              ElementsAre(StartsWith("m.config:3: not valid text format: ")));
  EXPECT_THAT(ConfigMistakes("models:\n- name: a\n")[0], HasSubstr("unknown field 'models'"));
  EXPECT_THAT(ConfigMistakes(""),
              ElementsAre(AllOf(StartsWith("m.config: there is no model_config_list"),
                                HasSubstr("base_path: \"PATH\""))));
  EXPECT_THAT(ConfigMistakes("custom_model_config { }"),
              ElementsAre(HasSubstr("custom_model_config")));
  EXPECT_THAT(ConfigMistakes("model_config_list { config { name: 'a' name: 'b' base_path: '/' } }"),
              ElementsAre(HasSubstr("name")));
  // Nesting is bounded.
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "model_config_list { x {";
  EXPECT_NE(ConfigMistakes(deep), std::vector<std::string>{"(none)"});
}

TEST(ModelServerConfig, MoreLatestVersionsThanCanBeAreAllThereAre) {
  std::vector<std::string> notes;
  const auto models = ParseModelServerConfig(
      "model_config_list { config { name: 'a' base_path: '/a' model_version_policy { latest { "
      "num_versions: 4294967295 } } } }",
      FileContext(), &notes);
  ASSERT_TRUE(models.ok()) << models.status();
  ServerConfig config;
  config.models = *models;
  EXPECT_EQ(MistakesOf(ParseConfig(ConfigToYaml(config), "f.yaml", "").status())[0], "(none)")
      << "what is active is a floe.yaml";
}

TEST(ModelServerConfig, AFileThatSaysNothingNamesNoModelsWhereItMay) {
  ModelListContext context = FileContext();
  context.may_be_empty = true;
  std::vector<std::string> notes;
  const auto models = ParseModelServerConfig("# nothing yet\n", context, &notes);
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_THAT(*models, IsEmpty());
  EXPECT_THAT(notes, ElementsAre(StartsWith("m.config: there is no model_config_list")));
}

TEST(ModelServerConfig, AFileUrlIsAPath) {
  std::vector<std::string> notes;
  const auto models = ParseModelServerConfig(
      "model_config_list { config { name: 'a' base_path: 'file:///srv/a' } }", FileContext(),
      &notes);
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_EQ((*models)[0].base_path, "/srv/a");
}

TEST(ModelServerConfig, AnEmptyListIsAList) {
  EXPECT_EQ(ConfigMistakes("model_config_list {}")[0], "(none)");
}

TEST(ModelServerConfig, CallsNeedAbsolutePaths) {
  tensorflow::serving::ModelServerConfig config;
  auto* const entry = config.mutable_model_config_list()->add_config();
  entry->set_name("a");
  entry->set_base_path("relative");
  std::vector<std::string> notes;
  EXPECT_THAT(MistakesOf(ModelsOf(config, {}, &notes).status()),
              ElementsAre(AllOf(StartsWith("model_config_list.config[0].base_path: 'relative'"),
                                HasSubstr("absolute path"))));
  entry->set_base_path("/absolute");
  const auto models = ModelsOf(config, {}, &notes);
  ASSERT_TRUE(models.ok());
  EXPECT_EQ((*models)[0].where, "model_config_list.config[0]");
}

TEST(ModelServerConfig, ListsAreBounded) {
  tensorflow::serving::ModelServerConfig config;
  for (int i = 0; i < 10001; ++i) config.mutable_model_config_list()->add_config();
  std::vector<std::string> notes;
  EXPECT_THAT(MistakesOf(ModelsOf(config, {}, &notes).status()),
              ElementsAre("model_config_list: 10001 models; expected at most 10000"));
}

}  // namespace
}  // namespace floe
