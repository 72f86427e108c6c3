#include "kernels/cpu/move/grid_copy.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/element_type.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

template <class T>
void CopyRun(const T* from, T* to, int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    std::copy_n(from, n, to);
  }
}

template <class T>
void CopyLine(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t n) {
  if (from_stride == 1 && to_stride == 1) return CopyRun(from, to, n);
  if (from_stride == 0 && to_stride == 1) return static_cast<void>(std::fill_n(to, n, *from));
  for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
}

// to[i * to_stride + j] = from[j * from_stride + i] for i and j up to 4, of elements of four bytes.
void TurnFour(const void* from, int64_t from_stride, void* to, int64_t to_stride) {
  using V = int32_t __attribute__((vector_size(16)));
  V rows[4], low[2], high[2];
  for (int j = 0; j < 4; ++j)
    std::memcpy(&rows[j], static_cast<const int32_t*>(from) + j * from_stride, sizeof(V));
  for (int j = 0; j < 2; ++j) {
    low[j] = __builtin_shufflevector(rows[2 * j], rows[2 * j + 1], 0, 4, 1, 5);
    high[j] = __builtin_shufflevector(rows[2 * j], rows[2 * j + 1], 2, 6, 3, 7);
  }
  const V columns[] = {__builtin_shufflevector(low[0], low[1], 0, 1, 4, 5),
                       __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7),
                       __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5),
                       __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i)
    std::memcpy(static_cast<int32_t*>(to) + i * to_stride, &columns[i], sizeof(V));
}

// `side` x `side` elements of the last two dims from (i, j) on, fewer at the ends.
template <class T>
void CopySquare(const Grid& g, int64_t side, int64_t i, int64_t j, const T* from, T* to) {
  const size_t r = g.dims.size() - 2, c = r + 1;
  const int64_t height = std::min(side, g.dims[r] - i), width = std::min(side, g.dims[c] - j);
  from += i * g.from[r] + j * g.from[c];
  to += i * g.to[r] + j * g.to[c];
  if (std::is_trivially_copyable_v<T> && sizeof(T) == 4 && width == side && height == side &&
      g.to[c] == 1) {
    for (int64_t down = 0; down < side; down += 4) {
      for (int64_t across = 0; across < side; across += 4)
        TurnFour(from + down + across * g.from[c], g.from[c], to + down * g.to[r] + across,
                 g.to[r]);
    }
    return;
  }
  for (int64_t down = 0; down < height; ++down, from += g.from[r], to += g.to[r])
    CopyLine(from, g.from[c], to, g.to[c], width);
}

constexpr int64_t kMostFew = 4;

// to[i * to_long + j * to_few] = from[i * from_long + j * from_few] for `count` i and kFew j.
template <int kFew, class T>
void CopyFew(int64_t count, const T* from, int64_t from_long, int64_t from_few, T* to,
             int64_t to_long, int64_t to_few) {
  for (int64_t i = 0; i < count; ++i, from += from_long, to += to_long) {
#pragma GCC unroll kMostFew
    for (int j = 0; j < kFew; ++j) to[j * to_few] = from[j * from_few];
  }
}

// The same for 2 to 4 elements; false for other numbers.
template <class T>
bool CopyFewOf(int64_t few, int64_t count, const T* from, int64_t from_long, int64_t from_few,
               T* to, int64_t to_long, int64_t to_few) {
  const auto copy = [&](auto number) {
    CopyFew<number>(count, from, from_long, from_few, to, to_long, to_few);
    return true;
  };
  if (few == 2) return copy(std::integral_constant<int, 2>());
  if (few == 3) return copy(std::integral_constant<int, 3>());
  if (few == 4) return copy(std::integral_constant<int, 4>());
  return false;
}

constexpr int64_t kMove = 16, kMostShort = 256;  // bytes

// `count` runs of kMove to kMostShort bytes, whose copies are as short as a call of memcpy.
void CopyShortRuns(int64_t count, int64_t bytes, const std::byte* from, int64_t from_step,
                   std::byte* to, int64_t to_step) {
  for (; count > 0; --count, from += from_step, to += to_step) {
    for (int64_t at = 0; at + kMove < bytes; at += kMove) std::memcpy(to + at, from + at, kMove);
    std::memcpy(to + bytes - kMove, from + bytes - kMove, kMove);
  }
}

// A grid's last two dims: lines, and the elements of each.
struct Lines {
  int64_t count, from_step, to_step;
  int64_t elements, from_stride, to_stride;
  explicit Lines(const Grid& g) {
    const size_t r = g.dims.size() - 2, c = r + 1;
    count = g.dims[r], from_step = g.from[r], to_step = g.to[r];
    elements = g.dims[c], from_stride = g.from[c], to_stride = g.to[c];
  }
};

template <class T>
void CopyLines(const Lines& l, int64_t count, const T* from, T* to) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    const int64_t bytes = l.elements * kSize;
    if (l.from_stride == 1 && l.to_stride == 1 && bytes >= kMove && bytes <= kMostShort) {
      CopyShortRuns(count, bytes, reinterpret_cast<const std::byte*>(from), l.from_step * kSize,
                    reinterpret_cast<std::byte*>(to), l.to_step * kSize);
      return;
    }
  }
  if (CopyFewOf(l.elements, count, from, l.from_step, l.from_stride, to, l.to_step, l.to_stride))
    return;
  for (; count > 0; --count, from += l.from_step, to += l.to_step)
    CopyLine(from, l.from_stride, to, l.to_stride, l.elements);
}

// The last two dims, when the outer of them runs through `from` without gaps: in squares that stay
// in the cache. Lines that lie a large power of two apart share few places there, so the next
// square goes on with the lines of the side where they are farther apart.
template <class T>
void CopySquares(const Grid& g, const T* from, T* to) {
  constexpr int64_t kSide = std::is_trivially_copyable_v<T> && sizeof(T) == 4 ? 8 : 16;
  const size_t r = g.dims.size() - 2, c = r + 1;
  if (CopyFewOf(g.dims[r], g.dims[c], from, g.from[c], g.from[r], to, g.to[c], g.to[r])) return;
  if (g.from[c] > g.to[r]) {
    for (int64_t j = 0; j < g.dims[c]; j += kSide)
      for (int64_t i = 0; i < g.dims[r]; i += kSide) CopySquare(g, kSide, i, j, from, to);
  } else {
    for (int64_t i = 0; i < g.dims[r]; i += kSide)
      for (int64_t j = 0; j < g.dims[c]; j += kSide) CopySquare(g, kSide, i, j, from, to);
  }
}

// The same with two dims at least.
Grid WithLines(Grid g) {
  if (g.dims.size() >= 2) return g;
  Grid s;
  s.Add(1, 0, 0);
  s.Add(g.dims[0], g.from[0], g.to[0]);
  return s;
}

// Brings the dim that is dense in `from` next to the last one, when the last one is not and has
// more than a few elements.
bool ArrangeSquares(Grid* g) {
  const size_t rank = g->dims.size();
  if (g->dims.back() <= kMostFew || g->from.back() == 1 || g->from.back() == 0) return false;
  for (size_t i = 0; i + 1 < rank; ++i) {
    if (g->from[i] != 1) continue;
    std::swap(g->dims[i], g->dims[rank - 2]);
    std::swap(g->from[i], g->from[rank - 2]);
    std::swap(g->to[i], g->to[rank - 2]);
    return true;
  }
  return false;
}

// Squares are made of the last two dims, lines of the last one.
template <class T>
void CopyTyped(const Grid& g, bool squares, const T* from, T* to, ThreadPool* pool) {
  const int outer = static_cast<int>(g.dims.size()) - 2;
  const Lines last(g);
  const int64_t lines = squares ? 1 : last.count,
                elements = last.elements * (squares ? last.count : 1);
  int64_t count = lines;
  for (int i = 0; i < outer; ++i) count *= g.dims[i];
  ParallelRange(pool, count, std::max<int64_t>(1, kElementGrain / elements),
                [&](int64_t begin, int64_t end) {
                  IntList index(outer, 0);
                  int64_t line = begin % lines, rest = begin / lines;
                  const T* f = from;
                  T* t = to;
                  for (int i = outer - 1; i >= 0; --i) {
                    index[i] = rest % g.dims[i];
                    rest /= g.dims[i];
                    f += index[i] * g.from[i];
                    t += index[i] * g.to[i];
                  }
                  for (int64_t n = 0; begin < end; begin += n, line = 0) {
                    n = std::min(lines - line, end - begin);
                    if (squares) {
                      CopySquares(g, f, t);
                    } else {
                      CopyLines(last, n, f + line * last.from_step, t + line * last.to_step);
                    }
                    for (int i = outer - 1; i >= 0; --i) {
                      f += g.from[i];
                      t += g.to[i];
                      if (++index[i] < g.dims[i]) break;
                      f -= g.dims[i] * g.from[i];
                      t -= g.dims[i] * g.to[i];
                      index[i] = 0;
                    }
                  }
                });
}

}  // namespace

void CopyGrid(Grid grid, DType dtype, const void* from, void* to, ThreadPool* pool) {
  if (from == to) return;
  for (int64_t d : grid.dims) {
    if (d == 0) return;
  }
  grid = WithLines(JoinedDims(grid));
  const bool squares = ArrangeSquares(&grid);
  ForElement(dtype, [&](auto element) {
    using T = decltype(element);
    CopyTyped(grid, squares, static_cast<const T*>(from), static_cast<T*>(to), pool);
  });
}

Grid JoinedDims(const Grid& g) {
  Grid s;
  for (size_t i = 0; i < g.dims.size(); ++i) {
    if (g.dims[i] == 1) continue;
    if (!s.dims.empty() && s.from.back() == g.from[i] * g.dims[i] &&
        s.to.back() == g.to[i] * g.dims[i]) {
      s.dims.back() *= g.dims[i];
      s.from.back() = g.from[i];
      s.to.back() = g.to[i];
    } else {
      s.Add(g.dims[i], g.from[i], g.to[i]);
    }
  }
  if (s.dims.empty()) s.Add(1, 1, 1);
  return s;
}

char* ElementAt(const TensorView& view, int64_t at) {
  return view.as<char>() + at * static_cast<int64_t>(ElementBytes(view.dtype));
}

IntList DenseStrides(const Shape& shape) {
  IntList strides(shape.rank());
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= shape.dim(i);
  }
  return strides;
}

void CopyElements(DType dtype, const void* from, void* to, int64_t count) {
  if (count == 0) return;
  ForElement(dtype, [&](auto element) {
    using T = decltype(element);
    CopyRun(static_cast<const T*>(from), static_cast<T*>(to), count);
  });
}

void FillElements(DType dtype, const void* value, void* to, int64_t count) {
  if (count == 0) return;  // there may be no value then
  ForElement(dtype, [&](auto element) {
    using T = decltype(element);
    const T& filled = *static_cast<const T*>(value);
    if constexpr (std::is_trivially_copyable_v<T>) {
      static constexpr char kZero[sizeof(T)] = {};
      if (std::memcmp(&filled, kZero, sizeof(T)) == 0) {
        std::memset(to, 0, static_cast<size_t>(count) * sizeof(T));
        return;
      }
    }
    std::fill_n(static_cast<T*>(to), count, filled);
  });
}

absl::Status ReadInts(const TensorView& view, IntList* values) {
  const int64_t n = view.elements();
  if (n > 0 && view.data == nullptr) {
    return absl::InvalidArgumentError("an index or axis depends on the number of request rows");
  }
  using Indices = TypeList<int32_t, int64_t, int16_t, int8_t, uint8_t, uint16_t>;
  const bool read = ForDType(view.dtype, Indices{}, [&](auto t) {
    const auto* from = view.as<decltype(t)>();
    values->assign(from, from + n);
  });
  return read ? absl::OkStatus()
              : absl::InvalidArgumentError(
                    absl::StrCat("expected int32 or int64, got ", DTypeName(view.dtype)));
}

absl::StatusOr<int64_t> ReadInt(const TensorView& view) {
  IntList values;
  FLOE_RETURN_IF_ERROR(ReadInts(view, &values));
  if (values.size() != 1)
    return absl::InvalidArgumentError(absl::StrCat("expected one integer, got ", values.size()));
  return values[0];
}

}  // namespace floe::kernels
