"""Ops that graphs seldom have: eigenvalues, bands, the k best roughly, crossed ragged features, packed strings."""

import gzip
import zlib

import numpy as np
import tensorflow as tf

from harness import INTS, Feed
from matrices import ALL, regular, tolerance


def cases(c):
    """All of the family."""
    eigen(c)
    banded(c)
    best(c)
    fingerprints(c)
    empty_rows(c)
    crosses(c)
    packed(c)


def eigen(c):
    """Values in the order of their size; vectors put together again."""
    for dtype in ALL:
        wide = tf.complex64 if dtype in ("float32", "complex64") else tf.complex128
        more = tolerance(dtype)
        x = Feed(c.data(dtype, 3, 4, 4))

        def together(enter, x=x, wide=wide):
            a = enter("x", x)
            e, v = tf.raw_ops.Eig(input=a, Tout=wide)
            return [tf.matmul(tf.cast(a, wide), v) - v * tf.expand_dims(e, -2), tf.reduce_sum(e, -1), tf.reduce_prod(e, -1), tf.norm(v, axis=-2)]

        c.graph(f"Eig_{dtype}", together, **more)
        spread = (regular(c, dtype, 2, 4, 4) * np.arange(1, 5)).astype(dtype)
        values = lambda enter, s=spread, wide=wide: tf.sort(tf.abs(tf.raw_ops.Eig(input=enter("x", Feed(s)), Tout=wide, compute_v=False)[0]))
        c.graph(f"Eig_{dtype}_values", values, **more)
    diagonal = Feed(np.float64([[[3, 1, 0], [0, -1, 2], [0, 0, 2]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]]))
    c.op("Eig", diagonal, Tout=tf.complex128, case="triangle")
    c.op("Eig", c.feed("float32", 0, 3, 3), Tout=tf.complex64, case="empty")


def banded(c):
    """Triangles of few diagonals."""
    for dtype in ALL:
        for lower in (False, True):
            for adjoint in (False, True):
                for bands in (1, 3, 5):
                    matrix = c.data(dtype, 2, bands, 5)
                    matrix[:, 0 if lower else bands - 1] += 4
                    options = {"lower": lower, "adjoint": adjoint, "case": f"{bands}_lower{lower:d}_adjoint{adjoint:d}"}
                    c.op("BandedTriangularSolve", Feed(matrix), c.feed(dtype, 2, 5, 3), **options, **tolerance(dtype))
    matrix = c.data("float64", 1, 2, 4) + 4
    c.op("BandedTriangularSolve", matrix, c.feed("float64", 3, 4, 2), case="one_matrix", **tolerance("float64"))
    c.op("BandedTriangularSolve", c.feed("float64", 3, 2, 4, low=2, high=5), c.data("float64", 1, 4, 2), case="one_side")
    zero = np.float32([[1, 0, 1], [1, 1, 1]])
    c.op("BandedTriangularSolve", Feed(zero), np.ones((3, 1), np.float32), case="singular", fails="not invertible")


def best(c):
    """TensorFlow's kernel for CPUs is exact."""
    for dtype in ("float32", "float16", "bfloat16"):
        for k in (0, 1, 4):
            c.op("ApproxTopK", c.feed(dtype, 3, 9), k=k, case=str(k))
    c.op("ApproxTopK", c.feed("float32", 2, 700), k=5, recall_target=0.5, aggregate_to_topk=False, case="parts")
    odd = np.float32([[1, 5, 5, 2, np.inf, -np.inf], [3, 3, 3, 3, 3, 3]])
    c.op("ApproxTopK", Feed(odd), k=3, reduction_dimension=-1, case="equal")


def fingerprints(c):
    """8 bytes for each row."""
    method = np.array("farmhash64", object)
    for dtype in INTS + ("float32", "float64", "bool", "string"):
        c.op("Fingerprint", c.feed(dtype, 5), method)
        c.op("Fingerprint", c.feed(dtype, 4, 2, 3), method, case="rows")
    c.op("Fingerprint", c.feed("string", 3, 1), method, case="one_each")
    c.op("Fingerprint", c.feed("string", 0, 2), method, case="empty")
    c.op("Fingerprint", c.feed("string", 3), Feed(np.array("md5", object), []), case="method", fails="method")


def empty_rows(c):
    """Ragged rows without values get the default."""
    rows = Feed(np.array([0, 0, 3, 4]), [None])
    for dtype in ("float32", "int64", "string", "bool"):
        default = c.data(dtype, 1).reshape(())
        c.op("RaggedFillEmptyRows", rows, c.feed(dtype, 4), Feed(np.int64(6), []), default, case=dtype)
    c.op("RaggedFillEmptyRows", Feed(np.array([0, 1]), [None]), c.feed("float32", 2), np.int64(2), np.float32(9), case="full")
    c.op("RaggedFillEmptyRows", Feed(np.zeros(0, np.int64), [None]), c.feed("float32", 0), np.int64(2), np.float32(9), case="none")
    c.op("RaggedFillEmptyRows", rows, c.feed("float32", 4), np.int64(4), np.float32(9), case="outside", fails="4")


def crosses(c):
    """Crossed features: ragged, sparse and dense in any order, as text and hashed."""
    texts, splits = Feed(np.array(["a", "b", "", "häß"], object), [None]), Feed(np.array([0, 2, 2, 4]), [None])
    numbers, short = Feed(np.array([7, -8, 9]), [None]), Feed(np.array([0, 1, 1, 3]), [None])
    indices = Feed(np.array([[0, 0], [0, 1], [2, 0]]), [None, 2])
    words, shape = Feed(np.array(["x", "y", "z"], object), [None]), np.array([3, 2])
    dense = Feed(np.array([[1, 2], [3, 4], [5, 6]]))
    given = {
        "ragged": ([texts, numbers], [splits, short], [], [], [], [], "RR"),
        "mixed": ([texts], [splits], [indices], [words], [shape], [dense], "DRS"),
        "other": ([texts, numbers], [splits, short], [indices], [words], [shape], [dense], "RSDR"),
        "dense": ([], [], [], [], [], [dense, dense], "DD"),
        "one": ([numbers], [short], [], [], [], [], "R"),
    }
    for name, (*inputs, order) in given.items():
        more = {"input_order": order, "hash_key": 956888297470, "num_buckets": 0}
        text = {"hashed_output": False, "out_values_type": tf.string, "out_row_splits_type": tf.int64}
        c.op("RaggedCross", *inputs, **more, **text, case=name)
        for buckets in (0, 100):
            hashed = {**more, "num_buckets": buckets, "hashed_output": True, "out_values_type": tf.int64, "out_row_splits_type": tf.int64}
            c.op("RaggedCross", *inputs, **hashed, case=f"{name}_{buckets}")
        # TensorFlow ends where the splits differ in type.
        values, all_splits, *rest = inputs
        narrow = [Feed(s.value.astype(np.int32), [None]) for s in all_splits]
        c.op("RaggedCross", values, narrow, *rest, **{**more, **text, "out_row_splits_type": tf.int32}, case=f"{name}_narrow")
    more = {"input_order": "RD", "hash_key": 1, "num_buckets": 0, **text}
    few = Feed(np.array([[1]]))
    c.op("RaggedCross", [texts], [splits], [], [], [], [few], **more, case="rows", fails="rows")
    wrong = Feed(np.array([0, 2, 5]), [None])
    c.op("RaggedCross", [texts], [wrong], [], [], [], [dense], **more, case="splits", fails="splits")


def packed(c):
    """Strings of zlib and gzip, whole and damaged."""
    texts = [b"", b"hello", b"floe " * 300, bytes(range(256))]
    pack = {"ZLIB": zlib.compress, "GZIP": lambda text: gzip.compress(text, mtime=0), "": bytes}
    for kind, function in pack.items():
        c.op("DecodeCompressed", Feed(np.array([function(t) for t in texts], object)), compression_type=kind, case=kind or "plain")
    whole = zlib.compress(b"some text that is packed")
    strings = {"trailing": whole + b"xyz", "no_bytes": b"", "cut": whole[:-2]}
    for name, text in strings.items():
        c.op("DecodeCompressed", Feed(np.array([text], object)), compression_type="ZLIB", case=name)
    c.op("DecodeCompressed", Feed(np.array([[whole, whole]], object)), compression_type="ZLIB", case="matrix")
    wrong = {"header": b"abcdef", "check": whole[:-4] + b"abcd", "gzip": gzip.compress(b"text", mtime=0)}
    for name, text in wrong.items():
        c.op("DecodeCompressed", Feed(np.array([text], object)), compression_type="ZLIB", case=name, fails="inflate")
