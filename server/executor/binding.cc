// Cuts a part out of a large inference.
#include "server/executor/binding.h"

#include "absl/algorithm/container.h"

namespace floe::server {

void TakePart(const Bound& whole, int64_t first, int64_t rows, Inference* asked, Binding* binding) {
  asked->model = whole.asked->model;
  asked->signature = whole.asked->signature;
  asked->inputs = whole.asked->inputs;
  *binding = whole.binding;
  binding->bytes = binding->bytes / static_cast<size_t>(binding->rows) * static_cast<size_t>(rows);
  binding->rows = rows;
  binding->part = true;
  binding->quick = false;
  const auto cut = [whole = &whole, asked, first, rows] {
    const Binding& binding = whole->binding;
    for (int i = 0; i < static_cast<int>(asked->inputs.size()); ++i) {
      const bool used = binding.input_of == nullptr || absl::c_linear_search(*binding.input_of, i);
      if (used && !absl::c_linear_search(binding.fixed, i))
        asked->inputs[static_cast<size_t>(i)] = RowsOf(whole->asked->Input(i), first, rows);
    }
  };
  cut();
  if (whole.asked->pending == nullptr) return;
  asked->pending = std::make_unique<PendingInputs>([whole = &whole, cut] {
    absl::Status decoded = whole->asked->pending->Decode();
    if (decoded.ok()) cut();
    return decoded;
  });
}

}  // namespace floe::server
