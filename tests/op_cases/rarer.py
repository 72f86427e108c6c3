"""Windows, drawings and sums that few models have."""

import numpy as np
import tensorflow as tf

from harness import FLOATS, Feed


def cases(c):
    """All of the family."""
    dilation(c)
    drawing(c)
    sums(c)
    integrals(c)
    products(c)
    segments(c)
    overlaps(c)


def products(c):
    """Matrices of three diagonals."""
    for dtype in ("float32", "float64", "complex64", "complex128"):
        diagonals = [c.feed(dtype, 2, 1, 4) for _ in range(3)]
        c.op("TridiagonalMatMul", *diagonals, c.feed(dtype, 2, 4, 3))
    c.op("TridiagonalMatMul", *[c.feed("float32", 1, 1)] * 3, c.feed("float32", 1, 3), case="one")
    c.op("TridiagonalMatMul", *[c.feed("float32", 1, 0)] * 3, c.feed("float32", 0, 3), case="empty")


def segments(c):
    """Strings joined by segment."""
    words = Feed(np.array([["a", "b"], ["c", ""], ["e", "f"], ["g", "h"]], object))
    ids = np.array([2, 0, 1, 2], np.int32)
    c.op("UnsortedSegmentJoin", words, Feed(ids), np.int32(4), separator=", ")
    c.op("UnsortedSegmentJoin", words, np.array([[0, 1], [1, 0], [1, 1], [0, 0]], np.int64), np.int64(2), case="each")
    c.op("UnsortedSegmentJoin", words, ids, np.int32(2), case="outside", fails="segment id")
    c.op("UnsortedSegmentJoin", words, ids - 1, np.int32(2), case="negative", fails="segment id")


def overlaps(c):
    """Suppression by a matrix of overlaps."""
    rng = np.random.RandomState(3)
    matrix = np.round(rng.uniform(0, 1, (7, 7)), 2).astype(np.float32)
    scores = np.round(rng.uniform(0, 1, 7), 1).astype(np.float32)
    for most in (0, 2, 9):
        for threshold in (0.3, 0.7, 2):
            limits = np.int32(most), np.float32(threshold), np.float32(0.2)
            c.op("NonMaxSuppressionWithOverlaps", Feed(matrix), Feed(scores), *limits, case=f"{most}_{threshold}")


def dilation(c):
    """Morphology over images."""
    for dtype in ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16"):
        for padding in ("SAME", "VALID"):
            options = {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": padding}
            image, window = c.feed(dtype, 2, 7, 6, 3, low=-9, high=9), c.data(dtype, 3, 2, 3)
            c.op("Dilation2D", image, window, **options, case=f"{dtype}_{padding}")
    plain = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    c.op("Dilation2D", c.feed("float32", 1, 3, 3, 1), c.feed("float32", 2, 2, 1), **plain, case="filter_fed")
    c.op("Dilation2D", c.feed("float32", 0, 3, 3, 1), c.data("float32", 2, 2, 1), **plain, case="empty")
    image = np.float32([[np.nan, 1, 2], [3, -np.inf, np.inf], [0, 0, np.nan]]).reshape(1, 3, 3, 1)
    c.op("Dilation2D", Feed(image), c.data("float32", 2, 2, 1), **plain, case="special")


def drawing(c):
    """Boxes inside, across and outside the borders."""
    boxes = [[0.1, 0.2, 0.7, 0.9], [-0.5, -0.5, 0.5, 0.5], [0.3, 0.3, 1.5, 1.5], [0.8, 0.8, 0.1, 0.1], [2, 2, 3, 3]]
    boxes = np.float32([boxes, boxes[::-1]])
    for dtype in ("float32", "float16"):
        for depth in (1, 3, 4):
            images = c.feed(dtype, 2, 9, 7, depth, low=0, high=1)
            c.op("DrawBoundingBoxes", images, Feed(boxes), case=f"{dtype}_{depth}")
            c.op("DrawBoundingBoxesV2", images, Feed(boxes), np.float32([[0, 0.5, 1, 1], [1, 1, 0.5, 0]]), case=f"{dtype}_{depth}")
    images = c.feed("float32", 2, 9, 7, 3, low=0, high=1)
    c.op("DrawBoundingBoxesV2", images, Feed(boxes), np.zeros((0, 4), np.float32), case="no_colours")
    c.op("DrawBoundingBoxes", images, np.zeros((2, 0, 4), np.float32), case="no_boxes")
    many = np.float32(np.random.RandomState(1).uniform(0, 1, (1, 25, 4)))
    c.op("DrawBoundingBoxes", c.feed("float32", 1, 30, 40, 3, low=0, high=1), many, case="many")


def sums(c):
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
