#include "model/import/keras/builder.h"

#include "absl/strings/str_cat.h"

namespace floe::keras {

int64_t SizeOf(GraphBuilder& b, ValueRef v, int axis, const std::string& what) {
  if (!b.ok()) return 1;
  const Dim size = SizeAt(b, v, axis);
  if (size.concrete() && size.size() >= 0 && size.size() <= INT32_MAX) return size.size();
  b.Fail(absl::StrCat(what, " must be a number; the input is ", b.shape(v).ToString()));
  return 1;
}

ValueRef MatrixProduct(GraphBuilder& b, ValueRef x, ValueRef kernel) {
  const int rank = Rank(b, x), other = Rank(b, kernel);
  if (!b.ok()) return {};
  if (rank == 2 && other == 2) return b.Op("MatMul", {x, kernel});
  if (other != 2 || rank < 2) return b.Op("BatchMatMulV2", {x, kernel});
  std::vector<WantedDim> out;
  for (int k = 0; k + 1 < rank; ++k) out.push_back(DimOf(b, x, k));
  const int64_t inner = SizeOf(b, x, -1, "the last dimension");
  out.emplace_back(SizeOf(b, kernel, -1, "the number of units"));
  return Reshape(b, b.Op("MatMul", {Reshape(b, x, {-1, inner}), kernel}), out);
}

}  // namespace floe::keras
