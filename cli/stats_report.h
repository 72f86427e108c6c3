// What a server says of its work (floe.Admin/GetStats), as text.
#pragma once

#include <ostream>
#include <string>

#include "floe/admin.pb.h"

namespace floe::cli {

// "floed 0.1.0, up 3 min; 2 CPUs, 4 workers; memory 512 MiB of 4.00 GiB; ..."
void PrintServer(const ServerStats& server, std::ostream& out);

// "AVAILABLE", "FAILED": what a version's state is called. The protocol has one name for versions
// that failed and versions that were unloaded.
std::string StateName(tensorflow::serving::ModelVersionStatus::State state, bool failed);

// A line for each version. `before`: what the server said `seconds` ago, for requests a second;
// null: requests since the load.
void PrintModels(const GetStatsResponse& stats, const GetStatsResponse* before, double seconds,
                 std::ostream& out);

// Labels, and of each version: errors by code, signatures with the sizes of their batches, stuck
// runs.
void PrintDetails(const GetStatsResponse& stats, std::ostream& out);

}  // namespace floe::cli
