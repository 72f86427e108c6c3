// What `inspect --plan --device` says of islands and of the host's steps.
#include <set>

#include "cli/floectl_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// y = relu(x w), and x as text. The product is worth its crossing; the text stays on the host.
std::string PlacesFile() {
  return WriteText("places.pbtxt", R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 8 } } } } }
node { name: "w" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 8 } dim { size: 4 } }
    float_val: 1 } } } }
node { name: "product" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu" input: "product" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "text" op: "AsString" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
)");
}

Outcome Inspected(const std::vector<std::string>& more) {
  std::vector<std::string> args = {"inspect", PlacesFile(), "--plan", "--fetch",
                                   "y",       "--fetch",    "text"};
  args.insert(args.end(), more.begin(), more.end());
  Outcome outcome = Floectl(args);
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  return outcome;
}

TEST(InspectPlaces, NothingIsSaidOfThemForTheHostAlone) {
  const std::string without = Inspected({}).out;
  EXPECT_THAT(without, AllOf(HasSubstr("AsString"), Not(HasSubstr("island")),
                             Not(HasSubstr("left on the host"))));
  EXPECT_EQ(Inspected({"--device", "cpu"}).out, without);
  const auto plan = nlohmann::json::parse(Inspected({"--json"}).out)["plan"];
  EXPECT_FALSE(plan.contains("islands") || plan.contains("on_host"));
}

TEST(InspectPlaces, ADeviceHasIslandsWithTheBytesThatCross) {
  auto plan =
      nlohmann::json::parse(Inspected({"--device", "cuda", "--rows", "3", "--json"}).out)["plan"];
  ASSERT_EQ(plan["islands"].size(), 1u) << plan;
  EXPECT_EQ(plan["islands"][0]["name"], "island 1");
  EXPECT_GE(plan["islands"][0]["nodes"], 1);
  EXPECT_EQ(plan["islands"][0]["in_bytes"], 3 * 8 * 4);  // not the weights
  EXPECT_EQ(plan["islands"][0]["out_bytes"], 3 * 4 * 4);
  ASSERT_EQ(plan["on_host"].size(), 1u) << plan;
  EXPECT_EQ(plan["on_host"][0],
            nlohmann::json::parse(R"({"name":"text","op":"AsString","why":"strings"})"));
  EXPECT_THAT(Inspected({"--device", "cuda"}).out,
              AllOf(HasSubstr("islands of the device"), HasSubstr("island 1"),
                    HasSubstr("left on the host"), HasSubstr("strings")));
}

// y = x < 1 ? x w : x - (x w), by functions.
std::string BranchesFile() {
  const std::string in =
      R"(input_arg { name: "v" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } )";
  const std::string product = R"(
node_def { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 8 } dim { size: 8 } }
    float_val: 1 } } } }
node_def { name: "p" op: "MatMul" input: "v" input: "w:output:0" attr { key: "T" value { type: DT_FLOAT } } }
)";
  return WriteText("branches.pbtxt", R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 8 } } } } }
node { name: "is" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } }
  attr { key: "shape" value { shape { } } } }
node { name: "choice" op: "StatelessIf" input: "is" input: "x"
  attr { key: "Tcond" value { type: DT_BOOL } }
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "then_branch" value { func { name: "once" } } }
  attr { key: "else_branch" value { func { name: "less" } } } }
library {
function { signature { name: "once" )" + in +
                                         "}" + product + R"(ret { key: "r" value: "p:product:0" } }
function { signature { name: "less" )" + in +
                                         "}" + product + R"(
node_def { name: "d" op: "Sub" input: "v" input: "p:product:0" attr { key: "T" value { type: DT_FLOAT } } }
ret { key: "r" value: "d:z:0" } } }
)");
}

TEST(InspectPlaces, IslandsInBranchesAreListedWithTheBytesThatCross) {
  const Outcome outcome = Floectl({"inspect", BranchesFile(), "--plan", "--fetch", "choice",
                                   "--device", "cuda", "--rows", "3", "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto plan = nlohmann::json::parse(outcome.out)["plan"];
  ASSERT_EQ(plan["islands"].size(), 2u) << plan;
  std::set<std::string> names;
  for (const auto& island : plan["islands"]) {
    names.insert(island["name"]);
    EXPECT_GE(island["nodes"], 1);
    EXPECT_EQ(island["in_bytes"], 3 * 8 * 4);
    EXPECT_EQ(island["out_bytes"], 3 * 8 * 4);
  }
  EXPECT_THAT(names, testing::ElementsAre("choice/branch 0/island 1", "choice/branch 1/island 1"));
  ASSERT_EQ(plan["on_host"].size(), 1u) << plan;
  EXPECT_EQ(plan["on_host"][0]["why"], "control flow");
}

TEST(InspectPlaces, WithoutIslandsTheHostComputesAll) {
  const Outcome outcome =
      Floectl({"inspect", PlacesFile(), "--plan", "--fetch", "text", "--device", "cuda"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("no islands: the host computes all steps"));
}

TEST(InspectPlaces, OtherDevicesAreRefused) {
  EXPECT_EQ(Floectl({"inspect", PlacesFile(), "--plan", "--device", "tpu"}).code, kExitUsage);
}

}  // namespace
}  // namespace floe::cli
