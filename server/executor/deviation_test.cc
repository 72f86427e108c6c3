#include "server/executor/deviation.h"

#include <gtest/gtest.h>

#include "server/executor/test_models_for_test.h"

namespace floe::server {
namespace {

constexpr double kOfRounding = 1 - 1 / 1.001953125;

ModelHandle Rounded(const std::string& graph) {
  CompileOptions options;
  options.kernels.precision = Precision::kBf16;
  return CompileText(graph, options);
}

TEST(Deviation, OfARequestIsRelativeToItsLargestOutput) {
  DeviationMeter meter(CompileText(kNearlySumGraph), {}, {});
  const ModelHandle rounded = Rounded(kNearlySumGraph);
  FloatCall zeros({{Shape({1, 2}), {1, -1}}}), call({{Shape({2, 2}), {1, 1, 7, 300}}});
  meter.Compare(*zeros.MakeRequest(rounded));
  ASSERT_EQ(meter.largest().size(), 1u);
  EXPECT_EQ(meter.largest().at("serving_default"), 0);
  meter.Compare(*call.MakeRequest(rounded));
  EXPECT_NEAR(meter.largest().at("serving_default"), kOfRounding, 1e-6);
  meter.Compare(*zeros.MakeRequest(rounded));
  EXPECT_NEAR(meter.largest().at("serving_default"), kOfRounding, 1e-6) << "the largest counts";
}

TEST(Deviation, OfMadeUpData) {
  DeviationMeter meter(CompileText(kNearlySumGraph), {}, {});
  meter.CompareMadeUp(Rounded(kNearlySumGraph));
  ASSERT_EQ(meter.largest().size(), 1u);
  EXPECT_NEAR(meter.largest().at("serving_default"), kOfRounding, 1e-6);
}

TEST(Deviation, OfWhatCannotRunIsNotKnown) {
  DeviationMeter meter(CompileText(kNearlySumGraph), {}, {});
  FloatCall call({{Shape({1, 3}), {1, 2, 3}}});  // of one number too many
  meter.Compare(*call.MakeRequest(Rounded(kNearlySumGraph)));
  EXPECT_TRUE(meter.largest().empty());
}

}  // namespace
}  // namespace floe::server
