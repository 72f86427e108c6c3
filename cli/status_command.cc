// `floectl status`: health, models and live numbers, once or repeatedly.
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/quoted.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/rpc.h"
#include "cli/served_signatures.h"
#include "cli/signature_report.h"
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
  bool json = false, no_fail = false;
  double watch = 0;   // seconds between reports; 0: one report
  int64_t count = 0;  // of reports; 0: until it is interrupted
};

struct Report {
  std::string server_health;
  std::string model_health;
  tfs::GetModelStatusResponse model;
  absl::StatusOr<GetStatsResponse> stats = GetStatsResponse();
  absl::StatusOr<ServedSignatures> signatures = ServedSignatures();  // of the model
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

// A version that is being tried again is LOADING.
bool HasFailed(tfs::ModelVersionStatus::State state, const tfs::StatusProto& error) {
  return state == tfs::ModelVersionStatus::END && error.error_code() != 0;
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
                                  {"state", StateName(version.state(), /*failed=*/false)},
                                  {"error_code", static_cast<int>(version.status().error_code())},
                                  {"error_message", version.status().error_message()}});
    }
    json["signatures"] = nlohmann::ordered_json::array();
    if (report.signatures.ok())
      for (const SignatureDef& def : report.signatures->signatures)
        json["signatures"].push_back(SignatureJson(def));
  }
  std::string stats;
  google::protobuf::util::JsonPrintOptions print;
  print.always_print_primitive_fields = true;
  print.preserve_proto_field_names = true;
  if (report.stats.ok() && MessageToJsonString(*report.stats, &stats, print).ok())
    json["stats"] = nlohmann::ordered_json::parse(stats, nullptr, /*allow_exceptions=*/false);
  out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

// What callers of the model need to know, and why its newest version is not there.
void PrintModel(const StatusOptions& options, const Report& report, std::ostream& out) {
  if (const auto& versions = report.model.model_version_status();
      !versions.empty() && HasFailed(versions[0].state(), versions[0].status()))
    out << "version " << versions[0].version() << " failed: "
        << absl::StatusCodeToString(
               static_cast<absl::StatusCode>(versions[0].status().error_code()))
        << ": " << Escaped(versions[0].status().error_message()) << "\n";
  if (!report.signatures.ok()) return;
  out << Escaped(options.model) << " version " << report.signatures->version << ":\n";
  for (const SignatureDef& def : report.signatures->signatures) PrintSignature(def, out);
}

void PrintText(const StatusOptions& options, const Report& report, const Report* before,
               std::ostream& out) {
  out << options.target.address << ": " << report.server_health << "\n";
  if (report.stats.ok()) {
    PrintServer(report.stats->server(), out);
    const bool rates = before != nullptr && before->stats.ok();
    PrintModels(*report.stats, rates ? &*before->stats : nullptr, options.watch, out);
    if (options.model.empty()) return;
    PrintModel(options, report, out);
    PrintDetails(*report.stats, out);
    return;
  }
  if (options.model.empty()) {
    out << "(no live numbers: " << report.stats.status().message()
        << "; --model NAME shows the versions of a model)\n";
    return;
  }
  Table table({"MODEL", "VERSION", "STATE", "HEALTH", "ERROR"});
  for (const auto& version : report.model.model_version_status()) {
    table.Add({options.model, std::to_string(version.version()),
               StateName(version.state(), version.status().error_code() != 0), report.model_health,
               version.status().error_message()});
  }
  table.Print(out);
  PrintModel(options, report, out);
}

// Of the models in the server's statistics: what does not serve, and newest versions that failed.
std::vector<std::string> Complaints(const GetStatsResponse& stats) {
  std::vector<std::string> complaints;
  for (const ModelStats& model : stats.models()) {
    if (model.has_serving() && !model.serving())
      complaints.push_back(absl::StrCat("model ", Quoted(model.name()), " is not serving"));
    if (!model.versions().empty() &&
        HasFailed(model.versions(0).state(), model.versions(0).error()))
      complaints.push_back(absl::StrCat("version ", model.versions(0).version(), " of model ",
                                        Quoted(model.name()), " failed"));
  }
  return complaints;
}

// The same of one model, as every server tells it.
std::vector<std::string> Complaints(const std::string& model, const Report& report) {
  std::vector<std::string> complaints;
  const auto& versions = report.model.model_version_status();
  const bool serves = std::any_of(versions.begin(), versions.end(), [](const auto& version) {
    return version.state() == tfs::ModelVersionStatus::AVAILABLE;
  });
  if (!serves || report.model_health == "NOT_SERVING")
    complaints.push_back(absl::StrCat("model ", Quoted(model), " is not serving"));
  if (!versions.empty() && HasFailed(versions[0].state(), versions[0].status()))
    complaints.push_back(
        absl::StrCat("version ", versions[0].version(), " of model ", Quoted(model), " failed"));
  return complaints;
}

// Whether what was asked about serves, as an exit code for scripts.
absl::Status Verdict(const StatusOptions& options, const Report& report) {
  if (options.no_fail) return absl::OkStatus();
  if (report.server_health == "NOT_SERVING") {
    return absl::UnavailableError(
        absl::StrCat("the server at ", options.target.address, " is not serving"));
  }
  std::vector<std::string> complaints;
  if (!options.model.empty()) {
    complaints = Complaints(options.model, report);
  } else if (report.stats.ok()) {
    complaints = Complaints(*report.stats);
  }
  if (complaints.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrJoin(complaints, "; "));
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
    report.signatures = FetchSignatures(client, request.model_spec());  // none where none serves
  }
  GetStatsRequest request;
  request.set_model(options.model);
  // Other servers do not know it, and this one may not offer it to everybody.
  if (const absl::Status status = client.Call("/floe.Admin/GetStats", request, &*report.stats);
      !status.ok())
    report.stats = status;
  return report;
}

absl::Status Run(StatusOptions options, Context& context) {
  options.target = Resolved(options.target);  // reports name it
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
  AddOperatorTargetOptions(*command, options->target);
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
  command->add_flag("--no-fail", options->no_fail,
                    "Exit with 0 whatever the report says, if there is one");
  command->footer(
      "Exits with 1 if the server or a model does not serve, or a model's newest version failed.\n"
      "Example:\n  floectl status --target 127.0.0.1:8500 --model mnist_beginner\n"
      "  floectl status --watch 2");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
