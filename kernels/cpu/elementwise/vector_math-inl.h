// Elementary functions of float vectors: Exp, Expm1, Log, Tanh, Sigmoid, Softplus, Erf, Erfc, Gelu,
// Mish.
// Every lane is computed alone by the same operations, so a partly loaded vector rounds as a full
// one does.
// Relative error below 1e-6 against float64 wherever the result is a normal number, unless a
// function says otherwise; NaN in, NaN out; infinities and overflow as in C's functions.

// Range reductions and coefficients: S. L. Moshier, Cephes Mathematical Library, single precision
// (expf, logf, ndtrf), https://www.netlib.org/cephes/. e^x - 1 is put together from the rest of the
// range reduction as in P. T. P. Tang, Table-Driven Implementation of the Expm1 Function in IEEE
// Floating-Point Arithmetic, ACM TOMS 18 (1992), with a polynomial in the place of its table.

// Included once per target: include "kernels/cpu/hwy_targets.h", foreach_target.h and highway.h
// first.
#if defined(FLOE_KERNELS_CPU_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FLOE_KERNELS_CPU_VECTOR_MATH_INL_H_
#undef FLOE_KERNELS_CPU_VECTOR_MATH_INL_H_
#else
#define FLOE_KERNELS_CPU_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The larger of x and `bound`, and the smaller; NaN passes, and so does a zero of either sign.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtLeast(D d, V x, float bound) {
  const V low = hn::Set(d, bound);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(low, x);  // the second operand where they are equal or one is NaN
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtMost(D d, V x, float bound) {
  const V high = hn::Set(d, bound);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(high, x);
#else
  return hn::IfThenElse(hn::Gt(x, high), high, x);
#endif
}

// c[0] * x^(n-1) + ... + c[n-1], by Horner's rule.
template <class D, size_t kCount, class V = hn::Vec<D>>
HWY_INLINE V Polynomial(D d, V x, const float (&c)[kCount]) {
  V y = hn::Set(d, c[0]);
  for (size_t i = 1; i < kCount; ++i) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

// 2^n for n in [-126, 127].
template <class D, class VI, class V = hn::Vec<D>>
HWY_INLINE V PowerOfTwo(D d, VI n) {
  const hn::Rebind<int32_t, D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// x - n * ln 2, for n next to x / ln 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RestOfExponent(D d, V x, V n) {
  // ln 2 in two parts, the first exact in a product with n.
  const V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  return hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), r);
}

// (e^r - 1 - r) / r^2 for |r| up to ln(2) / 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpTerms(D d, V r) {
  constexpr float kTerms[] = {1.9875691500E-4f, 1.3981999507E-3f, 8.3334519073E-3f,
                              4.1665795894E-2f, 1.6666665459E-1f, 5.0000001201E-1f};
  return Polynomial(d, r, kTerms);
}

// e^x / 2^n, for n next to x / ln 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfRest(D d, V x, V n) {
  const V r = RestOfExponent(d, x, n);
  return hn::MulAdd(ExpTerms(d, r), hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0f)));
}

// e^x / 2^n - 1, for n next to x / ln 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Expm1OfRest(D d, V x, V n) {
  const V r = RestOfExponent(d, x, n);
  return hn::MulAdd(ExpTerms(d, r), hn::Mul(r, r), r);
}

// Rounds x / ln 2 to an integer, for |x| up to 88, and gives 2 to its power.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V NearestPowerOfE(D d, V x, V* n) {
  const hn::Rebind<int32_t, D> di;
  // Added to 1.5 * 2^23, a number is rounded to an integer, which stands in the lowest bits.
  const V shift = hn::Set(d, 12582912.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), shift);
  *n = hn::Sub(shifted, shift);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::Add(exponent, hn::Set(di, 127 << 23)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  // Beyond these bounds the result is 0 or infinity. The order of operands makes a NaN become a
  // bound on x86.
  const V bounded = hn::Max(hn::Min(x, hn::Set(d, 89.0f)), hn::Set(d, -104.0f));
  const auto n = hn::NearestInt(hn::Mul(bounded, hn::Set(d, 1.44269504088896341f)));
  const V nf = hn::ConvertTo(d, n);
  const V p = ExpOfRest(d, bounded, nf);
  // 2^n in two steps: n runs from -150 to 128, beyond what one exponent field holds.
  const auto half = hn::ShiftRight<1>(n);
  const V y = hn::Mul(hn::Mul(p, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(n, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  const hn::Rebind<int32_t, D> di;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  // Subnormals are scaled into the normal range first.
  const auto small = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V scaled = hn::IfThenElse(small, hn::Mul(x, hn::Set(d, 33554432.0f)), x);
  const auto bits = hn::BitCast(di, scaled);
  V e = hn::ConvertTo(d, hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 126)));
  e = hn::Sub(e, hn::IfThenElseZero(small, hn::Set(d, 25.0f)));
  // Mantissa in [0.5, 1), then in [sqrt(1/2), sqrt(2)).
  V m = hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(di, 0x007FFFFF)), hn::Set(di, 0x3F000000)));
  const auto low = hn::Lt(m, hn::Set(d, 0.707106781186547524f));
  e = hn::Sub(e, hn::IfThenElseZero(low, one));
  m = hn::Sub(hn::Add(m, hn::IfThenElseZero(low, m)), one);
  constexpr float kLogTerms[] = {7.0376836292E-2f,  -1.1514610310E-1f, 1.1676998740E-1f,
                                 -1.2420140846E-1f, 1.4249322787E-1f,  -1.6668057665E-1f,
                                 2.0000714765E-1f,  -2.4999993993E-1f, 3.3333331174E-1f};
  const V square = hn::Mul(m, m);
  V y = hn::Mul(hn::Mul(Polynomial(d, m, kLogTerms), m), square);
  y = hn::NegMulAdd(e, hn::Set(d, 2.12194440e-4f), y);
  y = hn::NegMulAdd(square, hn::Set(d, 0.5f), y);
  y = hn::MulAdd(e, hn::Set(d, 0.693359375f), hn::Add(m, y));
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  y = hn::IfThenElse(hn::Lt(x, zero), nan, y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// e^x for x in [-88, 88]; beyond, that of the bound.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpWithin88(D d, V x) {
  const V bounded = AtLeast(d, AtMost(d, x, 88.0f), -88.0f);
  V n;
  const V power = NearestPowerOfE(d, bounded, &n);
  return hn::Mul(ExpOfRest(d, bounded, n), power);
}

// e^x - 1 for x <= 0. Error below one unit in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Expm1UpToZero(D d, V x) {
  const V bounded = AtLeast(d, x, -18.0f);  // below, the result is -1
  V n;
  const V power = NearestPowerOfE(d, bounded, &n);
  // 2^n * (e^r - 1) + (2^n - 1): the last term is exact, and for n = 0 it vanishes.
  const V rest = Expm1OfRest(d, bounded, n);
  return hn::MulAdd(power, rest, hn::Sub(power, hn::Set(d, 1.0f)));
}

// e^x - 1. Error below two units in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Expm1(D d, V x) {
  const hn::Rebind<int32_t, D> di;
  const V bounded = AtLeast(d, AtMost(d, x, 89.0f), -18.0f);
  const auto n = hn::NearestInt(hn::Mul(bounded, hn::Set(d, 1.44269504088896341f)));
  const V nf = hn::ConvertTo(d, n);
  const V rest = Expm1OfRest(d, bounded, nf);
  // Half of the result, doubled: n runs to 128, beyond what an exponent field holds.
  const V half = PowerOfTwo(d, hn::Sub(n, hn::Set(di, 1)));
  const V y = hn::MulAdd(half, rest, hn::Sub(half, hn::Set(d, 0.5f)));
  // The rest alone keeps subnormals, whose half may not be a number, and loses the sign of zero.
  const V near_zero = hn::IfThenElse(hn::Eq(nf, hn::Zero(d)), hn::CopySign(rest, x), hn::Add(y, y));
  return hn::IfThenElse(hn::IsNaN(x), x, near_zero);
}

// By e = e^(-2|x|) - 1, which cancels nothing: -e / (e + 2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V size = hn::Abs(x);
  const V e = Expm1UpToZero(d, hn::Neg(hn::Add(size, size)));
  return hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, 2.0f))), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V y = hn::Div(one, hn::Add(one, ExpWithin88(d, hn::Neg(x))));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -88.0f)), y);
}

// erf for |x| < 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ErfNearZero(D d, V x) {
  constexpr float kNear[] = {7.853861353153693E-5f,  -8.010193625184903E-4f, 5.188327685732524E-3f,
                             -2.685381193529856E-2f, 1.128358514861418E-1f,  -3.761262582423300E-1f,
                             1.128379165726710E+0f};
  return hn::Mul(x, Polynomial(d, hn::Mul(x, x), kNear));
}

// erfc for x >= 1, finite below.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ErfcTail(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  constexpr float kMiddle[] = {
      2.326819970068386E-2f,  -1.387039388740657E-1f, 3.687424674597105E-1f,
      -5.824733027278666E-1f, 6.210004621745983E-1f,  -4.944515323274145E-1f,
      3.404879937665872E-1f,  -2.741127028184656E-1f, 5.638259427386472E-1f};
  constexpr float kFar[] = {-1.047766399936249E+1f, 1.297719955372516E+1f,  -7.495518717768503E+0f,
                            2.921019019210786E+0f,  -1.015265279202700E+0f, 4.218463358204948E-1f,
                            -2.820767439740514E-1f, 5.641895067754075E-1f};
  // Beyond 16 the result is 0 anyway, and the square stays finite.
  const V size = hn::Min(hn::IfThenElse(hn::Lt(x, one), one, x), hn::Set(d, 16.0f));
  const V inverse = hn::Div(one, size), square = hn::Mul(size, size);
  // What the square lost in rounding, which the exponential would magnify; by halves of the number,
  // whose products are exact (T. J. Dekker, 1971).
  const V high = hn::And(size, hn::BitCast(d, hn::Set(hn::Rebind<uint32_t, D>(), 0xFFFFF000u)));
  const V low = hn::Sub(size, high);
  const V cross = hn::Mul(high, hn::Add(low, low));
  const V lost = hn::Add(hn::Add(hn::Sub(hn::Mul(high, high), square), cross), hn::Mul(low, low));
  const V y = hn::Mul(inverse, inverse);
  const V p = hn::IfThenElse(hn::Lt(size, hn::Set(d, 2.0f)), Polynomial(d, y, kMiddle),
                             Polynomial(d, y, kFar));
  const V power = Exp(d, hn::Neg(square));
  return hn::Mul(hn::Mul(hn::NegMulAdd(power, lost, power), inverse), p);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  const V one = hn::Set(d, 1.0f), size = hn::Abs(x);
  const V y = hn::IfThenElse(hn::Lt(size, one), ErfNearZero(d, x),
                             hn::CopySign(hn::Sub(one, ErfcTail(d, size)), x));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erfc(D d, V x) {
  const V one = hn::Set(d, 1.0f), size = hn::Abs(x), tail = ErfcTail(d, size);
  const V far = hn::IfThenElse(hn::Lt(x, one), hn::Sub(hn::Set(d, 2.0f), tail), tail);
  const V y = hn::IfThenElse(hn::Lt(size, one), hn::Sub(one, ErfNearZero(d, x)), far);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// e^x for x <= 0; what is below the smallest normal number is 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpUpToZero(D d, V x) {
  const auto tiny = hn::Lt(x, hn::Set(d, -87.33f));
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504088896341f)));
  const V nf = hn::ConvertTo(d, n);
  // A product, not a sum of exponents: it lets NaN pass.
  return hn::IfThenZeroElse(tiny, hn::Mul(ExpOfRest(d, x, nf), PowerOfTwo(d, n)));
}

// log(1 + x) for x in [0, 1], as 2 * atanh(x / (x + 2)).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log1pUpToOne(D d, V x) {
  const V s = hn::Div(x, hn::Add(x, hn::Set(d, 2.0f))), square = hn::Mul(s, s);
  // (atanh(s) / s - 1) / s^2, minimax in relative error up to s = 1/3.
  constexpr float kTerms[] = {1.21504664e-01f, 1.07138291e-01f, 1.43084422e-01f, 1.99994385e-01f,
                              3.33333373e-01f};
  const V twice = hn::Add(s, s);
  return hn::MulAdd(hn::Mul(Polynomial(d, square, kTerms), square), twice, twice);
}

// log(1 + e^x), as max(x, 0) + log(1 + e^-|x|).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Softplus(D d, V x) {
  const V log1p = Log1pUpToOne(d, ExpUpToZero(d, hn::Neg(hn::Abs(x))));
  return hn::Add(AtLeast(d, x, 0.0f), log1p);
}

// x times the normal distribution's integral from -infinity to x: x/2 * erfc(-x / sqrt(2)). Below
// -3 the relative error grows up to 1e-5, with the rounding of the exponent; -infinity gives NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  const hn::Rebind<int32_t, D> di;
  const V one = hn::Set(d, 1.0f), size = hn::Abs(x);
  // The integral from -infinity to -size is 2^z times a function that is smooth in u; minimax in
  // relative error up to 13.3, where the result vanishes.
  constexpr float kTerms[] = {-1.565445704e-04f, -3.308381267e-04f, 8.022576898e-04f,
                              2.942368365e-03f,  -5.118780280e-03f, -2.454816489e-02f,
                              1.131352567e-01f,  -2.280698018e-01f, 1.413313405e-01f};
  constexpr float kPowerTerms[] = {1.327647069e-03f, 9.675541324e-03f, 5.550713278e-02f,
                                   2.402211972e-01f, 6.931469671e-01f, 1.000000072e+00f};
  const V u = hn::Sub(one, hn::Div(hn::Set(d, 5.0f), hn::Add(size, hn::Set(d, 2.5f))));
  const V z = hn::Mul(hn::Mul(size, size), hn::Set(d, -0.72134752044448170f));
  // Added to 1.5 * 2^23, a number is rounded to an integer, which stands in the lowest bits.
  const V shift = hn::Set(d, 12582912.0f), shifted = hn::Add(z, shift);
  const V p = Polynomial(d, hn::Sub(z, hn::Sub(shifted, shift)), kPowerTerms);
  const V power =
      hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  const V tail =
      hn::IfThenZeroElse(hn::Lt(z, hn::Set(d, -126.0f)), hn::Mul(power, Polynomial(d, u, kTerms)));
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)));
}

// x/2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))); -infinity gives NaN. Below -2 the relative
// error grows up to 2e-5, with the rounding of the argument.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  // -2 * sqrt(2 / pi) times the terms: x/2 * (1 + tanh(z)) is x / (1 + e^(-2z)).
  const V inner =
      hn::MulAdd(hn::Mul(x, x), hn::Set(d, -0.0713548162726f), hn::Set(d, -1.59576912160573f));
  return hn::Div(x, hn::Add(one, Exp(d, hn::Mul(x, inner))));
}

// x * tanh(softplus(x)), which is x * w / (w + 2) for w = e^x * (e^x + 2). From 20 on it is x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Mish(D d, V x) {
  const V two = hn::Set(d, 2.0f), e = Exp(d, AtMost(d, x, 20.0f));
  const V w = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(w, hn::Add(w, two)));
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FLOE_KERNELS_CPU_VECTOR_MATH_INL_H_
