#include "kernels/candidates.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe {
namespace {

absl::StatusOr<size_t> FindNamed(const std::vector<Candidate>& candidates, absl::string_view name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].name == name) return i;
    names.push_back(candidates[i].name);
  }
  return absl::InvalidArgumentError(absl::StrCat("has no route ", Quoted(std::string(name)),
                                                 "; its routes are ", absl::StrJoin(names, ", ")));
}

size_t Cheapest(const std::vector<Candidate>& candidates) {
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const Candidate& other = candidates[i];
    if (!other.automatic || !other.cost_us.has_value()) continue;
    if (!candidates[best].automatic ||
        (candidates[best].cost_us.has_value() && *other.cost_us < *candidates[best].cost_us))
      best = i;
  }
  return best;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeChosen(const KernelArgs& args,
                                                   const std::vector<Candidate>& candidates,
                                                   absl::string_view wanted) {
  const auto forced = args.options.routes.find(args.node.name);
  size_t chosen = 0;
  if (forced != args.options.routes.end()) {
    FLOE_ASSIGN_OR_RETURN(chosen, FindNamed(candidates, forced->second));
  } else if (!wanted.empty()) {
    FLOE_ASSIGN_OR_RETURN(chosen, FindNamed(candidates, wanted));
  } else {
    chosen = Cheapest(candidates);
  }
  FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, candidates[chosen].make());
  RouteChoice choice;
  choice.chosen = candidates[chosen].name;
  for (const Candidate& candidate : candidates)
    choice.offers.push_back({candidate.name, candidate.cost_us});
  kernel->SetChoice(std::move(choice));
  return kernel;
}

}  // namespace floe
