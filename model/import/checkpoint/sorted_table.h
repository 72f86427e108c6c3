// The table format of LevelDB, which checkpoints keep their index in: sorted keys in blocks, with
// shared prefixes, checksums and maybe Snappy compression.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"

namespace floe {

// Both live for the call only.
using TableEntry = std::function<absl::Status(std::string_view key, std::string_view value)>;

// Calls `entry` with every entry in turn; an error of its ends it. DATA_LOSS: the file is damaged,
// or no such table, with the place. RESOURCE_EXHAUSTED: keys that unfold to far more than the file.
absl::Status ReadSortedTable(std::string_view file, const TableEntry& entry);

// Whether the last bytes of a file are those of such a table.
bool IsSortedTable(std::string_view file);

}  // namespace floe
