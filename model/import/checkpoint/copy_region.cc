#include "model/import/checkpoint/copy_region.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

struct Overlap {
  int64_t begin = 0, end = 0;
};

Overlap OverlapOf(const SliceRange& a, const SliceRange& b) {
  const int64_t begin = std::max(a.start, b.start);
  return {begin, std::max(begin, std::min(a.start + a.length, b.start + b.length))};
}

class Copier {
 public:
  Copier(const Tensor& slice, const std::vector<SliceRange>& place,
         const std::vector<SliceRange>& region, Tensor* out)
      : place_(place), region_(region), dtype_(slice.dtype()) {
    element_ = dtype_ == DType::kString ? sizeof(std::string) : DTypeSize(dtype_);
    from_ = slice.as<std::byte>();
    to_ = static_cast<std::byte*>(out->mutable_data());
  }

  // Elements of the slice and of the region before the part that is being copied.
  void Copy(size_t dim, int64_t from, int64_t to) const {
    if (dim == place_.size()) {
      CopyRow(from, to, 1);
      return;
    }
    const Overlap overlap = OverlapOf(place_[dim], region_[dim]);
    from = from * place_[dim].length + overlap.begin - place_[dim].start;
    to = to * region_[dim].length + overlap.begin - region_[dim].start;
    const int64_t count = overlap.end - overlap.begin;
    if (dim + 1 == place_.size()) {
      CopyRow(from, to, count);
      return;
    }
    for (int64_t i = 0; i < count; ++i) Copy(dim + 1, from + i, to + i);
  }

 private:
  void CopyRow(int64_t from, int64_t to, int64_t count) const {
    CopyElements({dtype_, Shape({count}), const_cast<std::byte*>(from_ + from * element_)},
                 to_ + to * element_);
  }

  const std::vector<SliceRange>& place_;
  const std::vector<SliceRange>& region_;
  const DType dtype_;
  int64_t element_ = 0;
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
};

}  // namespace

absl::StatusOr<std::vector<SliceRange>> PlaceOfSlice(const std::vector<SliceRange>& ranges,
                                                     const Shape& whole) {
  if (ranges.size() != static_cast<size_t>(whole.rank()))
    return absl::DataLossError(
        absl::StrCat("a slice of ", ranges.size(), " dims of a tensor ", whole.ToString()));
  std::vector<SliceRange> place;
  for (int d = 0; d < whole.rank(); ++d) {
    SliceRange range = ranges[d];
    if (range.length < 0) range = {0, whole.dim(d)};
    if (range.start < 0 || range.start > whole.dim(d) || range.length > whole.dim(d) - range.start)
      return absl::DataLossError(absl::StrCat("a slice of ", range.length, " from ", range.start,
                                              " of dim ", d, " of a tensor ", whole.ToString()));
    place.push_back(range);
  }
  return place;
}

int64_t OverlapElements(const std::vector<SliceRange>& a, const std::vector<SliceRange>& b) {
  int64_t elements = 1;
  for (size_t d = 0; d < a.size(); ++d) {
    const Overlap overlap = OverlapOf(a[d], b[d]);
    elements *= overlap.end - overlap.begin;
  }
  return elements;
}

absl::Status CopyRegion(const Tensor& slice, const std::vector<SliceRange>& place,
                        const std::vector<SliceRange>& region, Tensor* out) {
  Shape shape;
  for (const SliceRange& range : place) shape.push_back(range.length);
  if (slice.dtype() != out->dtype() || slice.shape() != shape)
    return absl::DataLossError(absl::StrCat("a slice of it is ", DTypeName(slice.dtype()),
                                            slice.shape().ToString(), ", not ",
                                            DTypeName(out->dtype()), shape.ToString()));
  if (OverlapElements(place, region) == 0) return absl::OkStatus();
  Copier(slice, place, region, out).Copy(0, 0, 0);
  return absl::OkStatus();
}

}  // namespace floe
