"""Ops that compute each element from the elements at its place."""

import numpy as np
import tensorflow as tf

from harness import FLOATS, INTS, Feed

NAN, INF = np.nan, np.inf

# Where the functions below have something to say beyond their usual numbers.
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 20.0, -20.0, 100.0, -100.0, INF, -INF, NAN]

FLOAT_UNARY = """Exp Expm1 Log Log1p Sqrt Rsqrt Sigmoid Tanh Softplus Softsign Relu Relu6 Elu Selu
    Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Erf Erfc Rint Round Floor Ceil Square
    Abs Sign Neg Reciprocal Inv""".split()
HALF_UNARY = "Exp Sqrt Tanh Relu Abs Neg Floor Sigmoid Square LeakyRelu".split()
INT_UNARY = "Abs Sign Neg Square Relu".split()
COMPLEX_UNARY = "Exp Log Sqrt Square Neg Tanh Sin Reciprocal Conj".split()
TESTS = "IsNan IsInf IsFinite".split()

ARITHMETIC = """Add AddV2 Sub Mul RealDiv Div DivNoNan Maximum Minimum SquaredDifference
    FloorDiv FloorMod Pow Atan2 Xdivy Xlogy Xlog1py TruncateDiv TruncateMod Mod""".split()
INT_ARITHMETIC = "AddV2 Sub Mul Maximum Minimum FloorDiv FloorMod SquaredDifference Div".split()
COMPARISONS = "Equal NotEqual Less LessEqual Greater GreaterEqual".split()
BITS = "BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift".split()


def unary(c):
    """One input."""
    for op in FLOAT_UNARY + ["LeakyRelu"] + TESTS:
        loose = {"rtol": 1e-5, "atol": 1e-6} if op not in TESTS else {}
        c.op(op, Feed(np.array(EDGES, np.float32)), case="edges", **loose)
        c.op(op, c.feed("float32", 4, 3), **loose)
    for op in "Exp Log Sqrt Erf Atan Round Floor Tanh Sigmoid Elu".split():
        c.op(op, c.feed("float64", 4, 2))
    for op in HALF_UNARY:
        for dtype in ("float16", "bfloat16"):
            c.op(op, c.feed(dtype, 4, 2))
    for op in INT_UNARY:
        for dtype in ("int32", "int64"):
            c.op(op, c.feed(dtype, 4, 2))
    c.op("Abs", c.feed("int8", 4))
    c.op("Relu", c.feed("int16", 4))
    for op in COMPLEX_UNARY:
        c.op(op, c.feed("complex64", 4, 2))
    c.op("LeakyRelu", c.feed("float32", 4, 3), case="slope", alpha=0.5)
    c.op("LogicalNot", c.feed("bool", 4, 3))
    c.op("LogicalNot", c.feed("bool", declared=[]), case="scalar")
    for dtype in ("int32", "uint8", "int64"):
        c.op("Invert", c.feed(dtype, 4, 2))
    for op, out in (("ComplexAbs", "float32"), ("Real", "float32"), ("Imag", "float32")):
        c.op(op, c.feed("complex64", 4, 2), Tout=getattr(tf, out))
    c.op("ComplexAbs", c.feed("complex128", 4), Tout=tf.float64)
    c.op("Relu", c.feed("float32", 0, 3), case="empty")
    c.op("Tanh", c.feed("float32"), case="scalar")
    c.op("Exp", c.feed("float32", 4, 37, declared=None), case="unknown_rank")


def binary(c):
    """Two inputs, broadcast."""
    for op in ARITHMETIC:
        if op in ("TruncateDiv", "TruncateMod", "Mod"):
            continue
        low = 0.1 if op == "Pow" else -3
        c.op(op, c.feed("float32", 4, 3, low=low), c.feed("float32", 4, 3))
        c.op(op, c.feed("float32", 4, 3, low=low), c.data("float32", 3), case="bias")
    for op in INT_ARITHMETIC:
        for dtype in ("int32", "int64"):
            c.op(op, c.feed(dtype, 4, 3, low=-9, high=9), c.feed(dtype, 4, 3, low=1, high=5))
    for op in ("TruncateDiv", "TruncateMod", "Mod"):
        c.op(op, c.feed("int32", 4, 3, low=-9, high=9), c.feed("int32", 4, 3, low=1, high=5))
    for op in ("FloorDiv", "FloorMod", "TruncateDiv"):
        c.op(op, c.feed("int32", 4, low=-9, high=9), c.data("int32", 4, low=-5, high=-1), case="negative")
    for dtype in INTS:
        c.op("AddV2", c.feed(dtype, 4), c.feed(dtype, 4), case="every")
    c.op("Pow", c.feed("int32", 4, 2), c.data("int32", 2, low=0, high=4))
    for op in "AddV2 Mul Sub RealDiv Maximum FloorDiv FloorMod Pow".split():
        for dtype in ("float64", "float16", "bfloat16"):
            c.op(op, c.feed(dtype, 4, 2, low=0.5), c.data(dtype, 2, low=0.5))
    for op in "AddV2 Sub Mul RealDiv DivNoNan Pow".split():
        c.op(op, c.feed("complex64", 4, 2), c.data("complex64", 2, low=1), rtol=1e-4)
    edges = np.array(EDGES, np.float32)
    for op in "Maximum Minimum RealDiv DivNoNan FloorDiv FloorMod Pow Atan2".split():
        c.op(op, Feed(edges[:, None]), edges[None, ::3], case="edges", rtol=1e-5, atol=1e-6)
    factors = np.array([0, -0.0, 2.5], np.float32)  # 0 wins over what is not finite
    for op in ("Xdivy", "Xlogy", "Xlog1py"):
        c.op(op, Feed(factors[:, None]), edges[None], case="edges", rtol=1e-5, atol=1e-6)
        for dtype in ("float64", "float16", "bfloat16"):
            c.op(op, c.feed(dtype, 4, 2), c.data(dtype, 2, low=0.5))
    for op in ("Xdivy", "Xlogy"):
        c.op(op, c.feed("complex64", 4, 2), c.data("complex64", 2, low=1), rtol=1e-4)
    for op in BITS:
        c.op(op, c.feed("int32", 4, 2, low=-99, high=99), c.data("int32", 2, low=0, high=7))
        c.op(op, c.feed("uint8", 4, 2, low=0, high=99), c.feed("uint8", 4, 2, low=0, high=7))
    for op in ("LogicalAnd", "LogicalOr"):
        c.op(op, c.feed("bool", 4, 3), c.feed("bool", 4, 3))
        c.op(op, c.feed("bool", 4, 3), c.data("bool", 4, 1), case="column")
    c.op("Add", c.feed("string", 4), c.data("string"), case="join")
    c.op("AddV2", c.feed("float32", 4, 1, 3), c.feed("float32", 2, 1, declared=[2, 1]), case="ranks")
    c.op("Mul", c.feed("float32", 1, 3), c.feed("float32", 4, 1), case="both")
    c.op("Sub", c.feed("float32", 0, 3), c.data("float32", 3), case="empty")
    c.op("Mul", c.feed("float32"), c.feed("float32"), case="scalar")
    c.op("AddV2", c.feed("float32", 4, 3), c.data("float32", 4, 3), case="constant_rows")
    c.op("AddV2", c.data("float32", 4, 1), c.feed("float32", 3, declared=[None]), case="other_axis")


def compare(c):
    """Comparisons."""
    edges = np.array(EDGES, np.float32)
    for op in COMPARISONS:
        c.op(op, Feed(edges[:, None]), edges[None, ::5], case="edges")
        c.op(op, c.feed("int32", 4, 3), c.feed("int32", 4, 3))
        c.op(op, c.feed("float64", 4), c.data("float64"))
        c.op(op, c.feed("int64", 4, 3), c.data("int64", 3), case="bias")
    for op in ("Equal", "NotEqual"):
        c.op(op, c.feed("string", 4, 2), c.data("string", 2))
        c.op(op, c.feed("bool", 4, 2), c.feed("bool", 4, 2))
        c.op(op, c.feed("complex64", 4), c.feed("complex64", 4))
    c.op("Less", c.feed("uint8", 4), c.feed("uint8", 4))
    c.op("Greater", c.feed("float16", 4), c.feed("float16", 4))
    c.op("Less", c.feed("bfloat16", 4), c.feed("bfloat16", 4))


def choose(c):
    """Select and its kin, AddN, BiasAdd, Cast."""
    c.op("Select", c.feed("bool", 4, 3), c.feed("float32", 4, 3), c.feed("float32", 4, 3))
    c.op("Select", c.feed("bool", 4), c.feed("float32", 4, 3), c.feed("float32", 4, 3), case="rows")
    c.op("Select", c.feed("bool"), c.feed("int64", 4, 3), c.feed("int64", 4, 3), case="scalar")
    c.op("Select", c.feed("bool", 4), c.feed("string", 4), c.feed("string", 4), case="strings")
    c.op("SelectV2", c.feed("bool", 4, 1), c.feed("float32", 4, 3), c.data("float32", 3))
    c.op(
        "SelectV2",
        c.feed("bool", 3, declared=[3]),
        c.feed("int32", 4, 3),
        c.feed("int32", 4, 3),
        case="columns",
    )
    c.op("SelectV2", c.feed("bool", 4, 3), c.data("float64"), c.data("float64"), case="scalars")
    c.op("SelectV2", c.feed("bool", 4), c.feed("string", 4), c.data("string"), case="strings")
    for count in (1, 2, 5):
        c.op("AddN", [c.feed("float32", 4, 3) for _ in range(count)], case=str(count))
    c.op("AddN", [c.feed("int64", 4), c.feed("int64", 4)])
    c.op("AccumulateNV2", [c.feed("float32", 4, 3), c.feed("float32", 4, 3)], shape=[4, 3])
    for op in ("BiasAdd", "BiasAddV1"):
        c.op(op, c.feed("float32", 4, 5), c.data("float32", 5))
    c.op("BiasAdd", c.feed("float32", 4, 2, 3, 3), c.data("float32", 2), data_format="NCHW", case="nchw")
    c.op("BiasAdd", c.feed("float32", 4, 3, 3, 2), c.feed("float32", 2, declared=[2]), case="nhwc")
    c.op("BiasAdd", c.feed("float64", 4, 2), c.data("float64", 2))
    c.op("BiasAdd", c.feed("int32", 4, 2), c.data("int32", 2))
    c.op("BiasAdd", c.feed("float16", 4, 2), c.data("float16", 2))
    numbers = np.array([[-3.7, -0.5, 0.0], [0.49, 1.5, 2.5], [3.99, 100.7, -100.2], [7, 8, 9.5]])
    for dtype in FLOATS + ("int8", "int16", "int32", "int64", "bool", "complex64"):
        c.op("Cast", Feed(numbers.astype(np.float32)), DstT=tf.as_dtype(dtype), case=f"to_{dtype}")
    for dtype in INTS:
        c.op("Cast", c.feed(dtype, 4, low=0, high=100), DstT=tf.float32)
    for source in ("bool", "float16", "bfloat16", "float64", "complex64"):
        c.op("Cast", c.feed(source, 4, 2), DstT=tf.int32 if source == "bool" else tf.float32, case="from")
    c.op("Cast", Feed(np.array([300, -300, 70000, 5], np.int32)), DstT=tf.uint8, case="wraps")
    c.op("Cast", Feed(np.array([2**40 + 3, -1, 7], np.int64)), DstT=tf.int32, case="wraps")


def buckets(c):
    """Boundaries belong to the bucket above."""
    bounds = [-1.5, 0, 2.0, 2.0, 10]
    for dtype in ("int32", "int64", "float32", "float64"):
        c.op("Bucketize", c.feed(dtype, 3, 7, low=-3, high=12), boundaries=bounds)
        c.op("Bucketize", Feed(np.array([-2, 0, 2, 10, 11], dtype)), boundaries=bounds, case="edges")
    c.op("Bucketize", Feed(np.array([np.nan, np.inf, -np.inf], np.float32)), boundaries=bounds, case="nan")
    c.op("Bucketize", c.feed("float32", 0, 2), boundaries=bounds, case="empty")
    c.op("Bucketize", Feed(np.float32(1), []), boundaries=[], case="one_bucket")


def cases(c):
    """All of the family."""
    unary(c)
    binary(c)
    compare(c)
    choose(c)
    buckets(c)
