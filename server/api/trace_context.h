// W3C Trace Context: the header `traceparent`, by which a request is followed through several
// servers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace floe::server {

struct TraceContext {
  std::string trace_id;  // 32 hexadecimal digits, of the whole trace
  bool sampled = false;  // whether the caller records it
};

// Nothing for what is no valid traceparent, which counts as none sent.
std::optional<TraceContext> ParseTraceparent(std::string_view header);

// 16 random hexadecimal digits: what this server does in a trace. Threading: any thread.
std::string NewSpanId();

std::string Traceparent(const TraceContext& context, std::string_view span_id);

}  // namespace floe::server
