#include "config/role.h"

#include <iterator>

namespace floe {

bool Roles::AddNamed(const std::string& name) {
  for (size_t i = 0; i < std::size(kRoleNames); ++i) {
    if (name != kRoleNames[i]) continue;
    Add(static_cast<Role>(i));
    return true;
  }
  return false;
}

std::vector<std::string> Roles::Names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(kRoleNames); ++i)
    if (Has(static_cast<Role>(i))) names.emplace_back(kRoleNames[i]);
  return names;
}

}  // namespace floe
