"""Numbers clipped, put together, taken apart, counted and looked up; and images transformed."""

import numpy as np
import tensorflow as tf

from harness import COMPLEX, FLOATS, INTS, Feed


def cases(c):
    """All of the family."""
    elements(c)
    bits(c)
    counts(c)
    sparse_counts(c)
    places(c)
    transforms(c)


def elements(c):
    """Element by element."""
    for kind in FLOATS + tuple(k for k in INTS if k not in ("uint32", "uint64")):
        c.op("ClipByValue", c.feed(kind, 4, 3, low=-9, high=9), c.data(kind, low=2, high=2), c.data(kind, low=5, high=5))
    nan = Feed(np.array([np.nan, np.inf, -np.inf, 0.5, -0.0], np.float32))
    c.op("ClipByValue", nan, np.float32(-1), np.float32(1), case="nan")
    each = Feed(np.arange(6, dtype=np.float32).reshape(2, 3)), Feed(np.full((2, 3), 2, np.float32))
    c.op("ClipByValue", *each, np.float32(4), case="low_each")
    c.op("ClipByValue", each[0], np.float32(1), each[1], case="high_each")
    c.op("ClipByValue", each[0], np.float32(4), np.float32(1), case="crossed")
    for part, whole in (("float32", tf.complex64), ("float64", tf.complex128)):
        c.op("Complex", c.feed(part, 4, 3), c.feed(part, 4, 3), Tout=whole)
        c.op("Complex", c.feed(part, 4, 3), c.data(part, 3), Tout=whole, case="broadcast")
    for kind in COMPLEX:
        c.op("Angle", c.feed(kind, 4, 3), Tout=tf.float32 if kind == "complex64" else tf.float64)
    for kind in FLOATS + COMPLEX:
        zeros = Feed(np.array([[0, 1, 2], [3, 0, -0.0]]).astype(tf.as_dtype(kind).as_numpy_dtype))
        c.op("MulNoNan", c.feed(kind, 2, 3), zeros)
    huge = Feed(np.array([np.inf, np.nan, 3], np.float32)), Feed(np.array([0, 0, np.inf], np.float32))
    c.op("MulNoNan", *huge, case="nan")
    for kind in ("float32", "float64"):
        c.op("NextAfter", c.feed(kind, 3, 2), c.feed(kind, 3, 2), rtol=0, atol=0)
        c.op("ApproximateEqual", c.feed(kind, 3, 2), c.data(kind, 3, 2, low=0, high=0), tolerance=1.5)
    for kind in ("float32", "float64"):
        c.op("Erfinv", Feed(np.array([-1, -0.99, -0.5, 0, 1e-3, 0.7, 1]).astype(tf.as_dtype(kind).as_numpy_dtype)))
    for kind in FLOATS:
        c.op("L2Loss", c.feed(kind, 3, 4))
    c.op("Erfinv", Feed(np.array([np.nan], np.float32)), case="nan")
    for kind in INTS:
        c.op("PopulationCount", c.feed(kind, 4, 3, low=-9, high=100))
    for kind in (np.int32, np.int64):
        shapes = Feed(np.array([4, 1, 3], kind), [3]), Feed(np.array([5, 1], kind), [2])
        c.op("BroadcastArgs", *shapes)
        c.op("BroadcastArgs", shapes[1], Feed(np.zeros((0,), kind), [None]), case="scalar")
    c.op("BroadcastArgs", shapes[0], Feed(np.array([2], kind), [None]), case="apart", fails="broadcast")
    for kind in ("float32", "float64", "int32", "int64", "complex64"):
        c.op("Diag", c.feed(kind, 2, 3))
        c.op("DiagPart", c.feed(kind, 2, 3, 2, 3))
    c.op("Diag", Feed(np.zeros((0,), np.float32), [None]), case="empty")
    c.graph("ControlTrigger", trigger)
    c.graph("PrintV2", printed)


def trigger(enter):
    """A node that only orders others."""
    x = enter("x", Feed(np.ones((2, 2), np.float32)))
    with tf.control_dependencies([tf.raw_ops.ControlTrigger()]):
        return tf.identity(x)


def printed(enter):
    """What is printed is not made."""
    x = enter("x", Feed(np.ones((2, 2), np.float32)))
    with tf.control_dependencies([tf.print("x:", x, output_stream="file:///dev/null")]):
        return tf.identity(x)


def bits(c):
    """Bits under another type."""
    c.op("Bitcast", c.feed("float32", 4, 3), type=tf.int32)
    c.op("Bitcast", c.feed("float32", 4, 3), type=tf.uint8, case="smaller")
    c.op("Bitcast", c.feed("uint8", 4, 3, 4), type=tf.int32, case="larger")
    c.op("Bitcast", c.feed("int32", 5, 2), type=tf.float64, case="vector")
    c.op("Bitcast", Feed(np.array(7, np.int64), []), type=tf.int16, case="scalar")
    c.op("Bitcast", c.feed("complex64", 3), type=tf.float32, case="complex")
    c.op("Bitcast", Feed(np.zeros((0, 4), np.float32)), type=tf.int8, case="empty")


def counts(c):
    """Counts by value, with and without weights."""
    values = np.array([3, 0, 3, 5, 9, 1], np.int32)
    weights = {kind: np.array([1, 2, 3, 4, 5, 6], kind) for kind in ("int32", "int64", "float32", "float64")}
    for kind, each in weights.items():
        none = np.zeros((0,), kind)
        c.op("Bincount", Feed(values, [None]), np.int32(6), Feed(each, [None]), case=kind)
        c.op("Bincount", Feed(values, [None]), np.int32(6), none, case=f"{kind}_plain")
        splits = Feed(np.array([0, 2, 2, 6], np.int64), [None])
        for binary in (True, False):
            more = {"binary_output": binary}
            c.op("RaggedBincount", splits, Feed(values, [None]), np.int32(6), each, case=f"{kind}_{binary}", **more)
            places = Feed(np.array([[0, 0], [0, 2], [1, 0], [3, 3], [3, 1], [3, 0]], np.int64), [None, 2])
            sparse = places, Feed(values, [None]), np.array([4, 4], np.int64), np.int32(6)
            c.op("SparseBincount", *sparse, each, case=f"{kind}_{binary}", **more)
    none = np.zeros((0,), np.float32)
    long = Feed(values.astype(np.int64), [None])
    c.op("RaggedBincount", splits, long, np.int64(10), none, case="int64")
    line = Feed(np.arange(6).reshape(6, 1), [None, 1]), long, np.array([6], np.int64), np.int64(4)
    c.op("SparseBincount", *line, none, case="line")
    c.op("Bincount", Feed(values.reshape(2, 3)), Feed(np.int32(4), []), none, case="matrix_fed")
    c.op("Bincount", Feed(-values, [None]), np.int32(4), none, case="negative", fails="non-negative")
    wrong = Feed(np.array([0, 3], np.int64), [None])
    c.op("RaggedBincount", wrong, Feed(values, [None]), np.int32(6), none, case="splits", fails="plits must")
    c.op("RaggedBincount", splits, Feed(values, [None]), Feed(np.array(-1, np.int32), []), none, case="size", fails="size")


def sparse_counts(c):
    """Counts as sparse tensors."""
    for kind in (np.int32, np.int64):
        table = Feed(np.array([[3, 0, 3], [5, 9, 1], [1, 1, 1]], kind))
        line = Feed(np.array([3, 0, 3], kind), [None])
        none = np.zeros((0,), np.float32)
        for least, most, binary in ((-1, -1, False), (12, -1, True), (-1, 4, False), (7, 5, False)):
            name = f"{np.dtype(kind).name}_{least}_{most}"
            more = {"minlength": least, "maxlength": most, "binary_output": binary}
            c.op("DenseCountSparseOutput", table, none, case=f"{name}_table", **more)
            c.op("DenseCountSparseOutput", line, none, case=f"{name}_line", **more)
            splits = Feed(np.array([0, 2, 2, 3], np.int64), [None])
            c.op("RaggedCountSparseOutput", splits, line, none, case=name, **more)
            places = Feed(np.array([[0, 0], [0, 2], [2, 1]], np.int64), [None, 2])
            c.op("SparseCountSparseOutput", places, line, np.array([3, 3], np.int64), none, case=name, **more)
    for kind in ("int32", "int64", "float32", "float64"):
        each = Feed(np.array([[1, 2, 3], [4, 5, 6]], kind))
        table = Feed(np.array([[3, 0, 3], [5, 5, 5]], np.int64))
        options = {"minlength": -1, "maxlength": -1, "binary_output": False}
        c.op("DenseCountSparseOutput", table, each, case=f"weights_{kind}", **options)
    c.op("DenseCountSparseOutput", Feed(np.array([[-1]], np.int64)), none, binary_output=False, case="negative", fails="negative")


def places(c):
    """Places in order, bins, flat indices."""
    for kind in ("float32", "float64", "int32", "int64", "int8", "uint8", "int16"):
        rows = Feed(np.array([[1, 3, 3, 5], [0, 2, 4, 6]], kind)), Feed(np.array([[0, 3, 9], [6, 1, 2]], kind))
        for op in ("LowerBound", "UpperBound"):
            c.op(op, *rows)
            c.op(op, *rows, out_type=tf.int64, case="int64")
        c.op("NthElement", c.feed(kind, 3, 5, low=0, high=9), np.int32(1))
        c.op("NthElement", c.feed(kind, 3, 5, low=0, high=9), np.int32(0), reverse=True, case="reverse")
    c.op("NthElement", c.feed("float32", 2, 3), Feed(np.array(3, np.int32), []), case="past", fails="n")
    for kind in ("float32", "float64", "int32", "int64"):
        values = Feed(np.array([-3, 0, 1, 4, 5, 5, 9, 11], kind), [None])
        for dtype in (tf.int32, tf.int64):
            c.op("HistogramFixedWidth", values, np.array([0, 10], kind), np.int32(5), dtype=dtype, case=dtype.name)
    c.op("HistogramFixedWidth", values, np.array([5, 5], kind), np.int32(5), case="range", fails="value_range")
    for kind in (np.int32, np.int64):
        c.op("UnravelIndex", Feed(np.array([22, 5, 0], kind), [None]), np.array([4, 3, 2], kind))
        c.op("UnravelIndex", Feed(np.array(7, kind), []), np.array([4, 3, 2], kind), case="scalar")
    c.op("UnravelIndex", Feed(np.array([24], kind), [None]), np.array([4, 3, 2], kind), case="past", fails="bound")


def transforms(c):
    """Images through projective transforms."""
    turn = np.array([[0.8, -0.6, 1.5, 0.6, 0.8, -1.0, 0, 0]], np.float32)
    bend = np.array([[1.1, 0.1, -2, 0.05, 0.9, 1, 0.02, 0.01]], np.float32)
    size = np.array([5, 6], np.int32)
    for kind in ("float32", "float64", "float16", "uint8", "int32", "int64"):
        images = c.feed(kind, 2, 5, 6, 2, low=0, high=99)
        options = {"interpolation": "NEAREST", "fill_mode": "CONSTANT"}
        c.op("ImageProjectiveTransformV3", images, turn, size, np.float32(7), **options)
        c.op("ImageProjectiveTransformV2", images, bend, size, interpolation="BILINEAR")
    images = c.feed("float32", 2, 5, 6, 1)
    for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for way in ("NEAREST", "BILINEAR"):
            options = {"interpolation": way, "fill_mode": fill}
            for name, matrix in (("turn", turn), ("bend", bend), ("far", turn * 4), ("back", -bend)):
                one = c.feed("float32", 2, 5, 6, 1)
                c.op("ImageProjectiveTransformV3", one, matrix, size, np.float32(0.5), case=f"{fill}_{way}_{name}", **options)
    both = Feed(np.concatenate([turn, bend]))
    c.op("ImageProjectiveTransformV3", images, both, np.array([3, 9], np.int32), np.float32(0), interpolation="BILINEAR", case="each")
    c.op("ImageProjectiveTransformV3", images, turn, Feed(np.array([2, 2], np.int32), [2]), np.float32(0), interpolation="NEAREST", case="fed_size")
    three = Feed(np.concatenate([turn, bend, turn]))
    c.op("ImageProjectiveTransformV2", images, three, size, interpolation="NEAREST", case="count", fails="transform")
