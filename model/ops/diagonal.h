// Bands of diagonals of matrices, as MatrixDiag and its relatives number and align them.
#pragma once

#include <algorithm>

#include "model/op_def.h"

namespace floe::ops {

struct Diagonals {
  int64_t lower = 0, upper = 0;  // diagonal d holds the elements (i, i + d)
  bool left_super = true, left_sub = true;

  int64_t count() const { return upper - lower + 1; }
  static int64_t Length(int64_t d, int64_t rows, int64_t cols) {
    return std::min(rows + std::min<int64_t>(0, d), cols - std::max<int64_t>(0, d));
  }
  // Of the longest diagonal of the band.
  int64_t Longest(int64_t rows, int64_t cols) const {
    return std::min(rows + std::min<int64_t>(upper, 0), cols + std::min<int64_t>(-lower, 0));
  }
  // Place of the first element of diagonal d in its row of the band.
  int64_t Offset(int64_t d, int64_t rows, int64_t cols) const {
    const bool left = (d >= 0 && left_super) || (d <= 0 && left_sub);
    return left ? 0 : Longest(rows, cols) - Length(d, rows, cols);
  }
};

// From the values of input k (empty: the main diagonal) and the attribute align; the forms before
// V3 align left.
absl::StatusOr<Diagonals> DiagonalsOf(const Node& node, absl::Span<const int64_t> k);

// Size of the matrix that a band fills; -1 for what the inputs leave open.
absl::Status MatrixSize(const Diagonals& band, int64_t longest, int64_t* rows, int64_t* cols);

}  // namespace floe::ops
