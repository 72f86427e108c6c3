// Attributes of a GraphDef's node -> attributes of a Node.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "model/attrs.h"

namespace tensorflow {
class AttrValue;
}

namespace floe {

// Sets attribute `name`; constants are moved out of `value`. Placeholders and empty values set
// nothing. INVALID_ARGUMENT for dtypes and tensors that floe does not have.
absl::Status SetAttr(const std::string& name, tensorflow::AttrValue& value, Attrs* attrs);

}  // namespace floe
