// The entries of a zip archive that lies in memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tensor.h"

struct zip;

namespace floe::keras {

// Threading: one thread at a time.
class Archive {
 public:
  // `bytes` outlives the archive. INVALID_ARGUMENT for what is no zip archive.
  static absl::StatusOr<Archive> Open(std::string_view bytes);
  Archive(Archive&&) noexcept = default;
  Archive& operator=(Archive&&) noexcept = default;

  bool Has(const std::string& name) const;
  std::vector<std::string> Names() const;
  // The bytes, as a uint8 vector that the thread's budgets pay for. The size that the archive
  // declares is held against the compressed bytes first, and checksums are compared. NOT_FOUND;
  // INVALID_ARGUMENT for what is damaged, encrypted or too large to be true.
  absl::StatusOr<Tensor> Read(const std::string& name) const;

 private:
  struct Discard {
    void operator()(struct zip* archive) const;
  };
  explicit Archive(struct zip* archive) : archive_(archive) {}
  std::unique_ptr<struct zip, Discard> archive_;
};

}  // namespace floe::keras
