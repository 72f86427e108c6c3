// Which attributes of TensorFlow's ops count, so that none is passed over in silence.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace tensorflow {
class NodeDef;
}

namespace floe {

// INVALID_ARGUMENT names the attribute of a supported op, and its value, that would change what the
// node computes in a way that floe does not know.
absl::Status CheckAttributes(const tensorflow::NodeDef& node);

// Each op with an attribute that it reads, for the test that it does.
std::vector<std::pair<std::string_view, std::string_view>> AttributesThatOpsRead();

}  // namespace floe
