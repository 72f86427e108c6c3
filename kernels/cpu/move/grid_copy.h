// Moving elements between two strided layouts: what transposes, slices, joins, splits, tiles and
// broadcasts do.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "base/thread_pool.h"
#include "model/tensor.h"

namespace floe::kernels {

using IntList = absl::InlinedVector<int64_t, 8>;

// dims[i] steps of from[i] and to[i] elements. Strides may be 0 or negative in `from`; `to` must
// not visit a place twice.
struct Grid {
  IntList dims, from, to;
  void Add(int64_t size, int64_t from_stride, int64_t to_stride) {
    dims.push_back(size);
    from.push_back(from_stride);
    to.push_back(to_stride);
  }
};

// The same grid without dims of size 1, and with neighbours that run on joined; one dim at least.
Grid JoinedDims(const Grid& grid);

// Copies the elements of the grid from `from` to `to` (the addresses of its first element). The two
// must not overlap, but they may be the same: the plan has placed one in the other, and all
// elements are there already.
void CopyGrid(Grid grid, DType dtype, const void* from, void* to, ThreadPool* pool);

// The address of element `at`, counted in row-major order.
char* ElementAt(const TensorView& view, int64_t at);

// Row-major strides of a shape, in elements.
IntList DenseStrides(const Shape& shape);

// `count` elements in a row.
void CopyElements(DType dtype, const void* from, void* to, int64_t count);

// Writes *value to each of `count` elements.
void FillElements(DType dtype, const void* value, void* to, int64_t count);

// The elements of an input of integers up to 16 bits, int32 or int64; INVALID_ARGUMENT for other
// types, and when the values depend on the number of rows.
absl::Status ReadInts(const TensorView& view, IntList* values);

// An input of one element.
absl::StatusOr<int64_t> ReadInt(const TensorView& view);

}  // namespace floe::kernels
