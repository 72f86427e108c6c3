#include "config/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "config/model_changes_for_test.h"

namespace floe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "server.port" of every key whose value is not that of the default configuration.
std::vector<std::string> Changed(const ServerConfig& config) {
  std::vector<std::string> changed;
  for (const Key<ServerConfig>& key : ServerKeys())
    if (!key.same(config, {})) changed.push_back(key.path);
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
    {"backend", [](ServerConfig* c) { c->backend = Backend::kCuda; }},
    {"gpu_memory_limit",
     [](ServerConfig* c) {
       c->gpu_memory_limit = {0, 9};
     }},
    {"on_device_error", [](ServerConfig* c) { c->on_device_error = OnDeviceError::kCpu; }},
    {"gpu_libraries", [](ServerConfig* c) { c->gpu_libraries = "all"; }},
    FLOE_KEY(server, port, server.port, 1),
    FLOE_KEY(server, bind_address, server.bind_address, "x"),
    FLOE_KEY(server, grpc_socket_path, server.grpc_socket_path, "x"),
    FLOE_KEY(server, admin_socket_path, server.admin_socket_path, "x"),
    FLOE_KEY(server, enable_reflection, server.enable_reflection, true),
    FLOE_KEY(server, enable_signature_method_name_check, server.enable_signature_method_name_check,
             true),
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
    FLOE_KEY(server, http_port, server.http_port, 9),
    FLOE_KEY(server, http_max_body_bytes, server.http_max_body_bytes, 4096),
    FLOE_KEY(server, http_timeout_ms, server.http_timeout_ms, 9),
    {"server.cors_origins",
     [](ServerConfig* c) {
       c->server.cors_origins = {"http://a:80", "*"};
     }},
    {"server.metrics_names", [](ServerConfig* c) { c->server.metrics_names = {"triton"}; }},
    FLOE_KEY(server, metrics_path, server.metrics_path, "/x"),
    FLOE_KEY(server, tls.certificate, server.tls.certificate, "x"),
    FLOE_KEY(server, tls.key, server.tls.key, "x"),
    FLOE_KEY(server, tls.client_ca, server.tls.client_ca, "x"),
    FLOE_KEY(server, tls.client, server.tls.client, ClientCertificates::kOptional),
    FLOE_KEY(server, tls.min_version, server.tls.min_version, TlsVersion::k13),
    FLOE_KEY(server, tls.ssl_config_file, server.tls.ssl_config_file, "x"),
    FLOE_KEY(server, auth.tokens_file, server.auth.tokens_file, "x"),
    {"server.auth.principals",
     [](ServerConfig* c) {
       c->server.auth.principals = {{"", "", "7", Roles::All(), {"a*"}}};
     }},
    {"server.auth.anonymous", [](ServerConfig* c) { c->server.auth.anonymous.emplace(); }},
    FLOE_KEY(server, reply, reply, ReplyFormat::kContent),
    FLOE_KEY(log, level, log.level, "x"),
    FLOE_KEY(log, format, log.format, LogFormat::kJson),
    FLOE_KEY(log, slow_request_ms, log.slow_request_ms, 200),
    FLOE_KEY(log, access_path, log.access_path, "x"),
    FLOE_KEY(log, access_one_in, log.access_one_in, 9),
    FLOE_KEY(log, requests_directory, log.requests_directory, "x"),
    FLOE_KEY(log, requests_file_bytes, log.requests_file_bytes, 5000),
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
  for (const Key<ServerConfig>& key : ServerKeys())
    EXPECT_EQ(tried.count(key.path), 1u) << key.path << " is not among the cases";
}

template <typename S>
void ExpectTextsReadBack(const std::vector<Key<S>>& keys, const S& from) {
  for (const Key<S>& key : keys) {
    if (!key.parse || !key.is_set(from)) continue;
    S read;
    EXPECT_EQ(key.parse(key.text(from), &read), "") << key.path;
    EXPECT_TRUE(key.same(read, from)) << key.path << ": " << key.text(from);
  }
}

TEST(Keys, TextsReadBack) {
  ServerConfig server;
  for (const Case& c : kCases) c.change(&server);
  server.log.level = "warn";
  server.cpu.gemm = "native";
  server.server.max_message_bytes = 4096;
  ExpectTextsReadBack(ServerKeys(), server);
  for (const ModelChange& change : ModelChanges()) {
    ModelConfig model;
    change.make(model);
    ExpectTextsReadBack(ModelKeys(), model);
  }
}

TEST(Keys, TextsOutsideTheirFormAreMistakes) {
  ServerConfig out;
  EXPECT_EQ(ServerKey("server.port").parse("65536", &out),
            "expected a whole number from 0 to 65535, got '65536'");
  EXPECT_EQ(ServerKey("server.insecure_public").parse("1", &out),
            "expected true or false, got '1'");
  EXPECT_EQ(ServerKey("log.format").parse("xml", &out),
            "expected one of 'text', 'json', got 'xml'");
  ModelConfig model;
  EXPECT_EQ(ModelKey("completion_marker").parse("a/b", &model),
            "expected the name of a file, without directories, got 'a/b'");
  EXPECT_EQ(ServerKey("backend").parse("gpu", &out),
            "expected one of 'auto', 'cpu', 'cuda', got 'gpu'");
  for (const char* device :
       {"gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:1024", "cuda:99999999999", "CUDA", "cpu:0", ""})
    EXPECT_THAT(ModelKey("device").parse(device, &model),
                HasSubstr("expected auto, cpu, cuda or cuda:N"))
        << device;
  EXPECT_EQ(out.server, ListenConfig());
  EXPECT_EQ(model, ModelConfig());
}

TEST(Keys, TheirTablesInTheDocumentation) {
  std::ifstream file(FLOE_SOURCE_DIR "/docs/config.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string begin = "<!-- keys: the output of `floectl config keys` -->\n";
  const size_t from = text.find(begin) + begin.size(), to = text.find("<!-- end of keys -->");
  ASSERT_LT(from, to);
  EXPECT_EQ(text.substr(from, to - from), KeysMarkdown())
      << "HACKING.md says how docs/config.md is written from the table of keys";
}

// The mistake of a text; empty: there is none, and `*bytes` is what it says.
std::string BytesOf(const std::string& text, int64_t* bytes) {
  ServerConfig config;
  std::string mistake = ServerKey("server.max_call_bytes").parse(text, &config);
  *bytes = config.server.max_call_bytes;
  return mistake;
}

TEST(Bytes, Units) {
  const std::pair<const char*, int64_t> cases[] = {{"0", 0},
                                                   {"1048576", 1048576},
                                                   {"512MiB", int64_t{512} << 20},
                                                   {"3KiB", 3072},
                                                   {"2G", int64_t{2} << 30},
                                                   {"1024T", int64_t{1} << 50},
                                                   {"4GB", 4'000'000'000}};
  for (const auto& [text, expected] : cases) {
    int64_t bytes = -1;
    EXPECT_EQ(BytesOf(text, &bytes), "");
    EXPECT_EQ(bytes, expected) << text;
  }
  int64_t bytes = 0;
  for (const char* text : {"", "K", "-1", "1.5G", "2GX", "1025T", "99999999999999999999"})
    EXPECT_THAT(BytesOf(text, &bytes), HasSubstr("expected bytes")) << text;
}

std::string LimitOf(const std::string& text, MemoryLimit* limit) {
  ServerConfig config;
  std::string mistake = ServerKey("lifecycle.memory_limit").parse(text, &config);
  *limit = config.lifecycle.memory_limit;
  return mistake;
}

TEST(MemoryLimit, PercentOrBytes) {
  MemoryLimit limit;
  EXPECT_EQ(LimitOf("100%", &limit), "");
  EXPECT_EQ(limit.In(2000), 2000);
  EXPECT_EQ(LimitOf("2GiB", &limit), "");
  EXPECT_EQ(limit.In(2000), int64_t{2} << 30);
  EXPECT_EQ(LimitOf("0", &limit), "");
  EXPECT_EQ(limit.In(2000), 0);
  for (const char* text : {"%", "0%", "101%", "9.5%", "-1%"})
    EXPECT_THAT(LimitOf(text, &limit), HasSubstr("1% to 100%")) << text;
  EXPECT_THAT(LimitOf("much", &limit), HasSubstr("expected bytes"));
}

TEST(DeviceChoice, NamesADeviceOrAny) {
  using Kind = DeviceChoice::Kind;
  const std::tuple<const char*, Kind, int> cases[] = {{"auto", Kind::kAuto, -1},
                                                      {"cpu", Kind::kCpu, -1},
                                                      {"cuda", Kind::kCuda, -1},
                                                      {"cuda:0", Kind::kCuda, 0},
                                                      {"cuda:17", Kind::kCuda, 17}};
  for (const auto& [text, kind, index] : cases) {
    const auto choice = DeviceChoice::Parse(text);
    ASSERT_TRUE(choice.has_value()) << text;
    EXPECT_EQ(choice->kind, kind) << text;
    EXPECT_EQ(choice->index, index) << text;
  }
}

}  // namespace
}  // namespace floe
