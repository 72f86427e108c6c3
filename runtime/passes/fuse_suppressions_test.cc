#include <gtest/gtest.h>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

// A detector's filter and suppression for one class, as TensorFlow's detection models write them.
struct Detector {
  Detector()
      : boxes(t.Input("boxes", DType::kFloat32, {Dim::Unknown(), 4})),
        scores(t.Input("scores", DType::kFloat32, {Dim::Unknown()})),
        zero(t.Int("zero", 0)),
        minus_one(t.Ints("minus_one", {-1})) {}

  void FilterBy(ValueRef above) { filter = t.Op("Where", "where", {above}); }
  ValueRef Above(float threshold) {
    return t.Op("Greater", "above", {scores, t.Floats("threshold", {}, {threshold})});
  }
  ValueRef Gather(const std::string& name, ValueRef data, ValueRef indices) {
    return t.Op("GatherV2", name, {data, indices, zero});
  }
  // Of `indices`, and what is gathered by it.
  void Suppress(ValueRef indices, float score, bool with_score = true) {
    near = Gather("near", boxes, indices);
    likely = Gather("likely", scores, indices);
    std::vector<ValueRef> inputs = {near, likely, t.Int("most", 9), t.Floats("iou", {}, {0.4f})};
    if (with_score) inputs.push_back(t.Floats("least", {}, {score}));
    chosen = t.Op(with_score ? "NonMaxSuppressionV3" : "NonMaxSuppressionV2", "nms", inputs);
    t.Output(Gather("chosen_boxes", near, chosen));
    t.Output(Gather("chosen_scores", likely, chosen));
  }
  ValueRef Flat() { return t.Op("Reshape", "flat", {filter, minus_one}); }

  TestGraph t;
  ValueRef boxes, scores, zero, minus_one, filter, near, likely, chosen;
};

void ExpectFused(bool fused, const Detector& d) {
  Graph graph = d.t.graph;
  const absl::Status status = FuseSuppressions(&graph, d.t.InputTypes(), {});
  ASSERT_TRUE(status.ok()) << status;
  Prune(&graph);
  EXPECT_EQ(CountOps(graph, "FilteredNonMaxSuppression"), fused ? 1 : 0) << DebugString(graph);
  EXPECT_EQ(CountOps(graph, "Where"), fused ? 0 : 1) << DebugString(graph);
  for (const int n : {0, 1, 50}) {
    const std::vector<Tensor> in = {Wavy(Shape({n, 4}), 1), Wavy(Shape({n}), 2)};
    const auto got = RunGraph(d.t, in), want = RunGraph(d.t, in, {"all"});
    ASSERT_EQ(got.size(), want.size());
    if (n == 50) EXPECT_GT(want[0].elements(), 4);
    for (size_t k = 0; k < got.size(); ++k) ExpectSameBits(got[k], want[k]);
  }
}

TEST(FuseSuppressions, TheHigherThresholdCounts) {
  for (const float score : {-2.0f, -0.2f, 0.5f}) {
    for (const float filter : {-0.3f, 0.1f, 0.45f}) {
      SCOPED_TRACE(testing::Message() << score << " " << filter);
      Detector d;
      d.FilterBy(d.Above(filter));
      d.Suppress(d.Flat(), score);
      ExpectFused(true, d);
    }
  }
}

TEST(FuseSuppressions, OtherSpellings) {
  Detector less;
  less.FilterBy(less.t.Op("Less", "above", {less.t.Floats("threshold", {1}, {0.2f}), less.scores}));
  less.Suppress(
      less.t.Op("Squeeze", "flat", {less.filter}, {{"squeeze_dims", std::vector<int64_t>{1}}}), -1);
  ExpectFused(true, less);

  Detector no_score;
  no_score.FilterBy(no_score.Above(0.3f));
  no_score.Suppress(no_score.Flat(), 0, /*with_score=*/false);
  const ValueRef size = no_score.t.Op("Size", "size", {no_score.chosen});
  no_score.t.Output(size);
  ExpectFused(true, no_score);
}

TEST(FuseSuppressions, LeavesWhatIsReadOtherwise) {
  Detector output;  // places among the filtered boxes
  output.FilterBy(output.Above(0.1f));
  output.Suppress(output.Flat(), -1);
  output.t.Output(output.chosen);
  ExpectFused(false, output);

  Detector reader;
  reader.FilterBy(reader.Above(0.1f));
  reader.Suppress(reader.Flat(), -1);
  reader.t.Output(reader.t.Op("Add", "next", {reader.chosen, reader.zero}));
  ExpectFused(false, reader);

  Detector all;  // gathered from all boxes by places among the filtered ones
  all.FilterBy(all.Above(0.1f));
  all.Suppress(all.Flat(), -1);
  all.t.Output(all.Gather("all", all.boxes, all.chosen));
  ExpectFused(false, all);

  Detector at_least;
  at_least.FilterBy(at_least.t.Op("GreaterEqual", "above",
                                  {at_least.scores, at_least.t.Floats("threshold", {}, {0.1f})}));
  at_least.Suppress(at_least.Flat(), -1);
  ExpectFused(false, at_least);

  Detector others;  // filtered by something else than the scores
  others.FilterBy(others.t.Op(
      "Greater", "above",
      {others.t.Op("Neg", "neg", {others.scores}), others.t.Floats("threshold", {}, {0.1f})}));
  others.Suppress(others.Flat(), -1);
  ExpectFused(false, others);
}

}  // namespace
}  // namespace floe
