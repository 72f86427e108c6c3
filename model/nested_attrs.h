// The attributes of a node that another node stands for, under names PREFIX/X in that one's.
#pragma once

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/attrs.h"

namespace floe {

inline Attrs AttrsUnder(const Attrs& attrs, const std::string& prefix) {
  Attrs found;
  const std::string begin = prefix + "/";
  for (const auto& [name, value] : attrs.values()) {
    if (absl::StartsWith(name, begin)) found.Set(name.substr(begin.size()), value);
  }
  return found;
}

inline void SetAttrsUnder(const std::string& prefix, const Attrs& attrs, Attrs* to) {
  for (const auto& [name, value] : attrs.values()) to->Set(absl::StrCat(prefix, "/", name), value);
}

}  // namespace floe
