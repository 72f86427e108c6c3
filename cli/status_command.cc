// `floectl status`: health, models and live numbers, once or repeatedly.
#include <google/protobuf/util/json_util.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/rpc.h"
#include "cli/stats_report.h"
#include "cli/table.h"
#include "grpc/health/v1/health.pb.h"
#include "nlohmann/json.hpp"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;

struct StatusOptions {
  Target target;
  std::string model;
  bool json = false;
  double watch = 0;   // seconds between reports; 0: one report
  int64_t count = 0;  // of reports; 0: until it is interrupted
};

struct Report {
  std::string server_health;
  std::string model_health;
  tfs::GetModelStatusResponse model;
  absl::StatusOr<GetStatsResponse> stats = GetStatsResponse();
};

// "SERVING", "NOT_SERVING", ...; "UNKNOWN" from servers that do not know the service or the name.
absl::StatusOr<std::string> Health(const RpcClient& client, const std::string& service) {
  grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse response;
  request.set_service(service);
  const absl::Status status = client.Call("/grpc.health.v1.Health/Check", request, &response);
  if (absl::IsUnimplemented(status) || absl::IsNotFound(status)) return std::string("UNKNOWN");
  FLOE_RETURN_IF_ERROR(status);
  return grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status());
}

std::string StateName(const tfs::ModelVersionStatus& version) {
  const std::string name = tfs::ModelVersionStatus::State_Name(version.state());
  return name.empty() ? absl::StrCat("state ", static_cast<int>(version.state())) : name;
}

void PrintJson(const StatusOptions& options, const Report& report, std::ostream& out) {
  nlohmann::ordered_json json = {{"target", options.target.address},
                                 {"health", report.server_health}};
  if (!options.model.empty()) {
    json["model"] = options.model;
    json["model_health"] = report.model_health;
    json["versions"] = nlohmann::ordered_json::array();
    for (const auto& version : report.model.model_version_status()) {
      json["versions"].push_back({{"version", version.version()},
                                  {"state", StateName(version)},
                                  {"error_code", static_cast<int>(version.status().error_code())},
                                  {"error_message", version.status().error_message()}});
    }
  }
  std::string stats;
  google::protobuf::util::JsonPrintOptions print;
  print.always_print_primitive_fields = true;
  print.preserve_proto_field_names = true;
  if (report.stats.ok() && MessageToJsonString(*report.stats, &stats, print).ok())
    json["stats"] = nlohmann::ordered_json::parse(stats, nullptr, /*allow_exceptions=*/false);
  out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

void PrintText(const StatusOptions& options, const Report& report, const Report* before,
               std::ostream& out) {
  out << options.target.address << ": " << report.server_health << "\n";
  if (report.stats.ok()) {
    PrintServer(report.stats->server(), out);
    const bool rates = before != nullptr && before->stats.ok();
    PrintModels(*report.stats, rates ? &*before->stats : nullptr, options.watch, out);
    if (!options.model.empty()) PrintDetails(*report.stats, out);
    return;
  }
  if (options.model.empty()) {
    out << "(no live numbers: " << report.stats.status().message()
        << "; --model NAME shows the versions of a model)\n";
    return;
  }
  Table table({"MODEL", "VERSION", "STATE", "HEALTH", "ERROR"});
  for (const auto& version : report.model.model_version_status()) {
    table.Add({options.model, std::to_string(version.version()), StateName(version),
               report.model_health, version.status().error_message()});
  }
  table.Print(out);
}

// Whether what was asked about serves, as an exit code for scripts.
absl::Status Verdict(const StatusOptions& options, const Report& report) {
  if (report.server_health == "NOT_SERVING") {
    return absl::UnavailableError(
        absl::StrCat("the server at ", options.target.address, " is not serving"));
  }
  if (options.model.empty()) return absl::OkStatus();
  for (const auto& version : report.model.model_version_status()) {
    if (version.state() == tfs::ModelVersionStatus::AVAILABLE &&
        report.model_health != "NOT_SERVING") {
      return absl::OkStatus();
    }
  }
  return absl::UnavailableError(absl::StrCat("model '", options.model, "' is not serving"));
}

absl::StatusOr<Report> Ask(const StatusOptions& options, const RpcClient& client) {
  Report report;
  FLOE_ASSIGN_OR_RETURN(report.server_health, Health(client, ""));
  if (!options.model.empty()) {
    tfs::GetModelStatusRequest request;
    request.mutable_model_spec()->set_name(options.model);
    FLOE_RETURN_IF_ERROR(
        client.Call("/tensorflow.serving.ModelService/GetModelStatus", request, &report.model));
    FLOE_ASSIGN_OR_RETURN(report.model_health, Health(client, "model/" + options.model));
  }
  GetStatsRequest request;
  request.set_model(options.model);
  // Other servers do not know it, and this one may not offer it to everybody.
  if (const absl::Status status = client.Call("/floe.Admin/GetStats", request, &*report.stats);
      !status.ok())
    report.stats = status;
  return report;
}

absl::Status Run(const StatusOptions& options, Context& context) {
  const RpcClient client(options.target);
  std::optional<Report> before;
  for (int64_t n = 1;; ++n) {
    FLOE_ASSIGN_OR_RETURN(Report report, Ask(options, client));
    if (options.json) {
      PrintJson(options, report, context.out);
    } else {
      PrintText(options, report, before ? &*before : nullptr, context.out);
    }
    context.out.flush();
    if (options.watch <= 0 || n == options.count || !context.out) return Verdict(options, report);
    before = std::move(report);
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch));
    context.out << "\n";
  }
}

}  // namespace

void AddStatusCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* const command =
      app.add_subcommand("status", "Show a server's health, models and live numbers");
  AddTargetOptions(*command, options->target);
  command->add_option("-m,--model", options->model, "Show only this model, in detail")
      ->type_name("NAME");
  command->add_flag("--json", options->json, "Print JSON");
  command
      ->add_option("-w,--watch", options->watch,
                   "Repeat at this interval, with requests a second, until interrupted")
      ->type_name("SECONDS")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(0.01, 86400.0));
  command->add_option("--count", options->count, "With --watch: end after this many reports")
      ->type_name("N");
  command->footer(
      "Exits with 1 if the server, or the model, does not serve.\n"
      "Example:\n  floectl status --target 127.0.0.1:8500 --model mnist_beginner\n"
      "  floectl status --watch 2");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
