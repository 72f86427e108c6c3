#include "kernels/cpu/text/string_hash.h"

#include <farmhash.h>

#include <bit>
#include <cstring>
#include <string>

#include "base/quoted.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

constexpr uint64_t kMurmur = 0xc6a4a7935bd1e995;

// The next at most 8 bytes as a little-endian number.
uint64_t Word(std::string_view text) {
  uint64_t word = 0;
  std::memcpy(&word, text.data(), std::min<size_t>(text.size(), 8));
  return word;
}

struct SipState {
  uint64_t a, b, c, d;

  void Round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }
  void Take(uint64_t word) {
    d ^= word;
    Round();
    Round();
    a ^= word;
  }
};

template <class Hash>
std::unique_ptr<Kernel> Buckets(const Attrs& attrs, const Hash& hash) {
  const auto buckets = static_cast<uint64_t>(attrs.Int("num_buckets"));
  return FromFunction([buckets, hash](const KernelContext& ctx) {
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i)
      ctx.out(0).as<int64_t>()[i] =
          static_cast<int64_t>(hash(ctx.in(0).as<std::string>()[i]) % buckets);
    return absl::OkStatus();
  });
}
absl::StatusOr<std::unique_ptr<Kernel>> MakePlain(const KernelArgs& args) {
  return Buckets(args.node.attrs, [](const std::string& text) { return Hash64(text); });
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeStrong(const KernelArgs& args) {
  const std::vector<int64_t> key = args.node.attrs.Ints("key");
  const auto low = static_cast<uint64_t>(key[0]), high = static_cast<uint64_t>(key[1]);
  return Buckets(args.node.attrs,
                 [low, high](const std::string& text) { return SipHash(low, high, text); });
}
// A row's fingerprint is that of its bytes; where it has several strings, of theirs.
absl::Status Fingerprints(const KernelContext& ctx) {
  const TensorView& in = ctx.in(0);
  const std::string& method = *ctx.in(1).as<std::string>();
  if (method != "farmhash64")
    return absl::InvalidArgumentError("Unsupported method: " + Quoted(method));
  const int64_t rows = in.shape.dim(0), each = rows == 0 ? 0 : in.elements() / rows;
  std::vector<uint64_t> of_strings;
  for (int64_t r = 0; r < rows; ++r) {
    std::string_view bytes;
    if (in.dtype != DType::kString) {
      const size_t size = static_cast<size_t>(each) * DTypeSize(in.dtype);
      bytes = {in.as<char>() + static_cast<size_t>(r) * size, size};
    } else if (each == 1) {
      bytes = in.as<std::string>()[r];
    } else {
      of_strings.clear();
      for (int64_t i = 0; i < each; ++i)
        of_strings.push_back(Fingerprint64(in.as<std::string>()[r * each + i]));
      bytes = {reinterpret_cast<const char*>(of_strings.data()), of_strings.size() * 8};
    }
    const uint64_t value = Fingerprint64(bytes);
    std::memcpy(ctx.out(0).as<uint8_t>() + r * 8, &value, 8);
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(Fingerprint, kCpu, MakeFunction<&Fingerprints>);
FLOE_REGISTER_KERNEL(StringToHashBucket, kCpu, MakePlain, DType::kString);
FLOE_REGISTER_KERNEL(StringToHashBucketStrong, kCpu, MakeStrong, DType::kString);

}  // namespace

uint64_t Fingerprint64(std::string_view text) {
  return util::Fingerprint64(text.data(), text.size());
}

uint64_t Hash64(std::string_view text) {
  constexpr uint64_t kSeed = 0xDECAFCAFFE;
  uint64_t hash = kSeed ^ (text.size() * kMurmur);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t word = Word(text) * kMurmur;
    word = (word ^ (word >> 47)) * kMurmur;
    hash = (hash ^ word) * kMurmur;
  }
  if (!text.empty()) hash = (hash ^ Word(text)) * kMurmur;
  hash = (hash ^ (hash >> 47)) * kMurmur;
  return hash ^ (hash >> 47);
}

uint64_t SipHash(uint64_t key0, uint64_t key1, std::string_view text) {
  SipState s{key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261,
             key1 ^ 0x7465646279746573};
  const uint64_t size = text.size();
  for (; text.size() >= 8; text.remove_prefix(8)) s.Take(Word(text));
  s.Take((text.empty() ? 0 : Word(text)) | size << 56);
  s.c ^= 0xff;
  for (int i = 0; i < 4; ++i) s.Round();
  return s.a ^ s.b ^ s.c ^ s.d;
}

uint64_t FingerprintCat64(uint64_t first, uint64_t second) {
  const auto mix = [](uint64_t value) { return value ^ (value >> 47); };
  uint64_t result = first ^ kMurmur;
  result ^= mix(second * kMurmur) * kMurmur;
  result *= kMurmur;
  result = mix(result) * kMurmur;
  return mix(result);
}

}  // namespace floe::kernels
