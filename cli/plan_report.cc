// Walks a plan and its subprograms, and lists steps, memory and costs.
#include "cli/plan_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/byte_size.h"
#include "cli/signature_report.h"
#include "cli/table.h"
#include "model/op_def.h"
#include "runtime/line_windows.h"
#include "runtime/nested_plan.h"
#include "runtime/passes/place_on_device.h"

namespace floe::cli {
namespace {

int64_t BytesOf(const TensorType& type, int64_t rows) {
  if (!type.shape.known()) return 0;
  return type.shape.At(rows).elements() * static_cast<int64_t>(DTypeSize(type.dtype));
}

std::string TypeAt(const TensorType& type, int64_t rows) {
  if (rows < 1 || !type.shape.known()) return TypeText(type);
  return TypeText({type.dtype, SymShape(type.shape.At(rows))});
}

class Describer {
 public:
  Describer(const CompiledSignature& signature, const Plan& plan, int64_t rows,
            const KernelOptions* kernels)
      : signature_(signature),
        plan_(plan),
        kernels_(kernels),
        symbolic_(rows < 1),
        rows_(std::max<int64_t>(rows, 1)) {
    report_.rows = rows_;
    if (kernels != nullptr) report_.device = kernels->device;
  }

  PlanReport Run() {
    report_.arena_bytes = plan_.ArenaBytes(rows_);
    report_.flops = plan_.Flops(rows_);
    FindLastReads();
    for (size_t s = 0; s < plan_.steps().size(); ++s) AddStep(s);
    AddPacked(signature_);
    return std::move(report_);
  }

 private:
  const Slot& Root(int slot) const { return plan_.slots()[plan_.slots()[slot].root]; }
  // Values of the run itself: not constants, nor what only the request sizes.
  bool Lives(int slot) const {
    const Slot::Home home = Root(slot).home;
    return home == Slot::Home::kArena || home == Slot::Home::kInput;
  }

  void FindLastReads() {
    const int end = static_cast<int>(plan_.steps().size());
    last_.assign(plan_.slots().size(), -1);
    first_.assign(plan_.slots().size(), end);
    for (int s = 0; s < end; ++s) {
      for (int in : plan_.steps()[s].inputs) last_[plan_.slots()[in].root] = s;
      for (int out : plan_.steps()[s].outputs) {
        const int root = plan_.slots()[out].root;
        first_[root] = std::min(first_[root], s);
        last_[root] = std::max(last_[root], s);
      }
    }
    for (size_t i = 0; i < plan_.input_types().size(); ++i)
      first_[plan_.input_slot(static_cast<int>(i))] = 0;
    for (size_t i = 0; i < plan_.output_types().size(); ++i)
      last_[plan_.slots()[plan_.output_slot(static_cast<int>(i))].root] = end;
  }

  void AddStep(size_t s) {
    const Step& step = plan_.steps()[s];
    const Node& node = plan_.graph().node(step.node);
    PlannedStep shown{.name = node.name,
                      .op = node.op->name,
                      .route = step.kernel == nullptr ? "" : step.kernel->Route()};
    if (step.kernel != nullptr) shown.choice = step.kernel->choice();
    int64_t touched = 0;
    for (int in : step.inputs) {
      shown.bytes += BytesOf(plan_.slots()[in].type, rows_);
      if (Lives(in)) touched += BytesOf(plan_.slots()[in].type, rows_);
    }
    for (int out : step.outputs) {
      const Slot& slot = plan_.slots()[out];
      const int64_t bytes = BytesOf(slot.type, rows_);
      shown.outputs.push_back({TypeAt(slot.type, symbolic_ ? 0 : rows_), Place(step, out), bytes});
      shown.bytes += bytes;
      if (Lives(out) && slot.root == out) touched += bytes;
    }
    shown.bytes -= 2 * BytesInPlace(plan_.slots(), step, rows_);
    shown.flops = plan_.StepFlops(step, rows_);
    report_.steps.push_back(std::move(shown));
    report_.largest_step_bytes = std::max(report_.largest_step_bytes, touched);
    report_.live_bytes = std::max(report_.live_bytes, LiveAt(static_cast<int>(s)));
    if (step.programs != nullptr) {
      for (const auto& program : *step.programs) AddProgram(*program, 1);
    }
    if (kernels_ != nullptr) AddPlace(plan_, step, rows_, "");
  }

  // `where`: what the names begin with, of steps inside subgraphs.
  void AddPlace(const Plan& plan, const Step& step, int64_t rows, const std::string& where) {
    const Node& node = plan.graph().node(step.node);
    const auto values = [&plan](const std::vector<int>& slots) {
      std::vector<ValueInfo> infos;
      infos.reserve(slots.size());
      for (const int s : slots)
        infos.push_back({plan.slots()[s].type, plan.slots()[s].constant, {}});
      return infos;
    };
    if (node.op->name == "OnDevice") {
      PlannedIsland island = IslandOf(node, *step.programs->front(), where);
      for (const int in : step.inputs) island.in_bytes += BytesOf(plan.slots()[in].type, rows);
      for (const int out : step.outputs) island.out_bytes += BytesOf(plan.slots()[out].type, rows);
      report_.islands.push_back(std::move(island));
      return;
    }
    std::string why = WhyOnHost(node, values(step.inputs), values(step.outputs), *kernels_);
    if (why.empty()) why = "its island does less than crossing costs";
    report_.on_host.push_back({where + node.name, node.op->name, std::move(why)});
    for (size_t i = 0; step.programs != nullptr && i < step.programs->size(); ++i) {
      const std::string inside = absl::StrCat(where, node.name, "/", SubgraphName(node, i), "/");
      const auto nested = BindAhead(plan, step, i, rows);
      if (!nested.ok()) {
        AddIslandsOf(*(*step.programs)[i], inside);
        continue;
      }
      for (const Step& inner : nested->plan->steps())
        AddPlace(*nested->plan, inner, nested->rows, inside);
    }
  }

  static PlannedIsland IslandOf(const Node& node, const CompiledSignature& body,
                                const std::string& where) {
    PlannedIsland island{.name = where + node.name};
    for (int i = 0; i < body.graph().size(); ++i) island.nodes += body.kernel(i) != nullptr;
    return island;
  }

  // Of a subgraph whose shapes only a run tells: what crosses is not known.
  void AddIslandsOf(const CompiledSignature& program, const std::string& where) {
    for (int i = 0; i < program.graph().size(); ++i) {
      const Node& node = program.graph().node(i);
      for (size_t k = 0; k < program.subprograms(i).size(); ++k) {
        const CompiledSignature& inner = *program.subprograms(i)[k];
        if (node.op->name == "OnDevice") {
          report_.islands.push_back(IslandOf(node, inner, where));
        } else {
          AddIslandsOf(inner, absl::StrCat(where, node.name, "/", SubgraphName(node, k), "/"));
        }
      }
    }
  }

  int64_t LiveAt(int s) const {
    int64_t live = plan_.ScratchBytes(plan_.steps()[s], rows_);
    for (size_t i = 0; i < plan_.slots().size(); ++i) {
      const Slot& slot = plan_.slots()[i];
      if (slot.root != static_cast<int>(i) || !Lives(static_cast<int>(i))) continue;
      if (first_[i] <= s && s <= last_[i]) live += BytesOf(slot.type, rows_);
    }
    return live;
  }

  std::string Place(const Step& step, int out) const {
    const Slot& slot = plan_.slots()[out];
    if (slot.home == Slot::Home::kDynamic) return "dynamic";
    if (slot.line_stride != 0) return absl::StrCat("window +", slot.window_offset);
    if (slot.root != out) {
      for (size_t k = 0; k < step.inputs.size(); ++k) {
        if (plan_.slots()[step.inputs[k]].root == slot.root) return absl::StrCat("over input ", k);
      }
    }
    const Slot& root = Root(out);
    if (root.home == Slot::Home::kInput) return "caller";
    if (root.home != Slot::Home::kArena) return "";
    if (!symbolic_ || root.offset.per_row == 0)
      return absl::StrCat("arena +", root.offset.At(rows_));
    if (root.offset.base == 0) return absl::StrCat("arena +", root.offset.per_row, "*rows");
    return absl::StrCat("arena +", root.offset.base, "+", root.offset.per_row, "*rows");
  }

  // What a subgraph may run: its plans are bound when it is called.
  void AddProgram(const CompiledSignature& program, int depth) {
    for (int i = 0; i < program.graph().size(); ++i) {
      const Node& node = program.graph().node(i);
      const Kernel* kernel = program.kernel(i);
      if (kernel == nullptr && node.subgraphs.empty()) continue;
      PlannedStep shown{.name = node.name,
                        .op = node.op->name,
                        .route = kernel == nullptr ? "" : kernel->Route(),
                        .depth = depth};
      if (kernel != nullptr) shown.choice = kernel->choice();
      report_.steps.push_back(std::move(shown));
      for (const auto& inner : program.subprograms(i)) AddProgram(*inner, depth + 1);
    }
  }

  void AddPacked(const CompiledSignature& program) {
    for (int i = 0; i < program.graph().size(); ++i) {
      if (program.kernel(i) != nullptr)
        report_.packed_bytes += static_cast<int64_t>(program.kernel(i)->PackedBytes());
      for (const auto& inner : program.subprograms(i)) AddPacked(*inner);
    }
  }

  const CompiledSignature& signature_;
  const Plan& plan_;
  const KernelOptions* const kernels_;
  const bool symbolic_;
  const int64_t rows_;
  std::vector<int> first_, last_;  // by slot: steps
  PlanReport report_;
};

}  // namespace

PlanReport DescribePlan(const CompiledSignature& signature, const Plan& plan, int64_t rows,
                        const KernelOptions* kernels) {
  return Describer(signature, plan, rows, kernels).Run();
}

namespace {

std::string CostText(const RouteChoice::Offer& offer) {
  if (!offer.cost_us.has_value()) return offer.name;
  const double us = *offer.cost_us;
  return absl::StrFormat("%s %.*f us", offer.name, us < 100 ? 1 : 0, us);
}

// Steps that could have been computed in several ways.
void PrintChoices(const PlanReport& report, std::ostream& out) {
  Table table({"NAME", "CHOSEN", "ROUTES, ESTIMATED FOR ONE ROW"});
  bool any = false;
  for (const PlannedStep& step : report.steps) {
    if (step.choice.offers.size() < 2) continue;
    std::vector<std::string> offers;
    for (const RouteChoice::Offer& offer : step.choice.offers) offers.push_back(CostText(offer));
    table.Add({std::string(2 * step.depth, ' ') + step.name, step.choice.chosen,
               absl::StrJoin(offers, ", ")});
    any = true;
  }
  if (!any) return;
  out << "routes to choose from (--route NODE=NAME forces one)\n";
  table.Print(out, 2);
}

void PrintPlaces(const PlanReport& report, std::ostream& out) {
  if (!report.device.has_value()) return;
  if (report.islands.empty()) {
    out << "no islands: the host computes all steps\n";
  } else {
    Table islands({"ISLAND", "NODES", "IN", "OUT"});
    for (const PlannedIsland& island : report.islands)
      islands.Add({island.name, std::to_string(island.nodes), HumanBytes(island.in_bytes),
                   HumanBytes(island.out_bytes)});
    out << "islands of the device\n";
    islands.Print(out, 2);
  }
  if (report.on_host.empty()) return;
  Table host({"NAME", "OP", "WHY"});
  for (const HostNode& node : report.on_host) host.Add({node.name, node.op, node.why});
  out << "left on the host\n";
  host.Print(out, 2);
}

void AddPlaces(const PlanReport& report, nlohmann::ordered_json* json) {
  using Json = nlohmann::ordered_json;
  if (!report.device.has_value()) return;
  Json islands = Json::array(), host = Json::array();
  for (const PlannedIsland& island : report.islands)
    islands.push_back({{"name", island.name},
                       {"nodes", island.nodes},
                       {"in_bytes", island.in_bytes},
                       {"out_bytes", island.out_bytes}});
  for (const HostNode& node : report.on_host)
    host.push_back({{"name", node.name}, {"op", node.op}, {"why", node.why}});
  (*json)["islands"] = std::move(islands);
  (*json)["on_host"] = std::move(host);
}

nlohmann::ordered_json ChoiceJson(const RouteChoice& choice) {
  nlohmann::ordered_json offers = nlohmann::ordered_json::array();
  for (const RouteChoice::Offer& offer : choice.offers) {
    offers.push_back({{"route", offer.name}});
    if (offer.cost_us.has_value()) offers.back()["cost_us"] = *offer.cost_us;
  }
  return {{"chosen", choice.chosen}, {"offers", std::move(offers)}};
}

}  // namespace

void PrintPlan(const PlanReport& report, std::ostream& out) {
  out << "steps of the plan, figures for " << report.rows
      << (report.rows == 1 ? " row\n" : " rows\n");
  Table table({"", "NAME", "OP", "OUTPUT", "PLACE", "BYTES", "FLOPS", "MOVES", "ROUTE"});
  int number = 0;
  for (const PlannedStep& step : report.steps) {
    const std::string name = std::string(2 * step.depth, ' ') + step.name;
    const std::string index = step.depth == 0 ? std::to_string(number++) : "";
    if (step.outputs.empty()) {
      table.Add({index, name, step.op, "", "", "", "", "", step.route});
      continue;
    }
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      const PlannedValue& value = step.outputs[k];
      const bool first = k == 0;
      table.Add({first ? index : "", first ? name : "", first ? step.op : "", value.type,
                 value.place, value.bytes == 0 ? "" : HumanBytes(value.bytes),
                 first ? HumanCount(step.flops) : "", first ? HumanBytes(step.bytes) : "",
                 first ? step.route : ""});
    }
  }
  table.Print(out, 2);
  PrintChoices(report, out);
  PrintPlaces(report, out);
  Table totals({"steps", std::to_string(number)});
  totals.Add({"FLOPs", HumanCount(report.flops)});
  totals.Add({"arena", HumanBytes(report.arena_bytes)});
  totals.Add({"most live at once", HumanBytes(report.live_bytes)});
  totals.Add({"largest step", HumanBytes(report.largest_step_bytes)});
  totals.Add({"packed weights", HumanBytes(report.packed_bytes)});
  totals.Print(out, 2);
}

nlohmann::ordered_json PlanJson(const PlanReport& report) {
  using Json = nlohmann::ordered_json;
  Json steps = Json::array();
  for (const PlannedStep& step : report.steps) {
    Json outputs = Json::array();
    for (const PlannedValue& value : step.outputs)
      outputs.push_back({{"type", value.type}, {"place", value.place}, {"bytes", value.bytes}});
    Json shown = {{"name", step.name}, {"op", step.op}, {"route", step.route}};
    if (!step.choice.chosen.empty()) shown["choice"] = ChoiceJson(step.choice);
    if (step.depth != 0) {
      shown["depth"] = step.depth;
    } else {
      shown["outputs"] = std::move(outputs);
      shown["flops"] = step.flops;
      shown["bytes"] = step.bytes;
    }
    steps.push_back(std::move(shown));
  }
  Json json = {{"rows", report.rows},
               {"steps", std::move(steps)},
               {"flops", report.flops},
               {"arena_bytes", report.arena_bytes},
               {"live_bytes", report.live_bytes},
               {"largest_step_bytes", report.largest_step_bytes},
               {"packed_bytes", report.packed_bytes}};
  AddPlaces(report, &json);
  return json;
}

}  // namespace floe::cli
