"""Ops that reduce, scan, sort, normalise and find the largest along axes."""

import numpy as np
import tensorflow as tf

from harness import COMPLEX, FLOATS, Feed

NUMBERS = FLOATS + ("int32", "int64")


def reductions(c):
    """Sum and its kin."""
    for op in "Sum Prod Mean Max Min EuclideanNorm".split():
        more = {"rtol": 1e-5, "atol": 1e-5}
        c.op(op, c.feed("float32", 4, 3, 5), np.int32(1), case="inner", **more)
        c.op(op, c.feed("float32", 4, 3, 5), np.array([-1, 1], np.int32), keep_dims=True, case="kept", **more)
        c.op(op, c.feed("float32", 4, 3), np.array([0], np.int64), case="rows", **more)
        c.op(op, c.feed("float32", 4, 3), np.array([0, 1], np.int32), case="all", **more)
        c.op(op, c.feed("float32", 4, 70), np.int32(1), case="long", **more)
        c.op(op, c.feed("float32", 4, 3), np.array([], np.int32), case="none", **more)
        c.op(op, c.feed("float32", 4, 0), np.int32(1), case="empty", **more)
        for dtype in ("float64", "float16", "bfloat16", "int32", "int64"):
            c.op(op, c.feed(dtype, 4, 3), np.int32(-1))
    for op in ("Sum", "Prod", "Mean"):
        for dtype in COMPLEX:
            c.op(op, c.feed(dtype, 4, 3), np.int32(1))
    for op in ("Sum", "Max", "Prod"):
        for dtype in ("uint8", "int8", "int16", "uint16"):
            c.op(op, c.feed(dtype, 4, 3, low=0), np.int32(1))
    c.op(
        "Max",
        Feed(np.array([[1, np.nan], [np.inf, 2], [-np.inf, -np.inf]], np.float32)),
        np.int32(1),
        case="edges",
    )
    for op in ("All", "Any"):
        c.op(op, c.feed("bool", 4, 3), np.int32(1))
        c.op(op, c.feed("bool", 4, 3), np.array([0, 1], np.int32), case="all")
        c.op(op, c.feed("bool", 4, 3), np.int32(0), keep_dims=True, case="rows")
    for op in ("ArgMax", "ArgMin"):
        for dtype in NUMBERS + ("uint8",):
            c.op(op, c.feed(dtype, 4, 5), np.int32(1))
        c.op(op, c.feed("float32", 4, 5), np.int32(0), output_type=tf.int32, case="rows")
        c.op(op, c.feed("float32", 4, 5, 3), np.int64(-2), output_type=tf.int32, case="middle")
    c.op("ArgMax", c.feed("bool", 4, 5), np.int32(1))


def scans(c):
    """Cumulative ops, sorting, softmax."""
    for op in ("Cumsum", "Cumprod"):
        for exclusive in (False, True):
            for reverse in (False, True):
                c.op(
                    op,
                    c.feed("float32", 4, 5),
                    np.int32(1),
                    exclusive=exclusive,
                    reverse=reverse,
                    case=f"{exclusive:d}{reverse:d}",
                )
        c.op(op, c.feed("int32", 4, 5), np.int32(-1))
        c.op(op, c.feed("float64", 4, 2), np.int64(0), case="rows")
        c.op(op, c.feed("complex64", 4, 2), np.int32(1))
    for op in ("Softmax", "LogSoftmax"):
        for dtype in FLOATS:
            c.op(op, c.feed(dtype, 4, 5), atol=1e-5 if dtype == "float32" else None)
        c.op(op, c.feed("float32", 2, 3, 37), case="long", atol=1e-5)
        c.op(op, Feed(np.array([[1, np.inf], [-np.inf, 0], [1000, -1000]], np.float32)), case="edges")
        c.op(op, c.feed("float32", 0, 3), case="empty")
    for dtype in ("float32", "int32", "int64", "float16", "uint8"):
        c.op("TopKV2", c.feed(dtype, 4, 6), np.int32(3))
    c.op("TopKV2", c.feed("float64", 6), np.int32(2), case="rows")
    c.op("TopKV2", c.feed("int32", 4, 6, low=0, high=2), np.int32(6), case="ties")
    c.op("TopKV2", c.feed("float32", 4, 6), Feed(np.int32(2), []), case="fed")


def segments(c):
    """Sums by segment."""
    sorted_ids = np.array([0, 0, 1, 3], np.int32)
    for op in "SegmentSum SegmentMean SegmentProd SegmentMax SegmentMin".split():
        c.op(op, c.feed("float32", 4, 3), Feed(sorted_ids))
        c.op(op, c.feed("int32", 4), Feed(sorted_ids.astype(np.int64)))
        c.op(op, c.feed("float64", 4, 2), sorted_ids)
    ids = np.array([2, 0, -1, 2], np.int32)
    for op in "UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMax UnsortedSegmentMin".split():
        c.op(op, c.feed("float32", 4, 3), Feed(ids), np.int32(4))
        c.op(op, c.feed("int64", 4), Feed(ids.astype(np.int64)), np.int64(3))
    indices = np.array([3, 0, 0, 2], np.int32)
    for op in "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN".split():
        c.op(op, c.feed("float32", 4, 3), indices, sorted_ids)
        c.op(op, c.feed("float64", 4), indices.astype(np.int64), sorted_ids.astype(np.int64))
        c.op(f"{op}WithNumSegments", c.feed("float32", 4, 3), Feed(indices), Feed(sorted_ids), np.int32(5))
    c.op("DenseBincount", Feed(np.array([1, 0, 3, 1, 9], np.int32)), np.int32(4), c.feed("float32", 5))
    c.op(
        "DenseBincount",
        Feed(np.array([[1, 0], [3, 1]], np.int64)),
        np.int64(4),
        np.zeros(0, np.int32),
        binary_output=True,
    )
    c.op(
        "DenseBincount",
        Feed(np.array([1, 0, 1], np.int32)),
        np.int32(3),
        np.zeros(0, np.int64),
        case="counts",
    )


def top(c):
    """Whether targets are among the first k: ties, targets out of range, what is not finite."""
    scores = np.round(np.random.RandomState(1).uniform(0, 1, (5, 4)), 1).astype(np.float32)
    scores[2] = [0.5, 0.5, 0.5, 0.1]
    scores[3, 1] = np.nan
    scores[4, 2] = np.inf
    for kind in (np.int32, np.int64):
        targets = Feed(np.array([0, 3, 1, 2, 0], kind))
        for k in (1, 2, 4):
            c.op("InTopK", Feed(scores), targets, k=k, case=f"{kind.__name__}_{k}")
            c.op("InTopKV2", Feed(scores), targets, kind(k), case=f"{kind.__name__}_{k}")
    outside = Feed(np.array([4, -1, 1, 0, 2], np.int32))
    c.op("InTopKV2", Feed(scores), outside, Feed(np.int32(2), []), case="outside")
    c.op("InTopK", Feed(scores), outside, k=0, case="none")
    c.op("InTopK", Feed(scores[:0]), Feed(np.zeros(0, np.int32)), k=1, case="empty")


def log_sums(c):
    """Logarithms of sums of exponentials so far."""
    for dtype in FLOATS:
        for exclusive in (False, True):
            for reverse in (False, True):
                for axis in (0, 1):
                    case = f"{dtype}_{'exclusive_' * exclusive}{'reverse_' * reverse}{axis}"
                    options = {"exclusive": exclusive, "reverse": reverse, "case": case}
                    if dtype == "bfloat16":
                        options.update(rtol=4e-2)
                    c.op("CumulativeLogsumexp", c.feed(dtype, 4, 3), np.int32(axis), **options)
    odd = np.float32([[-np.inf, -np.inf, 1, 2], [1, np.inf, 2, -np.inf], [1, np.nan, 2, 3], [-1e30, 1e30, 90, 95]])
    c.op("CumulativeLogsumexp", Feed(odd), np.int64(1), case="special")
    c.op("CumulativeLogsumexp", c.feed("float32", 0, 3), np.int32(0), case="empty")


def best(c):
    """TensorFlow's kernel for CPUs is exact."""
    for dtype in ("float32", "float16", "bfloat16"):
        for k in (0, 1, 4):
            c.op("ApproxTopK", c.feed(dtype, 3, 9), k=k, case=str(k))
    c.op("ApproxTopK", c.feed("float32", 2, 700), k=5, recall_target=0.5, aggregate_to_topk=False, case="parts")
    odd = np.float32([[1, 5, 5, 2, np.inf, -np.inf], [3, 3, 3, 3, 3, 3]])
    c.op("ApproxTopK", Feed(odd), k=3, reduction_dimension=-1, case="equal")


def cases(c):
    """All of the family."""
    reductions(c)
    scans(c)
    segments(c)
    top(c)
    log_sums(c)
    best(c)
