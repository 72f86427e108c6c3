#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::HasSubstr;

TEST(Passes, AnUnknownNameIsAnErrorThatListsThem) {
  const absl::Status status = CheckPassNames({"prune", "fuse_everything"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'fuse_everything'"));
  for (const std::string& name : PassNames())
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  EXPECT_TRUE(CheckPassNames({"all", "fold_constants"}).ok());
}

TEST(Passes, WhatTheRuntimeNeedsCannotBeTurnedOff) {
  EXPECT_FALSE(CheckPassNames({"structure_conditionals"}).ok());
  EXPECT_FALSE(CheckPassNames({"check_supported"}).ok());
}

TEST(Passes, ANamedPassDoesNotRun) {
  const auto identities = [](const std::vector<std::string>& disabled) {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 4});
    t.Output(t.Op("Relu", "y", {t.Op("Identity", "i", {x})}));
    const KernelOptions kernels;
    EXPECT_TRUE(RunPasses(&t.graph, {t.InputTypes(), kernels}, disabled).ok());
    return CountOps(t.graph, "Identity");
  };
  EXPECT_EQ(identities({}), 0);
  EXPECT_EQ(identities({"fold_constants"}), 0);
  EXPECT_EQ(identities({"remove_identities"}), 1);
  EXPECT_EQ(identities({"all"}), 1);
}

TEST(Passes, CompilingRefusesUnknownNames) {
  TestGraph t;
  t.Output(t.Op("Relu", "y", {t.Input("x", DType::kFloat32, {Dim::Unknown(), 4})}));
  const auto compiled =
      CompiledSignature::Compile(t.graph, t.signature, {.disabled_passes = {"nothing"}});
  EXPECT_EQ(compiled.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace floe
