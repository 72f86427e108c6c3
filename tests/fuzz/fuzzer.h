// What a fuzzer consists of: three functions, which libFuzzer's entry points call; driver_main.cc
// calls those too, so that the ordinary test run needs neither libFuzzer nor clang. See
// docs/fuzzing.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tests/fuzz/random.h"

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_out_size, unsigned seed);
// libFuzzer's mutation of bytes, or the driver's.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
}

namespace floe::fuzz {

// Every fuzzer defines these three. What a unit ends in is only counted; a wrong answer calls Fail.
absl::Status RunUnit(const std::string& bytes);
// Bytes that are empty or too long are no new unit.
std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random);
std::string CrossUnits(const std::string& one, const std::string& other, Random& random);

// A few of LLVMFuzzerMutate's changes.
std::string MutateBytes(const std::string& bytes, size_t max_size);

// `part` at some place, between the bytes there or over them.
std::string PutInto(const std::string& bytes, std::string_view part, Random& random);

// A part from the front of one and a part from the end of the other.
std::string SpliceBytes(const std::string& one, const std::string& other, Random& random);

// Aborts when more than a second of this thread's CPU time passes in its life: a unit that takes so
// long counts as a hang. CPU time, because a busy machine says nothing about the code.
class UnitTimer {
 public:
  UnitTimer();
  ~UnitTimer();
  UnitTimer(const UnitTimer&) = delete;
  UnitTimer& operator=(const UnitTimer&) = delete;

 private:
  const double started_;
};

// Reads every byte, so that a sanitizer sees memory that is not there or was never written.
void Touch(const void* data, size_t bytes);

// Counts how units end; with FLOE_FUZZ_ENDS set, prints how many ended in each error at exit, which
// tells whether a corpus reaches what it should.
void Report(const absl::Status& status);

// Prints and aborts: what a fuzzer does when an answer is wrong.
[[noreturn]] void Fail(const std::string& what);

}  // namespace floe::fuzz
