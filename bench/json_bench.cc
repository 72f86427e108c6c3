// What a number costs in JSON: nanoseconds to read it from a body of REST's predict into the
// tensor, and to write it into the reply, beside those of std::strtof and a copy of the body.
//
//     json_bench [NUMBERS]     floats in the body (150528, an image of 224 x 224 x 3)
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/rest/rest_for_test.h"

namespace floe::server {
namespace {

// The fastest of several runs, in nanoseconds a number.
template <typename Run>
double NanosEach(int numbers, Run run) {
  using BenchClock = std::chrono::steady_clock;
  double best = HUGE_VAL;
  constexpr int kRuns = 9;
  for (int i = 0; i < kRuns; ++i) {
    const BenchClock::time_point start = BenchClock::now();
    run();
    const auto took = std::chrono::duration<double, std::nano>(BenchClock::now() - start);
    best = std::min(best, took.count() / numbers);
  }
  return best;
}

struct Kind {
  const char* name;
  float (*make)(std::mt19937_64&);
};

float AnyFloat(std::mt19937_64& random) { return std::generate_canonical<float, 24>(random); }
float Pixel(std::mt19937_64& random) { return static_cast<float>(random() % 256) / 255; }
float Whole(std::mt19937_64& random) { return static_cast<float>(random() % 256); }

int Measure(const Kind& kind, int numbers) {
  const auto served = JsonModel(JsonNode("x", "DT_FLOAT", {-1, numbers}));
  std::mt19937_64 random(35);
  std::vector<float> values(static_cast<size_t>(numbers));
  for (float& value : values) value = kind.make(random);
  const TensorView view = {DType::kFloat32, Shape({1, numbers}), values.data()};
  std::string text, copy;
  const double write = NanosEach(numbers, [&] {
    text.clear();
    AppendJsonTensor(view, 0, 0, false, &text);
  });
  const std::string body = absl::StrCat(R"({"instances":)", text, "}");
  bool right = true;
  const double read = NanosEach(numbers, [&] {
    const auto got = AskJson(*served, body);
    right = right && got->status.ok() &&
            std::memcmp(got->Input("x").data, values.data(), values.size() * sizeof(float)) == 0;
  });
  float sum = 0;
  const double usual = NanosEach(numbers, [&] {
    const char* at = text.c_str() + 2;
    for (int i = 0; i < numbers; ++i) {
      char* end = nullptr;
      sum += std::strtof(at, &end);
      at = end + 1;
    }
  });
  const double copied = NanosEach(numbers, [&] { copy.assign(body); });
  std::printf(
      "%-22s %6.1f ns read %6.1f ns written %6.1f ns strtof %6.2f ns copied  (%.1f bytes each)%s\n",
      kind.name, read, write, usual, copied, static_cast<double>(text.size()) / numbers,
      std::isnan(sum) ? " " : "");
  if (!right) std::fprintf(stderr, "%s: other values were read\n", kind.name);
  return right ? 0 : 1;
}

int Main(int numbers) {
  int wrong = 0;
  for (const Kind& kind :
       {Kind{"any of 0 to 1", AnyFloat}, Kind{"n / 255", Pixel}, Kind{"0 to 255", Whole}})
    wrong += Measure(kind, numbers);
  return wrong;
}

}  // namespace
}  // namespace floe::server

int main(int argc, char** argv) {
  const int numbers = argc > 1 ? std::atoi(argv[1]) : 224 * 224 * 3;
  if (numbers <= 0) {
    std::fprintf(stderr, "json_bench [NUMBERS]: NUMBERS is above 0\n");
    return 2;
  }
  return floe::server::Main(numbers);
}
