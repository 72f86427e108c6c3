// What callers may do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace floe {

// To run models; to read which models there are, their states and metrics; to change the server and
// read its live numbers; to ask for health.
enum class Role : uint8_t { kInfer, kRead, kAdmin, kHealth };
inline constexpr const char* kRoleNames[] = {"infer", "read", "admin", "health"};  // by Role

class Roles {
 public:
  constexpr Roles() = default;
  static constexpr Roles All() {
    Roles roles;
    roles.bits_ = 15;
    return roles;
  }
  constexpr bool Has(Role role) const { return (bits_ >> static_cast<int>(role) & 1) != 0; }
  constexpr void Add(Role role) { bits_ |= static_cast<uint8_t>(1 << static_cast<int>(role)); }
  constexpr void Add(Roles others) { bits_ |= others.bits_; }
  bool is_empty() const { return bits_ == 0; }
  // Adds the role of this name. False: there is none.
  bool AddNamed(const std::string& name);
  std::vector<std::string> Names() const;
  friend bool operator==(const Roles&, const Roles&) = default;

 private:
  uint8_t bits_ = 0;
};

}  // namespace floe
