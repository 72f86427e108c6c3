// What the ops of a model tell of an input that the signature gives no rank for.
#pragma once

#include "model/shape.h"
#include "runtime/model.h"

namespace floe {

// The shape that the first op which says something asks of input `input`; unknown dims are open.
// An unknown rank where no op says anything.
SymShape HintedShape(const Signature& signature, int input);

}  // namespace floe
