// `floectl inspect`: its options, and the report as text or JSON.
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/quoted.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/inspect_report.h"
#include "cli/model_path.h"
#include "cli/signature_report.h"
#include "cli/table.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectArguments {
  std::string file;
  std::string gemm = "auto", device = "cpu";
  InspectOptions inspect;
  const CLI::Option* rows_given = nullptr;
  bool nodes = false, plan = false, json = false;
};

Json NodesJson(const std::vector<InspectedNode>& nodes) {
  Json list = Json::array();
  for (const InspectedNode& node : nodes)
    list.push_back({{"name", node.name}, {"op", node.op}, {"type", node.type}});
  return list;
}

void PrintJson(const InspectArguments& options, const InspectReport& report,
               const absl::Status& status, std::ostream& out) {
  Json json = {{"file", report.file}, {"format", report.format}, {"file_bytes", report.file_bytes}};
  if (!status.ok()) json["error"] = std::string(status.message());
  for (const auto& [name, text] : report.facts) json["facts"][name] = text;
  for (const auto& [name, why] : report.left_out)
    json["left_out"][name] = std::string(why.message());
  json["signatures"] = Json::array();
  for (const SignatureDef& def : report.signatures)
    json["signatures"].push_back(SignatureJson(def));
  json["ops"] = report.ops;
  json["parameters"] = report.parameters;
  if (status.ok()) {
    json["signature"] = report.signature;
    json["weight_bytes"] = report.weight_bytes;
    json["flops_per_row"] = report.flops_per_row;
    json["planned_inputs"] = Json::object();
    for (const auto& [key, type] : report.planned) json["planned_inputs"][key] = TypeText(type);
    json["arena_bytes"] = Json::object();
    if (report.arena_bytes_1) json["arena_bytes"]["1"] = *report.arena_bytes_1;
    if (report.arena_bytes_rows)
      json["arena_bytes"][std::to_string(report.rows)] = *report.arena_bytes_rows;
    json["batchable"] = report.why_not_batchable.empty();
    if (!report.why_not_batchable.empty()) json["why_not_batchable"] = report.why_not_batchable;
  }
  if (options.nodes) json["nodes"] = NodesJson(report.nodes);
  if (options.plan && status.ok()) json["plan"] = PlanJson(report.plan);
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void PrintNodes(const std::vector<InspectedNode>& nodes, std::ostream& out) {
  out << "nodes of the file\n";
  Table table({"NAME", "OP", "TYPE"});
  for (const InspectedNode& node : nodes) table.Add({node.name, node.op, node.type});
  table.Print(out, 2);
}

void PrintText(const InspectArguments& options, const InspectReport& report,
               const absl::Status& status, std::ostream& out) {
  if (report.format.empty()) return;  // nothing was read
  out << report.file << ": " << report.format << ", " << HumanBytes(report.file_bytes) << "\n";
  for (const auto& [name, text] : report.facts) out << name << ": " << text << "\n";
  for (const SignatureDef& def : report.signatures) PrintSignature(def, out);
  for (const auto& [name, why] : report.left_out)
    out << "signature " << Escaped(name) << " is not served: " << why.message() << "\n";
  out << "ops";
  for (const auto& [op, count] : report.ops) {
    out << "  " << op;
    if (count != 1) out << " x" << count;
  }
  out << "\n";
  Table table({"parameters", HumanCount(report.parameters)});
  if (status.ok()) {
    table.Add({"weights", HumanBytes(report.weight_bytes)});
    table.Add({"FLOPs per row", HumanCount(report.flops_per_row)});
    const auto memory = [](const std::optional<int64_t>& bytes) {
      return bytes.has_value() ? HumanBytes(*bytes) : std::string("no plan");
    };
    table.Add({"memory of the plan",
               absl::StrCat(memory(report.arena_bytes_1), " at 1 row, ",
                            memory(report.arena_bytes_rows), " at ", report.rows, " rows")});
    std::string planned;
    for (const auto& [key, type] : report.planned)
      absl::StrAppend(&planned, planned.empty() ? "" : ", ", Escaped(key), " ", TypeText(type));
    if (!planned.empty()) table.Add({"planned for", planned});
    table.Add({"batchable",
               report.why_not_batchable.empty() ? "yes" : "no: " + report.why_not_batchable});
  }
  table.Print(out);
  if (options.nodes) PrintNodes(report.nodes, out);
  if (options.plan && status.ok()) PrintPlan(report.plan, out);
}

absl::Status Run(InspectArguments& options, Context& context) {
  const auto gemm = GemmBackendFromName(options.gemm);
  if (!gemm.ok()) return gemm.status();
  options.inspect.local.compile.kernels.gemm = *gemm;
  if (options.device != "cpu")
    options.inspect.local.compile.islands = Placement{.device = DeviceKind::kCuda, .small = true};
  if (options.rows_given->count() != 0) options.inspect.plan_rows = options.inspect.rows;
  FLOE_ASSIGN_OR_RETURN(const std::string file, FindModelFile(options.file, context.err));
  InspectReport report;
  absl::Status status = Inspect(file, options.inspect, &report);
  if (options.json) {
    PrintJson(options, report, status, context.out);
  } else {
    PrintText(options, report, status, context.out);
  }
  return status;
}

}  // namespace

void AddInspectCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<InspectArguments>();
  CLI::App* const command =
      app.add_subcommand("inspect", "Show the contents of a model file and what serving it costs");
  command->add_option("FILE", options->file, kModelHelp)->required();
  command->add_flag("--nodes", options->nodes, "List the file's nodes: name, op, type");
  command->add_flag("--plan", options->plan,
                    "List the steps of the plan: op, outputs and their memory, cost");
  command
      ->add_option("--fetch", options->inspect.local.fetches,
                   "A tensor to inspect instead of the signature's outputs; can be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option_function<std::vector<std::string>>(
          "--feed",
          [options](const std::vector<std::string>& names) {
            for (const std::string& name : names) options->inspect.local.feeds.push_back({name});
          },
          "A tensor inside the graph to feed; nodes that only compute it are not needed")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--signature", options->inspect.local.signature,
                   "Signature to inspect (default serving_default)")
      ->type_name("NAME");
  AddTagsOption(*command, options->inspect.local.tags);
  options->rows_given =
      command
          ->add_option("--rows", options->inspect.rows,
                       "Rows for --plan, and for the second figure of the plan's memory")
          ->type_name("N")
          ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
          ->capture_default_str();
  command
      ->add_option("--dim", options->inspect.unknown_dim,
                   "Size of unknown non-batch dimensions (default: one that fits)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  AddDeviceOption(*command, options->device, "Whose plan: cpu, or cuda, which need not be there");
  command->add_flag("--json", options->json, "Print JSON");
  AddGemmOption(*command, options->gemm);
  AddPrecisionOption(*command, options->inspect.local.compile.kernels.precision);
  AddDisablePassOption(*command, options->inspect.local.compile.disabled_passes);
  AddRouteOption(*command, options->inspect.local.compile.kernels.routes);
  command->footer("Example:\n  floectl inspect frozen.pb --nodes");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
