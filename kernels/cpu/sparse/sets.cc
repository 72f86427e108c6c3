// Sets along the last dim of dense and sparse tensors: their union, intersection and difference,
// and their sizes.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/sparse/sparse_places.h"
#include "kernels/cpu/widened.h"

namespace floe::kernels {
namespace {

using SetElements = TypeList<int64_t, uint64_t, std::string>;  // other integers are widened

// A set for each place of the dims before the last, by the place's number; those that are not there
// are empty.
template <class T>
struct Sets {
  IntList groups;  // the dims before the last
  std::map<int64_t, std::set<T>> at;
};

absl::Status CheckRank(size_t rank) {
  return rank >= 2 ? absl::OkStatus()
                   : absl::InvalidArgumentError(absl::StrCat("sets in a tensor of rank ", rank));
}

template <class T>
absl::Status ReadDense(const TensorView& in, Sets<T>* sets) {
  const int rank = in.shape.rank();
  FLOE_RETURN_IF_ERROR(CheckRank(rank));
  for (int i = 0; i + 1 < rank; ++i) sets->groups.push_back(in.shape.dim(i));
  const int64_t width = in.shape.dim(rank - 1), groups = width == 0 ? 0 : in.elements() / width;
  for (int64_t g = 0; g < groups; ++g) {
    const T* const x = in.as<T>() + g * width;
    sets->at.emplace(g, std::set<T>(x, x + width));
  }
  return absl::OkStatus();
}

// Inputs first to first + 2: indices, values, shape. With `ordered`, indices must rise, as
// TensorFlow demands unless validate_indices is off.
template <class T>
absl::Status ReadSparse(const KernelContext& ctx, int first, bool ordered, Sets<T>* sets) {
  SparsePlaces places;
  FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(first), ctx.in(first + 1), ctx.in(first + 2), &places));
  FLOE_RETURN_IF_ERROR(CheckRank(places.shape.size()));
  sets->groups.assign(places.shape.begin(), places.shape.end() - 1);
  constexpr int64_t kMostGroups = int64_t{1} << 62;
  FLOE_RETURN_IF_ERROR(CheckedElements(sets->groups, 1, kMostGroups).status());
  for (int64_t i = 0; i < places.count; ++i) {
    if (ordered && i > 0 && places.Compare(i - 1, places, i) >= 0)
      return absl::InvalidArgumentError(absl::StrCat("index ", i, " is out of order or repeated"));
    int64_t group = 0;
    for (size_t k = 0; k < sets->groups.size(); ++k)
      group = group * sets->groups[k] + places.At(i)[k];
    sets->at[group].insert(ctx.in(first + 1).as<T>()[i]);
  }
  return absl::OkStatus();
}

template <class T>
std::vector<T> Combine(const std::set<T>& a, const std::set<T>& b, const std::string& op) {
  std::vector<T> out;
  const auto end = std::back_inserter(out);
  if (op == "union") std::set_union(a.begin(), a.end(), b.begin(), b.end(), end);
  if (op == "intersection") std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), end);
  if (op == "a-b") std::set_difference(a.begin(), a.end(), b.begin(), b.end(), end);
  if (op == "b-a") std::set_difference(b.begin(), b.end(), a.begin(), a.end(), end);
  return out;
}

template <class T>
absl::Status GiveSets(const KernelContext& ctx, const Sets<T>& a, const Sets<T>& b,
                      const std::string& op) {
  if (a.groups != b.groups)
    return absl::InvalidArgumentError(absl::StrCat("sets of shapes ", Shape(a.groups).ToString(),
                                                   " and ", Shape(b.groups).ToString(),
                                                   ", which must be equal"));
  const auto rank = static_cast<int64_t>(a.groups.size()) + 1;
  std::vector<int64_t> indices;
  std::vector<T> values;
  int64_t largest = 0;
  const std::set<T> none;
  const auto add = [&](int64_t group, const std::set<T>& x, const std::set<T>& y) {
    const std::vector<T> result = Combine(x, y, op);
    largest = std::max<int64_t>(largest, static_cast<int64_t>(result.size()));
    std::vector<int64_t> at(rank);
    for (int64_t k = rank - 2; k >= 0; --k) {
      at[k] = group % a.groups[k];
      group /= a.groups[k];
    }
    for (const T& value : result) {
      indices.insert(indices.end(), at.begin(), at.end());
      values.push_back(value);
      ++at[rank - 1];
    }
  };
  for (auto x = a.at.begin(), y = b.at.begin(); x != a.at.end() || y != b.at.end();) {
    const bool first = y == b.at.end() || (x != a.at.end() && x->first <= y->first);
    const bool second = x == a.at.end() || (y != b.at.end() && y->first <= x->first);
    add(first ? x->first : y->first, first ? x->second : none, second ? y->second : none);
    if (first) ++x;
    if (second) ++y;
  }
  std::vector<int64_t> shape(a.groups.begin(), a.groups.end());
  shape.push_back(largest);
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, indices, Shape({static_cast<int64_t>(values.size()), rank})));
  FLOE_RETURN_IF_ERROR(Give(ctx, 1, values));
  return Give(ctx, 2, shape);
}

// How many of the two inputs are sparse: the second, or both.
template <class T>
absl::Status Operate(const KernelContext& ctx, int sparse, bool ordered, const std::string& op) {
  Sets<T> a, b;
  if (sparse == 2) {
    FLOE_RETURN_IF_ERROR(ReadSparse(ctx, 0, ordered, &a));
  } else {
    FLOE_RETURN_IF_ERROR(ReadDense(ctx.in(0), &a));
  }
  if (sparse > 0) {
    FLOE_RETURN_IF_ERROR(ReadSparse(ctx, sparse == 2 ? 3 : 1, ordered, &b));
  } else {
    FLOE_RETURN_IF_ERROR(ReadDense(ctx.in(1), &b));
  }
  return GiveSets(ctx, a, b, op);
}

template <class T>
absl::Status Sizes(const KernelContext& ctx, bool ordered) {
  Sets<T> sets;
  FLOE_RETURN_IF_ERROR(ReadSparse(ctx, 0, ordered, &sets));
  FLOE_RETURN_IF_ERROR(CheckedElements(sets.groups, sizeof(int32_t)).status());
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(0, DType::kInt32, Shape(sets.groups)));
  std::fill_n(out.as<int32_t>(), out.elements(), 0);
  for (const auto& [group, set] : sets.at)
    out.as<int32_t>()[group] = static_cast<int32_t>(set.size());
  return absl::OkStatus();
}

// run(t, ctx, ordered) for the dtype of input kValues.
template <int kValues, Widening kWidening, class F>
std::unique_ptr<Kernel> ForElements(const KernelArgs& args, F run) {
  const bool ordered = args.node.attrs.Bool("validate_indices", true);
  const char* const name = args.node.op->name.c_str();
  const auto by_dtype = [ordered, name, run](const KernelContext& ctx) {
    const DType dtype = ctx.in(kValues).dtype;
    absl::Status status = absl::UnimplementedError(absl::StrCat(name, " of ", DTypeName(dtype)));
    ForDType(dtype, SetElements{}, [&](auto t) { status = run(t, ctx, ordered); });
    return status;
  };
  return FromFunction([by_dtype](const KernelContext& ctx) {
    const DType dtype = ctx.in(kValues).dtype;
    if (!IsNarrowInteger(dtype)) return by_dtype(ctx);
    return RunWidened(ctx, dtype, DType::kInt64, kWidening, 1, by_dtype);
  });
}
template <int kSparse>
absl::StatusOr<std::unique_ptr<Kernel>> MakeOperation(const KernelArgs& args) {
  constexpr int kValues = kSparse == 2 ? 1 : 0;
  const std::string op = args.node.attrs.String("set_operation");
  return ForElements<kValues, Widening::kWrap>(
      args, [op](auto t, const KernelContext& ctx, bool ordered) {
        return Operate<decltype(t)>(ctx, kSparse, ordered, op);
      });
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeSizes(const KernelArgs& args) {
  return ForElements<1, Widening::kInputs>(args,
                                           [](auto t, const KernelContext& ctx, bool ordered) {
                                             return Sizes<decltype(t)>(ctx, ordered);
                                           });
}
FLOE_REGISTER_KERNEL(DenseToDenseSetOperation, kCpu, MakeOperation<0>);
FLOE_REGISTER_KERNEL(DenseToSparseSetOperation, kCpu, MakeOperation<1>);
FLOE_REGISTER_KERNEL(SparseToSparseSetOperation, kCpu, MakeOperation<2>);
FLOE_REGISTER_KERNEL(SetSize, kCpu, MakeSizes);

}  // namespace
}  // namespace floe::kernels
