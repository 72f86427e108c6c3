// Which attributes of TensorFlow's ops count, so that none is passed over in silence.
#pragma once

#include "absl/status/status.h"

namespace tensorflow {
class NodeDef;
}

namespace floe {

// INVALID_ARGUMENT names the attribute of a supported op, and its value, that would change what the
// node computes in a way that floe does not know.
absl::Status CheckAttributes(const tensorflow::NodeDef& node);

}  // namespace floe
