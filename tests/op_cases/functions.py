"""Special functions, in their usual ranges and where they have poles or no value."""

import numpy as np
import tensorflow as tf

from harness import Feed

NAN, INF = np.nan, np.inf
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 8.0, 8.25, 20.0, 85.5, INF, NAN]
UNARY = "Lgamma Digamma BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1".split()
POSITIVE = "BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1".split()
# A narrow type's answers are rounded, and those of float32 are TensorFlow's in float32.
ROUGH = {"float32": 2e-5, "float64": 1e-10, "float16": 3e-3}


def tolerance(dtype):
    """What values are compared with."""
    return {"rtol": ROUGH[dtype], "atol": ROUGH[dtype]}


def numbers(dtype, values):
    """An array of one of TensorFlow's types, to feed."""
    return Feed(np.array(values).astype(tf.as_dtype(dtype).as_numpy_dtype))


def unary(c):
    """One input."""
    for op in UNARY + POSITIVE:
        low = 0.1 if op in POSITIVE else -6.3
        for dtype in ROUGH:
            c.op(op, c.feed(dtype, 4, 5, low=low, high=9), **tolerance(dtype))
        for dtype in ("float32", "float64"):
            c.op(op, c.feed(dtype, 4, 5, low=8, high=60), case="large", **tolerance(dtype))
        # Eigen has numbers of no meaning for these of BesselY and infinity.
        edges = [x for x in EDGES if not (op in POSITIVE + ["BesselJ0", "BesselJ1"] and np.isinf(x))]
        c.op(op, numbers("float64", edges), case="edges", **tolerance("float64"))
    for dtype in ("float32", "float64"):
        c.op("Ndtri", c.feed(dtype, 4, 5, low=0.02, high=0.98), **tolerance(dtype))
    c.op("Ndtri", numbers("float64", [0, 1, 0.5, 1e-30, 1 - 1e-12, NAN, -1, 2]), case="edges", **tolerance("float64"))
    c.op("Lgamma", c.feed("float32", 0, 3), case="empty")


def binary(c):
    """Two inputs, broadcast."""
    for op in ("Igamma", "Igammac"):
        for dtype in ("float32", "float64"):
            c.op(op, c.feed(dtype, 4, 5, low=0.1, high=6), c.feed(dtype, 4, 5, low=0, high=9), **tolerance(dtype))
        a, x = numbers("float64", [[-1], [0], [0.5], [1], [30], [NAN]]), np.array([-1, 0, 0.5, 1, 29, 31, INF, NAN])
        c.op(op, a, x, case="edges", **tolerance("float64"))
        c.op(op, c.feed("float64", 4, 5, low=100, high=900), c.feed("float64", 4, 5, low=100, high=900), case="large", rtol=1e-8)
    for dtype in ("float32", "float64"):
        c.op("Zeta", c.feed(dtype, 4, 5, low=1.1, high=6), c.feed(dtype, 4, 5, low=0.1, high=9), **tolerance(dtype))
        c.op("Polygamma", numbers(dtype, [[0], [1], [2], [3], [5]]), c.data(dtype, 6, low=0.2, high=9), **tolerance(dtype))
    poles = np.array([-1, 0, 0.5, 1, 2, NAN])
    c.op("Zeta", numbers("float64", [[0.5], [1], [2], [3], [2.5], [NAN]]), poles, case="edges", **tolerance("float64"))
    c.op("Polygamma", numbers("float64", [[-1], [0], [1], [2.5], [NAN]]), poles[1:], case="edges", **tolerance("float64"))
    below = np.array([-0.3, -5.75, -63.5, -64.5, -65.25, -300.75, -4000.5])
    c.op("Zeta", numbers("float64", [[2], [3], [4], [7]]), below, case="below", **tolerance("float64"))
    c.op("Polygamma", numbers("float64", [[1], [2], [3]]), below, case="below", **tolerance("float64"))


def betainc(c):
    """Three inputs of one shape, or scalars."""
    for dtype in ("float32", "float64"):
        a, b = c.feed(dtype, 4, 5, low=0.1, high=6), c.feed(dtype, 4, 5, low=0.1, high=6)
        x = c.feed(dtype, 4, 5, low=0, high=1)
        c.op("Betainc", a, b, x, **tolerance(dtype))
        c.op("Betainc", a, np.array(2.5, dtype), np.array(0.25, dtype), case="scalars", **tolerance(dtype))
        c.op("Betainc", np.array(2.5, dtype), np.array(1.5, dtype), x, case="scalar_ab", **tolerance(dtype))
    edges = [numbers("float64", v) for v in ([-1, 0, 1, 2, 2, 2, 2], [1, 1, 1, 2, 2, 2, 40], [0.1, 0.2, 2, 0, 1, -0.5, 0.3])]
    c.op("Betainc", *edges, case="edges", **tolerance("float64"))


def integrals(c):
    """Functions that integrals define."""
    for op in ("Expint", "Dawsn", "FresnelCos", "FresnelSin", "Spence"):
        for dtype, near in (("float32", 2e-5), ("float64", 1e-11)):
            low = 0.05 if op in ("Expint", "Spence") else -6
            c.op(op, c.feed(dtype, 6, 5, low=low, high=6), rtol=near, atol=near)
            c.op(op, c.feed(dtype, 6, 5, low=low, high=1), case="small", rtol=near, atol=near)
        large = c.feed("float64", 6, 5, low=6, high=80)
        c.op(op, large, case="large", rtol=1e-11)
        edges = np.array([0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 1e-30, 1e-9, 1e5, np.nan, -1.0])
        edges = edges[:-2] if op == "Dawsn" or op.startswith("F") else edges
        c.op(op, Feed(edges), case="edges", rtol=1e-11)
    c.op("Dawsn", c.feed("float32", 0, 3), case="empty")


def cases(c):
    """All of the family."""
    unary(c)
    binary(c)
    betainc(c)
    integrals(c)
