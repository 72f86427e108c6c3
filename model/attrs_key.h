// Attributes as a key of maps.
#pragma once

#include <string>

#include "model/attrs.h"

namespace floe {

// Equal exactly when all names, types and values are, floats bit by bit and tensors by content.
// Handles count by address: such a key may not outlive them.
std::string AttrsKey(const Attrs& attrs);

}  // namespace floe
