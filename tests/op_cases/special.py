"""Special floats (NaN, infinities, -0, subnormal numbers) in ops that fold, sort out or round."""

import numpy as np
import tensorflow as tf

from harness import FLOATS, Feed

NAN, INF = np.nan, np.inf
ROWS = [
    [NAN, 1, 2],
    [1, NAN, 2],
    [1, 2, NAN],
    [NAN, NAN, NAN],
    [INF, 1, -INF],
    [INF, INF, 1],
    [-INF, -INF, 1],
    [-0.0, -0.0, -0.0],
    [0.0, -0.0, 1],
]


def numbers(dtype, values):
    """An array of one of TensorFlow's types."""
    return np.array(values).astype(tf.as_dtype(dtype).as_numpy_dtype)


def reductions(c):
    """Whole rows, columns, and one element, which is copied; 1 / x tells -0 from 0."""
    for op in "Sum Prod Mean Max Min EuclideanNorm".split():
        function = getattr(tf.raw_ops, op)
        for dtype in FLOATS:
            c.op(op, Feed(numbers(dtype, ROWS)), np.int32(1), case="special")
            c.op(op, Feed(numbers(dtype, ROWS).T), np.int32(0), case="special_lines")
            c.op(op, Feed(numbers(dtype, ROWS)), np.array([0, 1], np.int32), case="special_all")
            if op in ("Max", "Min", "EuclideanNorm"):
                continue
            for shape in ((1, 1), (3, 1), (3, 2), (2, 1, 3), (1, 4, 1)):
                zeros = Feed(numbers(dtype, np.full(shape, -0.0)))

                def sign(enter, zeros=zeros, function=function):
                    return tf.raw_ops.Reciprocal(x=function(input=enter("x", zeros), axis=1))

                c.graph(f"{op}_{dtype}_zero_{'x'.join(map(str, shape))}", sign)
        tiny = np.float32([[1e-40], [-1e-40], [-0.0]])
        c.op(op, Feed(tiny), np.int32(1), case="subnormal_alone", rtol=0, atol=0)
        c.op(op, Feed(tiny[:1]), np.int32(1), case="subnormal_one_row", rtol=0, atol=0)
        exact = {} if op in ("Max", "Min") else {"rtol": 0, "atol": 0}
        c.op(op, Feed(tiny.repeat(3, 1)), np.int32(1), case="subnormal", **exact)
    for dtype in ("complex64", "complex128"):
        for axis in (0, 1):
            c.op("EuclideanNorm", c.feed(dtype, 4, 3), np.int32(axis), case=f"absolute_{axis}")
    for dtype, most in (("int8", 10), ("int16", 180), ("int32", 46000), ("int64", 3037000000)):
        rows = np.array([[most, most, 3], [most, most // 2, 5], [1, 2, 3]], dtype)
        c.op("EuclideanNorm", Feed(rows), np.int32(1), case="wrapped")
    for op in ("ArgMax", "ArgMin"):
        for dtype in FLOATS:
            c.op(op, Feed(numbers(dtype, ROWS)), np.int32(1), case="special")
            c.op(op, Feed(numbers(dtype, ROWS).T), np.int32(0), case="special_columns")


def pools(c):
    """The largest of -inf alone is the least finite number."""
    values = np.array([[-INF, -INF, 1], [-INF, -INF, INF], [NAN, 2, -INF]])
    for dtype in FLOATS:
        for channels in (1, 9):
            image = numbers(dtype, values.repeat(channels, 1).reshape(1, 3, 3, channels))
            c.op("MaxPool", Feed(image), ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME", case=f"special_{channels}")
            c.op("AvgPool", Feed(image), ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME", case=f"special_{channels}")


def along_axes(c):
    """Scans and softmax."""
    for dtype in FLOATS:
        for op in ("Cumsum", "Cumprod"):
            c.op(op, Feed(numbers(dtype, ROWS)), np.int32(1), case="special")
            c.op(op, Feed(numbers(dtype, ROWS)), np.int32(0), case="special_rows")
        for op in ("Softmax", "LogSoftmax"):
            c.op(op, Feed(numbers(dtype, ROWS)), case="special")


def segments(c):
    """What a segment's largest and smallest do with NaN depends on place, width and type."""
    columns = numbers("float64", [row + [3.0] for row in ROWS]).T
    ids = np.array([0, 0, 0, 2], np.int32)
    for dtype in FLOATS:
        for width in (1, 3, 4, 8, 17):
            data = Feed(numbers(dtype, columns.repeat(width, 1)))
            for op in ("SegmentMax", "SegmentMin", "SegmentSum"):
                c.op(op, data, ids, case=f"special_{width}")
            for op in ("UnsortedSegmentMax", "UnsortedSegmentMin"):
                c.op(op, data, ids, np.int32(3), case=f"special_{width}")
        data = Feed(numbers(dtype, [1, NAN, NAN, 2, NAN]))
        for op in ("SegmentMax", "SegmentMin"):
            c.op(op, data, np.array([0, 0, 1, 2, 2]), case="special_vector")
            c.op(f"Unsorted{op}", data, np.array([1, 1, 0, 2, 2]), np.int32(3), case="special_vector")


def sets(c):
    """Which elements count as equal."""
    for dtype in FLOATS:
        values = numbers(dtype, [0.0, -0.0, 1, NAN, NAN, -0.0, 0.0, 1])
        c.op("Unique", Feed(values), case="special")
        c.op("UniqueWithCounts", Feed(values), case="special")
        for other in ([0.0], [-0.0], [NAN, 1]):
            c.op("ListDiff", Feed(values), numbers(dtype, other), case=f"special_{other[0]}")


def division(c):
    """Quotients that rounding carries over an integer, and divisors without a quotient."""
    for dtype in FLOATS:
        a = numbers(dtype, np.linspace(-300, 300, 61)[:, None])
        b = numbers(dtype, [-7, -3, -0.75, 0.1, 0.3, 1, 2.5, 9])
        for op in ("FloorDiv", "FloorMod", "TruncateMod" if dtype in ("float32", "float64") else "RealDiv"):
            c.op(op, Feed(a), b, case="sweep")
            edges = numbers(dtype, [[NAN], [INF], [-INF], [-0.0], [0.0], [1]])
            c.op(op, Feed(edges), numbers(dtype, [1, -2, INF, -INF, 0.0, -0.0, NAN]), case="special")


def einsums(c):
    """Labels of one operand alone are summed before the products."""
    x = np.float32([[INF, -1, 0], [1, 2, 0]])
    c.op("Einsum", [Feed(x), np.float32([0, 1, INF])], equation="bi,k->b", case="one_sided")
    c.op("Einsum", [Feed(x), np.float32([[0, 1, INF], [2, 3, 4]])], equation="bi,jk->bk", case="one_sided_both")
    c.op("Einsum", [Feed(x), np.float32([INF, 1])], equation="bi,b->b", case="one_sided_kept")
    for dtype in ("float64", "int32", "complex64", "float16"):
        c.op("Einsum", [c.feed(dtype, 3, 4, 4), c.feed(dtype, 5, 2)], equation="bii,kj->bj", case="one_sided")
    c.op("Einsum", [c.feed("int64", 3, 1, 2), c.feed("int64", 5, 2)], equation="...i,...j->...i", case="one_sided")
    c.op("Einsum", [c.feed("float64", 2, 3, 0), c.feed("float64", 2, 5)], equation="bij,bk->bi", case="one_sided_empty")


def narrow_totals(c):
    """Totals of 16-bit floats, which TensorFlow rounds at every step in some ops and once in others."""
    for dtype in ("float16", "bfloat16"):
        # Whole numbers far beyond those that the type tells apart.
        data = Feed(np.tile(numbers(dtype, [[3, 5, 7], [64, 31, 1], [256, 9, 2]]), (40, 1)))
        factors = Feed(numbers(dtype, np.linspace(0.9, 1.1, 60).reshape(20, 3)))
        ids = np.repeat(np.array([0, 2], np.int32), 60)
        exact = {"rtol": 0, "atol": 0}
        c.op("Cumsum", data, np.int32(0), case="total", **exact)
        c.op("Cumsum", data, np.int32(0), exclusive=True, reverse=True, case="total_back", **exact)
        c.op("Cumprod", factors, np.int32(0), case="total", **exact)
        for op in ("SegmentSum", "SegmentMean"):
            c.op(op, data, ids, case="total", **exact)
        c.op("SegmentProd", factors, np.repeat(np.array([0, 1], np.int32), 10), case="total", **exact)
        c.op("UnsortedSegmentSum", data, ids, np.int32(3), case="total", **exact)
        for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
            c.op(op, data, np.arange(120, dtype=np.int32), ids, case="total")
        image, filter_ = c.feed(dtype, 2, 6, 5, 3), c.data(dtype, 3, 3, 3, 2)
        for padding in ("SAME", "VALID"):
            more = {"strides": [1, 1, 1, 1], "padding": padding, "case": f"total_{padding}"}
            c.op("DepthwiseConv2dNative", image, filter_, **more, **exact)


def random_numbers(c):
    """Ops of equal seeds draw equal numbers."""
    draws = {
        "RandomUniform": lambda op: op(shape=[2, 3], dtype=tf.float32, seed=5, seed2=7),
        "RandomStandardNormal": lambda op: op(shape=[2, 3], dtype=tf.float64, seed=5, seed2=7),
        "TruncatedNormal": lambda op: op(shape=[2, 3], dtype=tf.float32, seed=0, seed2=7),
        "RandomUniformInt": lambda op: op(shape=[2, 3], minval=0, maxval=1 << 20, seed=5, seed2=0),
        "RandomShuffle": lambda op: op(value=tf.range(64), seed=5, seed2=7),
        "Multinomial": lambda op: op(logits=tf.zeros([2, 99]), num_samples=6, seed=5, seed2=7),
    }
    for name, draw in draws.items():

        def difference(enter, name=name, draw=draw):
            op = getattr(tf.raw_ops, name)
            return tf.cast(draw(op), tf.float64) - tf.cast(draw(op), tf.float64)

        c.graph(f"{name}_equal_seeds", difference)


def cases(c):
    """All of the family."""
    random_numbers(c)
    narrow_totals(c)
    reductions(c)
    pools(c)
    along_axes(c)
    segments(c)
    sets(c)
    division(c)
    einsums(c)
