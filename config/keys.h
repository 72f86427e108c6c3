// The sections of floe.yaml whose keys hold plain values, key by key.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "config/config.h"

namespace floe {

struct KeyValue {
  const char* key;
  std::variant<bool, int64_t, std::string> value;
};

struct KeySection {
  const char* name;  // "server"
  std::vector<KeyValue> keys;
};

// server, log and cpu, in the order of floe.yaml.
std::vector<KeySection> StartSections(const ServerConfig& config);

KeySection LifecycleSection(const LifecycleConfig& lifecycle);

}  // namespace floe
