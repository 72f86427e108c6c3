// Rules of batching and of CPU lists.
#include "config/limits.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "config/key_table.h"

namespace floe {
namespace {

// "3" or "0-3".
bool ParseCpuRange(const std::string& part, int* low, int* high) {
  const std::vector<std::string> ends = absl::StrSplit(part, '-');
  return ends.size() <= 2 && absl::SimpleAtoi(ends.front(), low) &&
         absl::SimpleAtoi(ends.back(), high) && *low >= 0 && *low <= *high && *high < kMaxCpus;
}

void FindSizeMistakes(const std::vector<int64_t>& sizes, std::vector<std::string>* mistakes) {
  const IntRange rows = *ModelKey("batching.allowed_batch_sizes").range;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!rows.Has(sizes[i]))
      mistakes->push_back(absl::StrCat("allowed_batch_sizes: ", sizes[i],
                                       " is no number of rows; expected ", rows.low, " to ",
                                       rows.high));
    if (i > 0 && sizes[i] <= sizes[i - 1])
      mistakes->push_back(absl::StrCat("allowed_batch_sizes: ", sizes[i], " follows ", sizes[i - 1],
                                       "; sizes must ascend"));
  }
}

}  // namespace

void FillBatching(bool max_batch_size_given, BatchingConfig* batching) {
  if (max_batch_size_given || batching->allowed_batch_sizes.empty()) return;
  // With runs shorter than batches the list says nothing of batches.
  if (batching->enable_large_batch_splitting && batching->max_execution_batch_size != 0) return;
  batching->max_batch_size = batching->allowed_batch_sizes.back();
}

std::vector<std::string> BatchingMistakes(const BatchingConfig& b) {
  std::vector<std::string> mistakes;
  const auto& sizes = b.allowed_batch_sizes;
  FindSizeMistakes(sizes, &mistakes);
  const bool split = b.enable_large_batch_splitting && b.max_execution_batch_size != 0;
  const int64_t rows = b.max_execution_rows();
  const bool ends_batches = !sizes.empty() && sizes.back() == b.max_batch_size;
  if (!sizes.empty() && rows != 0 && sizes.back() != rows && !ends_batches)
    mistakes.push_back(absl::StrCat("allowed_batch_sizes: the last, ", sizes.back(),
                                    ", must equal ",
                                    split ? "max_execution_batch_size" : "max_batch_size",
                                    ", which is ", rows, "; add ", rows, " or change the other"));
  if (split && b.max_batch_size != 0 && b.max_execution_batch_size > b.max_batch_size)
    mistakes.push_back(absl::StrCat("max_execution_batch_size: ", b.max_execution_batch_size,
                                    " is more than max_batch_size, which is ", b.max_batch_size,
                                    "; runs cannot be longer than batches"));
  if (!b.padding_values.empty() && !b.pad_variable_length_inputs)
    mistakes.push_back(
        "padding_values: nothing is padded without pad_variable_length_inputs: true");
  return mistakes;
}

absl::StatusOr<std::vector<int>> ParseCpuSet(const std::string& text) {
  std::vector<int> cpus;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    int low = 0, high = 0;
    if (!ParseCpuRange(part, &low, &high))
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is no CPU or range of CPUs below ", kMaxCpus,
                       " (the whole is '", text, "'); expected a list such as 0-3,8"));
    for (int cpu = low; cpu <= high; ++cpu) cpus.push_back(cpu);
  }
  SortUnique(&cpus);
  return cpus;
}

std::string CpuSetText(const std::vector<int>& cpus) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i;
    while (end + 1 < cpus.size() && cpus[end + 1] == cpus[end] + 1) ++end;
    parts.push_back(end == i ? absl::StrCat(cpus[i]) : absl::StrCat(cpus[i], "-", cpus[end]));
    i = end + 1;
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace floe
