// Where models go on a machine without a GPU. With one: tests/python/test_gpu.py.
#include "server/loading/model_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "server/loading/load_errors.h"
#include "server/loading/loader.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ModelDevicesTest : public testing::Test {
 protected:
  void SetUp() override { setenv("FLOE_CUDA_LIBRARY", "/nowhere/libfloe_cuda.so", 1); }
  void TearDown() override { unsetenv("FLOE_CUDA_LIBRARY"); }

  static ServerConfig With(Backend backend) {
    ServerConfig config;
    config.backend = backend;
    return config;
  }
  static ModelConfig ModelOn(const std::string& device) {
    ModelConfig model;
    model.name = "m";
    model.device = device;
    return model;
  }
  static std::string TextOf(const absl::Status& status) { return std::string(status.message()); }
};

TEST_F(ModelDevicesTest, AutoServesFromTheCpuAndSaysWhy) {
  ModelDevices devices(With(Backend::kAuto));
  EXPECT_TRUE(devices.Start().ok());
  EXPECT_EQ(devices.Status().why_cpu, "no model asks for a GPU") << "nothing is opened early";
  const auto place = devices.Choose(ModelOn("auto"));
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->device, nullptr);
  EXPECT_THAT(place->why_cpu, HasSubstr("/nowhere"));
  EXPECT_EQ(devices.Status().backend, "cpu");
  EXPECT_THAT(devices.Status().why_cpu, HasSubstr("/nowhere"));
}

TEST_F(ModelDevicesTest, AModelOfTheCpuOpensNothing) {
  ModelDevices devices(With(Backend::kAuto));
  EXPECT_EQ(devices.Choose(ModelOn("cpu"))->why_cpu, "its device is cpu");
  EXPECT_EQ(devices.Status().why_cpu, "no model asks for a GPU");
}

TEST_F(ModelDevicesTest, AModelThatWantsADeviceFailsWithoutOne) {
  ModelDevices devices(With(Backend::kAuto));
  for (const char* device : {"cuda", "cuda:3"})
    EXPECT_THAT(
        TextOf(devices.Choose(ModelOn(device)).status()),
        AllOf(HasSubstr(std::string("model 'm' has device ") + device), HasSubstr("/nowhere")));
}

TEST_F(ModelDevicesTest, BackendCpuExcludesDevicesAndBothAreNamed) {
  ModelDevices devices(With(Backend::kCpu));
  EXPECT_EQ(devices.Choose(ModelOn("auto"))->why_cpu, "the backend is cpu");
  const absl::Status status = devices.Choose(ModelOn("cuda:1")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(TextOf(status), AllOf(HasSubstr("device cuda:1"), HasSubstr("backend cpu")));
  EXPECT_EQ(devices.Status().why_cpu, "") << "it is what was asked for";
}

TEST_F(ModelDevicesTest, BackendCudaNeedsOneAtTheStart) {
  const absl::Status status = ModelDevices(With(Backend::kCuda)).Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(TextOf(status), AllOf(HasSubstr("backend is cuda"), HasSubstr("/nowhere"),
                                    HasSubstr("backend: auto")));
}

constexpr char kProduct[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 64 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 64 } dim { size: 64 } } float_val: 0.5 } } } }
node { name: "y" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
)";

// A trial runs what the server will run, and on no device.
TEST_F(ModelDevicesTest, TrialsHaveIslandsOnTheCpu) {
  const auto islands = [](const std::string& device, bool trial) {
    LoadOptions options;
    options.prepare.trial = trial;
    ModelConfig model = ModelOn(device);
    model.workers = 1;
    const auto loaded = LoadModel(model, {1, "", kProduct}, options, MemoryBudget());
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (!loaded.ok()) return size_t{99};
    (*loaded)->Stop();
    EXPECT_EQ((*loaded)->place().device, nullptr);
    return (*loaded)->model()->islands().size();
  };
  EXPECT_EQ(islands("cuda", /*trial=*/true), 1u);
  EXPECT_EQ(islands("cpu", /*trial=*/true), 0u);
  EXPECT_EQ(islands("auto", /*trial=*/false), 0u);
}

}  // namespace
}  // namespace floe::server
