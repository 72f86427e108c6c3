// A table of methods that are written down as functions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/api/rpc.h"

namespace floe::server {

class TestMethods : public MethodTable {
 public:
  void AddUnary(const std::string& path, UnaryFunction function, int64_t max_bytes = 0,
                MethodRole role = MethodRole::kInference) {
    Add(path, UnaryMethod(role, std::move(function), max_bytes));
  }
  void AddStream(const std::string& path, OpenCall open) {
    Add(path, {{MethodKind::kStream, MethodRole::kInference}, std::move(open)});
  }
};

}  // namespace floe::server
