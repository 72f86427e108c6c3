// StringNGrams: words in a row joined, the ends padded.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

struct NGramOptions {
  std::vector<int64_t> widths;
  std::string separator, left, right;
  int64_t pad = -1;  // words of padding at each end; -1: as many as fit
  bool keep_short = false;

  int64_t PadOf(int64_t width) const { return pad < 0 ? width - 1 : std::min(pad, width - 1); }
};

class Maker {
 public:
  explicit Maker(const NGramOptions& options) : options_(options) {}

  // All of one sentence.
  absl::Status Sentence(const std::string* words, int64_t count) {
    const size_t before = grams_.size();
    for (const int64_t width : options_.widths) {
      const int64_t places = count + 2 * options_.PadOf(width) - width + 1;
      for (int64_t at = 0; at < places; ++at) FLOE_RETURN_IF_ERROR(Add(words, count, width, at));
    }
    const bool none = grams_.size() == before && count > 0;
    if (!none || !options_.keep_short) return absl::OkStatus();
    if (options_.pad < 0)  // as many as fit: with a width, there had been an n-gram
      return absl::InvalidArgumentError(
          "pad_width is -1; without ngram_widths, preserve_short_sequences needs 0 or more");
    return Add(words, count, count + 2 * options_.pad, 0);
  }
  const std::vector<std::string>& grams() const { return grams_; }

 private:
  // Of `width` words, the first being word at - pad.
  absl::Status Add(const std::string* words, int64_t count, int64_t width, int64_t at) {
    const int64_t first = at - options_.PadOf(width);
    std::string gram;
    for (int64_t i = first; i < first + width; ++i) {
      if (i > first) gram += options_.separator;
      gram += i < 0 ? options_.left : i < count ? words[i] : options_.right;
      if ((i - first) % 1024 != 0) continue;  // wide n-grams are mostly padding
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      FLOE_RETURN_IF_ERROR(CheckValueBytes(bytes_ + static_cast<int64_t>(gram.size())));
    }
    bytes_ += static_cast<int64_t>(gram.size() + sizeof(std::string));
    FLOE_RETURN_IF_ERROR(CheckValueBytes(bytes_));
    grams_.push_back(std::move(gram));
    return absl::OkStatus();
  }

  const NGramOptions& options_;
  int64_t bytes_ = 0;
  std::vector<std::string> grams_;
};

absl::Status NGrams(const KernelContext& ctx, const NGramOptions& options) {
  IntList splits;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &splits));
  const int64_t words = ctx.in(0).elements();
  if (splits.empty() && words == 0) {
    FLOE_RETURN_IF_ERROR(Give(ctx, 0, std::vector<std::string>()));
    return GiveInts(ctx, 1, ctx.in(1).dtype, {});
  }
  if (splits.empty() || splits.front() != 0 || splits.back() != words ||
      !std::is_sorted(splits.begin(), splits.end()))
    return absl::InvalidArgumentError(
        absl::StrCat("splits do not rise from 0 to ", words, ", the number of words"));
  Maker maker(options);
  std::vector<int64_t> to = {0};
  if (words == 0) {  // padding alone makes none
    to.resize(splits.size(), 0);
    FLOE_RETURN_IF_ERROR(Give(ctx, 0, maker.grams()));
    return GiveInts(ctx, 1, ctx.in(1).dtype, to);
  }
  for (size_t i = 0; i + 1 < splits.size(); ++i) {
    FLOE_RETURN_IF_ERROR(
        maker.Sentence(ctx.in(0).as<std::string>() + splits[i], splits[i + 1] - splits[i]));
    to.push_back(static_cast<int64_t>(maker.grams().size()));
  }
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, maker.grams()));
  return GiveInts(ctx, 1, ctx.in(1).dtype, to);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeNGram(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  NGramOptions options{a.Ints("ngram_widths"),
                       a.String("separator"),
                       a.String("left_pad"),
                       a.String("right_pad"),
                       std::clamp<int64_t>(a.Int("pad_width"), -1, INT32_MAX),
                       a.Bool("preserve_short_sequences")};
  return FromFunction(
      [options = std::move(options)](const KernelContext& ctx) { return NGrams(ctx, options); });
}
FLOE_REGISTER_KERNEL(StringNGrams, kCpu, MakeNGram, DType::kString);

}  // namespace
}  // namespace floe::kernels
