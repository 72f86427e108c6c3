// Reads numbers and strings out of a section, never past its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace floe::form {

// The first failure sticks: everything read after it is zero or empty, so that callers need to look
// only where they would loop or allocate. Threading: one thread.
class Cursor {
 public:
  explicit Cursor(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  bool AtEnd() const { return at_ == bytes_.size(); }

  void Fail(const std::string& why) {
    if (ok()) status_ = absl::InvalidArgumentError(why);
  }
  // Puts a place in front of the failure's message.
  void Locate(const std::string& where) {
    status_ = absl::Status(status_.code(), where + ": " + std::string(status_.message()));
  }

  uint32_t U32() { return Number<uint32_t>(); }
  uint64_t U64() { return Number<uint64_t>(); }
  int64_t I64() { return Number<int64_t>(); }
  float F32() { return Number<float>(); }

  // A u32 below 2^31.
  int Index() {
    const uint32_t value = U32();
    if (value <= INT32_MAX) return static_cast<int>(value);
    Fail(absl::StrCat("the number ", value, " is too large"));
    return 0;
  }

  std::string String() {
    const uint32_t size = U32();
#ifndef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
    if (!Has(size, 1)) return "";
#endif
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return text;
  }

  // A u32 that counts items of at least `bytes_each`; 0 when so many cannot follow.
  size_t Count(size_t bytes_each) {
    const uint32_t count = U32();
    return Has(count, bytes_each) ? count : 0;
  }

  // Fails unless `count` items of at least `bytes_each` can follow.
  bool Has(uint64_t count, size_t bytes_each) {
    if (ok() && count > (bytes_.size() - at_) / bytes_each) Fail("it is cut off");
    return ok();
  }

 private:
  template <typename T>
  T Number() {
    T value{};
    if (!Has(1, sizeof value)) return value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  absl::Span<const uint8_t> bytes_;
  size_t at_ = 0;
  absl::Status status_;
};

}  // namespace floe::form
