// MonitoringConfig -> server.metrics_path.
#include "config/monitoring_config.h"

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "config/config.h"
#include "config/text_proto.h"
#include "tensorflow_serving/config/monitoring_config.pb.h"

namespace floe {

bool IsMetricsPath(const std::string& text) {
  constexpr char kOthers[] = "0123456789/_.-~";
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return text.empty() ||
         (text.size() > 1 && text[0] == '/' &&
          text.find_first_not_of(absl::StrCat(kLetters, kOthers)) == std::string::npos);
}

absl::StatusOr<std::string> ParseMonitoringConfig(const std::string& text,
                                                  const std::string& file) {
  tensorflow::serving::MonitoringConfig from;
  TextPlaces places;
  FLOE_RETURN_IF_ERROR(ParseTextProto(text, file, &from, &places));
  const tensorflow::serving::PrometheusConfig& prometheus = from.prometheus_config();
  if (!IsMetricsPath(prometheus.path()))
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(file, places, from, "prometheus_config"),
                                                   ": path is ", Quoted(prometheus.path()),
                                                   "; expected one such as \"/metrics\""));
  if (!prometheus.enable()) return "";
  return prometheus.path().empty() ? ListenConfig().metrics_path : prometheus.path();
}

}  // namespace floe
