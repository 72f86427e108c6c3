// A table of names.
#include "server/net/channel_arguments.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "absl/strings/numbers.h"

namespace floe::server {
namespace {

// gRPC's way to say "never".
constexpr int64_t kNever = std::numeric_limits<int32_t>::max();

Duration MillisOf(int64_t value) { return std::chrono::milliseconds(value); }
Duration MillisOrNever(int64_t value) {
  return value >= kNever ? Duration::zero() : MillisOf(value);
}

struct ArgumentRule {
  const char* name;
  std::function<void(int64_t value, NetLimits* limits)> set;
};

const std::vector<ArgumentRule>& ArgumentRules() {
  static const auto* const rules = new std::vector<ArgumentRule>{
      {"grpc.max_concurrent_streams",
       [](int64_t v, NetLimits* l) { l->max_streams = static_cast<uint32_t>(v); }},
      {"grpc.max_connection_idle_ms",
       [](int64_t v, NetLimits* l) { l->times.idle = MillisOrNever(v); }},
      {"grpc.max_connection_age_ms",
       [](int64_t v, NetLimits* l) { l->times.age = MillisOrNever(v); }},
      {"grpc.max_connection_age_grace_ms",
       [](int64_t v, NetLimits* l) { l->times.grace = MillisOf(v); }},
      {"grpc.server_handshake_timeout_ms",
       [](int64_t v, NetLimits* l) { l->times.handshake = MillisOf(v); }},
      {"grpc.keepalive_time_ms",
       [](int64_t v, NetLimits* l) { l->times.keepalive = MillisOrNever(v); }},
      {"grpc.keepalive_timeout_ms",
       [](int64_t v, NetLimits* l) { l->keepalive_timeout = MillisOf(v); }},
      {"grpc.keepalive_permit_without_calls",
       [](int64_t v, NetLimits* l) { l->pings_without_calls = v != 0; }},
      {"grpc.http2.min_ping_interval_without_data_ms",
       [](int64_t v, NetLimits* l) { l->min_ping_interval = MillisOf(v); }},
      {"grpc.http2.max_ping_strikes",
       [](int64_t v, NetLimits* l) { l->max_ping_strikes = static_cast<int>(v); }},
      {"grpc.max_metadata_size",
       [](int64_t v, NetLimits* l) { l->max_metadata_bytes = std::min<int64_t>(v, 64 << 10); }},
      {"grpc.http2.max_frame_size",
       [](int64_t v, NetLimits* l) {
         l->max_frame_bytes = static_cast<uint32_t>(std::clamp<int64_t>(v, 16384, 16777215));
       }},
      {"grpc.max_receive_message_length",
       [](int64_t v, NetLimits* l) { l->max_message_bytes = std::min(l->max_message_bytes, v); }},
  };
  return *rules;
}

}  // namespace

std::vector<std::string> ApplyChannelArguments(
    const std::vector<std::pair<std::string, std::string>>& arguments, NetLimits* limits) {
  std::vector<std::string> without;
  for (const auto& [name, text] : arguments) {
    const auto& rules = ArgumentRules();
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&name = name](const auto& one) { return one.name == name; });
    int64_t value = 0;
    if (rule == rules.end() || !absl::SimpleAtoi(text, &value) || value < 0 || value > kNever)
      without.push_back(name);
    else
      rule->set(value, limits);
  }
  return without;
}

}  // namespace floe::server
