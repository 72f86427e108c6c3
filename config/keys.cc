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
            {"enable_config_rpcs", s.enable_config_rpcs},
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
