// A libfloe_cuda.so without CUDA, for tests of opening: it says what the test has written.
#include "tests/cuda/stub_library.h"

#include <cstring>

namespace {

FloeCudaLibrary table = {};
StubAnswers answers = {};

int Versions(int* driver, int* runtime) {
  *driver = answers.driver;
  *runtime = answers.runtime;
  return 0;
}
int DeviceCount(int* count) {
  *count = answers.count;
  return answers.count_error;
}
int DeviceProperties(int, FloeCudaDevice* properties) {
  *properties = {};
  std::strcpy(properties->name, "Stub");
  properties->major = answers.major;
  properties->minor = answers.minor;
  return 0;
}
int LoadKernel(int, uint32_t, FloeCudaKernelCode* code) {
  *code = {};
  code->most_threads = answers.most_threads;
  return answers.load_error;
}
const char* ErrorName(int) { return "cudaErrorOfStub"; }
const char* ErrorText(int) { return "as the test says"; }

}  // namespace

FloeCudaLibrary* stub_table() { return &table; }
StubAnswers* stub_answers() { return &answers; }

const FloeCudaLibrary* floe_cuda_library() {
  table.versions = Versions;
  table.device_count = DeviceCount;
  table.device_properties = DeviceProperties;
  table.load_kernel = LoadKernel;
  table.error_name = ErrorName;
  table.error_text = ErrorText;
  return &table;
}
