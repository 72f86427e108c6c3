#include "server/daemon/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

namespace floe::server {
namespace {

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& dest) override {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(msg.time);
    const auto since = msg.time.time_since_epoch();
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
    std::tm utc;
    gmtime_r(&seconds, &utc);
    char day[32], time[48];
    std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    std::snprintf(time, sizeof time, "%s.%03dZ", day, static_cast<int>(millis));
    const auto level = spdlog::level::to_string_view(msg.level);
    const std::string line = std::string("{\"time\":\"") + time + "\",\"level\":\"" +
                             std::string(level.data(), level.size()) + "\",\"message\":\"" +
                             JsonEscaped(std::string(msg.payload.data(), msg.payload.size())) +
                             "\"}\n";
    dest.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

std::string JsonEscaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out;
}

std::unique_ptr<spdlog::formatter> MakeJsonFormatter() { return std::make_unique<JsonFormatter>(); }

void InitLogging(const LogConfig& config) {
  auto logger =
      std::make_shared<spdlog::logger>("floed", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (config.format == LogFormat::kJson) {
    logger->set_formatter(MakeJsonFormatter());
  } else {
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  }
  logger->set_level(spdlog::level::from_str(config.level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace floe::server
