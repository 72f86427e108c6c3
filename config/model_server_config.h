// TensorFlow Serving's text files: the model list and the batching parameters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/config.h"
#include "config/text_proto.h"

namespace tensorflow::serving {
class BatchingParameters;
class ModelServerConfig;
}  // namespace tensorflow::serving

namespace floe {

// What a model list is read against.
struct ModelListContext {
  std::string file;                    // what messages call it; empty: a message of a call
  const TextPlaces* places = nullptr;  // of its fields, when it was text
  // Where relative base_paths start; empty: they are a mistake.
  std::string directory;
  // The list says a model's name, path, versions and labels. The rest comes from the model of the
  // same name here, or else from `defaults`.
  const std::vector<ModelConfig>* known = nullptr;
  ModelConfig defaults = {};
  bool may_be_empty = false;  // no model_config_list: no models, and a note
};

// The models of a list. INVALID_ARGUMENT: one line per mistake, naming the entry and the fix; also
// for a config that holds no model_config_list. `notes` gets what has no effect here.
absl::StatusOr<std::vector<ModelConfig>> ModelsOf(
    const tensorflow::serving::ModelServerConfig& config, const ModelListContext& context,
    std::vector<std::string>* notes);

// The same for text; `context.file` names it, `context.places` is ignored.
absl::StatusOr<std::vector<ModelConfig>> ParseModelServerConfig(const std::string& text,
                                                                const ModelListContext& context,
                                                                std::vector<std::string>* notes);

// Lays a BatchingParameters text over `*model`: batching, and num_batch_threads as workers. Fields
// that the text does not have stay. INVALID_ARGUMENT: one line per mistake.
absl::Status ParseBatchingParameters(const std::string& text, const std::string& file,
                                     ModelConfig* model, std::vector<std::string>* notes);

}  // namespace floe
