// The advice of every refusal of a Keras file.
#pragma once

namespace floe::keras {

inline constexpr const char* kExport =
    "export the model with model.export() in Python and serve the SavedModel that it writes";

}  // namespace floe::keras
