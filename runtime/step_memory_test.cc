// The memory of a step: scratch by the shapes of the run. Also what tests and debug builds find out
// about kernels that leave holes or write where they must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "runtime/exec_context.h"
#include "runtime/frame.h"
#include "runtime/island_runs.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::HasSubstr;

// Scratch that rows settle in no even way: none up to two of them, then a square.
int64_t UnevenBytes(int64_t rows) { return rows <= 2 ? 0 : rows * rows * 10; }

// y = x, with a mistake that the attribute `mistake` names.
class MistakenKernel : public Kernel {
 public:
  explicit MistakenKernel(std::string mistake) : mistake_(std::move(mistake)) {}

  absl::Status Run(const KernelContext& ctx) const override {
    auto* const y = static_cast<char*>(ctx.out(0).data);
    const size_t bytes = ctx.out(0).bytes();
    const int64_t scratch = ScratchOf(ctx.in(0).shape);
    if (scratch > 0) std::memset(ctx.scratch, 7, static_cast<size_t>(scratch));
    std::memcpy(y, ctx.in(0).data, mistake_ == "hole" ? bytes - 1 : bytes);
    if (mistake_ == "behind output") y[bytes] = 7;
    if (mistake_ == "behind scratch") ctx.scratch[scratch] = std::byte{7};
    return absl::OkStatus();
  }
  int64_t ScratchBytes(absl::Span<const Shape> in, absl::Span<const Shape>) const override {
    return ScratchOf(in[0]);
  }

 private:
  int64_t ScratchOf(const Shape& in) const {
    if (mistake_ == "behind scratch") return 100;
    return mistake_ == "uneven" ? UnevenBytes(in.dim(0)) : 0;
  }
  const std::string mistake_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  return std::make_unique<MistakenKernel>(args.node.attrs.String("mistake"));
}
FLOE_REGISTER_KERNEL(MistakenForTest, kCpu, Make, DType::kFloat32);
const OpRegistrar kMistakenForTest(OpDef{.name = "MistakenForTest",
                                         .min_inputs = 1,
                                         .max_inputs = 1,
                                         .infer = InferSame,
                                         .rows = RowsOfInput0});

std::shared_ptr<const CompiledSignature> Mistaken(const std::string& mistake) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 3});
  t.Output(t.Op("Neg", "z", {t.Op("MistakenForTest", "y", {x}, {{"mistake", mistake}})}));
  return t.Compile();
}

absl::StatusOr<std::vector<char>> RunFilled(const CompiledSignature& compiled, MemoryFill fill,
                                            int64_t rows = 2) {
  FLOE_ASSIGN_OR_RETURN(const auto plan, compiled.Bind({Shape({rows, 3})}));
  ExecContext context;
  context.CheckMemory(fill);
  FLOE_RETURN_IF_ERROR(context.Prepare(plan, rows));
  const std::vector<float> x(static_cast<size_t>(rows * 3), 2.5f);
  context.BindInput(0, x.data());
  FLOE_RETURN_IF_ERROR(context.Run());
  const TensorView& z = context.Output(0);
  return std::vector<char>(z.as<char>(), z.as<char>() + z.bytes());
}

TEST(StepMemory, AHoleInAnOutputShowsTheFill) {
  const auto whole = Mistaken("none"), hole = Mistaken("hole");
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(*RunFilled(*whole, MemoryFill::kOnes), *RunFilled(*whole, MemoryFill::kStripes));
  EXPECT_NE(*RunFilled(*hole, MemoryFill::kOnes), *RunFilled(*hole, MemoryFill::kStripes));
}

TEST(StepMemory, WritingBehindOutputOrScratchIsFound) {
  for (const std::string place : {"output", "scratch"}) {
    const auto compiled = Mistaken("behind " + place);
    ASSERT_NE(compiled, nullptr);
#ifdef NDEBUG
    for (const MemoryFill fill : {MemoryFill::kOnes, MemoryFill::kStripes}) {
      const absl::Status status = RunFilled(*compiled, fill).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << place;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("'y' (MistakenForTest)"), HasSubstr("behind"), HasSubstr(place)));
    }
#else
    EXPECT_DEATH(static_cast<void>(RunFilled(*compiled, MemoryFill::kOnes)), place);
#endif
  }
}

TEST(StepMemory, ScratchIsSizedByTheRowsOfTheRun) {
  const auto compiled = Mistaken("uneven");
  ASSERT_NE(compiled, nullptr);
  const auto plan = compiled->Bind({Shape({1, 3})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GE((*plan)->ArenaBytes(50), UnevenBytes(50));
  EXPECT_LT((*plan)->ArenaBytes(2), 1000);
  for (const int64_t rows : {1, 50, 2, 3, 64}) {
    const auto run = RunFilled(*compiled, MemoryFill::kOnes, rows);
    EXPECT_TRUE(run.ok()) << rows << " rows: " << run.status();
  }
}

// x[rows, 1, 2] seen as an image with the rows as channels, and a filter of 2048 channels. With
// fewer rows there is no group of channels, and nothing to pack.
TEST(StepMemory, ScratchOfRowsThatBecomeChannelsIsSizedByTheRun) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 1, 2});
  const ValueRef turned = t.Op("Transpose", "turned", {x, t.Ints("order", {1, 2, 0})});
  const ValueRef image = t.Op("ExpandDims", "image", {turned, t.Int("axis", 0)});
  const std::vector<float> ones(size_t{2048} * 2, 1.f);
  t.Output(
      t.Op("Conv2D", "y", {image, t.Floats("w", Shape({1, 1, 2048, 2}), ones)},
           {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("VALID")}}));
  const auto compiled = t.Compile();
  ASSERT_NE(compiled, nullptr);
  const auto plan = compiled->Bind({Shape({4096, 1, 2})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExecContext context;
  context.CheckMemory(MemoryFill::kOnes);
  const absl::Status prepared = context.Prepare(*plan, 4096);
  ASSERT_TRUE(prepared.ok()) << prepared;
  std::fill_n(context.Input(0).as<float>(), 8192, 1.f);
  const absl::Status run = context.Run();
  EXPECT_TRUE(run.ok()) << run;
}

TEST(StepMemory, AFailedPrepareLeavesNothingToRun) {
  const auto compiled = Mistaken("none");
  const auto plan = compiled->Bind({Shape({1, 3})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  Budget budget;
  budget.SetLimits({.max_bytes = 10'000});
  const BudgetScope scope(&budget);
  ThreadPool threads(1);
  IslandRuns islands;
  Frame frame(std::make_shared<ValuePool>(), &islands);
  ASSERT_TRUE(frame.Prepare(*plan, 2).ok());
  const TensorView like{DType::kFloat32, Shape({2, 3}), nullptr};
  const ListTypePtr none = nullptr;
  EXPECT_TRUE(frame.PrepareAgain({&like, 1}, {&none, 1}));
  EXPECT_EQ(frame.Prepare(*plan, 10'000).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(frame.PrepareAgain({&like, 1}, {&none, 1})) << "its memory is gone";
  EXPECT_EQ(frame.Run(&threads).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(frame.Prepare(*plan, 2).ok());
  const std::vector<float> ones(6, 1.f);
  frame.BindInput(0, ones.data(), false);
  EXPECT_TRUE(frame.Run(&threads).ok());
}

TEST(MemoryFill, IsSeenUntilSomebodyWrites) {
  std::vector<char> block(100, 0);
  for (const MemoryFill fill : {MemoryFill::kOnes, MemoryFill::kStripes}) {
    FillMemory(fill, block.data(), block.size());
    EXPECT_TRUE(StillFilled(fill, block.data(), 0, 100));
    EXPECT_TRUE(StillFilled(fill, block.data(), 37, 99));
    block[40] = 1;
    EXPECT_FALSE(StillFilled(fill, block.data(), 37, 99));
    EXPECT_TRUE(StillFilled(fill, block.data(), 41, 99));
  }
}

}  // namespace
}  // namespace floe
