#include "kernels/cpu/fingerprint.h"

#include <cstring>
#include <utility>

namespace floe::kernels {
namespace {

constexpr uint64_t kA = 0xc3a5c85c97cb3127, kB = 0xb492b66fbe98f273, kC = 0x9ae16a3b2f90404f;

uint64_t Read64(const char* at) {
  uint64_t x;
  std::memcpy(&x, at, sizeof x);
  return x;
}
uint64_t Read32(const char* at) {
  uint32_t x;
  std::memcpy(&x, at, sizeof x);
  return x;
}
uint64_t Turn(uint64_t x, int right) { return x >> right | x << (64 - right); }
uint64_t Fold(uint64_t x) { return x ^ x >> 47; }
uint64_t Mix(uint64_t u, uint64_t v, uint64_t factor) {
  const uint64_t a = Fold((u ^ v) * factor);
  return Fold((v ^ a) * factor) * factor;
}

uint64_t UpTo16(const char* s, size_t n) {
  const uint64_t factor = kC + 2 * n;
  if (n >= 8) {
    const uint64_t a = Read64(s) + kC, b = Read64(s + n - 8);
    return Mix(Turn(b, 37) * factor + a, (Turn(a, 25) + b) * factor, factor);
  }
  if (n >= 4) return Mix(n + (Read32(s) << 3), Read32(s + n - 4), factor);
  if (n == 0) return kC;
  const auto byte = [s](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(s[i])); };
  const uint32_t y = byte(0) + (byte(n / 2) << 8);
  const uint32_t z = static_cast<uint32_t>(n) + (byte(n - 1) << 2);
  return Fold(y * kC ^ z * kA) * kC;
}

uint64_t UpTo32(const char* s, size_t n) {
  const uint64_t factor = kC + 2 * n;
  const uint64_t a = Read64(s) * kB, b = Read64(s + 8), c = Read64(s + n - 8) * factor,
                 d = Read64(s + n - 16) * kC;
  return Mix(Turn(a + b, 43) + Turn(c, 30) + d, a + Turn(b + kC, 18) + c, factor);
}

uint64_t UpTo64(const char* s, size_t n) {
  const uint64_t factor = kC + 2 * n;
  const uint64_t a = Read64(s) * kC, b = Read64(s + 8), c = Read64(s + n - 8) * factor,
                 d = Read64(s + n - 16) * kC;
  const uint64_t y = Turn(a + b, 43) + Turn(c, 30) + d;
  const uint64_t z = Mix(y, a + Turn(b + kC, 18) + c, factor);
  const uint64_t e = Read64(s + 16) * factor, f = Read64(s + 24);
  const uint64_t g = (y + Read64(s + n - 32)) * factor, h = (z + Read64(s + n - 24)) * factor;
  return Mix(Turn(e + f, 43) + Turn(g, 30) + h, e + Turn(f + a, 18) + g, factor);
}

struct Pair {
  uint64_t first = 0, second = 0;
};

Pair Weak32(const char* s, uint64_t a, uint64_t b) {
  const uint64_t last = Read64(s + 24);
  a += Read64(s);
  b = Turn(b + a + last, 21);
  const uint64_t c = a;
  a += Read64(s + 8) + Read64(s + 16);
  return {a + last, b + Turn(a, 44) + c};
}

// Of long strings, 64 bytes at a time.
struct State {
  uint64_t x, y, z;
  Pair v, w;

  // The last round weighs some terms by 9.
  void Round(const char* s, uint64_t factor, uint64_t weight) {
    x = Turn(x + y + v.first + Read64(s + 8), 37) * factor;
    y = Turn(y + v.second + Read64(s + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + Read64(s + 40);
    z = Turn(z + w.first, 33) * factor;
    v = Weak32(s, v.second * factor, x + w.first);
    w = Weak32(s + 32, z + w.second, y + Read64(s + 16));
    std::swap(x, z);
  }
};

uint64_t Long(const char* s, size_t n) {
  constexpr uint64_t kSeed = 81;
  State state = {};
  state.y = kSeed * kB + 113;
  state.z = Fold(state.y * kC + 113) * kC;
  state.x = kSeed * kC + Read64(s);
  const size_t rest = (n - 1) % 64;  // the last round takes the last 64 bytes
  for (size_t at = 0; at < n - 1 - rest; at += 64) state.Round(s + at, kB, 1);
  const uint64_t factor = kB + ((state.z & 0xff) << 1);
  state.w.first += rest;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.Round(s + n - 64, factor, 9);
  return Mix(Mix(state.v.first, state.w.first, factor) + Fold(state.y) * kA + state.z,
             Mix(state.v.second, state.w.second, factor) + state.x, factor);
}

}  // namespace

uint64_t Fingerprint64(const std::string& text) {
  const size_t n = text.size();
  if (n <= 16) return UpTo16(text.data(), n);
  if (n <= 32) return UpTo32(text.data(), n);
  if (n <= 64) return UpTo64(text.data(), n);
  return Long(text.data(), n);
}

}  // namespace floe::kernels
