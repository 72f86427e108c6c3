// The library that nvcc built, over the fake CUDA runtime: what a device would be asked to do, its
// errors, and that nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/device/device_run.h"
#include "kernels/cuda/device/errors.h"
#include "tests/cuda/fake_cudart.h"
#include "tests/cuda/programs.h"

namespace floe::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kCount = 1000, kBytes = kCount * sizeof(float);

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::vector<float> Numbers() {
  std::vector<float> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 0.5f);
  return numbers;
}

// What the program below makes of the numbers: weights over the first, then a constant.
std::vector<float> Expected(const std::vector<float>& weights) {
  std::vector<float> expected = Numbers();
  std::copy(weights.begin(), weights.end(), expected.begin() + 700);
  std::fill(expected.begin() + 100, expected.begin() + 613, -2.25f);
  std::fill(expected.begin() + 600, expected.begin() + 601, 7.0f);
  return expected;
}

Launch Fill(std::byte* arena, int64_t first, int64_t count, float value) {
  return Launch::Of(KernelId::fill, {Blocks(count, 256)},
                    FillArgs{reinterpret_cast<float*>(arena) + first, count, value});
}

// A worker's memory, its stream, and one program: everything that a device is used for.
struct Worker {
  Stream stream;
  DeviceBuffer arena;
  PinnedBuffer in, out;
  std::unique_ptr<DeviceRun> run;

  static absl::StatusOr<Worker> Make(const std::shared_ptr<Device>& device) {
    Worker made;
    FLOE_ASSIGN_OR_RETURN(made.stream, Stream::Make(device));
    FLOE_ASSIGN_OR_RETURN(made.arena, DeviceBuffer::Make(device, 2 * kBytes));
    FLOE_ASSIGN_OR_RETURN(made.in, PinnedBuffer::Make(device, kBytes));
    FLOE_ASSIGN_OR_RETURN(made.out, PinnedBuffer::Make(device, kBytes));
    std::byte* const data = made.arena.data();
    const Launch launches[] = {Fill(data, 100, 513, -2.25f), Fill(data, 600, 1, 7.0f)};
    // The numbers but for the place of the weights, in two copies.
    const size_t before = 700 * sizeof(float), behind = 900 * sizeof(float);
    const DevicePort inputs[] = {{made.in.data(), data, before},
                                 {made.in.data() + behind, data + behind, kBytes - behind},
                                 {nullptr, nullptr, 0}};
    const DevicePort outputs[] = {{made.out.data(), data, kBytes}};
    FLOE_ASSIGN_OR_RETURN(
        made.run, DeviceRun::Make(made.stream, {"tiny island 0", launches, inputs, outputs}));
    return made;
  }

  absl::StatusOr<std::vector<float>> Run() {
    const std::vector<float> numbers = Numbers();
    std::memcpy(in.data(), numbers.data(), kBytes);
    std::memset(out.data(), 0xFF, kBytes);
    FLOE_RETURN_IF_ERROR(run->Run(stream));
    std::vector<float> answer(kCount);
    std::memcpy(answer.data(), out.data(), kBytes);
    return answer;
  }
};

const std::vector<float>& Weights() {
  static const auto* const weights = new std::vector<float>(200, 11.5f);
  return *weights;
}

// Everything from opening to the second answer.
absl::StatusOr<std::vector<float>> Serve() {
  FLOE_ASSIGN_OR_RETURN(const auto library,
                        Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so"));
  FLOE_ASSIGN_OR_RETURN(const auto device, Device::Open(library, 0, 0));
  FLOE_ASSIGN_OR_RETURN(Worker worker, Worker::Make(device));
  FLOE_RETURN_IF_ERROR(
      worker.arena.Upload(700 * sizeof(float), Weights().data(), Weights().size() * sizeof(float)));
  FLOE_RETURN_IF_ERROR(worker.Run().status());
  return worker.Run();
}

class OnFakeCuda : public ::testing::Test {
 protected:
  void SetUp() override { Reset(uint64_t{1} << 30); }
  void TearDown() override {
    EXPECT_EQ(fake_cuda_alive(), 0);
    EXPECT_EQ(fake_cuda_used(), 0);
    EXPECT_STREQ(fake_cuda_complaint(), "");
  }
  static void Reset(uint64_t bytes, int devices = 1) {
    const FakeCudaOptions options = {bytes, devices, 9, 0};
    fake_cuda_reset(&options);
  }
  static std::shared_ptr<Device> Open(int index = 0, int64_t limit = 0) {
    auto library = Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so");
    EXPECT_EQ(library.status(), absl::OkStatus());
    auto device = Device::Open(*library, index, limit);
    EXPECT_EQ(device.status(), absl::OkStatus());
    return *device;
  }
};

TEST_F(OnFakeCuda, RunsAProgramOfLaunches) {
  const auto answer = Serve();
  ASSERT_EQ(answer.status(), absl::OkStatus());
  EXPECT_EQ(*answer, Expected(Weights()));
  EXPECT_EQ(fake_cuda_kernels_run(), 4);  // two of each run, and none when it was made
}

TEST_F(OnFakeCuda, HasTheEmulatorsBits) {
  const std::shared_ptr<Device> device = Open();
  for (const CheckedProgram& program : CheckedPrograms(/*large=*/false)) {
    const auto emulated = RunOnEmulator(program);
    ASSERT_EQ(emulated.status(), absl::OkStatus()) << program.name;
    ASSERT_GT(DifferingBits(*emulated, InitialNumbers(program.floats)), 0) << program.name;
    const auto result = RunOnDevice(program, device, 1);
    ASSERT_EQ(result.status(), absl::OkStatus()) << program.name;
    EXPECT_EQ(DifferingBits(result->memory, *emulated), 0) << program.name;
  }
}

TEST_F(OnFakeCuda, SaysWhatDeviceItHas) {
  const std::shared_ptr<Device> device = Open();
  EXPECT_EQ(device->name(), "cuda:0");
  EXPECT_STREQ(device->properties().name, "Fake H100");
  EXPECT_STREQ(device->properties().pci_bus, "0000:3B:00.0");
  EXPECT_EQ(device->properties().major, 9);
  EXPECT_EQ(device->properties().total_bytes, uint64_t{1} << 30);
  EXPECT_EQ(device->library().Versions(), "CUDA 13.0, driver 13.0");
}

// Each call of the runtime in turn: an error that says so, or the right answer where the call was
// one of freeing; nothing is left.
class EveryCallFails : public OnFakeCuda, public ::testing::WithParamInterface<int> {};

TEST_P(EveryCallFails, WithAnErrorAndWithoutLeaks) {
  ASSERT_TRUE(Serve().ok());
  const int64_t calls = fake_cuda_calls();
  ASSERT_GT(calls, 40);
  int errors = 0;
  for (int64_t i = 0; i < calls; ++i) {
    Reset(uint64_t{1} << 30);
    fake_cuda_fail_after(i, GetParam());
    const auto answer = Serve();
    if (answer.ok()) {
      EXPECT_EQ(*answer, Expected(Weights())) << "call " << i;
    } else {
      ++errors;
      EXPECT_THAT(Message(answer.status()),
                  ::testing::AnyOf(HasSubstr("cudaError"), HasSubstr("memory")))
          << "call " << i;
    }
    EXPECT_EQ(fake_cuda_alive(), 0) << "call " << i;
    EXPECT_STREQ(fake_cuda_complaint(), "") << "call " << i;
  }
  // Nobody hears of what fails while an executable graph, three buffers and a stream are freed; of
  // the graph, freed before the runs, what is not over then.
  EXPECT_EQ(calls - errors, GetParam() == kCudaOutOfMemory ? 6 : 5);
  std::printf("%lld calls failed in turn: %d errors\n", static_cast<long long>(calls), errors);
}

INSTANTIATE_TEST_SUITE_P(Faults, EveryCallFails,
                         ::testing::Values(kCudaOutOfMemory, kCudaIllegalAddress, kCudaUnknown));

TEST_F(OnFakeCuda, ASmallDeviceIsOutOfMemory) {
  Reset(1 << 20);
  const std::shared_ptr<Device> device = Open();
  const auto first = DeviceBuffer::Make(device, 700 << 10);
  ASSERT_TRUE(first.ok());
  const absl::Status status = DeviceBuffer::Make(device, 400 << 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status),
            "cuda:0 (Fake H100) is out of memory: 400 KiB were asked for, 324 KiB of 1.00 MiB are "
            "free: serve fewer models there, lower max_batch_size, or use another device");
  EXPECT_EQ(device->budget().in_use(), 700 << 10);
  EXPECT_EQ(device->CheckAlive(), absl::OkStatus());
}

TEST_F(OnFakeCuda, TheLimitOfMemoryIsExactAndFreedWithItsOwner) {
  const std::shared_ptr<Device> device = Open(0, 4096);
  {
    const auto all = DeviceBuffer::Make(device, 4096);
    ASSERT_TRUE(all.ok());
    EXPECT_THAT(Message(DeviceBuffer::Make(device, 1).status()),
                AllOf(HasSubstr("cuda:0: 1 B are needed"), HasSubstr("of gpu_memory_limit, 4")));
    EXPECT_EQ(fake_cuda_used(), 4096);
  }
  EXPECT_EQ(device->budget().in_use(), 0);
  EXPECT_TRUE(DeviceBuffer::Make(device, 4096).ok());
}

TEST_F(OnFakeCuda, ALostDeviceStaysLost) {
  const std::shared_ptr<Device> device = Open();
  auto worker = Worker::Make(device);
  ASSERT_TRUE(worker.ok());
  ASSERT_TRUE(worker->Run().ok());
  fake_cuda_fail_after(2, kCudaIllegalAddress);  // when the run is waited for
  const absl::Status status = worker->Run().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("the device is lost and needs a restart"),
                                     HasSubstr("cuda:0: running tiny island 0: "
                                               "cudaErrorIllegalAddress")));
  const int64_t calls = fake_cuda_calls();
  EXPECT_EQ(worker->Run().status(), status);
  EXPECT_EQ(DeviceBuffer::Make(device, 1).status(), status);
  EXPECT_EQ(PinnedBuffer::Make(device, 1).status(), status);
  EXPECT_EQ(Stream::Make(device).status(), status);
  EXPECT_EQ(fake_cuda_calls(), calls);  // nobody asked the device again
}

TEST_F(OnFakeCuda, ARunThatDoesNotStartLosesNothing) {
  const std::shared_ptr<Device> device = Open();
  auto worker = Worker::Make(device);
  ASSERT_TRUE(worker.ok());
  fake_cuda_fail_after(1, kCudaOutOfMemory);
  EXPECT_THAT(Message(worker->Run().status()), HasSubstr("cuda:0: starting tiny island 0"));
  EXPECT_TRUE(worker->Run().ok());
}

TEST_F(OnFakeCuda, RunsOfAUserTakeTurns) {
  const auto library = Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so");
  const auto device = *Device::Open(*library, 0, 0);
  auto worker = Worker::Make(device);
  ASSERT_TRUE(worker.ok()) << worker.status();
  DeviceGate::User others(1), mine(1);
  DeviceGate::Turn turns[DeviceGate::kTogether];
  for (DeviceGate::Turn& turn : turns) device->gate().Ask(&others, &turn);
  const int64_t before = fake_cuda_kernels_run();
  absl::Status status = absl::UnknownError("it has not run");
  std::thread thread([&] {
    const ScopedDeviceUser user(&mine);
    status = worker->Run().status();
  });
  while (device->gate().waiting() == 0) std::this_thread::yield();
  EXPECT_EQ(fake_cuda_kernels_run(), before);
  for (DeviceGate::Turn& turn : turns) device->gate().Leave(&turn);
  thread.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(fake_cuda_kernels_run(), before + 2);
  device->gate().Ask(&others, &turns[0]);
  EXPECT_TRUE(device->gate().IsGranted(turns[0])) << "the run has left";
  device->gate().Leave(&turns[0]);
}

TEST_F(OnFakeCuda, LaunchesThatNoDeviceMakesAreRefused) {
  const std::shared_ptr<Device> device = Open();
  auto stream = Stream::Make(device);
  auto arena = DeviceBuffer::Make(device, kBytes);
  ASSERT_TRUE(arena.ok());
  const auto refused = [&](const Launch& launch) {
    return Message(DeviceRun::Make(*stream, {"m", absl::MakeSpan(&launch, 1), {}, {}}).status());
  };
  Launch launch = Fill(arena->data(), 0, 10, 1);
  launch.grid.y = 65536;
  EXPECT_EQ(refused(launch), "m: fill has a grid of 1 x 65536 x 1 blocks, which no device has");
  launch.grid = {0};
  EXPECT_THAT(refused(launch), HasSubstr("0 x 1 x 1 blocks"));
  launch = Fill(arena->data(), 0, 10, 1);
  launch.args_bytes = 4;
  EXPECT_THAT(refused(launch), HasSubstr("bytes of arguments, and gets 4"));
  launch.kernel = KernelId::kCount;
  EXPECT_THAT(refused(launch), HasSubstr("there is no kernel"));
  EXPECT_THAT(Message(arena->Upload(1, Numbers().data(), kBytes)),
              HasSubstr("of a device buffer of 4000"));
}

TEST_F(OnFakeCuda, WorkersOfTwoDevicesRunAtOnce) {
  Reset(uint64_t{1} << 30, 2);
  const std::shared_ptr<Device> devices[] = {Open(0), Open(1)};
  absl::StatusOr<Worker> workers[4];  // freed when no stream has work any more
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      auto& worker = workers[i];
      worker = Worker::Make(devices[i % 2]);
      ASSERT_EQ(worker.status(), absl::OkStatus());
      ASSERT_TRUE(
          worker->arena
              .Upload(700 * sizeof(float), Weights().data(), Weights().size() * sizeof(float))
              .ok());
      for (int run = 0; run < 20; ++run) {
        const auto answer = worker->Run();
        ASSERT_EQ(answer.status(), absl::OkStatus());
        EXPECT_EQ(*answer, Expected(Weights()));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// The library as it is installed, with the real runtime inside.
TEST(InstalledCudaLibrary, SaysThatThereIsNoDriver) {
  auto library = Library::OpenFile(FLOE_BINARY_DIR "/libfloe_cuda.so");
  ASSERT_EQ(library.status(), absl::OkStatus());
  const auto count = (*library)->CountDevices();
  if (count.ok()) GTEST_SKIP() << "needs a machine without an NVIDIA driver";
  EXPECT_THAT(Message(count.status()), AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("R580")));
  EXPECT_EQ((*library)->Versions(), "CUDA 13.0, no driver");
}

}  // namespace
}  // namespace floe::cuda
