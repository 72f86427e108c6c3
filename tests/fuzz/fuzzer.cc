#include "tests/fuzz/fuzzer.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace floe::fuzz {
namespace {

constexpr double kMaxUnitSeconds = 1;

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::map<std::string, int64_t>& Ends() {
  static auto* ends = new std::map<std::string, int64_t>();
  return *ends;
}

std::string BytesOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The bytes put where libFuzzer wants them; 0 when they do not fit.
size_t Give(const std::string& bytes, uint8_t* out, size_t max_size) {
  if (bytes.empty() || bytes.size() > max_size) return 0;
  std::copy(bytes.begin(), bytes.end(), out);
  return bytes.size();
}

}  // namespace

std::string MutateBytes(const std::string& bytes, size_t max_size) {
  std::string buffer(std::max(max_size, bytes.size()), '\0');
  std::copy(bytes.begin(), bytes.end(), buffer.begin());
  buffer.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(buffer.data()),
                                 std::min(bytes.size(), max_size), max_size));
  return buffer;
}

std::string PutInto(const std::string& bytes, std::string_view part, Random& random) {
  std::string made = bytes;
  const size_t at = random.Below(made.size() + 1);
  if (random.OneIn(2))
    made.insert(at, part);
  else
    made.replace(at, std::min(part.size(), made.size() - at), part);
  return made;
}

std::string SpliceBytes(const std::string& one, const std::string& other, Random& random) {
  const auto place = [&random](const std::string& bytes) {
    return bytes.empty() ? 0 : static_cast<size_t>(random.Below(bytes.size()));
  };
  const size_t keep = place(one), from = place(other);
  return one.substr(0, keep) + other.substr(from);
}

UnitTimer::UnitTimer() : started_(ThreadSeconds()) {}

UnitTimer::~UnitTimer() {
  const double seconds = ThreadSeconds() - started_;
  if (seconds > kMaxUnitSeconds)
    Fail("the unit took " + std::to_string(seconds) + " s of CPU time");
}

void Touch(const void* data, size_t bytes) {
  uint8_t sum = 0;
  for (size_t i = 0; i < bytes; ++i)
    sum = static_cast<uint8_t>(sum + static_cast<const uint8_t*>(data)[i]);
  __asm__ volatile("" : : "r"(sum));  // keeps the loop
}

void Report(const absl::Status& status) {
  static std::map<std::string, int64_t>* const ends = [] {
    if (std::getenv("FLOE_FUZZ_ENDS") == nullptr)
      return static_cast<std::map<std::string, int64_t>*>(nullptr);
    std::atexit([] {
      for (const auto& [end, count] : Ends())
        std::fprintf(stderr, "%8ld %s\n", static_cast<long>(count), end.c_str());
    });
    return &Ends();
  }();
  if (ends == nullptr) return;
  constexpr size_t kShown = 60;  // the start of a message, which names the kind of error
  ++(*ends)[status.ToString().substr(0, kShown)];
}

void Fail(const std::string& what) {
  std::fprintf(stderr, "== FAILED: %s\n", what.c_str());
  std::abort();
}

}  // namespace floe::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace floe::fuzz;
  const UnitTimer timer;
  Report(RunUnit(BytesOf(data, size)));
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  return Give(MutateUnit(BytesOf(data, size), max_size, random), data, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_out_size, unsigned seed) {
  using namespace floe::fuzz;
  Random random(seed);
  return Give(CrossUnits(BytesOf(data1, size1), BytesOf(data2, size2), random), out, max_out_size);
}
