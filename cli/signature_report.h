// Signatures as text and JSON: of a file, or of a model that a server serves.
#pragma once

#include <ostream>
#include <string>

#include "model/graph.h"
#include "nlohmann/json.hpp"

namespace floe::cli {

// Its name and method, and a line for each input and output.
void PrintSignature(const SignatureDef& def, std::ostream& out);
nlohmann::ordered_json SignatureJson(const SignatureDef& def);

// "float32[?,784]"
std::string TypeText(const TensorType& type);

}  // namespace floe::cli
