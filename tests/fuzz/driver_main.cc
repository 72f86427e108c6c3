// Runs a fuzzer without libFuzzer: every file of a corpus as it is, then changed ones for a while.
//
//   DRIVER [--seconds N] [--seed N] FOLDER|FILE...
//
// The same build, corpus and seed give the same units in the same order; --seconds only says how
// many.
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/random.h"

namespace {

using floe::fuzz::Random;

constexpr size_t kMaxSize = 8192;  // of a changed unit
Random byte_random(1);
std::string last_unit;  // written to a file when the program dies

void Run(const std::string& unit) {
  last_unit = unit;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(unit.data()), unit.size());
}

void SaveLastUnit(int signal) {
  const std::string file = "crash-" + std::to_string(std::hash<std::string>()(last_unit));
  std::ofstream(file, std::ios::binary) << last_unit;
  std::fprintf(stderr, "signal %d; the unit is in %s\n", signal, file.c_str());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// On a stack of its own: a unit may have used up the program's.
void SaveUnitsThatKill() {
  static std::array<char, 1 << 16> memory;
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = SaveLastUnit;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS})
    sigaction(signal, &action, nullptr);
}

std::vector<std::string> ReadFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> units;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    units.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return units;
}

std::string Change(const std::string& unit, Random& random) {
  std::string buffer(kMaxSize, '\0');
  const size_t size = std::min(unit.size(), kMaxSize);
  std::copy_n(unit.begin(), size, buffer.begin());
  buffer.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(buffer.data()), size, kMaxSize,
                                        static_cast<unsigned>(random.Next())));
  return buffer;
}

std::string Cross(const std::string& a, const std::string& b, Random& random) {
  std::string buffer(kMaxSize, '\0');
  buffer.resize(LLVMFuzzerCustomCrossOver(reinterpret_cast<const uint8_t*>(a.data()), a.size(),
                                          reinterpret_cast<const uint8_t*>(b.data()), b.size(),
                                          reinterpret_cast<uint8_t*>(buffer.data()), kMaxSize,
                                          static_cast<unsigned>(random.Next())));
  return buffer;
}

// Changes of changes: a pool of the seeds and of some of what came from them.
int64_t Fuzz(std::vector<std::string> pool, double seconds, uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  Random random(seed);
  const size_t seeds = pool.size();
  int64_t runs = 0;
  for (; Clock::now() < end; ++runs) {
    const std::string& from = random.Pick(pool);
    std::string unit =
        random.OneIn(5) ? Cross(from, random.Pick(pool), random) : Change(from, random);
    Run(unit);
    if (unit.empty() || !random.OneIn(10)) continue;
    if (pool.size() < 4 * seeds) {
      pool.push_back(std::move(unit));
    } else {
      pool[seeds + random.Below(pool.size() - seeds)] = std::move(unit);
    }
  }
  return runs;
}

}  // namespace

// Bits flipped, bytes set, inserted or removed.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  std::string bytes(reinterpret_cast<char*>(data), size);
  for (int i = 1 + byte_random.Below(3); i > 0; --i) {
    const size_t at = bytes.empty() ? 0 : byte_random.Below(bytes.size());
    switch (bytes.empty() ? 0 : byte_random.Below(4)) {
      case 0:
        bytes.insert(at, 1, static_cast<char>(byte_random.Below(256)));
        break;
      case 1:
        bytes.erase(at, 1 + byte_random.Below(4));
        break;
      case 2:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << byte_random.Below(8)));
        break;
      default:
        bytes[at] = static_cast<char>(byte_random.Integer());
        break;
    }
  }
  bytes.resize(std::min(bytes.size(), max_size));
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

int main(int argc, char** argv) {
  double seconds = 0;
  uint64_t seed = 20;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      paths.emplace_back(argv[i]);
    }
  }
  const std::vector<std::string> units = ReadFiles(paths);
  if (units.empty()) {
    std::fprintf(stderr, "no files to run\n");
    return 1;
  }
  SaveUnitsThatKill();
  for (const std::string& unit : units) Run(unit);
  const int64_t runs = seconds > 0 ? Fuzz(units, seconds, seed) : 0;
  std::printf("%zu files, %ld changed ones\n", units.size(), static_cast<long>(runs));
  return 0;
}
