#include "kernels/cuda/device/open_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/errors.h"
#include "tests/cuda/stub_library.h"

namespace floe::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kStub = FLOE_FAKE_CUDA_FOLDER "/floe_cuda_stub.so";

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class OpenLibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const handle = dlopen(kStub.c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr) << dlerror();
    table_ = reinterpret_cast<decltype(&stub_table)>(dlsym(handle, "stub_table"))();
    answers_ = reinterpret_cast<decltype(&stub_answers)>(dlsym(handle, "stub_answers"))();
    kernels_.assign(ListedKernels().begin(), ListedKernels().end());
    *table_ = {};
    table_->version = FLOE_CUDA_VERSION;
    table_->bytes = sizeof(FloeCudaLibrary);
    table_->kernel_count = static_cast<uint32_t>(kernels_.size());
    table_->kernels = kernels_.data();
    *answers_ = {13000, 13000, 1, 0, 9, 0, 0, 1024};
  }
  void TearDown() override { unsetenv("FLOE_CUDA_LIBRARY"); }

  static absl::Status Open() { return Library::OpenFile(kStub).status(); }
  static absl::Status OpenDevice(int index) {
    auto library = Library::OpenFile(kStub);
    if (!library.ok()) return library.status();
    return Device::Open(*library, index, 0).status();
  }

  FloeCudaLibrary* table_ = nullptr;
  StubAnswers* answers_ = nullptr;
  std::vector<FloeCudaKernel> kernels_;
};

TEST_F(OpenLibraryTest, OpensItsOwnVersionAndDevice) {
  EXPECT_EQ(Open(), absl::OkStatus());
  EXPECT_EQ(OpenDevice(0), absl::OkStatus());
  EXPECT_EQ((*Library::OpenFile(kStub))->Versions(), "CUDA 13.0, driver 13.0");
}

TEST_F(OpenLibraryTest, IsNotInstalled) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  if (std::filesystem::exists(folder / "libfloe_cuda.so")) {
    EXPECT_EQ((*Library::Open())->path(), (folder / "libfloe_cuda.so").string());
    return;
  }
  const absl::Status status = Library::Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("install the package floe-cuda"),
                                     HasSubstr(folder.string() + "/libfloe_cuda.so or ")));
}

TEST_F(OpenLibraryTest, TheFileOfTheVariableCounts) {
  setenv("FLOE_CUDA_LIBRARY", kStub.c_str(), 1);
  EXPECT_EQ((*Library::Open())->path(), kStub);
  setenv("FLOE_CUDA_LIBRARY", "/nowhere/libfloe_cuda.so", 1);
  const absl::Status status = Library::Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("/nowhere/libfloe_cuda.so"),
                                     HasSubstr("which FLOE_CUDA_LIBRARY names")));
}

TEST_F(OpenLibraryTest, NoLibraryAtAll) {
  const std::string path = ::testing::TempDir() + "/no_library.so";
  std::ofstream(path) << "text";
  EXPECT_THAT(Message(Library::OpenFile(path).status()), HasSubstr("cannot open " + path));
  const absl::Status other = Library::OpenFile("libc.so.6").status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(other), HasSubstr("libc.so.6 is no libfloe_cuda.so"));
}

TEST_F(OpenLibraryTest, AnotherVersionOfTheTable) {
  table_->version = FLOE_CUDA_VERSION + 1;
  EXPECT_THAT(Message(Open()),
              AllOf(HasSubstr("has version 3 of the calls, and this program needs 2"),
                    HasSubstr("install floe and floe-cuda of the same version")));
  table_->version = FLOE_CUDA_VERSION;
  table_->bytes -= 8;
  EXPECT_THAT(Message(Open()), HasSubstr("a table of " + std::to_string(table_->bytes)));
}

TEST_F(OpenLibraryTest, OtherKernels) {
  table_->kernel_count += 1;
  EXPECT_THAT(Message(Open()), AllOf(HasSubstr("kernels, and this program lists"),
                                     HasSubstr("of the same version")));
  table_->kernel_count -= 1;
  kernels_.back().args_bytes += 8;
  EXPECT_THAT(Message(Open()), HasSubstr("bytes of arguments, and this program lists"));
  kernels_.back().args_bytes -= 8;
  kernels_.back().name = "another";
  EXPECT_THAT(Message(Open()), HasSubstr("is another of"));
  kernels_.back() = ListedKernels().back();
  kernels_.back().threads = 32;
  EXPECT_THAT(Message(Open()), HasSubstr("of 32 threads"));
}

TEST_F(OpenLibraryTest, NoDriver) {
  *answers_ = {0, 13000, 0, kCudaInsufficientDriver, 9, 0, 0, 1024};
  const absl::Status status = OpenDevice(0);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("there is no NVIDIA driver (no libcuda.so.1)"), HasSubstr("R580")));
  EXPECT_EQ((*Library::OpenFile(kStub))->Versions(), "CUDA 13.0, no driver");
}

TEST_F(OpenLibraryTest, DriverTooOld) {
  *answers_ = {12040, 13000, 0, kCudaInsufficientDriver, 9, 0, 0, 1024};
  EXPECT_THAT(Message(OpenDevice(0)),
              AllOf(HasSubstr("too old: it supports CUDA 12.4 and floe needs 13.0"),
                    HasSubstr("install driver R580")));
}

TEST_F(OpenLibraryTest, NoDevice) {
  answers_->count_error = kCudaNoDevice;
  EXPECT_EQ(OpenDevice(0).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(OpenDevice(0)),
              AllOf(HasSubstr("finds no device"), HasSubstr("CUDA_VISIBLE_DEVICES")));
  answers_->count_error = 0;
  answers_->count = 0;
  EXPECT_THAT(Message(OpenDevice(0)), HasSubstr("finds no device"));
  answers_->count = 2;
  EXPECT_EQ(OpenDevice(2).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(OpenDevice(2)),
              HasSubstr("no device cuda:2: the driver finds 2 devices, from cuda:0"));
  EXPECT_EQ(OpenDevice(-1).code(), absl::StatusCode::kNotFound);
}

TEST_F(OpenLibraryTest, OtherErrorsOfTheDriver) {
  const std::pair<int, const char*> errors[] = {
      {kCudaStubLibrary, "lib64/stubs"},
      {kCudaSystemNotReady, "nvidia-fabricmanager"},
      {kCudaDriverMismatch, "reboot"},
      {kCudaUnknown, "does not start: cudaErrorOfStub (as the test says, CUDA error 999)"}};
  for (const auto& [error, words] : errors) {
    answers_->count_error = error;
    EXPECT_EQ(OpenDevice(0).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(OpenDevice(0)), HasSubstr(words));
  }
}

TEST_F(OpenLibraryTest, ADeviceThatCannotRunTheKernels) {
  answers_->major = 6;
  EXPECT_THAT(Message(OpenDevice(0)),
              HasSubstr("cuda:0 (Stub) has compute capability 6.0, and floe needs 7.5 or more"));
  answers_->major = 9;
  answers_->load_error = kCudaNoKernelImage;
  EXPECT_THAT(Message(OpenDevice(0)), HasSubstr("has no code for cuda:0 (Stub, compute"));
  answers_->load_error = kCudaDeviceUnavailable;
  EXPECT_THAT(Message(OpenDevice(0)), HasSubstr("in use by another process"));
  answers_->load_error = 0;
  answers_->most_threads = 16;
  EXPECT_THAT(Message(OpenDevice(0)), HasSubstr("threads, and can have 16"));
}

}  // namespace
}  // namespace floe::cuda
