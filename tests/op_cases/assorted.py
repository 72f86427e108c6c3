"""Ops of small families: places and buckets, layouts, colours, resampling, sequences, sparse products."""

import functools

import numpy as np
import tensorflow as tf

from harness import FLOATS, Feed


def cases(c):
    """All of the family."""
    top(c)
    buckets(c)
    layouts(c)
    shapes(c)
    colours(c)
    resampling(c)
    sparse(c)
    lstm(c)
    beams(c)


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


def buckets(c):
    """Boundaries belong to the bucket above."""
    bounds = [-1.5, 0, 2.0, 2.0, 10]
    for dtype in ("int32", "int64", "float32", "float64"):
        c.op("Bucketize", c.feed(dtype, 3, 7, low=-3, high=12), boundaries=bounds)
        c.op("Bucketize", Feed(np.array([-2, 0, 2, 10, 11], dtype)), boundaries=bounds, case="edges")
    c.op("Bucketize", Feed(np.array([np.nan, np.inf, -np.inf], np.float32)), boundaries=bounds, case="nan")
    c.op("Bucketize", c.feed("float32", 0, 2), boundaries=bounds, case="empty")
    c.op("Bucketize", Feed(np.float32(1), []), boundaries=[], case="one_bucket")


def layouts(c):
    """What layout optimisers leave of shapes and axes."""
    for kind in (np.int32, np.int64):
        for source, target in (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC")):
            options = {"src_format": source, "dst_format": target}
            case = f"{source}_{target}"
            c.op("DataFormatVecPermute", Feed(np.array([7, 8, 9, 3], kind), [4]), case=case, **options)
            c.op("DataFormatVecPermute", Feed(np.array([7, 8], kind), [2]), case=f"{case}_2", **options)
            pairs = Feed(np.arange(8, dtype=kind).reshape(4, 2), [4, 2])
            c.op("DataFormatVecPermute", pairs, case=f"{case}_pairs", **options)
            axes = Feed(np.array([[0, 1, 2, 3], [-1, -2, -3, -4]], kind))
            c.op("DataFormatDimMap", axes, case=case, **options)
    options = {"src_format": "NDHWC", "dst_format": "NCDHW"}
    c.op("DataFormatVecPermute", Feed(np.array([7, 8, 9, 3, 4], np.int32), [5]), case="five", **options)
    c.op("DataFormatDimMap", Feed(np.array([0, 1, -1], np.int32)), case="five", **options)
    c.op("DataFormatDimMap", Feed(np.int32(1), []), case="scalar")


def shapes(c):
    """EnsureShape, Concat of version 1, LinSpace."""
    for dtype in ("float32", "string", "bool"):
        c.op("EnsureShape", c.feed(dtype, 4, 3), shape=[None, 3])
    c.op("EnsureShape", c.feed("float32", 4, 3, declared=None), shape=[None, 3], case="unknown")
    c.op("EnsureShape", c.feed("float32", 4, 3, declared=[None, None]), shape=[4, 3], case="fixed")
    for dtype in ("float32", "int64", "string", "bool"):
        parts = [c.feed(dtype, 4, 3), c.feed(dtype, 4, 1)]
        c.op("Concat", np.int32(1), parts, case=dtype)
        c.op("Concat", np.int32(-1), parts, case=f"{dtype}_last")
        c.op("Concat", np.int32(0), [parts[0], c.feed(dtype, 2, 3)], case=f"{dtype}_outer")
    c.op("Concat", Feed(np.int32(1), []), [c.feed("float32", 4, 3), c.feed("float32", 4, 0)], case="axis_fed")
    c.graph("Concat_of_shapes", reshaped_by_concat)
    for dtype in ("float32", "float64"):
        kind = tf.as_dtype(dtype).as_numpy_dtype
        for count in (1, 2, 7):
            c.op("LinSpace", np.array(-1.5, kind), np.array(4, kind), np.int32(count), case=str(count))
        c.op("LinSpace", Feed(np.array(4, kind), []), np.array(-1, kind), np.int64(5), case="fed")
    c.op("LinSpace", np.float32(0), np.float32(1), Feed(np.int32(4), []), case="count_fed")
    c.op("LinSpace", np.float32(0), np.float32(1), Feed(np.int32(0), []), case="none", fails="num is 0")


def reshaped_by_concat(enter):
    """A shape put together as graphs of 2016 do it."""
    x = enter("x", Feed(np.arange(24, dtype=np.float32).reshape(4, 6)))
    rows = tf.raw_ops.StridedSlice(
        input=tf.raw_ops.Shape(input=x), begin=[0], end=[1], strides=[1], begin_mask=0, end_mask=0
    )
    return tf.reshape(x, tf.raw_ops.Concat(concat_dim=0, values=[rows, [2, 3]]), name="out")


def colours(c):
    """Hues of greys and of every sector."""
    for dtype in FLOATS:
        for op in ("RGBToHSV", "HSVToRGB"):
            more = {"atol": 4e-3} if dtype == "float16" else {"atol": 4e-2} if dtype == "bfloat16" else {}
            c.op(op, c.feed(dtype, 4, 5, 3, low=0, high=1), **more)
    greys = np.array([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0.5]], np.float32)
    c.op("RGBToHSV", Feed(greys), case="greys")
    c.op("HSVToRGB", Feed(greys), case="greys")
    c.op("RGBToHSV", Feed(greys[3], [3]), case="one")
    c.op("RGBToHSV", c.feed("float32", 0, 3), case="empty")


def resampling(c):
    """ScaleAndTranslate with every kernel, larger and smaller, shifted and out of sight."""
    size = np.array([7, 4], np.int32)
    kinds = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
    for kind in kinds:
        x = c.feed("float32", 2, 5, 6, 3)
        scale, shift = np.array([1.4, 0.66], np.float32), np.array([0, 0.3], np.float32)
        options = {"kernel_type": kind, "atol": 1e-5}
        c.op("ScaleAndTranslate", x, size, scale, shift, case=kind, **options)
        c.op("ScaleAndTranslate", x, size, scale, shift, antialias=False, case=f"{kind}_plain", **options)
    for dtype in ("uint8", "int32", "float64", "float16"):
        x = c.feed(dtype, 2, 5, 6, 3)
        scale, shift = Feed(np.array([0.5, 2], np.float32), [2]), Feed(np.array([-2, 3], np.float32), [2])
        c.op("ScaleAndTranslate", x, size, scale, shift, kernel_type="triangle", atol=1e-5)
    x = c.feed("float32", 2, 5, 6, 3)
    one = np.array([1, 1], np.float32)
    c.op("ScaleAndTranslate", x, size, one, np.array([100, 0], np.float32), case="out_of_sight")
    c.op("ScaleAndTranslate", x, size, one * 0, one, case="no_scale", fails="scale")


def sparse(c):
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


def lstm(c):
    """Whole sequences of an LSTM, cut off and not."""
    weights = [c.data("float32", 3 + 2, 8)] + [c.data("float32", 2) for _ in range(3)] + [c.data("float32", 8)]
    x, state, h = c.feed("float32", 4, 2, 3), c.feed("float32", 2, 2), c.feed("float32", 2, 2)
    for op in ("BlockLSTM", "BlockLSTMV2"):
        for peephole in (False, True):
            options = {"use_peephole": peephole, "cell_clip": 0.5 if peephole else 3.0}
            c.op(op, np.int64(4), x, state, h, *weights, case=str(peephole), atol=1e-6, **options)
        c.op(op, Feed(np.int64(4), []), x, state, h, *weights, case="length_fed", atol=1e-6)
        for length in (2, 0):
            build = functools.partial(cut_off, getattr(tf.raw_ops, op), length, x, state, h, weights)
            c.graph(f"{op}_cut_{length}", build, atol=1e-6)


def cut_off(op, length, x, state, h, weights, enter):
    """States and outputs, which are zero past the length; TensorFlow leaves the gates there as they are."""
    fed = {"x": enter("x", x), "cs_prev": enter("cs", state), "h_prev": enter("h", h)}
    names = ("w", "wci", "wcf", "wco", "b")
    out = op(seq_len_max=np.int64(length), **fed, **dict(zip(names, weights)), cell_clip=3.0, use_peephole=False)
    return [out.cs, out.h]


def beams(c):
    """Beam search over labels: one and several paths, merged repeats, wide and narrow beams."""
    for dtype in ("float32", "float64"):
        x = c.feed(dtype, 6, 2, 4, declared=[None, None, 4])
        lengths = np.array([6, 4], np.int32)
        for width, paths in ((1, 1), (3, 2), (100, 3)):
            if dtype == "float64" and width == 3:  # a tie
                continue
            for merge in (True, False):
                options = {"beam_width": width, "top_paths": paths, "merge_repeated": merge}
                if dtype == "float64":  # TensorFlow's scores pass through float32
                    options["rtol"] = 1e-6
                c.op("CTCBeamSearchDecoder", x, lengths, case=f"{width}_{paths}_{merge}", **options)
    options = {"beam_width": 2, "top_paths": 1}
    c.op("CTCBeamSearchDecoder", x, np.array([0, 1], np.int32), case="short", **options)
    c.op("CTCBeamSearchDecoder", x, np.array([7, 1], np.int32), case="long", fails="sequence_length", **options)
    negative, three = Feed(np.array([-1, 1], np.int32), [None]), Feed(np.array([1, 1, 1], np.int32), [None])
    c.op("CTCBeamSearchDecoder", x, negative, case="negative", **options)
    c.op("CTCGreedyDecoder", x, negative, case="negative")
    c.op("CTCGreedyDecoder", x, np.array([7, 1], np.int32), case="long", fails="sequence_length")
    c.op("CTCBeamSearchDecoder", x, three, case="lengths", fails="lengths", **options)
