#include "model/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace floe {

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int64_t d : dims_) n *= d;
  return n;
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims_, ","), "]"); }

absl::StatusOr<int64_t> CheckedElements(absl::Span<const int64_t> dims, size_t element_size,
                                        int64_t max_bytes) {
  int64_t elements = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("negative dimension in shape [", absl::StrJoin(dims, ","), "]"));
    if (d == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(elements, d, &elements)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape [", absl::StrJoin(dims, ","), "] has too many elements"));
    }
  }
  if (element_size != 0 && elements > max_bytes / static_cast<int64_t>(element_size)) {
    return absl::InvalidArgumentError(absl::StrCat("shape [", absl::StrJoin(dims, ","),
                                                   "] needs more than ", max_bytes, " bytes"));
  }
  return empty ? 0 : elements;
}

std::string Dim::ToString() const {
  if (!known()) return "?";
  if (per_row_ == 0) return absl::StrCat(base_);
  const std::string rows = per_row_ == 1 ? "rows" : absl::StrCat(per_row_, "*rows");
  return base_ == 0 ? rows : absl::StrCat(base_, "+", rows);
}

namespace {

Dim CheckedAffine(bool overflow, int64_t base, int64_t per_row) {
  return overflow || base == INT64_MIN ? Dim::Unknown() : Dim::Affine(base, per_row);
}

}  // namespace

Dim operator*(Dim a, Dim b) {
  if (!a.known() || !b.known()) return Dim::Unknown();
  if (a.has_rows() && b.has_rows()) return Dim::Unknown();
  int64_t base, left, right;
  bool overflow = __builtin_mul_overflow(a.base(), b.base(), &base);
  overflow |= __builtin_mul_overflow(a.base(), b.per_row(), &left);
  overflow |= __builtin_mul_overflow(a.per_row(), b.base(), &right);
  return CheckedAffine(overflow, base, left + right);  // one of the two is zero
}

Dim operator+(Dim a, Dim b) {
  if (!a.known() || !b.known()) return Dim::Unknown();
  int64_t base, per_row;
  bool overflow = __builtin_add_overflow(a.base(), b.base(), &base);
  overflow |= __builtin_add_overflow(a.per_row(), b.per_row(), &per_row);
  return CheckedAffine(overflow, base, per_row);
}

Dim DivideExactly(Dim a, Dim b) {
  if (!a.known() || !b.known()) return Dim::Unknown();
  if (b.concrete()) {
    if (b.size() <= 0 || a.base() % b.size() != 0 || a.per_row() % b.size() != 0)
      return Dim::Unknown();
    return Dim::Affine(a.base() / b.size(), a.per_row() / b.size());
  }
  // (p + q r) / (s + t r) is a number only when the two are proportional.
  if (b.per_row() < 0 || a.per_row() % b.per_row() != 0) return Dim::Unknown();
  const int64_t quotient = a.per_row() / b.per_row();
  return b * Dim(quotient) == a ? Dim(quotient) : Dim::Unknown();
}

bool SymShape::known() const {
  if (!rank_known_) return false;
  for (Dim d : dims_) {
    if (!d.known()) return false;
  }
  return true;
}

bool SymShape::concrete() const {
  if (!rank_known_) return false;
  for (Dim d : dims_) {
    if (!d.concrete()) return false;
  }
  return true;
}

Shape SymShape::At(int64_t rows) const {
  Shape shape;
  for (Dim d : dims_) shape.push_back(d.At(rows));
  return shape;
}

Dim SymShape::elements() const {
  if (!rank_known_) return Dim::Unknown();
  Dim n = 1;
  for (Dim d : dims_) n = n * d;
  return n;
}

std::string SymShape::ToString() const {
  if (!rank_known_) return "<unknown rank>";
  return absl::StrCat(
      "[", absl::StrJoin(dims_, ",", [](std::string* out, Dim d) { out->append(d.ToString()); }),
      "]");
}

absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is outside rank ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace floe
