"""Chains of element-wise ops that run in one step: results of one element, of a row or of a column
are read again for all elements of a wider one. Shapes stay open, so that only the run tells."""

import numpy as np
import tensorflow as tf

from harness import COMPLEX, FLOATS, INTS, Feed

SHAPES = {
    "scalar": ((), (2, 37)),
    "one": ((1, 1), (3, 5)),
    "row": ((1, 6), (4, 6)),
    "column": ((4, 1), (4, 6)),
    "equal": ((4, 6), (4, 6)),
    "tiles": ((1, 1), (2, 1200)),
}


def open_feed(c, dtype, shape):
    """Numbers for a placeholder of no known shape, none of them 0."""
    values = c.data(dtype, *shape, low=1, high=5)
    return Feed(values, [None] * len(shape))


def reread(c, name, dtype, shapes, combine, **more):
    """`narrow` is the result of a step and is read by three later ones."""
    narrow, wide = open_feed(c, dtype, shapes[0]), open_feed(c, dtype, shapes[1])

    def build(enter):
        a, b = enter("a", narrow), enter("b", wide)
        step = a + a
        first = combine(step, b)
        second = combine(b, step)
        return combine(step, second) + first  # the last read of `step`, element by element

    c.graph(f"Chain_{name}", build, **more)


def cases(c):
    """All of the family."""
    multiply = lambda x, y: x * y
    for kind, shapes in SHAPES.items():
        for dtype in ("float32", "float64") if kind == "tiles" else FLOATS + INTS[2:4] + ("uint8",) + COMPLEX:
            reread(c, f"{dtype}_{kind}", dtype, shapes, multiply)
    by_name = {
        "Pow": tf.pow,
        "DivNoNan": tf.math.divide_no_nan,
        "FloorDiv": tf.math.floordiv,
        "FloorMod": tf.math.floormod,
        "Atan2": tf.math.atan2,
        "Sub": tf.subtract,
        "RealDiv": tf.raw_ops.RealDiv,
    }
    for name, op in by_name.items():
        wrap = (lambda op: lambda x, y: op(x, y))(op) if name != "RealDiv" else lambda x, y: tf.raw_ops.RealDiv(x=x, y=y)
        for kind in ("scalar", "column", "row", "equal"):
            for dtype in ("float32", "float64"):
                reread(c, f"{name}_{dtype}_{kind}", dtype, SHAPES[kind], wrap, rtol=1e-4, atol=1e-4)
    # The wide input takes as many bytes as the result, in half as many elements.
    for columns in (6, 1100):
        x, y = c.feed("float64", 1, columns, declared=[1, columns]), c.feed("float32", 2, columns, declared=[2, columns])

        def narrowed(enter, x=x, y=y):
            wide = tf.cumsum(enter("x", x), 1)
            return tf.cast(wide, tf.float32) * enter("y", y)

        c.graph(f"Chain_narrowed_{columns}", narrowed, rtol=1e-4, atol=1e-2)
    # Standardisation: the mean and the deviation are each read by all elements.
    for dtype in ("float32", "float64"):
        x = open_feed(c, dtype, (5, 7))

        def standardise(enter, x=x):
            x = enter("x", x)
            mean = tf.reduce_mean(x, 1, keepdims=True)
            off = x - mean
            scale = tf.maximum(tf.sqrt(tf.reduce_mean(off * off, 1, keepdims=True)), mean * 0 + 0.5)
            return off / scale + mean * scale

        c.graph(f"Chain_standardise_{dtype}", standardise, rtol=1e-4, atol=1e-4)
