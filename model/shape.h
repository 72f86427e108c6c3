// Shapes: concrete (`Shape`) and symbolic (`SymShape`), whose dims may be unknown or affine in the
// number of request rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace floe {

// Concrete dims, each >= 0. A value; copying allocates only above rank 6.
class Shape {
 public:
  using Dims = absl::InlinedVector<int64_t, 6>;
  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int axis) const { return dims_[axis]; }
  void set_dim(int axis, int64_t size) { dims_[axis] = size; }
  void push_back(int64_t size) { dims_.push_back(size); }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t elements()
      const;  // 1 for a scalar; the caller has checked for overflow (CheckedElements)
  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  bool operator!=(const Shape& other) const { return !(*this == other); }
  std::string ToString() const;  // "[2,3]"

 private:
  Dims dims_;
};

// Product of dims; an error for a negative dim or when elements * element_size exceeds `max_bytes`.
absl::StatusOr<int64_t> CheckedElements(absl::Span<const int64_t> dims, size_t element_size,
                                        int64_t max_bytes = int64_t{1} << 40);

// base + per_row * rows, or unknown. `rows` is the number of request rows in a run (>= 1 where it
// matters).
class Dim {
 public:
  constexpr Dim(int64_t size = kUnknown) : base_(size) {}  // NOLINT: dims read as numbers
  static constexpr Dim Unknown() { return Dim(kUnknown); }
  static constexpr Dim Rows(int64_t per_row = 1) { return Affine(0, per_row); }
  static constexpr Dim Affine(int64_t base, int64_t per_row) {
    Dim d(base);
    d.per_row_ = per_row;
    return d;
  }

  constexpr bool known() const { return base_ != kUnknown; }  // concrete or affine
  constexpr bool concrete() const { return known() && per_row_ == 0; }
  constexpr bool has_rows() const { return known() && per_row_ != 0; }
  constexpr int64_t base() const { return base_; }
  constexpr int64_t per_row() const { return per_row_; }
  constexpr int64_t size() const { return base_; }  // of a concrete dim
  constexpr int64_t At(int64_t rows) const { return base_ + per_row_ * rows; }
  constexpr bool operator==(const Dim& o) const {
    return base_ == o.base_ && per_row_ == o.per_row_;
  }
  constexpr bool operator!=(const Dim& o) const { return !(*this == o); }
  std::string ToString() const;  // "3", "?", "rows", "49*rows", "2+rows"

 private:
  static constexpr int64_t kUnknown = INT64_MIN;
  int64_t base_;
  int64_t per_row_ = 0;
};

// Dims multiplied; unknown when either is, or when both depend on rows (not affine).
Dim operator*(Dim a, Dim b);
Dim operator+(Dim a, Dim b);
// a / b when b divides a for every number of rows, otherwise unknown.
Dim DivideExactly(Dim a, Dim b);

// A shape whose rank or dims may be unknown. A value.
class SymShape {
 public:
  using Dims = absl::InlinedVector<Dim, 6>;
  SymShape() : rank_known_(true) {}  // a scalar
  SymShape(std::initializer_list<Dim> dims) : rank_known_(true), dims_(dims) {}
  explicit SymShape(const Shape& shape) : rank_known_(true) {
    for (int64_t d : shape.dims()) dims_.push_back(d);
  }
  static SymShape UnknownRank() {
    SymShape s;
    s.rank_known_ = false;
    return s;
  }

  bool rank_known() const { return rank_known_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  Dim dim(int axis) const { return dims_[axis]; }
  void set_dim(int axis, Dim dim) { dims_[axis] = dim; }
  void push_back(Dim dim) { dims_.push_back(dim); }
  const Dims& dims() const { return dims_; }

  bool known() const;            // rank and every dim known (concrete or affine in rows)
  bool concrete() const;         // every dim a number
  Shape At(int64_t rows) const;  // needs known()
  Dim elements() const;          // unknown unless known() and affine
  bool operator==(const SymShape& o) const {
    return rank_known_ == o.rank_known_ && dims_ == o.dims_;
  }
  bool operator!=(const SymShape& o) const { return !(*this == o); }
  std::string ToString() const;  // "[rows,28,28,1]", "[?,3]", "<unknown rank>"

 private:
  bool rank_known_;
  Dims dims_;
};

// Axis in [-rank, rank) made non-negative, or INVALID_ARGUMENT naming axis and rank.
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);

}  // namespace floe
