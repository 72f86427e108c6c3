"""What steps choose their values with."""

import numpy as np
import tensorflow as tf

from graph import Refused
from harness import FLOATS, INTS

SIGNED = tuple(d for d in INTS if d[0] == "i")
NUMBERS = FLOATS + ("int16", "int32", "int64", "uint16", "uint32", "uint64")


def is_number(v):
    return v.dtype in FLOATS + INTS


def is_float(v):
    return v.dtype in FLOATS


def bounded(low, high):
    return lambda v: is_number(v) and v.array.size and v.array.astype(np.float64).min() >= low \
        and v.array.astype(np.float64).max() <= high


def choice(g, items):
    return items[g.rng.randint(len(items))]


def axis_of(g, i, least=1):
    """An axis of value i, sometimes counted from the end."""
    rank = g.values[i].rank
    if rank < least:
        raise Refused("rank")
    axis = int(g.rng.randint(rank))
    return axis - rank if g.rng.rand() < 0.3 else axis


def axes_of(g, i):
    rank = g.values[i].rank
    axes = [a for a in range(rank) if g.rng.rand() < 0.5]
    return [a - rank if g.rng.rand() < 0.3 else a for a in axes]


def ints(g, array, dtype=None):
    """Integers for a shape, axis or index: a constant, an input, or computed during the run."""
    array = np.asarray(array, dtype or choice(g, ["int32", "int64"]))
    how = g.rng.choice(["constant", "fed", "computed"], p=[0.6, 0.15, 0.25])
    if how == "constant":
        return g.constant(array)
    if how == "fed":
        return g.feed(array)
    # Out of a fed number, by arithmetic that no pass can do before the run.
    base = g.feed(array - 1, declared=list(array.shape))
    return g.step("computed_ints", lambda x: x + tf.ones_like(x), [base])[0]
