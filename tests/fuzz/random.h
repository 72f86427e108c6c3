// Random choices of the mutators: the same for the same seed, on every platform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace floe::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {  // Vigna's splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int Below(size_t n) { return static_cast<int>(Next() % n); }  // n > 0
  bool OneIn(size_t n) { return Below(n) == 0; }
  template <typename Container>
  const auto& Pick(const Container& from) {  // not empty
    return *std::next(std::begin(from), Below(std::size(from)));
  }

  // Numbers at the borders of types and of small shapes.
  int64_t Integer() {
    switch (Below(6)) {
      case 0:
        return Below(3) - 1;
      case 1:
        return Below(9) - 4;
      case 2:
        return (int64_t{1} << Below(63)) - OneIn(2);
      case 3:
        return -(int64_t{1} << Below(63));
      case 4:
        return OneIn(2) ? INT64_MAX - Below(2) : INT64_MIN + Below(2);
      default:
        return static_cast<int64_t>(Next() >> Below(64));
    }
  }
  double Real();

 private:
  uint64_t state_;
};

}  // namespace floe::fuzz
