#include "config/limits.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace floe {
namespace {

absl::Status BadCpus(const std::string& part, const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat("'", part, "' is no CPU or range of CPUs below ",
                                                 kMaxCpus, " (the whole is '", text,
                                                 "'); expected a list such as 0-3,8"));
}

// "3" or "0-3".
bool ParseCpuRange(const std::string& part, int* low, int* high) {
  const std::vector<std::string> ends = absl::StrSplit(part, '-');
  return ends.size() <= 2 && absl::SimpleAtoi(ends.front(), low) &&
         absl::SimpleAtoi(ends.back(), high) && *low >= 0 && *low <= *high && *high < kMaxCpus;
}

void FindSizeMistakes(const char* key, const std::vector<int64_t>& sizes,
                      std::vector<std::string>* mistakes) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < kMaxBatchSizeRange.low || sizes[i] > kMaxBatchSizeRange.high)
      mistakes->push_back(absl::StrCat(key, ": ", sizes[i], " is no number of rows; expected ",
                                       kMaxBatchSizeRange.low, " to ", kMaxBatchSizeRange.high));
    if (i > 0 && sizes[i] <= sizes[i - 1])
      mistakes->push_back(
          absl::StrCat(key, ": ", sizes[i], " follows ", sizes[i - 1], "; sizes must ascend"));
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
  FindSizeMistakes("allowed_batch_sizes", sizes, &mistakes);
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
    if (!ParseCpuRange(part, &low, &high)) return BadCpus(part, text);
    for (int cpu = low; cpu <= high; ++cpu) cpus.push_back(cpu);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
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

absl::StatusOr<int64_t> ParseBytes(const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string unit = text.substr(digits);
  if (unit.size() == 3 && unit.substr(1) == "iB") unit.resize(1);
  const std::string units = "KMGT";
  const size_t power = unit.empty() ? 0 : units.find(unit) + 1;
  int64_t value = 0;
  if (digits > 0 && unit.size() <= 1 && (unit.empty() || power > 0) &&
      absl::SimpleAtoi(text.substr(0, digits), &value) && value <= kBytesRange.high >> (10 * power))
    return value << (10 * power);
  return absl::InvalidArgumentError(
      absl::StrCat("expected bytes, such as 1048576, 512MiB or 2GiB, up to ", kBytesRange.high,
                   ", got '", text, "'"));
}

absl::StatusOr<MemoryLimit> ParseMemoryLimit(const std::string& text) {
  MemoryLimit limit;
  if (text.empty() || text.back() != '%') {
    limit.percent = 0;
    FLOE_ASSIGN_OR_RETURN(limit.bytes, ParseBytes(text));
    return limit;
  }
  if (absl::SimpleAtoi(text.substr(0, text.size() - 1), &limit.percent) && limit.percent >= 1 &&
      limit.percent <= 100)
    return limit;
  return absl::InvalidArgumentError(absl::StrCat("expected 1% to 100%, got '", text, "'"));
}

std::string MemoryLimitText(const MemoryLimit& limit) {
  return limit.percent > 0 ? absl::StrCat(limit.percent, "%") : absl::StrCat(limit.bytes);
}

const std::vector<std::string>& ReplyFormatNames() {
  static const auto* names = new std::vector<std::string>{"typed", "content"};
  return *names;
}

const std::vector<std::string>& LogFormatNames() {
  static const auto* names = new std::vector<std::string>{"text", "json"};
  return *names;
}

const std::vector<std::string>& FullStatusNames() {
  static const auto* names = new std::vector<std::string>{"resource_exhausted", "unavailable"};
  return *names;
}

const std::vector<std::string>& TrialLoadNames() {
  static const auto* names = new std::vector<std::string>{"always", "updates", "never"};
  return *names;
}

const std::vector<std::string>& ConfigRpcsNames() {
  static const auto* names = new std::vector<std::string>{"local", "true", "false"};
  return *names;
}

}  // namespace floe
