// Programs that call a model, for people to copy.
#pragma once

#include <string>

#include "model/graph.h"

namespace floe::server {

struct Snippets {
  std::string curl, python, cpp;
};

// Each sends one row of zeros to TensorFlow Serving's REST API at `url` and prints the answer. An
// explanation instead, where the signature takes what JSON has not.
Snippets SnippetsFor(const SignatureDef& signature, const std::string& url);

}  // namespace floe::server
