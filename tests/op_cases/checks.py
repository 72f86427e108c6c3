"""Ops that pass their input on and look at it."""

import numpy as np

from harness import FLOATS, Feed


def cases(c):
    """All of them."""
    c.op("Print", c.feed("float32", 4, 3), [c.feed("int32", 4), c.data("float32", 2)], message="values")
    c.op("Print", c.feed("string", 4), [], case="alone")
    for op in ("CheckNumerics", "CheckNumericsV2"):
        for dtype in FLOATS:
            c.op(op, c.feed(dtype, 4, 3), message="here")
        c.op(op, c.feed("float32", 0, 3), message="here", case="empty")
        c.op(op, Feed(np.array([[1, np.nan]], np.float32)), message="here", case="nan", fails="here")
        c.op(op, Feed(np.array([[-np.inf], [1]], np.float64)), message="there", case="inf", fails="there")
    for op in ("DeepCopy", "GuaranteeConst"):
        c.op(op, c.feed("float32", 4, 3))
