// What every inference has in common: its signature, the names of its inputs and outputs, and the
// memory of its inputs.
#include "server/request/inference.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/retry_after.h"
#include "base/status.h"

namespace floe::server {
namespace {

// Smaller inputs are decoded without asking the memory limit.
constexpr int64_t kUnpaidInputBytes = int64_t{64} << 10;

std::vector<std::string> Keys(const std::vector<SignatureTensor>& tensors) {
  std::vector<std::string> keys;
  keys.reserve(tensors.size());
  for (const SignatureTensor& tensor : tensors) keys.push_back(tensor.key);
  return keys;
}

// "; nearest: 'a', 'b'", or nothing when there are no candidates.
std::string NearestHint(std::string_view name, const std::vector<SignatureTensor>& tensors) {
  if (tensors.empty()) return "";
  const std::string compared(name.substr(0, kMostQuotedBytes));
  return absl::StrCat("; nearest: ", QuotedList(NearestNames(compared, Keys(tensors))));
}

// "'x', 'y' (optional)".
std::string TakenInputs(const std::vector<SignatureTensor>& inputs) {
  std::string text;
  for (const SignatureTensor& input : inputs)
    absl::StrAppend(&text, text.empty() ? "" : ", ", Quoted(input.key),
                    input.optional ? " (optional)" : "");
  return text.empty() ? "(none)" : text;
}

absl::Status WrongInputs(absl::Span<const std::string_view> keys, const Inference& asked) {
  const auto& taken = asked.signature->def().inputs;
  std::string hint;  // one: the lists show the rest
  for (const std::string_view key : keys)
    if (hint.empty() && asked.signature->FindInput(key) < 0)
      hint = absl::StrCat("; unknown ", Quoted(key), NearestHint(key, taken));
  std::vector<std::string> sent(keys.begin(), keys.end());
  absl::c_sort(sent);  // protobuf's maps have no order of their own
  sent.erase(std::unique(sent.begin(), sent.end()), sent.end());
  return absl::InvalidArgumentError(absl::StrCat(ModelAndSignature(asked), " takes inputs ",
                                                 TakenInputs(taken), ", but ", QuotedList(sent),
                                                 " were sent", hint));
}

}  // namespace

absl::Status TooMuchUnfolded() {
  return AsTooLarge(absl::ResourceExhaustedError(
      "the request's inputs unfold to more bytes than the server accepts in one message "
      "(--grpc_max_message_bytes)"));
}

absl::Status InputStorage::Charge(int64_t bytes) {
  if (bytes > left_) return TooMuchUnfolded();
  left_ -= bytes;
  return absl::OkStatus();
}

absl::Status InputStorage::Pay(int64_t bytes) {
  if (memory_ == nullptr || bytes < kUnpaidInputBytes) return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(MemoryShare share, memory_->Take(bytes));
  paid_.Add(std::move(share));
  return absl::OkStatus();
}

void* InputStorage::Allocate(int64_t bytes) {
  buffers_.emplace_back(new std::byte[static_cast<size_t>(bytes)]);
  return buffers_.back().get();
}

std::string* InputStorage::AllocateStrings(int64_t count) {
  strings_.emplace_back(new std::string[static_cast<size_t>(count)]);
  return strings_.back().get();
}

absl::Status PendingInputs::Decode() {
  MutexLock lock(mutex_);
  if (decode_ == nullptr) return status_;
  status_ = CatchOutOfMemory(std::exchange(decode_, nullptr));
  return status_;
}

std::string ModelAndSignature(const Inference& asked) {
  const ModelInfo& info = asked.model->info();
  return absl::StrCat("model ", Quoted(info.name), " version ", info.version, ", signature ",
                      Quoted(asked.signature->def().name));
}

absl::Status ChooseSignature(ModelHandle model, std::string_view name, Inference* asked) {
  asked->model = std::move(model);
  asked->signature = asked->model->Find(name);
  if (asked->signature != nullptr) return absl::OkStatus();
  const ModelInfo& info = asked->model->info();
  const auto& left_out = asked->model->left_out();
  const auto why = left_out.find(name.empty() ? "serving_default" : std::string(name));
  if (why != left_out.end())
    return absl::FailedPreconditionError(absl::StrCat(
        "model ", Quoted(info.name), " version ", info.version, " does not serve signature ",
        Quoted(why->first), ": ", std::string(why->second.message())));
  std::vector<std::string> names;
  for (const auto& [known, signature] : asked->model->signatures()) names.push_back(known);
  return absl::FailedPreconditionError(absl::StrCat(
      "model ", Quoted(info.name), " version ", info.version, " has no signature ",
      Quoted(name.empty() ? "serving_default" : name), "; it has ", QuotedList(names)));
}

absl::Status ChooseOutputs(absl::Span<const std::string_view> names, Inference* asked) {
  const auto& has = asked->signature->def().outputs;
  TensorIndices& outputs = asked->outputs;
  if (names.empty())
    for (size_t i = 0; i < has.size(); ++i) outputs.push_back(static_cast<int>(i));
  for (const std::string_view name : names) {
    const int index = asked->signature->FindOutput(name);
    if (index < 0)
      return absl::InvalidArgumentError(absl::StrCat(ModelAndSignature(*asked), " has no output ",
                                                     Quoted(name), NearestHint(name, has),
                                                     "; it has ", QuotedList(Keys(has))));
    if (absl::c_linear_search(outputs, index))
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Quoted(name), " is asked for twice"));
    outputs.push_back(index);
  }
  return absl::OkStatus();
}

absl::Status PlaceInputs(absl::Span<const std::string_view> keys, Inference* asked,
                         TensorIndices* sent) {
  const auto& taken = asked->signature->def().inputs;
  sent->assign(taken.size(), -1);
  for (size_t i = 0; i < keys.size(); ++i) {
    const int index = asked->signature->FindInput(keys[i]);
    if (index < 0) return WrongInputs(keys, *asked);
    (*sent)[static_cast<size_t>(index)] = static_cast<int>(i);
  }
  for (size_t i = 0; i < taken.size(); ++i)
    if ((*sent)[i] < 0 && !taken[i].optional) return WrongInputs(keys, *asked);
  asked->inputs.resize(taken.size());
  return absl::OkStatus();
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
