// The RPCs floe answers, wired to a registry and a health state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_budget.h"
#include "config/config.h"
#include "server/api/access_log.h"
#include "server/api/request_log.h"
#include "server/api/rpc.h"
#include "server/health/health.h"
#include "server/registry/registry.h"

namespace floe::server {

// Since the start; causes are words for labels of metrics.
using CountsByCause = std::vector<std::pair<const char*, int64_t>>;

struct ConnectionCounts {
  int64_t open = 0;
  int64_t limit = 0;
  int64_t refused = 0;  // since the start, as accepted
  int64_t accepted = 0;
  CountsByCause refused_by = {}, ended_by = {};
};

struct CallCounts {
  int64_t calls = 0, bytes = 0;  // in progress
  CountsByCause refused_by = {};
};

struct TlsInfo {
  std::string subject;    // of the certificate in use
  int64_t not_after = 0;  // it expires so many seconds after 1970
  std::string error;      // newer files that are not used, or its expiry; "": none
};

struct AuthInfo {
  int64_t tokens = 0;  // that have not expired
  std::string error;   // why the file's newer content is not used; "": nothing
  CountsByCause refused_by = {};
};

// What the daemon knows of the server beside its models. Functions may be empty.
struct ServerInfo {
  std::string version;
  std::string instructions;  // that kernels are computed with: "avx512"
  TimePoint started = TimePoint::min();
  std::function<ConnectionCounts()> connections;
  std::function<CallCounts()> calls;
  std::function<TlsInfo()> tls;
  std::function<AuthInfo()> auth;
  std::function<CountsByCause()> dropped_log_lines;  // by log
  // Reads the configuration's files again; `done` comes once, on any thread.
  std::function<void(ReloadDone done)> reload;
  std::function<std::string()> log_level;
  std::function<absl::Status(const std::string& level, const std::string& who)> set_log_level;
};

class RefusalLog;
class CallWatch;

// Registry and health outlive every table they are registered in and every call made through it.
struct ApiContext {
  ModelRegistry& registry;
  HealthState& health;
  // As read at the start: what GetConfig shows besides models. Null: the defaults. Lives as long.
  const ServerConfig* config = nullptr;
  bool content_replies =
      false;  // tensor_content in every reply (--enable_serialization_as_tensor_content)
  // Classify and Regress take signatures of their own method only
  // (--enable_signature_method_name_check).
  bool check_method_names = false;
  bool enable_reflection = false;
  bool enable_health_watch = true;
  int64_t max_input_bytes = int64_t{256} << 20;  // of one request's decoded inputs
  const MemoryBudget* memory = nullptr;          // pays for them; null: nobody. Lives as long
  Duration slow_request =
      Duration::max();  // one that takes as long is logged (log.slow_request_ms)
  const RequestLog* request_log = nullptr;  // null: none. Lives as long
  AccessLog* access_log = nullptr;          // of inferences; null: none. Lives as long
  CallWatch* watch = nullptr;               // of other calls; null: none. Lives as long
  ServerInfo server;
  // What was refused by any door; null: each keeps its own. Lives as long.
  RefusalLog* refusals = nullptr;
};

// PredictionService, ModelService, GRPCInferenceService, floe.Admin, Health and, when enabled,
// ServerReflection (v1alpha and v1). Methods that are known but not offered answer UNIMPLEMENTED
// with the reason.
void RegisterApi(const ApiContext& context, MethodTable* table);

}  // namespace floe::server
