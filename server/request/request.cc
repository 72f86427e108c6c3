#include "server/request/request.h"

#include <string>

#include "absl/algorithm/container.h"
#include "base/budget.h"

namespace floe::server {

absl::Status PendingInputs::Decode() {
  MutexLock lock(mutex_);
  if (decode_ == nullptr) return status_;
  status_ = CatchOutOfMemory(std::exchange(decode_, nullptr));
  return status_;
}

std::unique_ptr<Request> PartOf(Request* whole, int64_t first, int64_t rows) {
  auto part = std::make_unique<Request>();
  part->model = whole->model;
  part->signature = whole->signature;
  part->inputs = whole->inputs;
  part->deadline = whole->deadline;
  part->priority = whole->priority;
  part->principal = whole->principal;
  part->whole = whole;
  part->work = std::chrono::duration_cast<Duration>(whole->work * static_cast<double>(rows) /
                                                    static_cast<double>(whole->binding.rows));
  part->run = whole->run;
  Binding& binding = part->binding;
  binding = whole->binding;
  binding.bytes = binding.bytes / static_cast<size_t>(binding.rows) * static_cast<size_t>(rows);
  binding.rows = rows;
  binding.quick = false;
  const auto cut = [whole, part = part.get(), first, rows] {
    const Binding& binding = whole->binding;
    for (int i = 0; i < static_cast<int>(whole->inputs.size()); ++i) {
      const bool used = binding.input_of == nullptr || absl::c_linear_search(*binding.input_of, i);
      if (used && !absl::c_linear_search(binding.fixed, i))
        part->inputs[i] = RowsOf(whole->inputs[i], first, rows);
    }
  };
  cut();
  if (whole->pending != nullptr)
    part->pending = std::make_unique<PendingInputs>([whole, cut] {
      const absl::Status decoded = whole->pending->Decode();
      if (decoded.ok()) cut();
      return decoded;
    });
  return part;
}

TensorView RowsOf(const TensorView& whole, int64_t first, int64_t rows) {
  TensorView view = whole;
  view.shape.set_dim(0, rows);
  if (whole.data == nullptr) return view;
  const int64_t row_elements = rows == 0 ? 0 : view.elements() / rows;
  const size_t element =
      whole.dtype == DType::kString ? sizeof(std::string) : DTypeSize(whole.dtype);
  view.data =
      static_cast<std::byte*>(whole.data) + static_cast<size_t>(first * row_elements) * element;
  return view;
}

}  // namespace floe::server
