// Linear algebra: norms, factors, solutions, diagonals.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/axes.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

ValueRef MatrixAt(LayerContext& c, int i, Names names) {
  const ValueRef x = TensorAt(c, i, names);
  if (c.b.ok() && Rank(c.b, x) < 2)
    c.Fail(absl::StrCat("the input is ", c.b.shape(x).ToString(), ", expected matrices"));
  return x;
}
ValueRef Matrix(LayerContext& c) { return MatrixAt(c, 0, {"x", "a", "input", "matrix", "tensor"}); }

ValueRef TransposedMatrix(GraphBuilder& b, ValueRef x) { return SwapAxes(b, x, -2, -1); }

// ---- norms ----

double Infinity() { return std::numeric_limits<double>::infinity(); }

struct NormOptions {
  std::string name;  // of an order that is a word
  double order = 2;
  std::vector<int64_t> axes;
  bool keep = false;
};

// Of one axis.
ValueRef VectorNorm(GraphBuilder& b, ValueRef x, const NormOptions& o) {
  if (o.order == 2) return b.Op("Sqrt", {Reduce(b, "Sum", Mul(b, x, x), o.axes, o.keep)});
  const ValueRef sizes = b.Op("Abs", {x});
  if (o.order == Infinity()) return Reduce(b, "Max", sizes, o.axes, o.keep);
  if (o.order == -Infinity()) return Reduce(b, "Min", sizes, o.axes, o.keep);
  const DType dtype = b.dtype(x);
  if (o.order == 0) {
    const ValueRef some = b.Op("NotEqual", {x, Scalar(b, dtype, 0)});
    return Reduce(b, "Sum", Cast(b, some, dtype), o.axes, o.keep);
  }
  const ValueRef powers = b.Op("Pow", {sizes, Scalar(b, dtype, o.order)});
  return b.Op("Pow", {Reduce(b, "Sum", powers, o.axes, o.keep), Scalar(b, dtype, 1 / o.order)});
}

// Of rows axes[0] and columns axes[1].
ValueRef MatrixNorm(LayerContext& c, ValueRef x, const NormOptions& o) {
  GraphBuilder& b = c.b;
  if (o.name == "fro") return b.Op("Sqrt", {Reduce(b, "Sum", Mul(b, x, x), o.axes, o.keep)});
  const double size = std::abs(o.order);
  const bool least = o.order < 0;
  if (o.name.empty() && (size == 1 || size == Infinity())) {
    const int64_t summed = o.axes[size == 1 ? 0 : 1], other = o.axes[size == 1 ? 1 : 0];
    const ValueRef sums = Reduce(b, "Sum", b.Op("Abs", {x}), {summed}, true);
    const ValueRef y = Reduce(b, least ? "Min" : "Max", sums, {other}, true);
    return o.keep ? y : Squeeze(b, y, o.axes);
  }
  if (o.name != "nuc" && size != 2) {
    c.Fail(absl::StrCat("the order ", o.order, " of a matrix"));
    return {};
  }
  std::vector<int64_t> order;
  for (int k = 0; k < Rank(b, x); ++k) {
    if (std::find(o.axes.begin(), o.axes.end(), k) == o.axes.end()) order.push_back(k);
  }
  order.insert(order.end(), o.axes.begin(), o.axes.end());
  const ValueRef values = b.Outputs("Svd", {Transpose(b, x, order)}, 3,
                                    {{"compute_uv", false}, {"full_matrices", false}})[0];
  ValueRef y = Reduce(b, o.name == "nuc" ? "Sum" : least ? "Min" : "Max", values, {-1}, false);
  if (o.keep) {
    y = ExpandDims(b, y, static_cast<int>(o.axes[0]));
    y = ExpandDims(b, y, static_cast<int>(o.axes[1]));
  }
  return y;
}

KValue Norm(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = TensorAt(c, 0, {"x", "tensor"});
  NormOptions o;
  const Json& order = Option(c, {"ord"});
  if (order.is_string()) o.name = order.get<std::string>();
  if (o.name == "euclidean") o.name = "";
  if (order.is_number()) o.order = order.get<double>();
  o.axes = IntOptions(c, {"axis"});
  o.keep = BoolOption(c, {"keepdims", "keep_dims"}, false);
  const int rank = Rank(b, x);
  if (!b.ok()) return {};
  const DType dtype = b.dtype(x);
  if (IsKeras3(c)) x = Cast(b, x, FloatingType(dtype));
  const bool all = o.axes.empty();
  for (int k = 0; all && k < rank; ++k) o.axes.push_back(k);
  for (int64_t& axis : o.axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) c.Fail(absl::StrCat("axis ", axis, " of rank ", rank));
  }
  // TensorFlow takes all axes as one vector; Keras does so only without an order.
  const bool plain = order.is_null() || (order.is_string() && o.name.empty());
  const bool flat = plain || (all && !IsKeras3(c));
  if (o.axes.size() == 1 || flat) {
    if (!o.name.empty() && o.name != "fro") c.Fail(absl::StrCat("ord is ", Quoted(o.name)));
    if (o.axes.size() > 1 && o.name == "fro" && !flat) return c.Refuse("ord");
    return VectorNorm(b, x, o);
  }
  if (o.axes.size() != 2) return c.Refuse("the norm of more than two axes");
  return MatrixNorm(c, x, o);
}

// ---- factors ----

KValue Cholesky(LayerContext& c) {
  const bool upper = BoolOption(c, {"upper"}, false);
  const ValueRef y = c.b.Op("Cholesky", {Matrix(c)});
  return upper ? TransposedMatrix(c.b, y) : y;
}

// The identity beside a matrix, in its shape.
ValueRef IdentityLike(GraphBuilder& b, ValueRef x) {
  const int64_t n = SizeOf(b, x, -1, "the size of a matrix");
  const ValueRef diagonal = Fill(b, {WantedDim(n)}, Scalar(b, b.dtype(x), 1));
  return b.Op("MatrixDiag", {diagonal});
}

KValue CholeskyInverse(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Matrix(c);
  const bool upper = BoolOption(c, {"upper"}, false);
  const ValueRef inverse = b.Op("MatrixTriangularSolve", {x, IdentityLike(b, x)},
                                {{"lower", !upper}, {"adjoint", false}});
  return b.Op("BatchMatMulV2", {inverse, inverse}, {{"adj_x", !upper}, {"adj_y", upper}});
}

KValue Determinant(LayerContext& c) { return c.b.Op("MatrixDeterminant", {Matrix(c)}); }

KValue Inverse(LayerContext& c) {
  const bool adjoint = BoolOption(c, {"adjoint"}, false);
  return c.b.Op("MatrixInverse", {Matrix(c)}, {{"adjoint", adjoint}});
}

// Of positive definite matrices: twice the logarithms of the diagonal of Cholesky's factor.
KValue LogDeterminant(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef diagonal = b.Op("MatrixDiagPart", {b.Op("Cholesky", {Matrix(c)})});
  return Mul(b, Reduce(b, "Sum", b.Op("Log", {diagonal}), {-1}, false), 2.0);
}

KValue SignAndLogDeterminant(LayerContext& c) {
  const std::vector<ValueRef> both = c.b.Outputs("LogMatrixDeterminant", {Matrix(c)}, 2);
  return std::vector<KValue>{both[0], both[1]};
}

KValue Qr(LayerContext& c) {
  const std::string mode = TextOption(c, {"mode"}, "reduced");
  const std::vector<ValueRef> both =
      c.b.Outputs("Qr", {Matrix(c)}, 2, {{"full_matrices", mode == "complete"}});
  return std::vector<KValue>{both[0], both[1]};
}

KValue Eigen(LayerContext& c) {
  const std::vector<ValueRef> both =
      c.b.Outputs("SelfAdjointEigV2", {Matrix(c)}, 2, {{"compute_v", true}});
  return std::vector<KValue>{both[0], both[1]};
}

KValue SingularValues(LayerContext& c) {
  GraphBuilder& b = c.b;
  const bool full = BoolOption(c, {"full_matrices"}, true),
             vectors = BoolOption(c, {"compute_uv"}, true);
  const std::vector<ValueRef> parts =
      b.Outputs("Svd", {Matrix(c)}, 3, {{"compute_uv", vectors}, {"full_matrices", full}});
  if (!vectors) return parts[0];
  return std::vector<KValue>{parts[1], parts[0], TransposedMatrix(b, parts[2])};
}

KValue Solve(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef a = MatrixAt(c, 0, {"a", "matrix"});
  ValueRef x = TensorAt(c, 1, {"b", "rhs"});
  const bool triangular = OperationName(c) == "SolveTriangular";
  const bool lower = triangular && BoolOption(c, {"lower"}, !IsKeras3(c));
  const bool adjoint = !IsKeras3(c) && BoolOption(c, {"adjoint"}, false);
  const bool vector = Rank(b, x) == Rank(b, a) - 1;
  if (vector) x = ExpandDims(b, x, -1);
  const ValueRef y =
      triangular ? b.Op("MatrixTriangularSolve", {a, x}, {{"lower", lower}, {"adjoint", adjoint}})
                 : b.Op("MatrixSolve", {a, x}, {{"adjoint", adjoint}});
  return vector ? Squeeze(b, y, {-1}) : y;
}

double Epsilon(DType dtype) {
  return dtype == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                  : static_cast<double>(std::numeric_limits<float>::epsilon());
}

KValue MatrixRank(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Matrix(c);
  const Json& tolerance = Option(c, {"tol"});
  const double longest = static_cast<double>(
      std::max(SizeOf(b, x, -1, "the size of a matrix"), SizeOf(b, x, -2, "the size of a matrix")));
  const ValueRef values = b.Outputs("Svd", {x}, 3, {{"compute_uv", false}})[0];
  if (!b.ok()) return {};
  const DType dtype = b.dtype(x);
  const ValueRef least = tolerance.is_number() ? Scalar(b, dtype, tolerance.get<double>())
                                               : Mul(b, Reduce(b, "Max", values, {-1}, true),
                                                     Epsilon(dtype) * longest);
  const ValueRef some = Cast(b, b.Op("Greater", {values, least}), DType::kInt32);
  return Reduce(b, "Sum", some, {-1}, false);
}

// The inverse by singular values; those that are too small count as infinite.
KValue PseudoInverse(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Matrix(c);
  const double longest = static_cast<double>(
      std::max(SizeOf(b, x, -1, "the size of a matrix"), SizeOf(b, x, -2, "the size of a matrix")));
  if (!b.ok()) return {};
  const DType dtype = b.dtype(x);
  const double least = NumberOption(c, {"rcond"}, 10 * longest * Epsilon(dtype));
  const std::vector<ValueRef> parts =
      b.Outputs("Svd", {x}, 3, {{"compute_uv", true}, {"full_matrices", false}});
  const ValueRef cutoff = Mul(b, Reduce(b, "Max", parts[0], {-1}, true), least);
  const ValueRef values = b.Op(
      "SelectV2", {b.Op("Greater", {parts[0], cutoff}), parts[0], Scalar(b, dtype, Infinity())});
  const ValueRef scaled = b.Op("RealDiv", {parts[2], ExpandDims(b, values, -2)});
  return b.Op("BatchMatMulV2", {scaled, parts[1]}, {{"adj_x", false}, {"adj_y", true}});
}

// ---- TensorFlow's parts of matrices ----

KValue BandPart(LayerContext& c) {
  const ValueRef x = Matrix(c);
  const int64_t lower = IntOption(c, {"num_lower"}, -1), upper = IntOption(c, {"num_upper"}, -1);
  return c.b.Op("MatrixBandPart", {x, Int64(c.b, lower), Int64(c.b, upper)});
}

KValue MatrixTranspose(LayerContext& c) {
  if (BoolOption(c, {"conjugate"}, false)) return c.Refuse("conjugate=True");
  return TransposedMatrix(c.b, Matrix(c));
}

KValue DiagonalPart(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Matrix(c);
  const std::vector<int64_t> k = IntOptions(c, {"k"});
  const double padding = NumberOption(c, {"padding_value"}, 0);
  const std::string align = TextOption(c, {"align"}, "RIGHT_LEFT");
  return b.Op("MatrixDiagPartV3",
              {x,
               k.empty()       ? Int(b, 0)
               : k.size() == 1 ? Int(b, k[0])
                               : Ints(b, k),
               Scalar(b, b.dtype(x), padding)},
              {{"align", align}});
}

KValue MatrixDiagonal(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"diagonal"});
  const std::vector<int64_t> k = IntOptions(c, {"k"});
  const int64_t rows = IntOption(c, {"num_rows"}, -1), columns = IntOption(c, {"num_cols"}, -1);
  const double padding = NumberOption(c, {"padding_value"}, 0);
  const std::string align = TextOption(c, {"align"}, "RIGHT_LEFT");
  return b.Op("MatrixDiagV3",
              {x,
               k.empty()       ? Int(b, 0)
               : k.size() == 1 ? Int(b, k[0])
                               : Ints(b, k),
               Int(b, rows), Int(b, columns), Scalar(b, b.dtype(x), padding)},
              {{"align", align}});
}

KValue MatrixTrace(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Matrix(c);
  return Reduce(b, "Sum", b.Op("MatrixDiagPart", {x}), {-1}, false);
}

const OperationRegistrar kMatrices[] = {{"Norm", {"norm", "linalg.norm"}, Norm},
                                        {"Cholesky", {"linalg.cholesky"}, Cholesky},
                                        {"CholeskyInverse", {}, CholeskyInverse},
                                        {"Det", {"linalg.det"}, Determinant},
                                        {"Inv", {"linalg.inv"}, Inverse},
                                        {"Logdet", {"linalg.logdet"}, LogDeterminant},
                                        {"Slogdet", {"linalg.slogdet"}, SignAndLogDeterminant},
                                        {"Qr", {"linalg.qr"}, Qr},
                                        {"Eigh", {"linalg.eigh"}, Eigen},
                                        {"SVD", {}, SingularValues},
                                        {"Solve", {"linalg.solve"}, Solve},
                                        {"SolveTriangular", {"linalg.triangular_solve"}, Solve},
                                        {"MatrixRank", {"linalg.matrix_rank"}, MatrixRank},
                                        {"Pinv", {"linalg.pinv"}, PseudoInverse},
                                        {"", {"linalg.band_part"}, BandPart},
                                        {"", {"linalg.matrix_transpose"}, MatrixTranspose},
                                        {"", {"linalg.diag_part"}, DiagonalPart},
                                        {"", {"linalg.diag"}, MatrixDiagonal},
                                        {"", {"linalg.trace"}, MatrixTrace}};

}  // namespace
}  // namespace floe::keras
