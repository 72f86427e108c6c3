// Joins and splits without copies, against the same graphs with them.
#include "runtime/line_windows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec_context.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using Numbers = std::vector<float>;

Numbers Random(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-1.0f, 1.0f);
  Numbers values(count);
  for (float& value : values) value = numbers(random);
  return values;
}

class ImageGraph : public TestGraph {
 public:
  explicit ImageGraph(int64_t channels)
      : image(Input("x", DType::kFloat32, {Dim::Unknown(), 9, 11, channels})) {}

  ValueRef Conv(const std::string& name, ValueRef x, const Shape& filter, int64_t stride = 1) {
    const Numbers weights = Random(static_cast<size_t>(filter.elements()), seed_++);
    return Op("Conv2D", name, {x, Floats(name + "/w", filter, weights)},
              {{"strides", std::vector<int64_t>{1, stride, stride, 1}},
               {"padding", std::string("SAME")}});
  }
  ValueRef Pool(const std::string& op, const std::string& name, ValueRef x) {
    return Op(op, name, {x},
              {{"ksize", std::vector<int64_t>{1, 3, 3, 1}},
               {"strides", std::vector<int64_t>{1, 1, 1, 1}},
               {"padding", std::string("SAME")}});
  }
  ValueRef Concat(const std::string& name, std::vector<ValueRef> parts, int axis = -1) {
    parts.push_back(Int(name + "/axis", axis));
    return Op("ConcatV2", name, parts);
  }
  std::pair<ValueRef, ValueRef> Halves(const std::string& name, ValueRef x) {
    const ValueRef first =
        Op("Split", name, {Int(name + "/axis", 3), x}, {{"num_split", int64_t{2}}});
    graph.mutable_node(first.node).num_outputs = 2;
    return {first, {first.node, 1}};
  }
  // Relu(x * scale + offset), by channel.
  ValueRef Norm(const std::string& name, ValueRef x, int64_t channels) {
    const auto count = static_cast<size_t>(channels);
    const ValueRef scaled =
        Op("Mul", name + "/mul", {x, Floats(name + "/s", {channels}, Random(count, seed_++))});
    return Op("Relu", name,
              {Op("Add", name + "/add",
                  {scaled, Floats(name + "/o", {channels}, Random(count, seed_++))})});
  }

  const ValueRef image;

 private:
  unsigned seed_ = 1;
};

struct Ran {
  int windows = 0;
  int64_t copied = 0;  // bytes of concatenations that their parts do not lie in
  std::vector<Numbers> outputs;
};

Ran RunWith(const TestGraph& g, int64_t rows, int threads, bool windows, MemoryFill fill) {
  CompileOptions options;
  options.line_windows = windows;
  const auto compiled = g.Compile(options);
  if (compiled == nullptr) return {};
  const SymShape& declared = g.signature.inputs[0].type.shape;
  Shape fed({rows});
  for (int i = 1; i < declared.rank(); ++i) fed.push_back(declared.dim(i).size());
  const auto plan = compiled->Bind({fed});
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  Ran ran;
  for (const Step& step : (*plan)->steps()) {
    if ((*plan)->graph().node(step.node).op->name != "ConcatV2") continue;
    const TensorType& whole = (*plan)->slots()[step.outputs[0]].type;
    ran.copied += whole.shape.elements().At(rows) * static_cast<int64_t>(sizeof(float)) -
                  BytesInPlace((*plan)->slots(), step, rows);
  }
  for (const Slot& slot : (*plan)->slots()) ran.windows += slot.line_stride != 0 ? 1 : 0;
  ExecContext context(threads);
  context.CheckMemory(fill);
  EXPECT_TRUE(context.Prepare(*plan, rows).ok());
  const Numbers x = Random(static_cast<size_t>(fed.elements()), 77);
  context.BindInput(0, x.data());
  const absl::Status status = context.Run();
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return ran;
  for (size_t i = 0; i < g.graph.outputs.size(); ++i) {
    const TensorView& out = context.Output(static_cast<int>(i));
    ran.outputs.emplace_back(out.as<float>(), out.as<float>() + out.elements());
  }
  return ran;
}

// Runs the graph with windows and without; returns how many there were.
int SameBits(const TestGraph& g) {
  int windows = -1;
  for (const int64_t rows : {1, 3}) {
    const Ran copied = RunWith(g, rows, 1, false, MemoryFill::kNone);
    EXPECT_EQ(copied.windows, 0);
    for (const int threads : {1, 3}) {
      for (const MemoryFill fill : {MemoryFill::kNone, MemoryFill::kOnes, MemoryFill::kStripes}) {
        const Ran ran = RunWith(g, rows, threads, true, fill);
        EXPECT_TRUE(windows < 0 || windows == ran.windows);
        windows = ran.windows;
        EXPECT_EQ(ran.outputs.size(), copied.outputs.size());
        for (size_t i = 0; i < ran.outputs.size(); ++i) {
          EXPECT_EQ(ran.outputs[i].size(), copied.outputs[i].size());
          EXPECT_EQ(std::memcmp(ran.outputs[i].data(), copied.outputs[i].data(),
                                copied.outputs[i].size() * sizeof(float)),
                    0)
              << "output " << i << ", rows " << rows << ", threads " << threads;
        }
      }
    }
  }
  return windows;
}

// Each layer reads all that came before: one whole, whose parts are read as it grows.
TEST(LineWindows, ADenseBlockIsMadeInOnePlace) {
  ImageGraph g(19);
  ValueRef all = g.Pool("MaxPool", "first", g.Norm("n", g.image, 19));
  int64_t channels = 19;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const ValueRef narrow =
        g.Conv(name + "/narrow", g.Norm(name + "/norm", all, channels), {1, 1, channels, 24});
    const ValueRef added = g.Conv(name + "/added", narrow, {3, 3, 24, 18});
    all = g.Concat(name, {all, added});
    channels += 18;
  }
  g.Output(g.Norm("last", all, channels));
  EXPECT_EQ(SameBits(g), 8);  // the first value, four layers, and three wholes that are parts
  EXPECT_EQ(RunWith(g, 3, 1, true, MemoryFill::kNone).copied, 0);
  EXPECT_GT(RunWith(g, 3, 1, false, MemoryFill::kNone).copied, 0);
}

// Branches of all kinds whose values nobody else reads.
TEST(LineWindows, BranchesOfAnInceptionModule) {
  ImageGraph g(32);
  const ValueRef x = g.Norm("n", g.image, 32);
  g.Output(g.Norm(
      "last",
      g.Concat("all", {g.Conv("point", x, {1, 1, 32, 17}), g.Conv("square", x, {3, 3, 32, 40}),
                       g.Conv("wide", x, {5, 5, 32, 16}), g.Pool("AvgPool", "mean", x),
                       g.Pool("MaxPool", "most", x), g.Conv("few", x, {1, 1, 32, 3})}),
      17 + 40 + 16 + 32 + 32 + 3));
  EXPECT_EQ(SameBits(g), 5);  // a line of three is copied
}

TEST(LineWindows, ResizedImages) {
  for (const std::string op : {"ResizeNearestNeighbor", "ResizeBilinear"}) {
    ImageGraph g(20);
    const ValueRef small = g.Conv("small", g.image, {3, 3, 20, 17}, 2);
    const ValueRef large = g.Op(op, "large", {small, g.Ints("size", {9, 11})});
    g.Output(g.Norm("last", g.Concat("all", {large, g.Conv("side", g.image, {1, 1, 20, 16})}), 33));
    EXPECT_EQ(SameBits(g), 2) << op;
  }
}

// A part that is pooled, convolved with and without padding, and joined elsewhere too.
TEST(LineWindows, ReadersOfAPartReadSpacedLines) {
  ImageGraph g(20);
  const ValueRef part = g.Conv("part", g.image, {3, 3, 20, 33});
  const ValueRef other = g.Conv("other", g.image, {1, 1, 20, 16});
  const ValueRef pixels =
      g.Op("Slice", "pixels",
           {g.Op("Shape", "shape", {g.image}), g.Ints("from", {0}), g.Ints("count", {3})});
  const ValueRef up =
      g.Op("Conv2DBackpropInput", "up",
           {g.Op("ConcatV2", "size", {pixels, g.Ints("channels", {18}), g.Int("first", 0)}),
            g.Floats("up/w", {3, 3, 18, 33}, Random(9 * 18 * 33, 9)),
            g.Conv("down", part, {3, 3, 33, 33}, 2)},
           {{"strides", std::vector<int64_t>{1, 2, 2, 1}}, {"padding", std::string("SAME")}});
  g.Output(g.Concat("whole", {up, other, part}));
  g.Output(g.Concat("elsewhere", {g.Pool("MaxPool", "pooled", part), part}));
  g.Output(g.Conv("point", part, {1, 1, 33, 5}));
  g.Output(g.Conv("square", part, {3, 3, 33, 5}));
  g.Output(g.Conv("winograd", part, {3, 3, 33, 64}));
  g.Output(g.Conv("strided", part, {1, 1, 33, 8}, 2));
  EXPECT_EQ(SameBits(g), 4);  // three of the whole, and what is pooled
}

// Units that keep one half and work on the other, then a gate.
TEST(LineWindows, HalvesOfASplit) {
  ImageGraph g(20);
  ValueRef x = g.Conv("first", g.image, {1, 1, 20, 36});
  for (const std::string unit : {"one", "two"}) {
    const auto [kept, worked] = g.Halves(unit + "/split", x);
    const ValueRef made = g.Conv(unit + "/conv", worked, {3, 3, 18, 18});
    x = g.Concat(unit, {g.Norm(unit + "/norm", made, 18), kept});
  }
  const auto [value, gate] = g.Halves("gate", x);
  g.Output(g.Op("Mul", "gated", {value, g.Op("Sigmoid", "open", {gate})}));
  EXPECT_EQ(SameBits(g), 8);  // all halves, and what the units add
}

TEST(LineWindows, SlicesOfChannels) {
  ImageGraph g(20);
  const ValueRef x = g.Conv("first", g.image, {1, 1, 20, 51});
  const ValueRef front =
      g.Op("Slice", "front", {x, g.Ints("from", {0, 0, 0, 0}), g.Ints("size", {-1, 9, 11, 17})});
  const auto strided = [&](const std::string& name, int32_t begin, int32_t end, int64_t masked) {
    return g.Op("StridedSlice", name,
                {x, g.Ints(name + "/b", {0, begin}), g.Ints(name + "/e", {0, end}),
                 g.Ints(name + "/s", {1, 1})},
                {{"ellipsis_mask", int64_t{1}}, {"begin_mask", masked}, {"end_mask", masked}});
  };
  const ValueRef middle = strided("middle", 17, 34, 0), back = strided("back", -17, 51, 0),
                 all = strided("all", 5, 9, 2);
  g.Output(g.Conv("of front", front, {3, 3, 17, 16}));
  g.Output(g.Op("Mul", "gated", {middle, g.Op("Sigmoid", "open", {front})}));
  g.Output(g.Conv("of all", all, {1, 1, 51, 16}));
  g.Output(g.Op("Mean", "read otherwise", {strided("mean", 3, 40, 0), g.Ints("axes", {1, 2})}));
  g.Output(g.Conv("of back", back, {1, 1, 17, 16}));
  EXPECT_EQ(SameBits(g), 4);  // not what the mean reads
}

TEST(LineWindows, WhatIsReadOtherwiseIsCopied) {
  ImageGraph g(20);
  const auto whole = [&](const std::string& name, ValueRef part) {
    g.Output(g.Concat(name, {part, g.image}));
  };
  const ValueRef output = g.Conv("output", g.image, {1, 1, 20, 16});
  g.Output(output);
  whole("of output", output);
  const ValueRef seen = g.Conv("seen", g.image, {1, 1, 20, 16});
  g.Output(g.Op("Relu", "r", {g.Op("Reshape", "view", {seen, g.Ints("flat", {-1, 9 * 11 * 16})})}));
  whole("of what a view shows", seen);
  const ValueRef read = g.Conv("read", g.image, {1, 1, 20, 16});
  g.Output(g.Op("Mean", "mean", {read, g.Ints("axes", {1, 2})}));
  whole("of what is reduced", read);
  g.Output(g.Concat("other axis",
                    {g.Conv("a", g.image, {1, 1, 20, 16}), g.Conv("b", g.image, {1, 1, 20, 16})},
                    1));
  EXPECT_EQ(SameBits(g), 0);
}

TEST(LineWindows, APartThatComesTwiceIsCopiedOnce) {
  ImageGraph g(20);
  const ValueRef part = g.Conv("part", g.image, {1, 1, 20, 16});
  g.Output(g.Concat("whole", {part, part}));
  EXPECT_EQ(SameBits(g), 1);
}

}  // namespace
}  // namespace floe
