// The variables that configurations tell of, in the order in which old files keep them.
#include "model/import/keras/variables.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace floe::keras {
namespace {

using ::testing::ElementsAre;

Json LayerOf(const std::string& class_name, Json config) {
  return {{"module", "keras.layers"}, {"class_name", class_name}, {"config", std::move(config)}};
}

Json Sequential(std::vector<Json> layers, Json options = Json::object()) {
  options["layers"] = std::move(layers);
  return LayerOf("Sequential", std::move(options));
}

// PATH/INDEX, and "-" behind what is not trained.
std::vector<std::string> Shown(const LayerVariables& variables) {
  std::vector<std::string> all;
  for (const Variable& v : variables.all)
    all.push_back(absl::StrCat(v.path, "/", v.index, v.trained ? "" : "-"));
  return all;
}

TEST(Variables, OfANestedModelComeDepthFirst) {
  const Json inner = Sequential({LayerOf("InputLayer", {}), LayerOf("Dense", {{"units", 3}}),
                                 LayerOf("BatchNormalization", {{"scale", false}})});
  const Json model = Sequential({LayerOf("Dense", {{"units", 2}, {"use_bias", false}}), inner});
  EXPECT_THAT(Shown(VariablesOf(model, "", Writer::kKeras2)),
              ElementsAre("layers/dense/0", "layers/sequential/layers/dense/0",
                          "layers/sequential/layers/dense/1",
                          "layers/sequential/layers/batch_normalization/0",
                          "layers/sequential/layers/batch_normalization/1-",
                          "layers/sequential/layers/batch_normalization/2-"));
}

TEST(Variables, NothingInsideOfWhatIsFrozenIsTrained) {
  const Json inner = LayerOf(
      "Functional", {{"trainable", false}, {"layers", {LayerOf("PReLU", {})}}, {"name", "inner"}});
  const Json frozen = LayerOf("Dense", {{"units", 2}, {"trainable", false}});
  EXPECT_THAT(
      Shown(VariablesOf(Sequential({inner, frozen, LayerOf("PReLU", {})}), "", Writer::kKeras2)),
      ElementsAre("layers/functional/layers/p_re_lu/0-", "layers/dense/0-", "layers/dense/1-",
                  "layers/p_re_lu/0"));
}

TEST(Variables, AreAskedThemselvesByKeras3) {
  const Json inner = Sequential({LayerOf("PReLU", Json::object())}, {{"trainable", false}});
  const auto shown = [](const Json& layer) {
    return Shown(VariablesOf(layer, "l", Writer::kKeras3));
  };
  EXPECT_THAT(shown(Sequential({inner})), ElementsAre("l/layers/sequential/layers/p_re_lu/0"));
  EXPECT_THAT(shown(inner), ElementsAre("l/layers/p_re_lu/0-"));
  EXPECT_THAT(shown(LayerOf("LSTM", {{"trainable", false}, {"use_bias", false}})),
              ElementsAre("l/cell/0-", "l/cell/1-"));
}

TEST(Variables, OfLayersWithinLayersAreKnown) {
  const Json lstm = LayerOf("LSTM", {{"units", 2}});
  const Json cells = {LayerOf("GRUCell", {{"units", 2}, {"use_bias", false}}),
                      LayerOf("GRUCell", {{"units", 2}, {"use_bias", false}})};
  const Json model =
      Sequential({LayerOf("Bidirectional", {{"layer", lstm}}),
                  LayerOf("RNN", {{"cell", LayerOf("StackedRNNCells", {{"cells", cells}})}}),
                  LayerOf("TimeDistributed", {{"layer", LayerOf("PReLU", {})}})});
  EXPECT_THAT(
      Shown(VariablesOf(model, "", Writer::kKeras2)),
      ElementsAre(
          "layers/bidirectional/forward_layer/cell/0", "layers/bidirectional/forward_layer/cell/1",
          "layers/bidirectional/forward_layer/cell/2", "layers/bidirectional/backward_layer/cell/0",
          "layers/bidirectional/backward_layer/cell/1",
          "layers/bidirectional/backward_layer/cell/2", "layers/rnn/cell/cells/gru_cell/0",
          "layers/rnn/cell/cells/gru_cell/1", "layers/rnn/cell/cells/gru_cell_1/0",
          "layers/rnn/cell/cells/gru_cell_1/1", "layers/time_distributed/layer/0"));
}

TEST(Variables, WhereLayersCountTwiceThoseWithoutVariablesDoNot) {
  const Json model = Sequential({LayerOf("Dense", {{"units", 2}}), LayerOf("Dropout", {}),
                                 LayerOf("Dense", {{"units", 3}}), LayerOf("Dropout", {})});
  const LayerVariables variables = VariablesOf(model, "", Writer::kKeras213);
  EXPECT_EQ(variables.moved.at("layers/dense_1"), "_layer_checkpoint_dependencies/dense_2");
  EXPECT_EQ(variables.moved.at("layers/dropout_1"), "_layer_checkpoint_dependencies/dropout_1");
  EXPECT_EQ(VariablesOf(model, "", Writer::kKeras214).moved.at("layers/dense_1"),
            "_layer_checkpoint_dependencies/dense_1");
}

TEST(Variables, HaveTheSizesThatTheConfigurationSays) {
  const auto sizes = [](const Json& layer, size_t k) {
    const LayerVariables variables = VariablesOf(layer, "l", Writer::kKeras2);
    if (k >= variables.all.size() || !variables.all[k].dims.has_value()) return std::string("any");
    return absl::StrJoin(*variables.all[k].dims, ",");
  };
  const Json conv = LayerOf("Conv2D", {{"filters", 5}, {"kernel_size", {3, 2}}});
  EXPECT_EQ(sizes(conv, 0), "3,2,-1,5");
  EXPECT_EQ(sizes(conv, 1), "5");
  EXPECT_EQ(sizes(LayerOf("Dense", {{"units", 4}}), 0), "-1,4");
  EXPECT_EQ(sizes(LayerOf("GRU", {{"units", 4}}), 2), "2,12");
  EXPECT_EQ(sizes(LayerOf("LSTM", {{"units", 4}}), 1), "4,16");
  EXPECT_EQ(sizes(LayerOf("Normalization", Json::object()), 2), "");
  EXPECT_EQ(sizes(LayerOf("LayerNormalization", Json::object()), 0), "any");
}

}  // namespace
}  // namespace floe::keras
