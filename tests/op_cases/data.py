"""Ops whose output sizes depend on data; strings; images."""

import numpy as np
import tensorflow as tf

from harness import Feed


def selecting(c):
    """Which elements, which values."""
    for dtype in ("bool", "float32", "int32", "int8"):
        c.op("Where", c.feed(dtype, 4, 3, low=-1, high=1))
    c.op("Where", c.feed("bool", 0, 3), case="empty")
    for dtype in ("int32", "float32", "int64", "uint8"):
        c.op("Unique", c.feed(dtype, 8, low=0, high=3))
        c.op("UniqueWithCounts", c.feed(dtype, 8, low=0, high=3), out_idx=tf.int64)
    c.op("Unique", Feed(np.array(["b", "a", "b", ""], object)))
    c.op("ListDiff", c.feed("int32", 8, low=0, high=5), c.data("int32", 3, low=0, high=5))
    c.op("ListDiff", Feed(np.array(["b", "a", "c"], object)), np.array(["a"], object), out_idx=tf.int64)
    c.op(
        "DynamicPartition",
        c.feed("float32", 5, 2),
        Feed(np.array([0, 2, 0, 1, 2], np.int32)),
        num_partitions=4,
    )
    c.op("DynamicPartition", c.feed("string", 4), Feed(np.array([1, 0, 1, 1], np.int32)), num_partitions=2)


def boxes(c):
    """Suppression of overlapping boxes."""
    rng = np.random.RandomState(1)
    corner = np.round(rng.uniform(0, 2, (9, 2)), 2)
    found = np.concatenate([corner, corner + np.round(rng.uniform(0.5, 2, (9, 2)), 2)], 1).astype(np.float32)
    scores = np.round(rng.uniform(0, 1, 9), 2).astype(np.float32)
    limits = [np.float32(0.3), np.float32(0.2)]
    c.op("NonMaxSuppressionV2", Feed(found), Feed(scores), np.int32(4), limits[0])
    c.op("NonMaxSuppressionV3", Feed(found), Feed(scores), np.int32(9), *limits)
    for pad in (False, True):
        c.op(
            "NonMaxSuppressionV4",
            Feed(found),
            Feed(scores),
            np.int32(7),
            *limits,
            pad_to_max_output_size=pad,
            case=f"pad{pad:d}",
        )
        for sigma in (0, 0.5):
            c.op(
                "NonMaxSuppressionV5",
                Feed(found),
                Feed(scores),
                np.int32(7),
                *limits,
                np.float32(sigma),
                pad_to_max_output_size=pad,
                case=f"pad{pad:d}_{'soft' if sigma else 'hard'}",
            )
    batch = np.stack([found, found[::-1]])[:, :, None, :]
    c.op(
        "CombinedNonMaxSuppression",
        Feed(batch),
        c.feed("float32", 2, 9, 2, low=0, high=1),
        np.int32(3),
        np.int32(5),
        *limits,
    )


def sparse(c):
    """Sparse tensors."""
    indices, shape = np.array([[0, 1], [1, 0], [2, 3]], np.int64), np.array([3, 4], np.int64)
    c.op("SparseReshape", Feed(indices), shape, np.array([2, -1], np.int64))
    c.op("SparseFillEmptyRows", Feed(indices[[0, 2]]), c.feed("float32", 2), shape, np.float32(-1))
    c.op(
        "SparseFillEmptyRows",
        indices[[0, 2]],
        c.feed("string", 2),
        np.array([4, 4], np.int64),
        "none",
        case="strings",
    )
    for operation in ("a-b", "b-a", "intersection", "union"):
        c.op(
            "DenseToDenseSetOperation",
            c.feed("int32", 3, 4, low=0, high=6),
            c.feed("int32", 3, 3, low=0, high=6),
            set_operation=operation,
            case=operation.replace("-", "_"),
        )
    c.op(
        "CTCGreedyDecoder",
        c.feed("float32", 6, 3, 4, declared=[None, None, 4]),
        Feed(np.array([6, 2, 4], np.int32)),
        merge_repeated=True,
    )
    c.op(
        "CTCGreedyDecoder",
        c.feed("float64", 5, 2, 3, declared=[None, None, 3]),
        Feed(np.array([5, 5], np.int32)),
    )


def strings(c):
    """Text."""
    text = np.array(["Floe 12", "", "häß ß", "a,b,,c", "UPPER lower  two", "x"], object)
    for op in ("StringLower", "StringUpper"):
        c.op(op, Feed(text))
        c.op(op, Feed(text), encoding="utf-8", case="utf8")
    for dtype in ("float32", "int32", "int64", "bool", "float64", "complex64"):
        c.op("AsString", c.feed(dtype, 4))
    c.op("AsString", c.feed("float32", 4), precision=3, width=9, fill="0", case="width")
    c.op("AsString", c.feed("float32", 4), scientific=True, case="scientific")
    c.op("AsString", c.feed("float32", 4), shortest=True, case="shortest")
    numbers = np.array(["1.5", " -3", "1e3", "7"], object)
    for dtype in (tf.float32, tf.float64):
        c.op("StringToNumber", Feed(numbers), out_type=dtype, case=dtype.name)
    for dtype in (tf.int32, tf.int64):
        c.op("StringToNumber", Feed(np.array(["15", "-3", "0"], object)), out_type=dtype, case=dtype.name)
    c.op("StringJoin", [c.feed("string", 4), c.feed("string", 4), np.array("!", object)], separator="-")
    c.op("StringSplitV2", Feed(text), "")
    c.op("StringSplitV2", Feed(text), ",", maxsplit=1, case="comma")


def patterns(c):
    """Regular expressions and joined text."""
    text = np.array(["Floe 12", "", "aab ab", "a.b", "  two\tlines\n ", "x"], object)
    for everywhere in (True, False):
        more = {"replace_global": everywhere, "case": f"global{everywhere:d}"}
        c.op("StaticRegexReplace", Feed(text), pattern="(a+)b", rewrite="<\\1>", **more)
        c.op("RegexReplace", Feed(text), "[0-9 ]", "_", **more)
    c.op("StaticRegexReplace", Feed(text), pattern="[,-\\.a\\]\\[]", rewrite="", case="bracket")
    c.op("RegexFullMatch", Feed(text), "[a-z. ]+")
    c.op("StaticRegexFullMatch", Feed(text), pattern="F.*2")
    c.op("StringStrip", Feed(text))
    c.op("ReduceJoin", c.feed("string", 4, 3), np.int32(1), separator="+")
    c.op("ReduceJoin", c.feed("string", 4, 3), np.array([0, 1], np.int32), keep_dims=True, case="all")


def images(c):
    """Sizes, crops and colours."""
    for op in "ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea".split():
        for align, centers in ((False, False), (True, False), (False, True)):
            more = {"align_corners": align}
            if op != "ResizeArea":
                more["half_pixel_centers"] = centers
            elif centers:
                continue
            c.op(
                op,
                c.feed("float32", 2, 3, 4, 2),
                np.array([5, 7], np.int32),
                case=f"up{align:d}{centers:d}",
                rtol=1e-4,
                atol=1e-4,
                **more,
            )
            c.op(
                op,
                c.feed("uint8", 2, 5, 4, 1, low=0, high=99),
                np.array([3, 2], np.int32),
                case=f"down{align:d}{centers:d}",
                rtol=1e-4,
                atol=1e-3,
                **more,
            )
        c.op(op, c.feed("float64", 2, 3, 3, 1), np.array([4, 2], np.int32), rtol=1e-4, atol=1e-4)
        c.op(
            op,
            c.feed("float32", 2, 3, 3, 1),
            Feed(np.array([4, 2], np.int32), [2]),
            case="fed_size",
            rtol=1e-4,
            atol=1e-4,
        )
    crops = np.array([[0, 0, 1, 1], [0.2, -0.1, 0.7, 1.2], [1, 1, 0, 0]], np.float32)
    for method in ("bilinear", "nearest"):
        c.op(
            "CropAndResize",
            c.feed("float32", 2, 4, 5, 2),
            Feed(crops),
            Feed(np.array([1, 0, 1], np.int32)),
            np.array([3, 2], np.int32),
            method=method,
            extrapolation_value=-7.0,
            case=method,
            rtol=1e-4,
            atol=1e-5,
        )
    flipped = np.array([[0.9, 1.1, 0.1, 0.2], [0.3, 0.3, 0.3, 0.3]], np.float32)
    c.op(
        "CropAndResize",
        c.feed("float32", 1, 5, 4, 19),
        Feed(flipped),
        Feed(np.array([0, 0], np.int32)),
        np.array([4, 3], np.int32),
        case="wide",
        rtol=1e-4,
        atol=1e-5,
    )
    c.op(
        "CropAndResize",
        c.feed("uint8", 2, 4, 4, 1, low=0, high=99),
        crops,
        np.array([0, 0, 1], np.int32),
        np.array([2, 2], np.int32),
        rtol=1e-4,
    )
    picture = lambda: c.feed("float32", 4, 3, 2, 3, low=0, high=1)
    c.op("AdjustContrastv2", picture(), np.float32(1.7))
    c.op("AdjustHue", picture(), np.float32(0.3), rtol=1e-4, atol=1e-5)
    c.op("AdjustSaturation", picture(), np.float32(0.6), rtol=1e-4, atol=1e-5)


def cases(c):
    """All of the family."""
    selecting(c)
    boxes(c)
    sparse(c)
    strings(c)
    patterns(c)
    images(c)
