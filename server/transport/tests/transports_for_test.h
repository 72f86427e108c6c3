// The transports that the same tests run over.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/net/net_transport.h"
#include "server/transport/grpcpp/grpcpp_transport.h"

namespace floe::server {

enum class TestedTransport : uint8_t { kGrpcpp, kNet };

inline std::unique_ptr<Transport> MakeTransport(
    TestedTransport which, const MethodTable& methods, const TransportOptions& options,
    const std::vector<std::pair<std::string, std::string>>& arguments = {}) {
  if (which == TestedTransport::kNet) return MakeNetTransport(methods, options, arguments);
  return MakeGrpcppTransport(methods, options, arguments);
}

// The tests of a suite, once for each transport.
#define FLOE_FOR_EACH_TRANSPORT(suite)                                                \
  INSTANTIATE_TEST_SUITE_P(                                                           \
      All, suite, testing::Values(TestedTransport::kGrpcpp, TestedTransport::kNet),   \
      [](const auto& tested) {                                                        \
        return std::string(tested.param == TestedTransport::kNet ? "Net" : "Grpcpp"); \
      })

}  // namespace floe::server
