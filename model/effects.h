// Which nodes run for what they do, not only for what they give.
#pragma once

#include "model/graph.h"

namespace floe {

// True for ops with an effect, and for control flow around one.
bool HasEffect(const Node& node);

}  // namespace floe
