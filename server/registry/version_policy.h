// Which of the versions that were found are to be served.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "config/config.h"

namespace floe::server {

// In descending order. `found` is in descending order, too. A version in `failing` is still wanted,
// for its files may be mended, but `latest` does not count it: the next older one is wanted as
// well. So a bad new version takes nothing away, not even over a restart. Versions of `labelled`
// that were found are wanted beside those. `specific` names versions whether they were found or
// not, and those only.
std::vector<int64_t> WantedVersions(const VersionPolicy& policy, const std::vector<int64_t>& found,
                                    const std::set<int64_t>& failing,
                                    const std::set<int64_t>& labelled = {});

// The versions that labels lead to.
std::set<int64_t> LabelledVersions(const ModelConfig& config);

}  // namespace floe::server
