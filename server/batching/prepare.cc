#include "server/batching/prepare.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/status.h"
#include "server/batching/plan_runner.h"
#include "server/batching/warm_up.h"

namespace floe::server {
namespace {

// Transport threads may each run a cheap model themselves, so it gets slots beyond those of its
// workers. A model that is told to wait for fuller batches is not run that way.
void PrepareInline(const ModelConfig& config, const Model& model, const WarmUpReport& report,
                   PlanRunner* runner) {
  const auto limit = static_cast<double>(config.inline_below_us);
  const bool any =
      std::any_of(report.costs.begin(), report.costs.end(),
                  [limit](const RunCost& cost) { return cost.fixed_us + cost.per_row_us < limit; });
  if (!any || config.batching.batch_timeout_micros > 0) return;
  const int first = runner->slots();
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  runner->AddSlots(static_cast<int>(threads), /*intra_op_threads=*/1);  // too short a run to split
  WarmUpSlots(model, runner, first, config.batching.max_batch_size);
  runner->SetCosts(report.costs, limit);
}

}  // namespace

absl::StatusOr<BatcherSetup> PrepareBatcher(const Model& model, const ModelConfig& config) {
  auto runner = std::make_unique<PlanRunner>(static_cast<int>(config.workers),
                                             static_cast<int>(config.intra_op_threads),
                                             config.batching.max_batch_size);
  FLOE_ASSIGN_OR_RETURN(WarmUpReport report,
                        WarmUp(model, runner.get(), config.batching.max_batch_size));
  PrepareInline(config, model, report, runner.get());

  BatcherSetup setup;
  setup.options.limits.max_rows = config.batching.max_batch_size;
  setup.options.limits.timeout = std::chrono::microseconds(config.batching.batch_timeout_micros);
  setup.options.limits.max_tasks = static_cast<size_t>(config.batching.max_batch_size) *
                                   static_cast<size_t>(config.batching.max_enqueued_batches);
  setup.options.threads = static_cast<int>(config.workers);
  setup.options.name = config.name;
  setup.options.slowest = report.slowest;
  setup.notes = std::move(report.notes);
  setup.runner = std::move(runner);
  return setup;
}

}  // namespace floe::server
