#include "model/ops/recurrent_pair.h"

#include <gtest/gtest.h>

#include "model/attrs_key.h"
#include "model/op_def.h"
#include "model/ops/recurrent.h"

namespace floe {
namespace {

constexpr int64_t kIn = 4, kTime = 7;

Node LayerOf(ops::RecurrentCell cell, int64_t units, bool backwards) {
  ops::RecurrentSpec spec;
  spec.cell = cell;
  spec.gates.assign(cell == ops::RecurrentCell::kLstm ? 5 : 1, {ops::RecurrentFunction::kTanh});
  spec.units = units;
  spec.backwards = backwards;
  spec.sequence = true;
  Node layer;
  layer.name = backwards ? "backward" : "forward";
  layer.op = FindOp("FusedRecurrent");
  layer.num_outputs = ops::PairedLayer::kOutputs;
  spec.ToAttrs(&layer.attrs);
  for (int i = 0; i < spec.inputs(); ++i) layer.inputs.push_back({i, 0});
  return layer;
}

// The inputs of a layer over x [2, kTime, kIn].
std::vector<ValueInfo> InputsOf(const Node& layer) {
  const ops::RecurrentSpec spec = *ops::RecurrentSpec::FromAttrs(layer.attrs);
  const int64_t units = spec.units, columns = units * spec.columns();
  std::vector<SymShape> shapes = {{2, kTime, kIn}, {2, units}};
  if (spec.has_c()) shapes.push_back({2, units});
  for (const SymShape& shape : {SymShape({kIn, columns}), {units, columns}, {columns}})
    shapes.push_back(shape);
  std::vector<ValueInfo> inputs;
  inputs.reserve(shapes.size());
  for (const SymShape& shape : shapes) inputs.push_back({{DType::kFloat32, shape}, {}, {}});
  return inputs;
}

std::vector<TensorType> TypesOf(const std::vector<ValueInfo>& values) {
  std::vector<TensorType> types;
  types.reserve(values.size());
  for (const ValueInfo& value : values) types.push_back(value.type);
  return types;
}

std::vector<ValueInfo> Join(std::vector<ValueInfo> a, const std::vector<ValueInfo>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class RecurrentPairTest : public testing::Test {
 protected:
  const Node first_ = LayerOf(ops::RecurrentCell::kLstm, 3, false),
             second_ = LayerOf(ops::RecurrentCell::kSimple, 5, true);
  const Node pair_ = ops::PairRecurrent(first_, second_);
  const std::vector<ValueInfo> inputs_ = Join(InputsOf(first_), InputsOf(second_));
};

TEST_F(RecurrentPairTest, HasTheLayersItWasMadeOf) {
  EXPECT_EQ(pair_.inputs.size(), 11u);
  const auto layers = ops::PairedLayersOf(pair_);
  ASSERT_TRUE(layers.ok()) << layers.status();
  EXPECT_EQ(AttrsKey((*layers)[0].node.attrs), AttrsKey(first_.attrs));
  EXPECT_EQ(AttrsKey((*layers)[1].node.attrs), AttrsKey(second_.attrs));
  EXPECT_EQ((*layers)[1].first_input, 6);
  EXPECT_EQ((*layers)[1].inputs, 5);
  EXPECT_EQ((*layers)[1].first_output, 3);
}

TEST_F(RecurrentPairTest, GivesTheTypesAndTheWorkOfBoth) {
  const auto types = pair_.op->infer({pair_, inputs_});
  ASSERT_TRUE(types.ok()) << types.status();
  std::vector<std::string> shapes;
  for (const TensorType& type : *types) shapes.push_back(type.shape.ToString());
  EXPECT_EQ(shapes,
            (std::vector<std::string>{"[2,7,3]", "[2,3]", "[2,3]", "[2,7,5]", "[2,5]", "[2,0]"}));
  double flops = 0;
  for (const Node* layer : {&first_, &second_}) {
    const std::vector<ValueInfo> own = InputsOf(*layer);
    flops += layer->op->flops(*layer, TypesOf(own), *layer->op->infer({*layer, own}), 1);
  }
  EXPECT_GT(flops, 0);
  EXPECT_EQ(pair_.op->flops(pair_, TypesOf(inputs_), *types, 1), flops);
}

TEST_F(RecurrentPairTest, RefusesWhatIsNoPair) {
  Node alone = pair_;
  alone.attrs = first_.attrs;
  EXPECT_EQ(alone.op->infer({alone, inputs_}).status().code(), absl::StatusCode::kInvalidArgument);
  const std::vector<ValueInfo> few(inputs_.begin(), inputs_.end() - 1);
  EXPECT_EQ(pair_.op->infer({pair_, few}).status().message(), "has 10 inputs, expected 11");
  std::vector<ValueInfo> wrong = inputs_;
  wrong[8].type.shape = {kIn + 1, 5};  // W of the second layer
  EXPECT_FALSE(pair_.op->infer({pair_, wrong}).ok());
}

}  // namespace
}  // namespace floe
