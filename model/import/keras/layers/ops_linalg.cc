// Products: matmul, einsum.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/quoted.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

// A vector counts as a row before a product and as a column behind it.
ValueRef VectorMatMul(GraphBuilder& b, ValueRef x, ValueRef y) {
  const bool row = Rank(b, x) == 1, column = Rank(b, y) == 1;
  if (row) x = ExpandDims(b, x, 0);
  if (column) y = ExpandDims(b, y, -1);
  std::vector<int64_t> gone;
  if (row) gone.push_back(-2);
  if (column) gone.push_back(-1);
  return Squeeze(b, b.Op("BatchMatMulV2", {x, y}, {{"adj_x", false}, {"adj_y", false}}), gone);
}

KValue MatMul(LayerContext& c) {
  GraphBuilder& b = c.b;
  auto [x, y] = TwoOperands(c);
  // Keras has products of int8 in int32.
  if (b.ok() && IsKeras3(c) && b.dtype(x) == DType::kInt8 && b.dtype(y) == DType::kInt8) {
    x = Cast(b, x, DType::kInt32);
    y = Cast(b, y, DType::kInt32);
  }
  for (const char* const hint : {"a_is_sparse", "b_is_sparse"}) BoolOption(c, {hint}, false);
  const auto is_complex = [&b](ValueRef v) {
    return b.dtype(v) == DType::kComplex64 || b.dtype(v) == DType::kComplex128;
  };
  if (b.ok() && (is_complex(x) || is_complex(y))) return c.Refuse("a product of complex numbers");
  // Of real numbers an adjoint is a transpose; both at once are refused by TensorFlow.
  const bool ax = BoolOption(c, {"adjoint_a"}, false), ay = BoolOption(c, {"adjoint_b"}, false);
  const bool tx = BoolOption(c, {"transpose_a"}, ax) || ax,
             ty = BoolOption(c, {"transpose_b"}, ay) || ay;
  if (b.ok() && IsKeras3(c) && (Rank(b, x) == 1 || Rank(b, y) == 1)) return VectorMatMul(b, x, y);
  if (b.ok() && (Rank(b, x) < 2 || Rank(b, y) < 2)) return c.Refuse("a product of vectors");
  if (!tx && !ty) return MatrixProduct(b, x, y);
  return b.Op("BatchMatMulV2", {x, y}, {{"adj_x", tx}, {"adj_y", ty}});
}

// The letters that stand once in all operands, in their order: the output where none is named.
std::string ImpliedOutput(const std::string& operands) {
  std::string output;
  for (char letter = 'A'; letter <= 'z'; ++letter) {
    if (std::isalpha(static_cast<unsigned char>(letter)) != 0 &&
        std::count(operands.begin(), operands.end(), letter) == 1)
      output += letter;
  }
  return output;
}

// Two operands at a time, as the op takes them: what is left of a product are the letters that the
// others or the output still need.
ValueRef Contracted(LayerContext& c, std::string equation, std::vector<ValueRef> values) {
  GraphBuilder& b = c.b;
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const bool dots = absl::StrContains(equation, "...");
  if (!absl::StrContains(equation, "->")) {
    if (dots) c.Refuse("an equation with ... and without ->");
    equation += absl::StrCat("->", ImpliedOutput(equation));
  }
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != values.size() || sides.size() != 2)
    c.Fail(absl::StrCat("equation ", Quoted(equation), " for ", values.size(), " operands"));
  if (dots && values.size() > 2) c.Refuse("an equation of three operands with ...");
  while (b.ok() && terms.size() > 2) {
    std::string needed = sides[1], left;
    for (size_t k = 2; k < terms.size(); ++k) needed += terms[k];
    for (const char letter : terms[0] + terms[1]) {
      if (absl::StrContains(needed, letter) && !absl::StrContains(left, letter)) left += letter;
    }
    values[1] =
        b.Op("Einsum", {values[0], values[1]},
             {{"equation", absl::StrCat(terms[0], ",", terms[1], "->", left)}, {"N", int64_t{2}}});
    terms[1] = left;
    values.erase(values.begin());
    terms.erase(terms.begin());
  }
  if (!b.ok()) return {};
  return b.Op("Einsum", values,
              {{"equation", absl::StrCat(absl::StrJoin(terms, ","), "->", sides[1])},
               {"N", static_cast<int64_t>(values.size())}});
}

KValue Einsum(LayerContext& c) {
  const KValue& first = c.Arg(0, "equation");  // in Keras 2
  std::string equation;
  std::vector<Operand> operands;
  for (int k = 0; k < static_cast<int>(c.call.args.size()); ++k) {
    const bool text = k == 0 && first.kind == KValue::Kind::kJson && first.json->is_string();
    if (text) {
      equation = first.json->get<std::string>();
      continue;
    }
    for (const Operand& operand : OperandsAt(c, k, {})) operands.push_back(operand);
  }
  if (equation.empty()) equation = TextOption(c, {"subscripts", "equation"}, "");
  if (equation.empty()) c.Fail("no equation");
  Option(c, {"optimize"});  // the order of products
  if (!c.b.ok()) return {};
  const std::vector<ValueRef> values = InOneType(c, operands);
  return Contracted(c, equation, values);
}

const OperationRegistrar kLinalg[] = {{"Matmul", {"linalg.matmul", "matmul"}, MatMul},
                                      {"Einsum", {"einsum"}, Einsum}};

}  // namespace
}  // namespace floe::keras
