// Graphs of cases with islands (runtime/passes/place_on_device.h).
#pragma once

#include "absl/status/statusor.h"
#include "tests/corpus_case.h"

namespace floe::corpus {

// How many nodes of the case's graph are in islands of the device, those in bodies of loops and
// branches included, when each that it may compute is. The case gives its answers there; on the
// host's device the very bits that it gives without islands, on the emulated one the same bits in
// three orders of threads and blocks. Else the first error or difference.
absl::StatusOr<int> CheckIslands(const CorpusCase& c, const CorpusVariant& variant,
                                 DeviceKind device);

}  // namespace floe::corpus
