// Names, labels and numbers as the two formats want them.
#include "server/metrics/exposition.h"

#include <charconv>
#include <cmath>

namespace floe::server {
namespace {

constexpr std::string_view kTypeNames[] = {"counter", "gauge", "histogram"};
constexpr std::string_view kTotal = "_total";

// The shortest decimal that reads back as the same number.
void AppendNumber(double value, std::string* text) {
  if (std::isnan(value)) {
    text->append("NaN");
  } else if (std::isinf(value)) {
    text->append(value > 0 ? "+Inf" : "-Inf");
  } else {
    // 0.0001 rather than 1e-04, as others write bounds.
    const double size = std::abs(value);
    const bool plain = size == 0 || (size >= 1e-6 && size < 1e15);
    char digits[40];
    const auto end =
        std::to_chars(digits, digits + sizeof(digits), value,
                      plain ? std::chars_format::fixed : std::chars_format::scientific);
    text->append(digits, end.ptr);
  }
}

void AppendNumber(uint64_t value, std::string* text) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  text->append(digits, end.ptr);
}

void AppendEscaped(std::string_view value, bool quotes, std::string* text) {
  for (const char c : value) {
    if (c == '\n') {
      text->append("\\n");
    } else {
      if (c == '\\' || (quotes && c == '"')) text->push_back('\\');
      text->push_back(c);
    }
  }
}

}  // namespace

MetricFormat MetricFormatOf(std::string_view accept) {
  return accept.find("application/openmetrics-text") != std::string_view::npos
             ? MetricFormat::kOpenMetrics
             : MetricFormat::kPrometheus;
}

std::string_view ContentTypeOf(MetricFormat format) {
  return format == MetricFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

void Exposition::Family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  type_ = type;
  help_ = help;
  has_head_ = false;
}

void Exposition::Head() {
  if (std::exchange(has_head_, true)) return;
  std::string_view family = name_, type = kTypeNames[static_cast<size_t>(type_)];
  if (format_ == MetricFormat::kOpenMetrics && type_ == MetricType::kCounter) {
    // The family of a counter is named without what its samples end with.
    if (family.ends_with(kTotal))
      family.remove_suffix(kTotal.size());
    else
      type = "unknown";
  }
  text_.append("# HELP ").append(family).append(" ");
  AppendEscaped(help_, /*quotes=*/format_ == MetricFormat::kOpenMetrics, &text_);
  text_.append("\n# TYPE ").append(family).append(" ").append(type).append("\n");
}

void Exposition::SetLabels(const MetricLabels& labels) {
  labels_.clear();
  for (const auto& [key, value] : labels) {
    if (!labels_.empty()) labels_.push_back(',');
    labels_.append(key).append("=\"");
    AppendEscaped(value, /*quotes=*/true, &labels_);
    labels_.push_back('"');
  }
}

void Exposition::Line(std::string_view suffix, std::string_view bound) {
  text_.append(name_).append(suffix);
  if (!labels_.empty() || !bound.empty()) {
    text_.append("{").append(labels_);
    if (!bound.empty()) text_.append(labels_.empty() ? "" : ",").append("le=\"").append(bound);
    text_.append(bound.empty() ? "}" : "\"}");
  }
  text_.push_back(' ');
}

void Exposition::Sample(const MetricLabels& labels, double value) {
  Head();
  SetLabels(labels);
  Line("", "");
  AppendNumber(value, &text_);
  text_.push_back('\n');
}

void Exposition::Sample(const MetricLabels& labels, uint64_t value) {
  Head();
  SetLabels(labels);
  Line("", "");
  AppendNumber(value, &text_);
  text_.push_back('\n');
}

void Exposition::Sample(const MetricLabels& labels, const Histogram& histogram) {
  Head();
  SetLabels(labels);
  uint64_t below = 0;
  std::string bound;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    below += histogram.counts()[i];
    bound = "+Inf";
    if (i < histogram.bounds().size()) {
      bound.clear();
      AppendNumber(histogram.bounds()[i], &bound);
      // OpenMetrics writes bounds as floating-point numbers.
      if (format_ == MetricFormat::kOpenMetrics && bound.find_first_of(".e") == std::string::npos)
        bound.append(".0");
    }
    Line("_bucket", bound);
    AppendNumber(below, &text_);
    text_.push_back('\n');
  }
  Line("_sum", "");
  AppendNumber(histogram.sum(), &text_);
  text_.push_back('\n');
  Line("_count", "");
  AppendNumber(below, &text_);
  text_.push_back('\n');
}

std::string Exposition::Finish() && {
  if (format_ == MetricFormat::kOpenMetrics) text_.append("# EOF\n");
  return std::move(text_);
}

}  // namespace floe::server
