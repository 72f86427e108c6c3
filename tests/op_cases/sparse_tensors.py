"""Sparse tensors sorted, joined, cut, added up, mixed with dense ones and multiplied by them."""

import numpy as np

from harness import COMPLEX, FLOATS, INTS, Feed


def places(*rows):
    """Indices to feed."""
    return Feed(np.array(rows, np.int64), [None, len(rows[0])])


def vector(values):
    """Values to feed."""
    return Feed(np.asarray(values), [None])


def numbers(kind, *values):
    """Values of a dtype to feed."""
    import tensorflow as tf

    return vector(np.array(values).astype(tf.as_dtype(kind).as_numpy_dtype))


def shape(*dims):
    """A constant dense shape."""
    return np.array(dims, np.int64)


A = places([0, 1], [0, 2], [1, 0], [2, 2])
B = places([0, 0], [0, 2], [2, 1], [2, 2])
NO_PLACES = Feed(np.zeros((0, 2), np.int64), [None, 2])


def cases(c):
    """All of the family."""
    order(c)
    pairs(c)
    reduce(c)
    dense(c)
    products(c)


def order(c):
    """Sorting, joining, cutting."""
    mixed = places([2, 1], [0, 2], [2, 0], [0, 0])
    texts = vector(np.array(["c", "b", "häß", "a"], object))
    for name, values in (("string", texts), ("float", numbers("float32", 1, 2, 3, 4)), ("bool", vector([True, False, True, True]))):
        c.op("SparseReorder", mixed, values, shape(3, 3), case=name)
        c.op("SparseSlice", mixed, values, shape(3, 3), shape(0, 0), shape(2, 3), case=name)
        two = [mixed, A], [values, values], [shape(3, 3), shape(3, 4)]
        c.op("SparseConcat", *two, concat_dim=1, case=name)
    none = numbers("float32")
    c.op("SparseReorder", NO_PLACES, none, shape(0, 3), case="empty")
    values = numbers("int32", 1, 2, 3, 4)
    for begin, size in (((1, 1), (2, 2)), ((0, 2), (9, 9)), ((3, 0), (1, 1)), ((0, 0), (0, 0))):
        name = f"{begin[0]}{begin[1]}_{size[0]}{size[1]}"
        c.op("SparseSlice", A, values, shape(3, 3), shape(*begin), shape(*size), case=name)
    three = [A, NO_PLACES, B], [values, numbers("int32"), values], [shape(3, 3), shape(2, 3), shape(4, 3)]
    c.op("SparseConcat", *three, concat_dim=0, case="rows")
    c.op("SparseConcat", [A, B], [values, values], [shape(3, 3), shape(3, 3)], concat_dim=-1, case="negative")
    c.op("SparseConcat", [A, B], [values, values], [shape(3, 3), shape(4, 3)], concat_dim=1, case="shapes", fails="shapes")


def pairs(c):
    """Two sparse tensors."""
    for kind in ("float32", "float64", "int8", "int16", "int32", "int64"):
        a, b = numbers(kind, 1, -2, 3, 4), numbers(kind, 5, 2, -7, 1)
        c.op("SparseAdd", A, a, shape(3, 3), B, b, shape(3, 3), np.array(0, kind), case=kind)
        c.op("SparseAdd", A, a, shape(3, 3), B, b, shape(3, 3), np.array(4, kind), case=f"{kind}_least")
    for kind, part in zip(COMPLEX, ("float32", "float64")):
        a, b = numbers(kind, 1, -2, 3j, 4), numbers(kind, 5, 2, -7, 1j)
        c.op("SparseAdd", A, a, shape(3, 3), B, b, shape(3, 3), np.array(3.5, part), case=kind)
    for kind in ("float32", "float64", "float16", "int32", "int64", "uint8"):
        a, b = numbers(kind, 1, 2, 3, 4), numbers(kind, 5, 2, 7, 1)
        for op in ("SparseSparseMaximum", "SparseSparseMinimum"):
            c.op(op, A, a, shape(3, 3), B, b, shape(3, 3), case=kind)
    a = numbers("float32", 1, -2, 3, -4)
    c.op("SparseSparseMaximum", A, a, shape(3, 3), NO_PLACES, numbers("float32"), shape(3, 3), case="empty")
    c.op("SparseAdd", A, a, shape(3, 3), B, a, shape(3, 4), np.float32(0), case="shapes", fails="shapes")


def reduce(c):
    """Sums and maxima over axes."""
    kinds = [k for k in FLOATS + INTS if k not in ("uint32", "uint64")]
    for op in ("SparseReduceSum", "SparseReduceMax"):
        for kind in kinds + (list(COMPLEX) if op == "SparseReduceSum" else []):
            c.op(op, A, numbers(kind, 1, 2, 3, 4), shape(3, 3), np.array([1], np.int32), case=kind)
        values = numbers("float32", -1, -2, -3, 4)
        for axes in ([0], [-1], [0, 1], []):
            for keep in (True, False):
                name = "_".join(map(str, axes)) + f"_{keep}"
                c.op(op, A, values, shape(3, 3), np.array(axes, np.int32), keep_dims=keep, case=f"axes_{name}")
        cube = places([0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 0, 1])
        c.op(op, cube, values, shape(2, 3, 2), np.array([1], np.int32), case="cube")
        c.op(op, cube, values, shape(2, 3, 2), Feed(np.array([0, 2], np.int32), [None]), case="cube_fed")
        c.op(op, NO_PLACES, numbers("float32"), shape(3, 3), np.array([1], np.int32), case="empty")
        c.op(op, A, values, shape(3, 3), Feed(np.array([2], np.int32), [None]), case="axis", fails="reduction dimension")


def dense(c):
    """A sparse and a dense tensor."""
    for op in ("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
        for kind in ("float32", "float64", "float16", "int32", "int64", "uint8"):
            c.op(op, A, numbers(kind, 1, 2, 3, 4), shape(3, 3), c.feed(kind, 3, 3, low=1, high=9), case=kind)
        values = numbers("float32", 1, 2, 3, 4)
        c.op(op, A, values, shape(3, 3), c.data("float32", 3, low=1, high=2), case="row")
        c.op(op, A, values, shape(3, 3), c.data("float32", 3, 1, low=1, high=2), case="column")
        c.op(op, A, values, shape(3, 3), c.data("float32", low=1, high=2), case="scalar")
        c.op(op, A, values, shape(3, 3), c.data("float32", 2), case="shapes", fails="incompatible")
    for kind in ("float32", "float64", "int32", "complex64"):
        c.op("SparseTensorDenseAdd", A, numbers(kind, 1, 2, 3, 4), shape(3, 3), c.feed(kind, 3, 3), case=kind)
    values = numbers("float32", 1, 2, 3, 4)
    c.op("SparseTensorDenseAdd", A, values, shape(3, 3), c.feed("float32", 3, 2), case="shapes", fails="match")
    for kind in ("float32", "float64"):
        c.op("SparseSoftmax", A, numbers(kind, 1, 2, 3, 4), shape(3, 3), case=kind)
    cube = places([0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 1])
    c.op("SparseSoftmax", cube, values, shape(2, 3, 2), case="cube")
    c.op("SparseSoftmax", NO_PLACES, numbers("float32"), shape(3, 3), case="empty")


def products(c):
    """Sparse times dense, either transposed."""
    indices = np.array([[0, 1], [2, 0], [2, 3], [0, 1]], np.int64)
    shape = np.array([3, 4], np.int64)
    for dtype in ("float32", "float64", "int32", "complex64", "complex128", "bfloat16"):
        values = c.feed(dtype, 4)
        for a in (False, True):
            for b in (False, True):
                inner = 3 if a else 4
                dense = c.feed(dtype, *((2, inner) if b else (inner, 2)))
                case = f"{dtype}_{a}_{b}"
                c.op("SparseTensorDenseMatMul", indices, values, shape, dense, adjoint_a=a, adjoint_b=b, case=case)
    dense = c.feed("float32", 4, 2)
    small = Feed(indices.astype(np.int32), [None, 2])
    c.op("SparseTensorDenseMatMul", small, c.feed("float32", 4), Feed(shape, [2]), dense, case="shape_fed")
    nothing = Feed(np.zeros((0, 2), np.int64), [None, 2])
    c.op("SparseTensorDenseMatMul", nothing, c.feed("float32", 0), shape, dense, case="empty")
    outside = Feed(indices + 2, [None, 2])
    c.op("SparseTensorDenseMatMul", outside, c.feed("float32", 4), shape, dense, case="outside", fails="range")
    below = Feed(indices - 1, [None, 2])
    c.op("SparseTensorDenseMatMul", below, c.feed("float32", 4), shape, dense, case="below", fails="range")
    loose = c.feed("float32", 3, declared=[None])
    c.op("SparseTensorDenseMatMul", Feed(indices, [None, None]), loose, shape, dense, case="counts", fails="values")
    flat = Feed(np.array([[0, 1, 2, 0]], np.int64), [None, None])
    c.op("SparseTensorDenseMatMul", flat, c.feed("float32", 2), shape, dense, case="flat", fails="values")
