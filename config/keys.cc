#include "config/keys.h"

#include "config/limits.h"

namespace floe {

std::vector<KeySection> StartSections(const ServerConfig& config) {
  const ListenConfig& s = config.server;
  return {{"server",
           {{"port", s.port},
            {"bind_address", s.bind_address},
            {"grpc_socket_path", s.grpc_socket_path},
            {"enable_reflection", s.enable_reflection},
            {"max_message_bytes", s.max_message_bytes},
            {"drain_timeout_seconds", s.drain_timeout_seconds},
            {"drain_lame_duck_seconds", s.drain_lame_duck_seconds},
            {"grpc_channel_arguments", s.grpc_channel_arguments},
            {"insecure_public", s.insecure_public},
            {"max_connections", s.max_connections},
            {"max_connections_per_address", s.max_connections_per_address},
            {"enable_config_rpcs", ConfigRpcsNames()[static_cast<size_t>(s.enable_config_rpcs)]},
            {"enable_health_watch", s.enable_health_watch},
            {"enable_compression", s.enable_compression},
            {"max_calls", s.max_calls},
            {"max_calls_per_address", s.max_calls_per_address},
            {"max_calls_per_connection", s.max_calls_per_connection},
            {"max_call_bytes", s.max_call_bytes},
            {"max_call_bytes_per_address", s.max_call_bytes_per_address},
            {"max_call_bytes_per_connection", s.max_call_bytes_per_connection},
            {"connection_idle_seconds", s.connection_idle_seconds},
            {"connection_age_seconds", s.connection_age_seconds},
            {"keepalive_seconds", s.keepalive_seconds},
            {"send_timeout_seconds", s.send_timeout_seconds},
            {"reply", ReplyFormatNames()[static_cast<size_t>(config.reply)]}}},
          {"log",
           {{"level", config.log.level},
            {"format", LogFormatNames()[static_cast<size_t>(config.log.format)]}}},
          {"cpu", {{"gemm", config.cpu.gemm}, {"blas_library", config.cpu.blas_library}}}};
}

KeySection LifecycleSection(const LifecycleConfig& l) {
  return {"lifecycle",
          {{"file_system_poll_wait_seconds", l.file_system_poll_wait_seconds},
           {"model_config_file_poll_wait_seconds", l.model_config_file_poll_wait_seconds},
           {"max_num_load_retries", l.max_num_load_retries},
           {"load_retry_interval_micros", l.load_retry_interval_micros},
           {"num_load_threads", l.num_load_threads},
           {"trial_load", TrialLoadNames()[static_cast<size_t>(l.trial_load)]},
           {"max_load_seconds", l.max_load_seconds},
           {"allow_version_labels_for_unavailable_models",
            l.allow_version_labels_for_unavailable_models},
           {"enable_model_warmup", l.enable_model_warmup},
           {"num_request_iterations_for_warmup", l.num_request_iterations_for_warmup},
           {"enable_per_model_batching_parameters", l.enable_per_model_batching_parameters},
           {"warmup_optional", l.warmup_optional},
           {"strict_readiness", l.strict_readiness},
           {"exit_on_error", l.exit_on_error},
           {"memory_limit", MemoryLimitText(l.memory_limit)}}};
}

}  // namespace floe
