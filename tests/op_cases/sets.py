"""Distinct slices, sets along the last dim of dense and sparse tensors, and sparse tensors split."""

import numpy as np
import tensorflow as tf

from harness import Feed
from sparse_tensors import numbers, places, shape, vector

OPERATIONS = ("a-b", "b-a", "intersection", "union")


def cases(c):
    """All of the family."""
    unique(c)
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16"):
        sets(c, lambda *values: numbers(dtype, *values))
    sets(c, lambda *values: vector(np.array([f"word {v}" for v in values], object)))
    corners(c)
    split(c)


def unique(c):
    """Along an axis, and without one."""
    for dtype in ("float32", "float64", "float16", "int32", "int8", "uint8", "int64", "bool"):
        c.op("UniqueV2", c.feed(dtype, 8, low=0, high=2), np.array([], np.int32), case="no_axis")
        c.op("UniqueWithCountsV2", c.feed(dtype, 6, 2, low=0, high=1), np.array([0], np.int32))
    words = np.array([["b", "a", "b"], ["x", "", "x"]], object)
    for axis in (0, 1, -1):
        c.op("UniqueV2", Feed(words), np.array([axis], np.int64), case=f"axis{axis}", out_idx=tf.int64)
        c.op("UniqueWithCountsV2", c.feed("int32", 2, 7, 2, low=0, high=1), np.array([axis], np.int64), case=f"axis{axis}")
    special = np.float32([[np.nan, 1], [0, 1], [-0.0, 1], [np.nan, 1]])
    c.op("UniqueWithCountsV2", Feed(special), np.array([0], np.int32), case="special")
    c.op("UniqueWithCountsV2", c.feed("float32", 0, 3), np.array([0], np.int32), case="empty")
    axis = Feed(np.array([1], np.int32), [None])
    c.op("UniqueV2", c.feed("int32", 2, 6, low=0, high=1), axis, case="axis_fed")


def sets(c, values):
    """All operations over all kinds of inputs."""
    one = places([0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 2], [1, 1, 0]), values(3, 1, 4, 4, 2), shape(2, 2, 3)
    two = places([0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 1, 0]), values(1, 4, 7, 2), shape(2, 2, 2)
    dense = Feed(values(1, 4, 4, 4, 2, 7, 5, 5).value.reshape(2, 2, 2), [2, 2, 2])
    c.op("SetSize", *one, case=str(one[1].value.dtype))
    for operation in OPERATIONS:
        case = f"{one[1].value.dtype}_{operation.replace('-', '_without_')}"
        c.op("SparseToSparseSetOperation", *one, *two, set_operation=operation, case=case)
        c.op("DenseToSparseSetOperation", dense, *two, set_operation=operation, case=case)


def corners(c):
    """Empty ones and wrong ones."""
    none = Feed(np.zeros((0, 2), np.int64), [None, 2]), vector(np.array([], np.int32)), shape(3, 0)
    some = places([0, 0], [2, 1]), numbers("int32", 5, 6), shape(3, 2)
    c.op("SetSize", *none, case="empty")
    c.op("SetSize", places([0, 0], [0, 1], [2, 0]), numbers("int32", 5, 5, 6), shape(3, 2), case="twice")
    c.op("SparseToSparseSetOperation", *none, *some, set_operation="union", case="empty")
    c.op("DenseToSparseSetOperation", Feed(np.zeros((3, 0), np.int32)), *some, set_operation="b-a", case="empty")
    other = places([0, 0], [3, 1]), numbers("int32", 5, 6), shape(4, 2)
    c.op("SparseToSparseSetOperation", *some, *other, set_operation="union", case="other", fails="equal")
    unsorted = places([2, 1], [0, 0]), numbers("int32", 5, 6), shape(3, 2)
    c.op("SetSize", *unsorted, case="unsorted", fails="out of order")
    c.op("SetSize", places([0], [2]), numbers("int32", 5, 6), shape(3), case="vector", fails="rank")


def split(c):
    """Even and uneven parts."""
    for dtype in ("float32", "int32", "uint8", "bool", "complex64"):
        sparse = places([0, 1], [0, 6], [1, 0], [1, 2], [2, 4]), numbers(dtype, 1, 0, 3, 4, 5), shape(3, 7)
        for parts in (1, 2, 3, 7):
            c.op("SparseSplit", np.int64(1), *sparse, num_split=parts, case=f"{dtype}_{parts}")
    words = places([0, 1], [2, 1]), vector(np.array(["a", "b"], object)), shape(3, 2)
    c.op("SparseSplit", np.int64(0), *words, num_split=2, case="words")
    c.op("SparseSplit", Feed(np.int64(0)), *words, num_split=3, case="dim_fed")
    c.op("SparseSplit", Feed(np.int64(0)), *words, num_split=4, case="too_many", fails="split")
