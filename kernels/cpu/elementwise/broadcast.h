// Iteration over broadcast operands: dims that can be walked together are joined, so that the inner
// loop is long.
#pragma once

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "kernels/cpu/parallel.h"
#include "model/shape.h"

namespace floe::kernels {

// N inputs that broadcast to a dense output. Strides count elements; those of the last dim are 0
// or 1.
template <int N>
struct Broadcast {
  using Dims = absl::InlinedVector<int64_t, 6>;
  Dims dims;  // outermost first, at least one
  std::array<Dims, N> strides;

  int64_t run() const { return dims.back(); }  // elements of the inner loop
  int64_t runs() const {
    int64_t n = 1;
    for (size_t i = 0; i + 1 < dims.size(); ++i) n *= dims[i];
    return n;
  }
};

template <int N>
Broadcast<N> MakeBroadcast(const Shape& out, const std::array<const Shape*, N>& inputs) {
  Broadcast<N> b;  // built innermost first, then turned round
  std::array<int64_t, N> dense;
  dense.fill(1);
  for (int axis = out.rank() - 1; axis >= 0; --axis) {
    const int64_t size = out.dim(axis);
    std::array<int64_t, N> stride;
    for (int k = 0; k < N; ++k) {
      const int own = axis - (out.rank() - inputs[k]->rank());
      const int64_t own_size = own < 0 ? 1 : inputs[k]->dim(own);
      stride[k] = own_size == 1 ? 0 : dense[k];
      dense[k] *= own_size;
    }
    if (size == 1) continue;
    bool joins = !b.dims.empty();
    for (int k = 0; k < N && joins; ++k) joins = stride[k] == b.strides[k].back() * b.dims.back();
    if (joins) {
      b.dims.back() *= size;
      continue;
    }
    b.dims.push_back(size);
    for (int k = 0; k < N; ++k) b.strides[k].push_back(stride[k]);
  }
  if (b.dims.empty()) {
    b.dims.push_back(1);
    for (int k = 0; k < N; ++k) b.strides[k].push_back(1);
  }
  std::reverse(b.dims.begin(), b.dims.end());
  for (int k = 0; k < N; ++k) std::reverse(b.strides[k].begin(), b.strides[k].end());
  return b;
}

// Calls body(output offset, input offsets, count) over the whole output; the inputs' inner strides
// are b.strides[k].back(). `count` elements never cross a run. Every range of the loop has a copy
// of `body`, which may keep what the next call needs.
template <int N, class Body>
void ForEachRun(const Broadcast<N>& b, ThreadPool* pool, const Body& body) {
  const int64_t runs = b.runs(), run = b.run();
  if (runs == 1) {
    ParallelRange(pool, run, kElementGrain, [&](int64_t begin, int64_t end) {
      std::array<int64_t, N> at;
      for (int k = 0; k < N; ++k) at[k] = begin * b.strides[k].back();
      Body own = body;
      own(begin, at, end - begin);
    });
    return;
  }
  if (run == 0) return;
  const int outer = static_cast<int>(b.dims.size()) - 1;
  ParallelRange(pool, runs, std::max<int64_t>(1, kElementGrain / run),
                [&](int64_t begin, int64_t end) {
                  absl::InlinedVector<int64_t, 6> index(outer, 0);
                  std::array<int64_t, N> at{};
                  Body own = body;
                  int64_t rest = begin;
                  for (int i = outer - 1; i >= 0; --i) {
                    index[i] = rest % b.dims[i];
                    rest /= b.dims[i];
                    for (int k = 0; k < N; ++k) at[k] += index[i] * b.strides[k][i];
                  }
                  for (int64_t r = begin; r < end; ++r) {
                    own(r * run, at, run);
                    for (int i = outer - 1; i >= 0; --i) {
                      for (int k = 0; k < N; ++k) at[k] += b.strides[k][i];
                      if (++index[i] < b.dims[i]) break;
                      for (int k = 0; k < N; ++k) at[k] -= b.dims[i] * b.strides[k][i];
                      index[i] = 0;
                    }
                  }
                });
}

}  // namespace floe::kernels
