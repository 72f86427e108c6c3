"""The cases of every public function of keras.ops: {function: [expressions]}.

An expression makes the inputs that it needs: a letter for the values (keras_sweep.KINDS) with the shape behind an open
batch dimension, a capital letter with the whole shape. A(values, dtype) is a constant.
"""

CASES = {}
# Functions without a case, and why no model file can have them.
NEVER = {
    **dict.fromkeys(("arange", "array", "empty", "eye", "full", "identity", 
                     "ones", "tri", "zeros"), "it takes no tensor: a constant in the model"),
    **dict.fromkeys(("associative_scan", "cond", "custom_gradient", "fori_loop", "jvp", "map", "scan", "switch", "vectorize",
                     "vectorized_map", "while_loop"), "its argument is a Python function, which Keras does not write"),
    **dict.fromkeys(("convert_to_numpy", "dtype", "is_tensor", "ndim", "shape"),
                    "its result is a Python value, not a tensor of the model"),
}


def add(names, *templates):
    for name in names.split():
        CASES.setdefault(name, []).extend(t.replace("@", f"ops.{name}") for t in templates)


def each(kinds, template):
    return [template.replace("?", kind) for kind in kinds]


# One value to one value.
FLOATS = """arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh deg2rad erf erfc erfinv exp exp2 expm1 floor i0 log
    log10 log1p log2 log_sigmoid rad2deg reciprocal rsqrt sigmoid silu sin sinc sinh softplus softsign sqrt
    swish tan tanh tanh_shrink trunc hard_sigmoid hard_silu hard_swish hard_tanh sparse_plus sparse_sigmoid gelu elu celu selu
    squareplus leaky_relu relu relu6 hard_shrink soft_shrink"""
add(FLOATS, *each("fzhd", "@(?(4))"), "@(w(2, 3))", "@(F(2, 3))", "@(i(4))")
add("ceil cos exp floor log sqrt tanh trunc erf sin reciprocal relu log1p exp2 deg2rad", *each("lubj", "@(?(4))"))
add("abs absolute fabs negative sign square isfinite isinf isnan isneginf isposinf isreal copy conj conjugate real imag angle "
    "logical_not signbit nan_to_num stop_gradient ones_like zeros_like empty_like round ravel size",
    *each("fzhdilubj", "@(?(4))"))
CASES["empty_like"] = ["ops.zeros_like(ops.empty_like(f(4)))", "ops.zeros_like(ops.empty_like(f(4), dtype='int32'))"]
add("size", "@(f(2, 3))", "@(F(2, 3))")
add("ravel", "@(f(2, 3))", "@(F(2, 3))")
add("bitwise_invert bitwise_not", *each("iluj", "@(?(4))"), "@(b(4))")
add("celu", "@(f(4), alpha=0.3)", "@(f(4), 2.0)")
add("elu", "@(f(4), alpha=0.3)", "@(h(4), 2.0)")
add("gelu", "@(f(4), approximate=False)", "@(h(4), False)", "@(d(4), False)")
add("leaky_relu", "@(f(4), negative_slope=0.4)", "@(f(4), 0.)")
add("squareplus", "@(f(4), b=2)", "@(f(4), 1)")
add("hard_shrink soft_shrink", "@(f(4), threshold=0.2)", "@(f(4), 1.)")
add("threshold", "@(f(4), threshold=0.2, default_value=7.)", "@(f(4), -0.5, -1.)", "@(i(4), 1, 9)", "@(h(4), 0., 3.)")
add("glu", "@(f(4))", "@(f(4, 3), axis=1)", "@(f(2, 4), axis=-1)", "@(F(4, 3), axis=0)")
add("softmax log_softmax sparsemax", "@(f(4))", "@(f(4, 3), axis=1)", "@(f(4, 3), axis=0)", "@(h(4))", "@(d(4))", "@(f(2, 3, 4), axis=2)")
add("softmax log_softmax", "@(f(4, 3), axis=(1, 2))", "@(f(4, 3), axis=None)", "@(F(4, 3), axis=None)", "@(f(2, 3, 4), axis=[1, 3])")
add("round", "@(f(4), decimals=2)", "@(k(4), decimals=-1)", "@(i(4), decimals=-1)", "@(i(4), decimals=1)", "@(h(4), decimals=1)", "@(k(4), 1)")
add("nan_to_num", "@(z(4), nan=3.)", "@(z(4), posinf=5., neginf=-6.)", "@(z(4), nan=1., posinf=2., neginf=3.)")
add("ones_like zeros_like", *each(("'float16'", "'int32'", "'bool'", "'uint8'", "'float64'", "'int64'"), "@(f(4), dtype=?)"),
    "@(i(4), dtype='float32')", "@(z(2, 3))", "@(F(2, 3))")
add("full_like", "@(f(4), 2)", "@(f(4), 2.5, dtype='int32')", "@(i(4), 3)", "@(z(4), 7., 'float16')", "@(b(4), True)", "@(f(4), f(4))",
    "@(u(4), 300)")
add("cast", *[f"@({k}(4), {t!r})" for k in "fkilubhz" for t in ("float32", "float16", "float64", "int32", "int64", "uint8", "int8", "bool")
              if (k, t) not in (("z", "int32"), ("z", "int64"), ("z", "uint8"), ("z", "int8"))])
add("saturate_cast", "@(k(4), 'int8')", "@(k(4), 'uint8')", "@(i(4), 'uint8')", "@(l(4), 'int32')", "@(f(4), 'int32')", "@(k(4), 'float16')",
    "@(u(4), 'int8')", "@(f(4), dtype='bool')")
add("convert_to_tensor", "@(f(4))", "@(f(4), dtype='int32')", "@(i(4), dtype='float32')", "@(f(4), sparse=False)")
add("view", "@(f(4), dtype='int32')", "@(i(4), dtype='float32')", "@(f(4), dtype='uint8')", "@(f(4))")
add("clip", "@(f(4), -0.5, 0.5)", "@(i(4), -2, 3)", "@(i(4), -0.5, 0.5)", "@(u(4), 10, 100)", "@(f(4), x_min=0., x_max=1)", "@(h(4), -1, 1)",
    "@(f(4), A([-1., 0., -1., 0.]), 0.5)", "@(f(4), f(4), 2.)", "@(z(4), -1., 1.)", "@(b(4), 0, 1)")

# Two values.
ARITHMETIC = "add subtract multiply divide true_divide maximum minimum power mod floor_divide fmod"
PAIRS = ["ff", "fi", "if", "ii", "fh", "hh", "hi", "uu", "ui", "uf", "il", "bf", "bi", "bb", "fd", "ju", "lf", "zf", "fz"]
add(ARITHMETIC, *[f"@({a}(4), {b}(4))" for a, b in PAIRS], "@(f(4), 2)", "@(f(4), 2.5)", "@(2, f(4))", "@(i(4), 2)", "@(i(4), 2.5)",
    "@(3, i(4))", "@(2.5, i(4))", "@(u(4), 2)", "@(u(4), 2.5)", "@(h(4), 2.5)", "@(f(4), A([1., 2., 3., 4.]))", "@(A([1., 2., 3., 4.]), f(4))",
    "@(f(4), A([1, 2, 3, 4], 'int32'))", "@(i(4), A([1., 2., 3., 4.]))", "@(f(2, 3), A([[1.], [2.]]))", "@(f(2, 1), f(1, 3))",
    "@(f(3), f(2, 3))", "@(b(4), 2)", "@(f(4), True)", "@(h(4), A([1., 2., 3., 4.]))", "@(f(4), [1., 2., 3., 4.])", "@(x1=f(4), x2=f(4))")
add("equal not_equal greater greater_equal less less_equal", *[f"@({a}(4), {b}(4))" for a, b in PAIRS], "@(f(4), 0)", "@(0.5, f(4))",
    "@(i(4), 0.5)", "@(i(4), 2)", "@(u(4), 100)", "@(u(4), 2.5)", "@(f(4), A([1., 2., 3., 4.]))", "@(z(4), 0.)", "@(f(2, 1), f(1, 3))", "@(f(4), True)")
add("logical_and logical_or logical_xor", *[f"@({a}(4), {b}(4))" for a, b in ("bb", "fb", "ff", "ib", "uu", "zb")], "@(b(4), True)",
    "@(b(4), A([True, False, True, False]))", "@(f(4), 0.)", "@(b(2, 1), b(1, 3))")
add("bitwise_and bitwise_or bitwise_xor", *[f"@({a}(4), {b}(4))" for a, b in ("ii", "uu", "il", "ui", "bb", "ju", "ll")], "@(i(4), 6)",
    "@(u(4), 15)", "@(6, i(4))", "@(i(4), A([1, 2, 3, 4], 'int32'))")
add("bitwise_left_shift bitwise_right_shift left_shift right_shift", *[f"@({a}(4), {b}(4))" for a, b in ("in", "nn", "un", "ln")], "@(i(4), 2)", "@(u(4), 1)")
add("fmax fmin", *[f"@({a}(4), {b}(4))" for a, b in ("ff", "zf", "fz", "fi", "ii", "hf", "zz")], "@(z(4), 0.5)", "@(i(4), 2.5)")
add("logaddexp logaddexp2 hypot arctan2 nextafter heaviside divide_no_nan", *[f"@({a}(4), {b}(4))" for a, b in ("ff", "fi", "ii", "hh", "zf", "dd", "uu", "bf")],
    "@(f(4), 0.5)", "@(0.5, f(4))", "@(f(2, 1), f(1, 3))", "@(f(4), A([1., 0., -2., 3.]))")
add("divide_no_nan", "@(f(4), b(4))", "@(f(4), 0)", "@(i(4), i(4))")
add("gcd lcm", *[f"@({a}(4), {b}(4))" for a, b in ("ii", "nn", "uu", "il", "ui")], "@(i(4), 6)", "@(12, n(4))")
add("ldexp", "@(f(4), i(4))", "@(h(4), i(4))", "@(f(4), 3)", "@(i(4), n(4))")
add("isclose allclose", "@(f(4), f(4))", "@(f(4), f(4), rtol=0.5)", "@(f(4), f(4), atol=1.)", "@(z(4), z(4), equal_nan=True)", "@(z(4), z(4))",
    "@(i(4), i(4))", "@(f(4), 0.5, 0.1, 0.7)", "@(i(4), i(4), atol=2)")
add("polar", "@(p(4), f(4))", "ops.real(ops.polar(p(4), f(4)))", "ops.imag(ops.polar(p(4), f(4)))")
add("view_as_complex", "ops.real(@(f(4, 2)))", "ops.abs(@(f(4, 2)))")
add("view_as_real", "@(ops.view_as_complex(f(4, 2)))")
add("psnr", "@(p(4), p(4), max_val=1.)", "@(p(2, 3), p(2, 3), 255.)")

# Reductions.
AXES = ["@(f(3, 4))", "@(f(3, 4), axis=0)", "@(f(3, 4), axis=1)", "@(f(3, 4), axis=-1)", "@(f(3, 4), axis=(1, 2))", "@(f(3, 4), axis=[0, 2])",
        "@(f(3, 4), axis=(-1, -2), keepdims=True)", "@(f(3, 4), keepdims=True)", "@(f(3, 4), axis=2, keepdims=True)", "@(F(3, 4))", "@(z(3, 4), axis=1)",
        "@(f(2, 3, 4), (1, 3))", "@(f(3, 4), axis=None, keepdims=True)"]
add("all any sum prod max min amax amin mean std var logsumexp count_nonzero median ptp nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar",
    *AXES, *each("hdilubj", "@(?(3, 4), axis=1)"), *each("iub", "@(?(3, 4))"))
CASES["count_nonzero"] = [c for c in CASES["count_nonzero"] if "keepdims" not in c]
add("max min", "@(f(3, 4), axis=1, initial=0.5)", "@(f(3, 4), initial=5.)", "@(i(3, 4), axis=1, initial=2)", "@(f(3, 4), axis=(1, 2), keepdims=True, initial=-0.2)")
add("prod", *each(("'float64'", "'int32'", "'float16'"), "@(f(3, 4), axis=1, dtype=?)"), "@(i(3, 4), axis=1, dtype='float32')", "@(u(3, 4), dtype='int64')")
add("argmax argmin nanargmax nanargmin", "@(f(3, 4))", "@(f(3, 4), axis=0)", "@(f(3, 4), axis=1)", "@(f(3, 4), axis=-1, keepdims=True)", "@(f(3, 4), keepdims=True)",
    *each("hdiluz", "@(?(3, 4), axis=1)"), "@(b(3, 4), axis=1)", "@(F(3, 4))", "@(i(3, 4))")
add("moments", "@(f(3, 4), axes=1)", "@(f(3, 4), axes=[1, 2])", "@(f(3, 4), axes=[1], keepdims=True)", "@(f(3, 4), axes=(0, 1))", "@(h(3, 4), axes=[2])",
    "@(f(3, 4), axes=[0], synchronized=False)")
add("average", "@(f(3, 4))", "@(f(3, 4), axis=1)", "@(f(3, 4), axis=-1, weights=p(3, 4))", "@(f(3, 4), axis=2, weights=A([1., 2., 3., 4.]))", "@(i(3, 4), axis=1)",
    "@(f(3, 4), weights=p(3, 4))", "@(f(3, 4), axis=(1, 2))", "@(u(3, 4), axis=1)", "@(i(4), axis=1, weights=A([1., 2., 3., 4.]))")
add("quantile nanquantile", "@(f(3, 4), 0.3)", "@(f(3, 4), q=0.3, axis=1)", "@(f(3, 4), A([0.1, 0.5]), axis=-1)", "@(f(3, 4), 0.3, axis=1, keepdims=True)",
    *each(("'lower'", "'higher'", "'nearest'", "'midpoint'"), "@(f(3, 5), 0.3, axis=2, method=?)"), "@(f(3, 4), 0.3, axis=(1, 2))", "@(i(3, 4), 0.3, axis=1)",
    "@(z(3, 4), 0.5, axis=1)", "@(f(3, 4), [0.1, 0.5], axis=1)")
add("percentile nanpercentile", "@(f(3, 4), 30)", "@(f(3, 4), q=30., axis=1)", "@(f(3, 4), A([10., 50.]), axis=-1)", "@(f(3, 4), 30., axis=1, keepdims=True)",
    *each(("'lower'", "'higher'", "'nearest'", "'midpoint'"), "@(f(3, 5), 30., axis=2, method=?)"), "@(i(3, 4), 30., axis=1)")
add("norm", "@(f(4))", "@(f(3, 4))", "@(f(3, 4), axis=1)", "@(f(3, 4), axis=-1, keepdims=True)", "@(f(3, 4), ord=1, axis=1)", "@(f(3, 4), ord=3, axis=1)",
    *each(("'fro'", "'nuc'", "1", "-1", "2", "-2", "np.inf", "-np.inf"), "@(f(3, 4), ord=?, axis=(1, 2))"),
    *each(("0", "np.inf", "-np.inf", "2", "0.5", "-1"), "@(f(3, 4), ord=?, axis=2)"), "@(i(3, 4), axis=1)", "@(h(3, 4), axis=1)", "@(f(3, 4), keepdims=True)",
    "@(F(3, 4), ord='fro')", "@(F(3, 4), ord=1)")
add("normalize", "@(f(3, 4))", "@(f(3, 4), axis=1)", "@(f(3, 4), order=1)", "@(f(3, 4), axis=1, order=3)", "@(f(3, 4), epsilon=0.5)", "@(f(3, 4), order=np.inf)",
    "@(h(3, 4))", "@(i(3, 4))", "@(f(3, 4), axis=0)", "@(f(3, 4), axis=None)")
add("cumsum cumprod nancumsum nancumprod", "@(f(3, 4))", "@(f(3, 4), axis=1)", "@(f(3, 4), axis=-1)", "@(i(3, 4), axis=1)", "@(f(3, 4), axis=1, dtype='float64')", "@(u(3, 4), axis=1)",
    "@(b(3, 4), axis=1)", "@(f(3, 4), axis=0)", "@(z(3, 4), axis=1)", "@(i(3, 4), axis=2, dtype='float32')", "@(h(4), axis=1)", "@(F(3, 4))", "@(f(3, 4), axis=1, dtype='int32')")
add("trace", "@(f(3, 4))", "@(f(3, 4), axis1=1, axis2=2)", "@(f(3, 4), offset=1, axis1=1, axis2=2)", "@(f(3, 4), -1, 1, 2)", "@(i(3, 3), axis1=1, axis2=2)", "@(u(3, 3), axis1=2, axis2=1)",
    "@(F(3, 4))")
add("trapezoid", "@(f(3, 4))", "@(f(4), dx=0.5)", "@(f(3, 4), axis=1)", "@(f(3, 4), x=A([0., 1., 3., 4.]))", "@(f(4), x=f(4))", "@(i(4))")
add("searchsorted", "@(A([-1., 0., 1.]), f(4))", "@(A([-1., 0., 1.]), f(4), side='right')", "@(A([1, 2, 3], 'int32'), i(4))", "@(A([1., 2., 3.]), i(4), 'right')")
add("searchsorted", "@(A([-1., 0., 1.]), F(4))", "@(A([-1., 0., 1.]), F(4), side='right')", "@(A([1, 2, 3], 'int32'), I(4))", "@(F(3), F(4))")
add("digitize", "@(f(4), A([-1., 0., 1.]))", "@(f(4), [-1., 0., 1.])", "@(i(4), A([-1, 0, 3], 'int32'))", "@(f(4), bins=np.array([-0.5, 0.5]))")
add("bincount", "@(n(4))", "@(n(4), minlength=9)", "@(n(4), weights=f(4))", "@(N(4))", "@(N(4), weights=F(4), minlength=3)", "@(n(4), weights=f(4), minlength=7)", "@(n(4), sparse=True)")
add("histogram", "@(f(4))", "@(f(4), bins=4)", "@(f(4), bins=4, range=(-1, 1))", "@(i(4), bins=3)", "@(F(6), bins=4)", "@(F(6), bins=4, range=(-1, 1))")
add("unique", "@(i(4))", "@(I(6))", "@(I(6), return_counts=True)", "@(I(6), return_index=True, return_inverse=True)", "@(I(6), size=4, fill_value=9)", "@(i(3), axis=1)", "@(I(6), sorted=False)")
add("nonzero", "@(f(4))", "@(i(4))", "@(F(2, 3))", "@(b(4))")
add("isin", "@(i(4), A([1, 2, 3], 'int32'))", "@(i(4), [1, 2, 3])", "@(i(4), A([1, 2], 'int32'), invert=True)", "@(i(4), A([1, 2], 'int32'), assume_unique=True)", "@(f(4), A([1., 2.]))", "@(i(4), i(4))",
    "@(u(4), A([1, 2, 3], 'int32'))")
add("in_top_k", "@(N(3), F(3, 4), k=2)", "@(n(), f(5), 1)", "@(n(), f(5), k=3)")
add("top_k", "@(f(5), 2)", "@(f(5), k=3, sorted=False)", "@(i(5), 2)", "@(f(3, 5), 2)", "@(f(5), 1)", "@(h(5), 2)", "@(u(5), k=2, sorted=True)")
add("sort argsort", "@(f(4))", "@(f(3, 4), axis=1)", "@(f(3, 4), axis=-1)", "@(i(4))", "@(f(3, 4), axis=0)", "@(u(4))", "@(b(4))", "@(f(3, 4), axis=None)", "@(h(4))", "@(l(4), -1)", "@(F(3, 4), axis=None)", "@(z(4))")
add("argpartition", "@(f(5), kth=2)", "@(f(3, 5), 1, axis=1)", "@(i(5), kth=1)", "@(f(5), kth=-2)")
add("correlate", "@(F(5), F(3))", "@(F(5), F(3), mode='same')", "@(F(5), F(3), mode='full')", "@(I(5), I(3))")
add("corrcoef", "@(f(4))", "@(F(3, 4))", "@(i(4))")
add("diff", "@(f(4))", "@(f(4), n=2)", "@(f(3, 4), axis=1)", "@(f(4), n=1, axis=0)", "@(i(4))", "@(b(4))", "@(u(4))", "@(f(3, 4), 2, 1)")
add("vander", "@(F(4))", "@(F(4), N=3)", "@(F(4), increasing=True)", "@(I(3), 4, True)")

# Shapes.
add("broadcast_to", "@(f(1, 3), (3, 2, 3))", "@(F(1, 3), (2, 3))", "@(F(3), [2, 3])", "@(I(3), shape=(4, 3))")
add("reshape", "@(f(4), (-1, 2, 2))", "@(f(2, 3), (-1, 6))", "@(f(4), (-1,))", "@(F(2, 3), (3, 2))", "@(f(2, 3), newshape=[-1, 3, 2])", "@(i(4), -1)", "@(f(4), (-1, 2))")
add("expand_dims", "@(f(4), 1)", "@(f(4), axis=-1)", "@(f(4), axis=0)", "@(f(4), axis=(1, 3))", "@(f(4), [0, -1])", "@(i(2, 3), axis=2)")
add("squeeze", "@(f(1, 4))", "@(f(1, 4), axis=1)", "@(f(1, 4, 1), axis=(1, 3))", "@(f(4, 1), axis=-1)", "@(f(4, 1, 1), axis=[2, 3])", "@(F(1, 3, 1))")
add("transpose", "@(f(2, 3))", "@(f(2, 3), axes=(0, 2, 1))", "@(f(2, 3), [2, 0, 1])", "@(f(4))", "@(F(2, 3))", "@(f(2, 3), axes=(0, -1, -2))")
add("moveaxis", "@(f(2, 3), 1, 2)", "@(f(2, 3), source=-1, destination=1)", "@(f(2, 3, 4), (1, 2), (3, 1))", "@(f(2, 3), [0], [-1])", "@(f(2, 3), 0, -1)")
add("swapaxes", "@(f(2, 3), 1, 2)", "@(f(2, 3), axis1=-1, axis2=1)", "@(f(2, 3), 0, 1)")
add("flip", "@(f(3, 4))", "@(f(3, 4), axis=1)", "@(f(3, 4), axis=-1)", "@(f(3, 4), axis=(1, 2))", "@(f(3, 4), axis=0)", "@(i(4), axis=[1])", "@(F(3, 4))")
add("fliplr flipud", "@(f(4))", "@(f(3, 4))", "@(i(4))")
add("rot90", "@(f(3, 4))", "@(f(3, 4), k=2)", "@(f(3, 4), axes=(1, 2))", "@(f(3, 4), k=3, axes=(1, 2))", "@(f(3, 4), k=-1, axes=(2, 1))", "@(F(3, 4), k=0)")
add("roll", "@(f(3, 4), 1)", "@(f(3, 4), shift=2, axis=1)", "@(f(3, 4), -1, axis=-1)", "@(f(3, 4), (1, 2), axis=(1, 2))", "@(f(4), shift=1, axis=0)", "@(F(3, 4), 2)", "@(i(4), 5, 1)", "@(f(3, 4), [1, -1], [2, 1])")
add("repeat", "@(f(3, 4), 2)", "@(f(3, 4), 2, axis=1)", "@(f(3, 4), repeats=3, axis=-1)", "@(f(4), 2, axis=0)", "@(f(3), [1, 2, 3], axis=1)", "@(f(3), A([1, 0, 2], 'int32'), axis=1)", "@(F(3, 4), 2)", "@(i(4), repeats=2, axis=1)")
add("tile", "@(f(4), 2)", "@(f(4), (1, 2))", "@(f(3, 4), [1, 2, 3])", "@(f(4), (2, 1))", "@(f(4), (2, 1, 3))", "@(i(4), repeats=(1, 3))", "@(f(3, 4), (1, 2))")
add("concatenate", "@([f(4), f(4)])", "@([f(4), f(3)], axis=1)", "@([f(4), f(4)], axis=-1)", "@([f(2, 3), f(2, 3)], axis=2)", "@([f(4), i(4)], axis=1)", "@([i(4), u(4)], axis=1)", "@([b(4), b(4)], 1)",
    "@([F(2, 3), A([[1., 2., 3.]])], axis=0)", "@([F(2, 3), A([[1.], [2.]])], axis=1)", "@([h(4), f(4)], axis=1)", "@((f(4), f(4), f(4)), axis=1)", "@([A([[1, 2]], 'int32'), F(1, 2)], axis=0)", "@([b(4), i(4)], axis=1)",
    "@([f(4)], axis=1)")
add("stack", "@([f(4), f(4)])", "@([f(4), f(4)], axis=1)", "@([f(4), f(4)], axis=-1)", "@([f(4), i(4)], axis=1)", "@([F(3), A([1., 2., 3.])], axis=1)", "@([F(3), A([1., 2., 3.])])", "@([i(4), u(4), b(4)], axis=2)", "@([h(4), f(4)], 1)",
    "@((f(4), f(4)), axis=1)")
add("append", "@(f(4), f(4))", "@(f(4), f(3), axis=1)", "@(F(2, 3), A([[1., 2., 3.]]), axis=0)", "@(f(4), i(4), axis=-1)", "@(F(2, 3), F(2))")
add("hstack", "@([f(4), f(3)])", "@([f(2, 3), f(4, 3)])", "@([f(4), i(4)])", "@([F(3), F(2)])")
add("vstack", "@([f(4), f(4)])", "@([F(3), F(3)])", "@([f(2, 3), i(2, 3)])")
add("dstack", "@([f(4), f(4)])", "@([F(3), F(3)])", "@([f(2, 3), f(2, 1)])")
add("split", "@(f(4), 2, axis=1)", "@(f(4), [1, 3], axis=1)", "@(f(3, 4), 4, axis=-1)", "@(F(4, 3), 2)", "@(f(3, 4), indices_or_sections=(1,), axis=2)", "@(i(6), 3, axis=1)", "@(f(4), [1, 1, 3], axis=1)")
add("array_split", "@(f(5), 2, axis=1)", "@(f(5), [1, 3], axis=1)", "@(f(3, 5), 3, axis=-1)", "@(F(5, 3), 2)", "@(i(7), 3, axis=1)")
add("hsplit", "@(f(4), 2)", "@(f(4), [1, 3])", "@(F(4), 2)")
add("vsplit", "@(F(4, 3), 2)", "@(F(4, 3), [1])")
add("dsplit", "@(f(3, 4), 2)", "@(f(3, 4), [1, 3])")
add("unstack", "@(f(3, 4), axis=1)", "@(f(3, 4), num=4, axis=-1)", "@(F(3, 4))", "@(f(2), num=2, axis=1)", "@(F(3, 4), 3)")
add("meshgrid", "@(F(3), F(4))", "@(F(3), F(4), indexing='ij')", "@(F(3), I(4))", "@(F(2), F(3), F(4))", "@(f(4), F(3))")
add("pad", "@(f(4), ((0, 0), (1, 2)))", "@(f(4), [[0, 0], [1, 2]], constant_values=7.)", "@(f(4), ((0, 0), (1, 2)), mode='reflect')", "@(f(4), ((0, 0), (1, 2)), mode='symmetric')", "@(f(3, 4), ((0, 0), (1, 0), (2, 1)), 'constant', 3.)",
    "@(F(3, 4), 1)", "@(F(3, 4), (1, 2))", "@(i(4), ((0, 0), (1, 2)), constant_values=-1)", "@(f(4), ((1, 0), (1, 2)))", "@(f(4), ((0, 0), (2, 2)), mode='edge')", "@(b(4), ((0, 0), (1, 1)))", "@(f(4), ((0, 0), (1, 1)), mode='wrap')",
    "@(F(3, 4), ((1, 2),), constant_values=2.)", "@(u(4), ((0, 0), (1, 2)), constant_values=9)")
add("slice", "@(F(3, 4), (0, 1), (2, 2))", "@(F(3, 4), [1, 0], shape=[2, 4])", "@(f(4), (0, 1), (3, 2))", "@(I(3, 4), A([0, 1], 'int32'), (2, 2))")
add("slice_update", "@(F(3, 4), (0, 1), F(2, 2))", "@(F(3, 4), [1, 0], A([[1., 2.]]))", "@(F(3, 4), A([0, 1], 'int32'), F(2, 2))", "@(f(4), (0, 1), f(2))")
add("get_item", "@(f(4), (slice(None), 1))", "@(f(3, 4), (slice(None), slice(1, 3)))", "f(3, 4)[:, 1]", "f(3, 4)[:, ::2, -1]", "f(3, 4)[..., 1:]", "f(3, 4)[:, None]", "f(3, 4)[0]", "f(3, 4)[:, ::-1]", "f(3, 4)[..., None, 2]",
    "f(3, 4)[:, 1:, 1:][:, 0]", "f(4)[1:]", "f(3, 4)[:, -2:, :-1]", "f(4)[:, N()]", "i(4)[:, 3:0:-1]")
add("take", "@(f(4), 1, axis=1)", "@(f(4), A([0, 2], 'int32'), axis=1)", "@(f(3, 4), [2, 0], axis=-1)", "@(f(4), [1, 5, 3])", "@(f(4), -1, axis=1)", "@(f(3, 4), A([[0, 1], [2, 0]], 'int32'), axis=1)", "@(A([1., 2., 3., 4., 5.]), n(4))",
    "@(A([[1., 2.], [3., 4.], [5., 6.], [7., 8.], [9., 10.]]), n(3), axis=0)", "@(f(5), N(2), axis=1)", "@(F(3, 4), [0, 11])", "@(f(4), A([-1, -2], 'int32'), axis=1)", "@(A([1., 2., 3., 4., 5.]), m(4))", "@(f(4), indices=[1], axis=1)")
add("take_along_axis", "@(f(5), n(3), axis=1)", "@(f(2, 5), n(2, 3), axis=-1)", "@(F(3, 5), N(2, 5), axis=0)", "@(F(2, 4), N(3))", "@(F(2, 4), N(3), axis=None)", "@(f(5), A([[0, 1]], 'int32'), axis=1)", "@(f(5), ops.argsort(f(5), axis=1), axis=1)")
add("one_hot", "@(n(4), 5)", "@(n(4), num_classes=3)", "@(n(4), 5, axis=1)", "@(n(4), 5, dtype='int32')", "@(n(4), 5, axis=-1, dtype='bool')", "@(n(), 5)", "@(i(4), 5)", "@(n(4), 5, dtype='float16')", "@(n(4), 5, axis=0)", "@(n(4), 5, sparse=True)", "@(l(4), 4)",
    "@(f(4), 5)")
add("multi_hot", "@(n(4), 5)", "@(n(4), num_classes=6, axis=-1)", "@(n(4), 5, dtype='int32')", "@(n(2, 3), 5, axis=1)", "@(n(4), 5, axis=0)", "@(i(4), 5)", "@(n(4), 5, sparse=True)", "@(N(4), 5)")
add("where", "@(b(4), f(4), f(4))", "@(b(4), f(4), 0.)", "@(b(4), 1., f(4))", "@(b(4), i(4), f(4))", "@(f(4), f(4), f(4))", "@(b(1), f(4), f(4))", "@(b(4), 1, 0)", "@(b(4), 1.5, 0)", "@(b(4))", "@(b(4), i(4), 2.5)", "@(b(4), u(4), i(4))", "@(b(4), u(4), 0)",
    "@(b(4), h(4), f(4))", "@(b(4), A([1., 2., 3., 4.]), f(4))", "@(A([True, False, True, False]), f(4), f(4))", "@(b(4), b(4), i(4))", "@(condition=b(4), x1=f(4), x2=f(4))", "@(i(4), f(4), 0.)", "@(b(4), z(4), 0.)")
add("select", "@([b(4), b(4)], [f(4), f(4)])", "@([b(4), b(4)], [f(4), f(4)], default=2.)", "@([b(4)], [i(4)], 3)", "@([b(4), b(4)], [f(4), 1.], default=f(4))")
add("tril triu", "@(f(3, 4))", "@(f(3, 4), k=1)", "@(f(3, 4), k=-1)", "@(f(4))", "@(i(3, 3), 1)", "@(b(3, 3))", "@(F(3, 4))", "@(u(3, 3))", "@(z(3, 3))", "@(f(3, 4), k=9)")
add("diag", "@(F(3))", "@(F(3), k=1)", "@(F(3, 4))", "@(F(3, 4), k=-1)", "@(I(3))", "@(f(4))", "@(F(3, 4), k=1)")
add("diagflat", "@(F(3))", "@(F(2, 3), k=1)", "@(F(3), k=-1)", "@(I(3))")
add("diagonal", "@(f(3, 4))", "@(f(3, 4), axis1=1, axis2=2)", "@(f(3, 4), offset=1, axis1=1, axis2=2)", "@(f(3, 4), offset=-1, axis1=2, axis2=1)", "@(F(3, 4))", "@(i(3, 3), 0, 1, 2)")
add("kron", "@(F(2, 3), F(3, 2))", "@(F(3), F(2))", "@(f(4), A([[1., 2.]]))", "@(I(2, 2), F(2, 2))")
add("scatter", "@(N(3, 1), F(3), (6,))", "@(N(2, 2), F(2), (5, 5))", "@(n(1), f(4), (6, 4))", "@(A([[0], [2], [0]], 'int32'), F(3), (5,))", "@(N(3, 1), I(3), shape=(6,))")
add("scatter_update", "@(F(6), N(3, 1), F(3))", "@(F(6), A([[0], [2]], 'int32'), F(2))", *each(("'add'", "'max'", "'min'", "'mul'"), "@(F(6), A([[0], [2]], 'int32'), F(2), reduction=?)"), "@(F(3, 4), A([[0, 1], [2, 3]], 'int32'), A([7., 8.]))", "@(I(6), A([[0], [2]], 'int32'), I(2))",
    "@(f(4), A([[0], [2]], 'int32'), A([[1., 2., 3., 4.], [5., 6., 7., 8.]]))")
add("segment_max segment_min segment_prod segment_sum", "@(F(5), N(5))", "@(F(5), N(5), num_segments=6)", "@(F(5), A([0, 0, 1, 2, 2], 'int32'), num_segments=3, sorted=True)", "@(F(5, 2), A([0, 3, 1, 0, 2], 'int32'), num_segments=4)", "@(I(5), A([0, 3, 1, 0, 2], 'int32'), 4)",
    "@(f(4), n(), num_segments=5)", "@(F(5), A([0, 0, 1, 2, 2], 'int32'), sorted=True)")
add("unravel_index", "@(n(4), (2, 3))", "@(n(4), shape=[3, 2])", "@(N(4), (2, 2, 2))")
add("extract_sequences", "@(f(8), 4, 2)", "@(f(8), sequence_length=3, sequence_stride=3)", "@(f(2, 8), 4, 1)", "@(i(8), 4, 2)")
add("unfold", "@(f(3, 6, 6), 2)", "@(f(3, 6, 6), kernel_size=(2, 3), dilation=2)", "@(f(3, 6, 6), 2, padding=1)", "@(f(3, 6, 6), 2, stride=2)", "@(f(3, 6, 6), (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))")
add("fold", "@(f(12, 25), (6, 6), 2)", "@(f(12, 9), output_size=(6, 6), kernel_size=2, stride=2)", "@(f(12, 16), (6, 6), (2, 2), padding=1, stride=2)", "@(f(12, 16), 6, 2, dilation=2)")
add("depth_to_space", "@(f(2, 3, 8), 2)", "@(f(2, 3, 9), block_size=3)", "@(f(8, 2, 3), 2, data_format='channels_first')")
add("space_to_depth", "@(f(4, 6, 2), 2)", "@(f(3, 6, 2), block_size=3)", "@(f(2, 4, 6), 2, data_format='channels_first')")
add("rearrange", "@(f(2, 3), 'b h w -> b w h')", "@(f(2, 6), 'b h (w c) -> b h w c', c=2)", "@(f(2, 3), 'b h w -> b (h w)')", "@(f(4, 6), 'b (h p) w -> b h (p w)', p=2)", "@(f(2, 3, 4), 'b ... c -> b c ...')")

add("rearrange", "@(F(4, 2, 3), 'b h w -> b w h')", "@(F(4, 2, 6), 'b h (w c) -> b h w c', c=2)", "@(F(4, 2, 3), 'b h w -> b (h w)')")
# Products and linear algebra.
add("matmul", "@(f(3, 4), f(4, 2))", "@(f(4), A([[1.], [2.], [3.], [4.]]))", "@(F(3, 4), F(4))", "@(i(3, 4), i(4, 2))", "@(f(3, 4), i(4, 2))", "@(h(3, 4), f(4, 2))", "@(A([[1., 2., 3.]]), f(3, 2))", "@(f(3, 4), A([1., 2., 3., 4.]))", "@(f(2, 3, 4), f(4, 2))", "@(F(4), F(4))", "@(j(3, 4), j(4, 2))",
    "@(u(3, 4), i(4, 2))", "@(b(3, 4), f(4, 2))", "@(F(4), F(4, 2))", "@(h(3, 4), h(4, 2))")
add("dot", "@(f(4), A([[1.], [2.], [3.], [4.]]))", "@(F(3, 4), F(4))", "@(F(4), F(4))", "@(f(3, 4), A([[1.], [2.], [3.], [4.]]))", "@(i(4), A([1, 2, 3, 4], 'int32'))", "@(f(4), 2.)", "@(F(2, 3, 4), F(5, 4, 2))", "@(f(4), A([1, 2, 3, 4], 'int32'))")
add("inner", "@(f(4), A([[1., 2., 3., 4.]]))", "@(F(4), F(4))", "@(F(3, 4), F(2, 4))", "@(I(4), F(4))", "@(f(4), 2.)")
add("outer", "@(F(3), F(4))", "@(F(2, 2), I(3))", "@(f(4), F(3))", "@(I(3), I(2))")
add("vdot", "@(F(4), F(4))", "@(F(2, 3), F(2, 3))", "@(I(4), F(4))", "@(F(2, 3), F(6))")
add("tensordot", "@(f(3, 4), A([[1.], [2.], [3.], [4.]]), axes=1)", "@(F(2, 3, 4), F(3, 4, 2))", "@(F(3, 4), F(4, 3), axes=([1], [0]))", "@(F(3, 4), F(3, 4), axes=[[0, 1], [0, 1]])", "@(F(3), F(2), axes=0)", "@(f(3, 4), A([[1.], [2.], [3.]]), axes=[1, 0])", "@(I(3, 4), F(4, 2), 1)")
add("cross", "@(f(3), f(3))", "@(f(2, 3), f(2, 3))", "@(F(3, 4), F(3, 4), axis=0)", "@(f(3, 2), f(3, 2), axisa=1, axisb=1, axisc=1)", "@(f(2), f(3))", "@(i(3), i(3))", "@(f(2), f(2))", "@(f(3, 4), f(3, 4), axis=1)")
add("einsum", "@('bij,bjk->bik', f(3, 4), f(4, 2))", "@('bi,ij->bj', f(3), A([[1., 2.], [3., 4.], [5., 6.]]))", "@('bij->bji', f(3, 4))", "@('bij->b', f(3, 4))", "@('...i,i->...', f(3, 4), F(4))", "@('bii->bi', f(3, 3))", "@('bi,bj->bij', i(3), i(2))", "@('bi,bi->b', f(3), i(3))", "@('bhi,bhj,bjk->bik', f(2, 3), f(2, 4), f(4, 2))",
    "@('bij,bjk->bik', h(3, 4), h(4, 2))", "@('ij,jk', F(3, 4), F(4, 2))", "@('bij->bj', u(3, 4))")
add("cdist", "@(f(3, 4), f(2, 4))", "@(F(3, 4), F(2, 4))", "@(i(3, 4), f(2, 4))")
add("det logdet inv slogdet pinv matrix_rank", "@(f(3, 3))", "@(F(3, 3))", "@(d(3, 3))", "@(i(3, 3))")
add("pinv", "@(f(3, 4))", "@(f(3, 3), rcond=0.1)")
add("matrix_rank", "@(f(3, 4), tol=0.5)")
add("cholesky cholesky_inverse", "@(spd(3))", "@(spd(3), upper=True)")
add("qr", "@(f(4, 3))", "@(f(4, 3), mode='complete')", "@(f(3, 4), mode='reduced')")
add("svd", "ops.svd(f(3, 4), compute_uv=False)", "ops.svd(f(3, 4))[1]", "ops.svd(f(3, 4), full_matrices=False)[1]")
add("eig", "ops.real(ops.eig(spd(3))[0])")
add("eigh", "@(spd(3))[0]", "@(spd(3))")
add("lu_factor", "@(f(3, 3))")
add("lstsq", "@(F(4, 3), F(4))", "@(F(4, 3), F(4, 2), rcond=0.1)")
add("solve", "@(spd(3), f(3, 2))", "@(spd(3), f(3, 1))", "@(A(np.eye(3) * 2.), F(3, 2))")
add("solve_triangular", "@(spd(3), f(3, 2))", "@(spd(3), f(3, 2), lower=True)")

# Neural networks.
add("average_pool max_pool", "@(f(6, 5, 3), 2)", "@(f(6, 5, 3), (2, 1), strides=2)", "@(f(6, 5, 3), 2, strides=(1, 2), padding='same')", "@(f(6, 3), 2)", "@(f(6, 3), 3, strides=1, padding='same')", "@(f(3, 6, 5), 2, data_format='channels_first')", "@(f(4, 4, 4, 2), 2)", "@(h(6, 5, 3), 2)",
    "@(f(6, 5, 3), pool_size=[3, 2], padding='SAME')")
add("adaptive_average_pool adaptive_max_pool", "@(f(6, 5, 3), 2)", "@(f(6, 5, 3), output_size=(3, 2))", "@(f(6, 3), 4)", "@(f(3, 6, 5), 2, data_format='channels_first')", "@(f(4, 4, 4, 2), 2)")
add("adaptive_average_pool adaptive_max_pool", "@(f(6, 5, 3), (2, 2))", "@(f(6, 3), (4,))", "@(f(4, 4, 4, 2), (2, 2, 2))", "@(F(2, 6, 5, 3), 2)")
add("conv", "@(f(6, 5, 3), K(2, 2, 3, 4))", "@(f(6, 5, 3), K(2, 2, 3, 4), strides=2)", "@(f(6, 5, 3), K(3, 2, 3, 4), 1, 'same')", "@(f(6, 5, 3), K(2, 2, 3, 4), dilation_rate=2)", "@(f(3, 6, 5), K(2, 2, 3, 4), data_format='channels_first')", "@(f(6, 3), K(2, 3, 4))", "@(f(6, 3), K(2, 3, 4), padding='same', strides=2)",
    "@(f(4, 4, 4, 2), K(2, 2, 2, 2, 3))", "@(f(6, 5, 4), K(2, 2, 2, 4))", "@(f(6, 5, 3), K(2, 2, 3, 4), strides=(1, 2), padding='same', dilation_rate=(1, 1))", "@(h(6, 5, 3), K(2, 2, 3, 4))", "@(i(6, 5, 3), K(2, 2, 3, 4))", "@(f(6, 5, 3), F(2, 2, 3, 4))")
add("conv_transpose", "@(f(4, 3, 3), K(2, 2, 4, 3))", "@(f(4, 3, 3), K(2, 2, 4, 3), strides=2)", "@(f(4, 3, 3), K(3, 3, 4, 3), 2, 'same')", "@(f(4, 3, 3), K(3, 3, 4, 3), strides=2, padding='same', output_padding=1)", "@(f(4, 3), K(2, 4, 3), strides=2)", "@(f(3, 4, 3), K(2, 2, 4, 3), data_format='channels_first')",
    "@(f(4, 3, 3), K(2, 2, 4, 3), dilation_rate=2)")
add("conv_transpose", "@(F(2, 4, 3, 3), K(2, 2, 4, 3))", "@(F(2, 4, 3, 3), K(3, 3, 4, 3), 2, 'same')", "@(F(2, 4, 3), K(2, 4, 3), strides=2)")
add("depthwise_conv", "@(f(6, 5, 3), K(2, 2, 3, 2))", "@(f(6, 5, 3), K(2, 2, 3, 1), strides=2, padding='same')", "@(f(6, 5, 3), K(2, 2, 3, 1), dilation_rate=2)", "@(f(6, 3), K(2, 3, 2))", "@(f(3, 6, 5), K(2, 2, 3, 1), data_format='channels_first')")
add("separable_conv", "@(f(6, 5, 3), K(2, 2, 3, 2), K(1, 1, 6, 4))", "@(f(6, 5, 3), K(2, 2, 3, 1), K(1, 1, 3, 4), strides=2, padding='same')", "@(f(6, 5, 3), K(2, 2, 3, 1), K(1, 1, 3, 4), dilation_rate=2)", "@(f(6, 3), K(2, 3, 1), K(1, 3, 4))", "@(f(3, 6, 5), K(2, 2, 3, 1), K(1, 1, 3, 4), data_format='channels_first')")
add("batch_normalization", "@(f(3, 4), A([.1, .2, .3, .4]), A([1., 2., 3., 4.]), axis=-1)", "@(f(3, 4), A([.1, .2, .3]), A([1., 2., 3.]), 1)", "@(f(3, 4), A([.1, .2, .3, .4]), A([1., 2., 3., 4.]), axis=2, offset=A([1., 2., 3., 4.]), scale=A([2., 1., 2., 1.]), epsilon=0.1)", "@(f(4), A([.1, .2, .3, .4]), A([1., 2., 3., 4.]), -1, scale=A([2., 1., 2., 1.]))",
    "@(h(4), A([.1, .2, .3, .4], 'float16'), A([1., 2., 3., 4.], 'float16'), -1)")
add("layer_normalization", "@(f(3, 4))", "@(f(3, 4), axis=1)", "@(f(3, 4), gamma=A([1., 2., 3., 4.]), beta=A([.1, .2, .3, .4]))", "@(f(3, 4), axis=[1, 2])", "@(f(3, 4), epsilon=0.5)", "@(h(3, 4))", "@(f(3, 4), A([1., 2., 3., 4.]))", "@(f(3, 4), rms_scaling=True, gamma=A([1., 2., 3., 4.]))", "@(f(3, 4), gamma=f(4), beta=f(4))" )
add("rms_normalization", "@(f(3, 4))", "@(f(3, 4), axis=1)", "@(f(3, 4), scale=A([1., 2., 3., 4.]))", "@(f(3, 4), epsilon=0.5)", "@(f(3, 4), axis=(1, 2))", "@(h(3, 4), axis=-1)", "@(f(3, 4), 2.)")
add("binary_crossentropy", "@(p(4), w(4))", "@(b(4), f(4), from_logits=True)", "@(p(4), f(4), from_logits=True)")
add("categorical_crossentropy", "@(p(4), p(4))", "@(p(4), f(4), from_logits=True)", "@(p(4, 3), p(4, 3), axis=1)")
add("sparse_categorical_crossentropy", "@(n(), p(5))", "@(n(), f(5), from_logits=True)", "@(n(3), f(5, 3), from_logits=True, axis=1)", "@(n(3), f(3, 5), from_logits=True)")
add("ctc_loss", "@(N(2, 3), F(2, 6, 5), A([3, 2], 'int32'), A([6, 5], 'int32'))", "@(N(2, 3), F(2, 6, 5), A([3, 2], 'int32'), A([6, 5], 'int32'), mask_index=4)")
add("ctc_decode", "@(F(2, 6, 5), A([6, 5], 'int32'))", "@(F(2, 6, 5), A([6, 5], 'int32'), merge_repeated=False)", "@(F(2, 6, 5), A([6, 5], 'int32'), mask_index=4)", "@(F(2, 6, 5), A([6, 5], 'int32'), strategy='beam_search')")
add("dot_product_attention", "@(f(4, 2, 3), f(5, 2, 3), f(5, 2, 3))", "@(f(4, 2, 3), f(5, 2, 3), f(5, 2, 3), scale=0.3)", "@(f(4, 2, 3), f(4, 2, 3), f(4, 2, 3), is_causal=True)", "@(f(4, 2, 3), f(5, 2, 3), f(5, 2, 3), mask=b(2, 4, 5))", "@(f(4, 2, 3), f(5, 2, 3), f(5, 2, 3), bias=f(2, 4, 5))", "@(f(4, 4, 3), f(5, 2, 3), f(5, 2, 3))",
    "@(f(4, 2, 3), f(5, 2, 3), f(5, 2, 3), attn_logits_soft_cap=2.)", "@(f(4, 2, 3), f(5, 2, 3), f(5, 2, 3), flash_attention=False)", "@(h(4, 2, 3), h(5, 2, 3), h(5, 2, 3))", "@(f(4, 2, 3), f(5, 2, 3), f(5, 2, 3), bias=f(2, 4, 5), mask=b(1, 4, 5), scale=0.5)")

# Signals.
add("fft ifft2 fft2", "@((f(4, 4), f(4, 4)))", "@((F(4, 8), F(4, 8)))")
add("rfft", "@(f(8))", "@(f(8), fft_length=6)", "@(f(8), fft_length=12)", "@(f(2, 7))")
add("irfft", "@((f(5), f(5)))", "@((f(5), f(5)), fft_length=6)")
add("stft", "@(f(32), 8, 4, 8)", "@(f(32), sequence_length=8, sequence_stride=4, fft_length=16, window='hamming')", "@(f(32), 8, 4, 8, center=False)", "@(f(32), 8, 4, 8, window=None)", "@(f(32), 8, 4, 8, window=A([1., 2., 3., 4., 4., 3., 2., 1.]))")
add("istft", "@((f(9, 5), f(9, 5)), 8, 4, 8)", "@((f(9, 5), f(9, 5)), 8, 4, 8, length=30)", "@((f(9, 5), f(9, 5)), 8, 4, 8, window='hamming', center=False)")
add("bartlett blackman hamming hanning", "@(Z())")
add("kaiser", "@(Z(), 3.)")
add("linspace logspace geomspace", "@(p(4), p(4))", "@(p(4), p(4), num=5)", "@(p(4), p(4), 5, endpoint=False)", "@(p(4), p(4), 5, axis=1)", "@(p(4), p(4), 5, axis=-1)", "@(p(4), 3., num=5)", "@(0., p(4), num=5)", "@(p(4), p(4), num=5, dtype='float64')", "@(i(4), i(4), num=5)")
add("linspace", "@(p(4), p(4), num=5, retstep=True)")
add("logspace", "@(p(4), p(4), num=5, base=2)")

# Images.
add("image.resize", *[t.replace("X", "p(6, 5, 3)") for t in (
    "@(X, (4, 8))", "@(X, (4, 8), antialias=True)", "@(X, (4, 8), crop_to_aspect_ratio=True)", "@(X, (4, 8), pad_to_aspect_ratio=True)", "@(X, (4, 8), pad_to_aspect_ratio=True, fill_value=3., fill_mode='constant')",
    "@(X, size=(12, 10), interpolation='nearest')", "@(X, [4, 8], 'bicubic')", "@(X, (4, 8), 'lanczos3')", "@(X, (4, 8), 'lanczos5', antialias=True)", "@(X, (4, 3), data_format='channels_first')")], "@(u(6, 5, 3), (4, 8))", "@(u(6, 5, 3), (12, 10), 'nearest')", "@(F(6, 5, 3), (4, 8))", "@(h(6, 5, 3), (4, 8))",
    "@(u(6, 5, 3), (4, 8), 'bicubic')", "@(i(6, 5, 3), (4, 8))")
add("image.rgb_to_grayscale image.rgb_to_hsv image.hsv_to_rgb", "@(r(6, 5, 3))", "@(r(3, 6, 5), data_format='channels_first')", "@(R(6, 5, 3))", "@(h(6, 5, 3))", "@(u(6, 5, 3))")
add("image.crop_images", "@(f(6, 5, 3), 1, 1, 3, 2)", "@(f(6, 5, 3), top_cropping=1, left_cropping=2, target_height=2, target_width=2)", "@(f(6, 5, 3), bottom_cropping=1, right_cropping=1, target_height=2, target_width=2)", "@(f(3, 6, 5), 1, 1, 3, 2, data_format='channels_first')", "@(F(6, 5, 3), 1, 1, 3, 2)")
add("image.pad_images", "@(f(6, 5, 3), 1, 1, 9, 8)", "@(f(6, 5, 3), top_padding=1, left_padding=2, bottom_padding=1, right_padding=0)", "@(f(6, 5, 3), bottom_padding=1, right_padding=1, target_height=9, target_width=8)", "@(f(3, 6, 5), 1, 1, 9, 8, data_format='channels_first')", "@(F(6, 5, 3), 1, 1, 9, 8)")
add("image.extract_patches", "@(f(6, 6, 3), 2)", "@(f(6, 6, 3), size=(3, 2), strides=1)", "@(f(6, 6, 3), 2, strides=(1, 2), padding='same')", "@(f(6, 6, 3), 2, dilation_rate=2, strides=1)", "@(f(3, 6, 6), 2, data_format='channels_first')", "@(F(6, 6, 3), (2, 2))")
add("image.extract_patches_3d", "@(f(4, 4, 4, 2), 2)", "@(f(4, 4, 4, 2), (2, 1, 2), strides=1, padding='same')")
add("image.affine_transform", "@(f(6, 5, 3), A([[1., .1, .5, 0., 1., .2, 0., 0.]]))", *each(("'nearest'", "'bilinear'"), "@(F(6, 5, 3), A([1., .1, .5, 0., 1., .2, 0., 0.]), interpolation=?)"), *each(("'constant'", "'nearest'", "'wrap'", "'mirror'", "'reflect'"), "@(f(6, 5, 3), f(8), fill_mode=?)"), "@(f(6, 5, 3), f(8), fill_value=2.)", "@(f(3, 6, 5), f(8), data_format='channels_first')")
add("image.map_coordinates", "@(F(6, 5), P(2, 4), order=1)", "@(F(6, 5), P(2, 4), order=0)", "@(F(6, 5), P(2, 4), 1, fill_mode='nearest', fill_value=2.)")
add("image.gaussian_blur", "@(f(6, 5, 3))", "@(f(6, 5, 3), kernel_size=(5, 3), sigma=(1.5, .5))", "@(f(3, 6, 5), data_format='channels_first')")
add("image.perspective_transform", "@(F(6, 5, 3), A([[0., 0.], [4., 0.], [0., 5.], [4., 5.]]), A([[0., 1.], [4., 0.], [0., 5.], [3., 5.]]))", "@(F(6, 5, 3), A([[0., 0.], [4., 0.], [0., 5.], [4., 5.]]), A([[0., 1.], [4., 0.], [0., 5.], [3., 5.]]), interpolation='nearest', fill_value=1.)")
add("image.elastic_transform", "@(f(6, 5, 3), seed=1)")
add("image.scale_and_translate", "@(F(6, 5, 3), (4, 4, 3), A([.5, .5]), A([0., 1.]), spatial_dims=(0, 1), method='linear')", "@(F(6, 5, 3), (4, 4, 3), A([.5, .5]), A([0., 1.]), (0, 1), 'cubic', antialias=False)")
add("image.sobel_edges", "@(f(6, 5, 3))", "@(f(3, 6, 5), data_format='channels_first')")
add("image.ssim", "@(r(12, 12, 3), r(12, 12, 3), max_val=1.)")
# Operators, written as Python writes them.
CASES["operators"] = ["f(4) + 1", "1 - f(4)", "-f(4)", "abs(f(4))", "f(4) ** 2", "2 ** f(4)", "f(4) / 2", "i(4) / 2", "i(4) // 2", "i(4) % 3", "7 // n(4)", "f(4) @ A([[1.], [2.], [3.], [4.]])", "f(4) > 0", "f(4) <= f(4)", "f(4) == 0.", "f(4) != f(4)",
                      "~b(4)", "b(4) & b(4)", "b(4) | b(4)", "b(4) ^ b(4)", "i(4) + 1.5", "u(4) + 1", "u(4) * 2.5", "u(4) / 255", "u(4) - i(4)", "h(4) * 2", "i(4) * f(4)", "A([1., 2., 3., 4.]) * f(4)", "f(4) % 0.7", "f(4) // 0.7", "b(4) + b(4)", "b(4) * 2.",
                      "round(k(4), 1)", "f(2, 3)[:, 0] + f(3)[:, 0] * 2 - 1"]
