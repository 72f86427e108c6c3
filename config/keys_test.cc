#include "config/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

using ::testing::ElementsAre;

std::vector<KeySection> AllSections(const ServerConfig& config) {
  std::vector<KeySection> sections = StartSections(config);
  sections.push_back(LifecycleSection(config.lifecycle));
  return sections;
}

// "server.port" of every key whose value is not that of the default configuration.
std::vector<std::string> Changed(const ServerConfig& config) {
  const std::vector<KeySection> usual = AllSections({}), now = AllSections(config);
  std::vector<std::string> changed;
  for (size_t i = 0; i < now.size(); ++i)
    for (size_t k = 0; k < now[i].keys.size(); ++k)
      if (now[i].keys[k].value != usual[i].keys[k].value)
        changed.push_back(absl::StrCat(now[i].name, ".", now[i].keys[k].key));
  return changed;
}

struct Case {
  const char* key;
  void (*change)(ServerConfig*);
};

#define FLOE_KEY(section, field, member, other)                      \
  {                                                                  \
#section "." #field, [](ServerConfig * c) { c->member = other; } \
  }
const Case kCases[] = {
    FLOE_KEY(server, port, server.port, 1),
    FLOE_KEY(server, bind_address, server.bind_address, "x"),
    FLOE_KEY(server, grpc_socket_path, server.grpc_socket_path, "x"),
    FLOE_KEY(server, enable_reflection, server.enable_reflection, true),
    FLOE_KEY(server, max_message_bytes, server.max_message_bytes, 1),
    FLOE_KEY(server, drain_timeout_seconds, server.drain_timeout_seconds, 9),
    FLOE_KEY(server, drain_lame_duck_seconds, server.drain_lame_duck_seconds, 9),
    FLOE_KEY(server, grpc_channel_arguments, server.grpc_channel_arguments, "x"),
    FLOE_KEY(server, insecure_public, server.insecure_public, true),
    FLOE_KEY(server, max_connections, server.max_connections, 9),
    FLOE_KEY(server, max_connections_per_address, server.max_connections_per_address, 9),
    FLOE_KEY(server, enable_config_rpcs, server.enable_config_rpcs, ConfigRpcs::kNobody),
    FLOE_KEY(server, enable_health_watch, server.enable_health_watch, false),
    FLOE_KEY(server, enable_compression, server.enable_compression, true),
    FLOE_KEY(server, max_calls, server.max_calls, 9),
    FLOE_KEY(server, max_calls_per_address, server.max_calls_per_address, 9),
    FLOE_KEY(server, max_calls_per_connection, server.max_calls_per_connection, 9),
    FLOE_KEY(server, max_call_bytes, server.max_call_bytes, 9),
    FLOE_KEY(server, max_call_bytes_per_address, server.max_call_bytes_per_address, 9),
    FLOE_KEY(server, max_call_bytes_per_connection, server.max_call_bytes_per_connection, 9),
    FLOE_KEY(server, connection_idle_seconds, server.connection_idle_seconds, 9),
    FLOE_KEY(server, connection_age_seconds, server.connection_age_seconds, 9),
    FLOE_KEY(server, keepalive_seconds, server.keepalive_seconds, 9),
    FLOE_KEY(server, send_timeout_seconds, server.send_timeout_seconds, 9),
    FLOE_KEY(server, reply, reply, ReplyFormat::kContent),
    FLOE_KEY(log, level, log.level, "x"),
    FLOE_KEY(log, format, log.format, LogFormat::kJson),
    FLOE_KEY(cpu, gemm, cpu.gemm, "x"),
    FLOE_KEY(cpu, blas_library, cpu.blas_library, "x"),
    FLOE_KEY(lifecycle, file_system_poll_wait_seconds, lifecycle.file_system_poll_wait_seconds, 9),
    FLOE_KEY(lifecycle, model_config_file_poll_wait_seconds,
             lifecycle.model_config_file_poll_wait_seconds, 9),
    FLOE_KEY(lifecycle, max_num_load_retries, lifecycle.max_num_load_retries, 9),
    FLOE_KEY(lifecycle, load_retry_interval_micros, lifecycle.load_retry_interval_micros, 9),
    FLOE_KEY(lifecycle, num_load_threads, lifecycle.num_load_threads, 9),
    FLOE_KEY(lifecycle, trial_load, lifecycle.trial_load, TrialLoad::kNever),
    FLOE_KEY(lifecycle, max_load_seconds, lifecycle.max_load_seconds, 9),
    FLOE_KEY(lifecycle, allow_version_labels_for_unavailable_models,
             lifecycle.allow_version_labels_for_unavailable_models, true),
    FLOE_KEY(lifecycle, enable_model_warmup, lifecycle.enable_model_warmup, false),
    FLOE_KEY(lifecycle, num_request_iterations_for_warmup,
             lifecycle.num_request_iterations_for_warmup, 9),
    FLOE_KEY(lifecycle, enable_per_model_batching_parameters,
             lifecycle.enable_per_model_batching_parameters, true),
    FLOE_KEY(lifecycle, warmup_optional, lifecycle.warmup_optional, true),
    FLOE_KEY(lifecycle, strict_readiness, lifecycle.strict_readiness, false),
    FLOE_KEY(lifecycle, exit_on_error, lifecycle.exit_on_error, true),
    FLOE_KEY(lifecycle, memory_limit, lifecycle.memory_limit.percent, 9),
};
#undef FLOE_KEY

TEST(Keys, EachIsItsOwnField) {
  std::set<std::string> tried;
  for (const Case& c : kCases) {
    ServerConfig config;
    c.change(&config);
    EXPECT_THAT(Changed(config), ElementsAre(c.key));
    tried.insert(c.key);
  }
  for (const KeySection& section : AllSections({}))
    for (const KeyValue& entry : section.keys)
      EXPECT_EQ(tried.count(absl::StrCat(section.name, ".", entry.key)), 1u)
          << section.name << "." << entry.key << " is not among the cases";
}

}  // namespace
}  // namespace floe
