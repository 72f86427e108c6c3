// What is asked of the parser of an HDF5 file. Its answers are a stranger's: all of them are
// checked, and the first that breaks the rules ends it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "model/import/keras/hdf5_parser.h"
#include "model/import/keras/hdf5_wire.h"
#include "model/tensor.h"

namespace floe::keras::hdf5 {

// Memory that the thread's budgets pay for.
class PaidBytes {
 public:
  PaidBytes() = default;
  static absl::StatusOr<PaidBytes> Take(int64_t bytes);

 private:
  MemoryShare share_;
  MemoryCharge charge_;
};

struct Dataset {
  DType dtype = DType::kInvalid;
  Shape shape;
  int64_t bytes = 0;
  Layout layout = Layout::kPlain;
  uint64_t at = 0;      // kPlain: within the file, with all bytes
  int64_t scratch = 0;  // what the parser takes while it reads the elements
};

// A group as the parser describes it.
struct Group {
  using Named = std::pair<std::string_view, std::string_view>;  // and the rest of the description

  PaidBytes paid_answer, paid_attributes, paid_entries;
  std::string answer;
  std::vector<Named> attributes, entries;  // sorted by name

  // Null: there is none.
  static const Named* Find(const std::vector<Named>& all, std::string_view name);
};

// Threading: one thread.
class Client {
 public:
  // Of a file in memory, which outlives it.
  explicit Client(std::string_view file) : file_(file) {}
  absl::Status Start();

  absl::StatusOr<std::unique_ptr<Group>> List(const std::string& path);
  // The elements of a dataset that is not kPlain, in memory that nobody can write any more.
  absl::StatusOr<Tensor> Fill(const std::string& path, const Dataset& data);
  // Why there is no parser any more; OK as long as there is one.
  const absl::Status& over() const { return over_; }

 private:
  absl::StatusOr<std::string> Ask(const Frame& request, const std::string& path, int file,
                                  uint64_t most, PaidBytes* paid);
  absl::StatusOr<std::string> Talk(const Frame& request, const std::string& path, int file,
                                   uint64_t most, PaidBytes* paid);
  absl::Status ServeRead(const Frame& read);
  absl::Status End(const absl::Status& why);

  const std::string_view file_;
  PaidBytes parsers_;
  std::unique_ptr<Hdf5Parser> parser_;
  absl::Status over_;
  int64_t filled_ = 0;
  uint64_t listed_ = 0;
};

// A dataset's description, with sizes that the file has bytes for. INVALID_ARGUMENT: it is refused.
absl::StatusOr<Dataset> ParseDataset(std::string_view description, uint64_t file_size);

// An attribute's strings. INVALID_ARGUMENT: it is refused.
absl::StatusOr<std::vector<std::string>> ParseStrings(std::string_view description);

}  // namespace floe::keras::hdf5
