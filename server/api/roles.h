// What methods are for, and to whom a listener offers them.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace floe::server {

// What a method is for. kOpen: for callers to say who they are, so that nobody is asked for a role.
enum class MethodRole : uint8_t { kInference, kModels, kOperators, kHealth, kReflection, kOpen };

// kLocal: processes of this machine.
enum class OfferedTo : uint8_t { kNobody, kLocal, kAll };

// To whom a listener offers which methods.
struct ListenerRoles {
  OfferedTo infer = OfferedTo::kAll;    // kInference
  OfferedTo read = OfferedTo::kAll;     // kModels, kHealth, kReflection and kOpen
  OfferedTo admin = OfferedTo::kLocal;  // kOperators
  friend bool operator==(const ListenerRoles&, const ListenerRoles&) = default;
};

// PERMISSION_DENIED, with the way out, unless a listener of these roles offers such a method to the
// caller. `local`: that is a process of this machine.
absl::Status CheckRole(const ListenerRoles& roles, MethodRole method, bool local);

}  // namespace floe::server
