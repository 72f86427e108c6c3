// CTCBeamSearchDecoder: the likeliest label sequences of a connectionist classifier, by beam search
// over prefixes. The last class is the blank.
#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();  // log 0

template <class T>
T LogSum(T a, T b) {
  if (a == kNever<T> && b == kNever<T>) return a;
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

// Log probabilities that a prefix ends in a blank or in its last label.
template <class T>
struct Chance {
  T total = kNever<T>, blank = kNever<T>, label = kNever<T>;
};

template <class T>
struct Prefix {
  Prefix* parent = nullptr;
  int64_t label = -1;
  Chance<T> before, now;
  std::map<int64_t, Prefix*> children;

  bool active() const { return now.total != kNever<T>; }
  // What a label more begins with: one equal to the last needs a blank between.
  T Base(int64_t next) const { return next == label ? before.blank : before.total; }
};

// The best prefixes, at most `width` of them.
template <class T>
class Beam {
 public:
  explicit Beam(size_t width) : width_(width) {
    root_.now.total = root_.now.blank = 0;
    best_.insert(&root_);
  }

  absl::Status Step(const T* logits, int64_t classes) {
    const T top = *std::max_element(logits, logits + classes);
    T sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - top);
    const T norm = top + std::log(sum);
    const std::vector<Prefix<T>*> prefixes(best_.begin(), best_.end());
    best_.clear();
    for (Prefix<T>* p : prefixes) p->before = p->now;
    for (Prefix<T>* p : prefixes) {
      if (p->parent != nullptr) {
        if (p->parent->active()) p->now.label = LogSum(p->now.label, p->parent->Base(p->label));
        p->now.label += logits[p->label] - norm;
      }
      p->now.blank = p->before.total + (logits[classes - 1] - norm);
      p->now.total = LogSum(p->now.blank, p->now.label);
      best_.insert(p);
    }
    for (Prefix<T>* p : prefixes) {
      if (!Enters(p->before.total)) continue;
      for (int64_t label = 0; label + 1 < classes; ++label) Grow(p, label, logits[label] - norm);
    }
    return CheckValueBytes(static_cast<int64_t>(made_.size() * (sizeof(Prefix<T>) + 64)));
  }

  // Best first.
  std::vector<const Prefix<T>*> Best() const { return {best_.begin(), best_.end()}; }

 private:
  struct Better {
    bool operator()(const Prefix<T>* a, const Prefix<T>* b) const {
      return a->now.total > b->now.total;
    }
  };

  bool Enters(T total) const {
    return total > kNever<T> && (best_.size() < width_ || total > (*best_.rbegin())->now.total);
  }
  void Grow(Prefix<T>* p, int64_t label, T chance) {
    const T total = chance + p->Base(label);
    const auto found = p->children.find(label);
    if ((found != p->children.end() && found->second->active()) || !Enters(total)) return;
    Prefix<T>*& child = p->children[label];
    if (child == nullptr) {
      child = &made_.emplace_back();
      child->parent = p;
      child->label = label;
    }
    if (best_.size() == width_) {
      const auto last = std::prev(best_.end());
      Prefix<T>* const worst = *last;
      best_.erase(last);
      worst->now = {};
    }
    child->now = {total, kNever<T>, total};
    best_.insert(child);
  }

  const size_t width_;
  std::deque<Prefix<T>> made_;  // flat: chains of them are as long as the sequence
  Prefix<T> root_;
  std::multiset<Prefix<T>*, Better> best_;  // totals change only outside it
};

template <class T>
std::vector<int64_t> LabelsOf(const Prefix<T>* prefix, bool merge) {
  std::vector<int64_t> labels;
  int64_t last = -1;
  for (const Prefix<T>* p = prefix; p->parent != nullptr; p = p->parent) {
    if (!merge || p->label != last) labels.push_back(p->label);
    last = p->label;
  }
  return {labels.rbegin(), labels.rend()};
}

struct Options {
  int64_t width, paths;
  bool merge;
};

// A sparse matrix: a row of labels for each sequence.
struct Path {
  std::vector<int64_t> indices, values;
  int64_t longest = 0;
};

template <class T>
absl::Status Decode(const KernelContext& ctx, const Options& options) {
  const Shape& shape = ctx.in(0).shape;
  const int64_t steps = shape.dim(0), batch = shape.dim(1), classes = shape.dim(2);
  IntList lengths;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &lengths));
  if (static_cast<int64_t>(lengths.size()) != batch || classes == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("inputs ", shape.ToString(), " with ", lengths.size(), " lengths"));
  std::vector<Path> paths(static_cast<size_t>(options.paths));
  BudgetVector<T> scores;
  for (int64_t b = 0; b < batch; ++b) {
    if (lengths[b] > steps)  // negative is none, as in TensorFlow
      return absl::InvalidArgumentError(
          absl::StrCat("sequence_length ", lengths[b], " is more than ", steps));
    Beam<T> beam(static_cast<size_t>(options.width));
    for (int64_t t = 0; t < lengths[b]; ++t) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      FLOE_RETURN_IF_ERROR(beam.Step(ctx.in(0).as<T>() + (t * batch + b) * classes, classes));
    }
    const std::vector<const Prefix<T>*> best = beam.Best();
    if (best.size() < paths.size())
      return absl::InvalidArgumentError(absl::StrCat("sequence ", b, " has only ", best.size(),
                                                     " paths, top_paths is ", paths.size()));
    for (size_t k = 0; k < paths.size(); ++k) {
      const std::vector<int64_t> labels = LabelsOf(best[k], options.merge);
      const auto count = static_cast<int64_t>(labels.size());
      for (int64_t i = 0; i < count; ++i) paths[k].indices.insert(paths[k].indices.end(), {b, i});
      paths[k].values.insert(paths[k].values.end(), labels.begin(), labels.end());
      paths[k].longest = std::max(paths[k].longest, count);
      scores.push_back(best[k]->now.total);
    }
  }
  const auto n = static_cast<int>(options.paths);
  for (int k = 0; k < n; ++k) {
    const Path& path = paths[k];
    FLOE_RETURN_IF_ERROR(
        Give(ctx, k, path.indices, Shape({static_cast<int64_t>(path.values.size()), 2})));
    FLOE_RETURN_IF_ERROR(Give(ctx, n + k, path.values));
    FLOE_RETURN_IF_ERROR(Give(ctx, 2 * n + k, std::vector<int64_t>{batch, path.longest}));
  }
  return Give(ctx, 3 * n, scores, Shape({batch, options.paths}));
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  const Options options{args.node.attrs.Int("beam_width"), args.node.attrs.Int("top_paths"),
                        args.node.attrs.Bool("merge_repeated", true)};
  return FromFunction([options](const KernelContext& ctx) { return Decode<T>(ctx, options); });
}
FLOE_REGISTER_KERNELS(CTCBeamSearchDecoder, kCpu, Make<T>, TypeList<float, double>);

}  // namespace
}  // namespace floe::kernels
