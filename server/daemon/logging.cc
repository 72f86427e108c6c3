// The formats of the log, and the sink that escapes lines and puts them into the LogBuffer.
#include "server/daemon/logging.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/quoted.h"
#include "base/status.h"
#include "config/key_table.h"
#include "server/daemon/log_buffer.h"

namespace floe::server {
namespace {

// The text of a line, as the inside of a JSON string.
class EscapedText : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& msg, const std::tm&,
              spdlog::memory_buf_t& dest) override {
    const std::string text = JsonEscaped(std::string(msg.payload.data(), msg.payload.size()));
    dest.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedText>();
  }
};

// Never freed, because other threads may log while the process ends.
LogBuffer* buffer = nullptr;

class BufferSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit BufferSink(LogFormat format) : format_(format) {}

 private:
  void sink_it_(const spdlog::details::log_msg& msg) override {
    std::string text = Printable({msg.payload.data(), msg.payload.size()}, kMostLineBytes);
    // A message cannot begin a line of its own.
    if (format_ == LogFormat::kText) text = absl::StrReplaceAll(text, {{"\n", "\n    "}});
    spdlog::details::log_msg shown = msg;
    shown.payload = text;
    spdlog::memory_buf_t line;
    formatter_->format(shown, line);
    buffer->Add(std::string(line.data(), line.size()));
  }
  void flush_() override {}

  const LogFormat format_;
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

std::unique_ptr<spdlog::formatter> MakeJsonFormatter() {
  auto json = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  json->add_flag<EscapedText>('*').set_pattern(
      R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":"%*"})");
  return json;
}

absl::Status InitLogging(const LogConfig& config) {
  auto* const made = new LogBuffer(STDERR_FILENO);
  FLOE_RETURN_IF_ERROR(made->Start());
  buffer = made;
  auto logger =
      std::make_shared<spdlog::logger>("floed", std::make_shared<BufferSink>(config.format));
  if (config.format == LogFormat::kJson) {
    logger->set_formatter(MakeJsonFormatter());
  } else {
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  }
  logger->set_level(spdlog::level::from_str(config.level));
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

absl::Status SetLogLevel(const std::string& level) {
  ServerConfig read;
  const std::string mistake = ServerKey("log.level").parse(level, &read);
  if (!mistake.empty()) return absl::InvalidArgumentError(absl::StrCat("log level: ", mistake));
  spdlog::set_level(spdlog::level::from_str(read.log.level));
  return absl::OkStatus();
}

std::string LogLevel() {
  const auto name = spdlog::level::to_string_view(spdlog::get_level());
  const std::string text(name.data(), name.size());
  return text == "warning" ? "warn" : text;
}

void FlushLog(TimePoint until) {
  if (buffer != nullptr) buffer->Flush(until);
}

}  // namespace floe::server
