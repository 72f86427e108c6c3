// What the configuration of a layer says of its quantisation (model.quantize() of Keras 3).
#pragma once

#include <string>

#include "model/import/keras/json.h"

namespace floe::keras {

struct Quantized {
  bool any = false;    // in whichever way
  bool int8 = false;   // as floe computes it
  std::string mode;    // "int8", "int4", ...; "" where only the options say something
  std::string source;  // the type that it was quantised from, in which it computes
};

Quantized QuantizedOf(const std::string& class_name, const Json& options);

}  // namespace floe::keras
