// cuBLASLt and cuDNN as what computes layers, by fakes in the streams of the fake CUDA runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/status.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/errors.h"
#include "kernels/cuda/device/vendor_libraries.h"
#include "runtime/exec_context.h"
#include "runtime/test_graph.h"
#include "tests/cuda/fake_cudart.h"
#include "tests/cuda/fake_vendor.h"

namespace floe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kIn = 5, kOut = 6;  // of the product
constexpr char kBlasFile[] = FLOE_FAKE_CUDA_FOLDER "/libcublasLt.so.13";
constexpr char kDnnFile[] = FLOE_FAKE_CUDA_FOLDER "/libcudnn.so.9";

std::vector<float> Wave(int64_t count, float scale) {
  std::vector<float> wave(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) wave[i] = std::sin(static_cast<float>(i) * 0.7f) * scale;
  return wave;
}

// Relu(x W + b), or with another activation.
TestGraph DenseNet(const char* activation = "Relu") {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), kIn});
  const ValueRef product =
      t.Op("MatMul", "dense", {x, t.Floats("w", {kIn, kOut}, Wave(kIn * kOut, 1))});
  const ValueRef biased =
      t.Op("BiasAdd", "biased", {product, t.Floats("b", {kOut}, Wave(kOut, 2))});
  const ValueRef y = t.Op(activation, "y", {biased});
  t.Output(t.Op("Tanh", "tanh", {y}));
  return t;
}

// Of one image of 6x5 pixels with 4 channels.
TestGraph ConvNet(int64_t stride, const char* padding, int64_t groups) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 6, 5, 4});
  const int64_t of_group = 4 / groups;
  const ValueRef w = t.Floats("w", {2, 3, of_group, 6}, Wave(2 * 3 * of_group * 6, 1));
  const ValueRef y = t.Op(
      "Conv2D", "conv", {x, w},
      {{"strides", std::vector<int64_t>{1, stride, stride, 1}}, {"padding", std::string(padding)}});
  t.Output(t.Op("Relu", "y", {y}));
  return t;
}

absl::StatusOr<Tensor> RunRows(const CompiledSignature& compiled, const Tensor& x,
                               ExecContext* context) {
  FLOE_ASSIGN_OR_RETURN(const auto plan, compiled.Bind({x.shape()}));
  FLOE_RETURN_IF_ERROR(context->Prepare(plan, x.shape().dim(0)));
  context->BindInput(0, x.data());
  FLOE_RETURN_IF_ERROR(context->Run());
  return Tensor::Copy(context->Output(0));
}

Tensor RowsOf(const Shape& shape) {
  Tensor x = Tensor::Allocate(DType::kFloat32, shape);
  const std::vector<float> wave = Wave(x.elements(), 1.5f);
  std::memcpy(x.mutable_data(), wave.data(), x.bytes());
  return x;
}

std::vector<LayerByLibrary> LayersOf(const CompiledSignature& compiled) {
  std::vector<LayerByLibrary> layers;
  for (int i = 0; i < compiled.graph().size(); ++i) {
    for (const auto& inner : compiled.subprograms(i))
      layers.insert(layers.end(), inner->by_library().begin(), inner->by_library().end());
  }
  return layers;
}

class OnFakeLibraries : public testing::Test {
 protected:
  void SetUp() override {
    device_.reset();
    *fake_cublaslt() = *fake_cudnn() = {};
    Open({.cublaslt = true, .cudnn = true, .cublaslt_file = kBlasFile, .cudnn_file = kDnnFile});
  }
  void TearDown() override {
    device_.reset();
    EXPECT_EQ(fake_cuda_alive(), 0);
    EXPECT_EQ(fake_cuda_used(), 0u);
    EXPECT_STREQ(fake_cuda_complaint(), "");
    EXPECT_EQ(fake_cublaslt()->handles, 0);
    EXPECT_EQ(fake_cudnn()->handles, 0);
  }
  void Open(const cuda::VendorChoice& choice, int64_t limit = 0) {
    device_.reset();
    const FakeCudaOptions options = {uint64_t{1} << 30, 1, 9, 0};
    fake_cuda_reset(&options);
    const auto library = cuda::Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so");
    auto device = cuda::Device::Open(*library, 0, limit, choice);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  std::shared_ptr<const CompiledSignature> OnDevice(const TestGraph& t) {
    return t.Compile(
        {.islands = Placement{.device = DeviceKind::kCuda, .all = true, .on = device_}});
  }
  // By floe's own kernels, emulated.
  static Tensor Emulated(const TestGraph& t, const Tensor& x) {
    ExecContext context;
    const auto compiled =
        t.Compile({.islands = Placement{.device = DeviceKind::kCuda, .all = true}});
    return *RunRows(*compiled, x, &context);
  }
  // Why no library computes the only layer of the net, whose answers are floe's own.
  std::string WhyNot(const TestGraph& t, const Shape& shape) {
    const auto compiled = OnDevice(t);
    const std::vector<LayerByLibrary> layers = LayersOf(*compiled);
    ExecContext context;
    const Tensor x = RowsOf(shape);
    const auto got = RunRows(*compiled, x, &context);
    const Tensor want = Emulated(t, x);
    if (!got.ok() || std::memcmp(got->data(), want.data(), want.bytes()) != 0)
      return "not floe's own answer";
    return layers.size() == 1 && layers[0].route.empty() ? layers[0].why_not : "it computes it";
  }
  // Each row of a run of many is, to the bit, that of a run of any number of rows.
  static void ExpectRowsKeepTheirBits(const CompiledSignature& compiled, const Tensor& all,
                                      ExecContext* context) {
    const auto want = RunRows(compiled, all, context);
    ASSERT_TRUE(want.ok()) << want.status();
    const int64_t most = all.shape().dim(0);
    const size_t x_row = all.bytes() / most, y_row = want->bytes() / most;
    for (int64_t rows = 1; rows < most; rows += rows < 9 ? 1 : 10) {
      Shape shape = all.shape();
      shape.set_dim(0, rows);
      Tensor x = Tensor::Allocate(DType::kFloat32, shape);
      std::memcpy(x.mutable_data(), all.as<std::byte>() + (most - rows) * x_row, x.bytes());
      const auto got = RunRows(compiled, x, context);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(
          std::memcmp(got->data(), want->as<std::byte>() + (most - rows) * y_row, got->bytes()), 0)
          << rows << " rows";
    }
  }

  std::shared_ptr<cuda::Device> device_;
};

TEST_F(OnFakeLibraries, AProductIsComputedByCublasLtWithTheSameBitsInEveryBatch) {
  EXPECT_EQ(device_->libraries()->text(), "cuBLASLt 13.0.2, cuDNN 9.19.0");
  const auto compiled = OnDevice(DenseNet());
  const std::vector<LayerByLibrary> layers = LayersOf(*compiled);
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].node, "y");
  EXPECT_EQ(layers[0].route, "cublaslt, algorithm 0") << layers[0].why_not;
  ExecContext context;
  const std::vector<int64_t> sizes = {1, 2, 4, 8, 16, 32, 64};
  ASSERT_TRUE(context.PrepareIslands(*compiled->Bind({Shape({1, kIn})}), sizes).ok());
  const int64_t made = fake_cuda_made();
  const int calls = fake_cublaslt()->calls;
  const Tensor x = RowsOf(Shape({50, kIn}));
  ExpectRowsKeepTheirBits(*compiled, x, &context);
  EXPECT_EQ(fake_cuda_made(), made);
  EXPECT_EQ(fake_cublaslt()->calls, calls) << "a run is a graph";
  EXPECT_GE(calls, 7);
  const auto y = RunRows(*compiled, x, &context);
  const std::vector<float> w = Wave(kIn * kOut, 1), b = Wave(kOut, 2);
  for (int64_t i = 0; i < y->elements(); ++i) {
    double sum = static_cast<double>(b[i % kOut]);
    for (int64_t k = 0; k < kIn; ++k)
      sum += static_cast<double>(x.as<float>()[i / kOut * kIn + k]) *
             static_cast<double>(w[k * kOut + i % kOut]);
    EXPECT_NEAR(y->as<float>()[i], std::tanh(std::max(sum, 0.0)), 1e-6) << i;
  }
}

TEST_F(OnFakeLibraries, WhatFollowsAProductIsFloesOwn) {
  for (const char* activation :
       {"Relu6", "Sigmoid", "Tanh", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu", "Exp"}) {
    const TestGraph t = DenseNet(activation);
    const auto compiled = OnDevice(t);
    ASSERT_EQ(LayersOf(*compiled).size(), 1u);
    EXPECT_THAT(LayersOf(*compiled)[0].route, StartsWith("cublaslt")) << activation;
    ExecContext context;
    const Tensor x = RowsOf(Shape({3, kIn})), want = Emulated(t, x);
    const auto y = RunRows(*compiled, x, &context);
    ASSERT_TRUE(y.ok()) << y.status();
    for (int64_t i = 0; i < want.elements(); ++i)
      EXPECT_NEAR(y->as<float>()[i], want.as<float>()[i], 1e-6) << activation << " at " << i;
  }
}

TEST_F(OnFakeLibraries, AConvolutionIsComputedByCudnnWithTheSameBitsInEveryBatch) {
  for (const int64_t groups : {1, 2}) {
    for (const int64_t stride : {1, 2}) {
      const TestGraph t = ConvNet(stride, "VALID", groups);
      const auto compiled = OnDevice(t);
      const std::vector<LayerByLibrary> layers = LayersOf(*compiled);
      ASSERT_EQ(layers.size(), 1u);
      EXPECT_EQ(layers[0].route, "cudnn, algorithm 1") << layers[0].why_not;
      ExecContext context;
      const Tensor x = RowsOf(Shape({19, 6, 5, 4})), want = Emulated(t, x);
      ExpectRowsKeepTheirBits(*compiled, x, &context);
      const auto y = RunRows(*compiled, x, &context);
      for (int64_t i = 0; i < want.elements(); ++i)
        ASSERT_NEAR(y->as<float>()[i], want.as<float>()[i], 2e-6) << i;
    }
  }
  EXPECT_THAT(WhyNot(ConvNet(1, "SAME", 1), Shape({2, 6, 5, 4})),
              HasSubstr("pad more on one side"));
}

TEST_F(OnFakeLibraries, WhatIsNotProvenIsComputedByFloe) {
  const struct {
    int behaviour;
    const char* why;
  } cases[] = {
      {FAKE_VENDOR_FOLLOWS_BATCH, "its bits depend on the batch: those of 16 and of 1024 rows"},
      {FAKE_VENDOR_LESS_EXACT, "its results are not those of float32"},
      {FAKE_VENDOR_LOSES_NAN, "it loses NaN"},
      {FAKE_VENDOR_FAILS, "cublasLtMatmul: an error of the fake library (13)"},
      {FAKE_VENDOR_FEW_ROWS, "1024 rows: cublasLtMatmulAlgoCheck: CUBLAS_STATUS_NOT_SUPPORTED"},
  };
  for (const auto& c : cases) {
    SetUp();
    fake_cublaslt()->behaviour = fake_cudnn()->behaviour = c.behaviour;
    EXPECT_THAT(WhyNot(DenseNet(), Shape({40, kIn})), HasSubstr(c.why));
    EXPECT_THAT(WhyNot(ConvNet(1, "VALID", 1), Shape({5, 6, 5, 4})), StartsWith("algorithm 1: "));
  }
}

TEST_F(OnFakeLibraries, TheFirstAlgorithmThatIsProvenIsTaken) {
  fake_cublaslt()->behaviour = fake_cudnn()->behaviour = FAKE_VENDOR_SECOND_IS_RIGHT;
  const auto dense = OnDevice(DenseNet()), conv = OnDevice(ConvNet(1, "VALID", 1));
  EXPECT_EQ(LayersOf(*dense)[0].route, "cublaslt, algorithm 1");
  EXPECT_EQ(LayersOf(*conv)[0].route, "cudnn, algorithm 0");
  ExecContext context;
  ExpectRowsKeepTheirBits(*dense, RowsOf(Shape({50, kIn})), &context);
  const int calls = fake_cublaslt()->calls;
  (void)OnDevice(DenseNet());
  EXPECT_EQ(fake_cublaslt()->calls, calls) << "equal layers are proven once";
}

TEST_F(OnFakeLibraries, ALibraryThatCannotBeOpenedIsNotUsed) {
  Open({.cublaslt = true,
        .cudnn = true,
        .cublaslt_file = "/nowhere/libcublasLt.so.13",
        .cudnn_file = kBlasFile});
  EXPECT_TRUE(device_->libraries()->missing());
  EXPECT_FALSE(device_->libraries()->any());
  EXPECT_THAT(device_->libraries()->text(),
              StartsWith("no cuBLASLt: /nowhere/libcublasLt.so.13: cannot open"));
  EXPECT_THAT(device_->libraries()->text(), HasSubstr("has no function cudnnCreate"));
  EXPECT_TRUE(LayersOf(*OnDevice(DenseNet())).empty());
  Open({.cudnn = true, .cudnn_file = kDnnFile});
  EXPECT_EQ(WhyNot(DenseNet(), Shape({2, kIn})), "there is no cuBLASLt");
  Open({});
  EXPECT_EQ(device_->libraries(), nullptr);
}

TEST_F(OnFakeLibraries, AWorkspaceIsMemoryOfTheArena) {
  constexpr int64_t kWorkspace = 1 << 20;
  const auto used_by_a_worker = [&] {
    const auto compiled = OnDevice(DenseNet());
    EXPECT_THAT(LayersOf(*compiled)[0].route, StartsWith("cublaslt"));
    const int64_t before = device_->budget().in_use();
    ExecContext context;
    EXPECT_TRUE(context.PrepareIslands(*compiled->Bind({Shape({1, kIn})}), {1, 4}).ok());
    EXPECT_EQ(device_->budget().in_use(), static_cast<int64_t>(fake_cuda_used()));
    const Tensor x = RowsOf(Shape({4, kIn}));
    ExpectRowsKeepTheirBits(*compiled, x, &context);
    return device_->budget().in_use() - before;
  };
  const int64_t without = used_by_a_worker();
  SetUp();
  fake_cublaslt()->workspace_bytes = kWorkspace;
  EXPECT_EQ(used_by_a_worker(), without + kWorkspace);
  EXPECT_EQ(device_->budget().in_use(), 0) << "of the proof";
  Open({.cublaslt = true, .cublaslt_file = kBlasFile}, kWorkspace / 2);
  EXPECT_THAT(WhyNot(DenseNet(), Shape({2, kIn})), HasSubstr("there is no room for its proof"));
}

TEST_F(OnFakeLibraries, ACallThatFailsWhenAGraphIsMadeIsAnErrorOfTheLoad) {
  const auto compiled = OnDevice(DenseNet());
  fake_cublaslt()->behaviour = FAKE_VENDOR_FAILS;
  ExecContext context;
  const absl::Status made = context.PrepareIslands(*compiled->Bind({Shape({1, kIn})}), {1, 2});
  EXPECT_TRUE(absl::IsInternal(made)) << made;
  EXPECT_THAT(std::string(made.message()), HasSubstr("cuda:0: cublasLtMatmul"));
  fake_cublaslt()->behaviour = FAKE_VENDOR_RIGHT;
  EXPECT_TRUE(context.PrepareIslands(*compiled->Bind({Shape({1, kIn})}), {1, 2}).ok());
}

// From the proof to the answer.
TEST_F(OnFakeLibraries, AFailedCallOfCudaIsAnErrorOrARightAnswer) {
  const TestGraph t = DenseNet();
  const Tensor x = RowsOf(Shape({3, kIn})), want = Emulated(t, x);
  const auto serve = [&]() -> absl::StatusOr<Tensor> {
    const Placement islands{.device = DeviceKind::kCuda, .all = true, .on = device_};
    FLOE_ASSIGN_OR_RETURN(const auto compiled,
                          CompiledSignature::Compile(t.graph, t.signature, {.islands = islands}));
    ExecContext context;
    FLOE_RETURN_IF_ERROR(context.PrepareIslands(*compiled->Bind({Shape({1, kIn})}), {1, 4}));
    return RunRows(*compiled, x, &context);
  };
  const auto reset = [&] { Open({.cublaslt = true, .cublaslt_file = kBlasFile}); };
  reset();
  const int64_t before = fake_cuda_calls();
  ASSERT_TRUE(serve().ok());
  const int64_t calls = fake_cuda_calls() - before;
  int errors = 0;
  for (int64_t i = 0; i < calls; i += i < 30 || i > calls - 60 ? 1 : 7) {
    for (const int error : {cuda::kCudaOutOfMemory, cuda::kCudaIllegalAddress}) {
      reset();
      fake_cuda_fail_after(i, error);
      const auto got = serve();
      errors += got.ok() ? 0 : 1;
      for (int64_t e = 0; got.ok() && e < want.elements(); ++e)
        EXPECT_NEAR(got->as<float>()[e], want.as<float>()[e], 1e-6) << "call " << i;
    }
  }
  EXPECT_GT(errors, 60);
  reset();
}

}  // namespace
}  // namespace floe
