"""Images: colours, sizes, boxes drawn and chosen, morphology."""

import numpy as np

from harness import FLOATS, Feed


def cases(c):
    """All of the family."""
    colours(c)
    resampling(c)
    dilation(c)
    drawing(c)
    overlaps(c)


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


def overlaps(c):
    """Suppression by a matrix of overlaps."""
    rng = np.random.RandomState(3)
    matrix = np.round(rng.uniform(0, 1, (7, 7)), 2).astype(np.float32)
    scores = np.round(rng.uniform(0, 1, 7), 1).astype(np.float32)
    for most in (0, 2, 9):
        for threshold in (0.3, 0.7, 2):
            limits = np.int32(most), np.float32(threshold), np.float32(0.2)
            c.op("NonMaxSuppressionWithOverlaps", Feed(matrix), Feed(scores), *limits, case=f"{most}_{threshold}")
