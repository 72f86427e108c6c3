"""Quantised values: weights as integers with a range, and the ops of quantised graphs."""

import numpy as np
import tensorflow as tf

from harness import QUANTIZED, Feed

LIMITS = {
    "qint8": (-128, 127),
    "quint8": (0, 255),
    "qint16": (-32768, 32767),
    "quint16": (0, 65535),
    "qint32": (-(2**31), 2**31 - 1),
}


def f32(x):
    """A float scalar, or a vector."""
    return np.array(x, np.float32)


def feed(c, dtype, *shape, low=None, high=None):
    """Quantised values over the whole of their type."""
    least, most = LIMITS[dtype]
    return c.feed(dtype, *shape, low=least if low is None else low, high=most if high is None else high)


def cases(c):
    """All of the family."""
    dequantize(c)
    quantize(c)
    narrowing(c)
    layers(c)
    arithmetic(c)
    moves(c)
    batch_norm(c)
    instance_norm(c)


def dequantize(c):
    """Every type in every mode, with its edges; a range for each slice."""
    for dtype in QUANTIZED:
        least, most = LIMITS[dtype]
        if dtype == "qint32":  # as a float past the type, which TensorFlow gives another sign
            most = 2**30
        edges = np.array([least, most, 0, 1, 7, 100], np.int64).astype(tf.as_dtype(dtype).as_numpy_dtype)
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            for low, high in ((-1.5, 3.25), (0.25, 2.0)):
                c.op("Dequantize", Feed(edges), f32(low), f32(high), mode=mode, case=f"{mode}_{low}", rtol=1e-6)
    for dtype in ("qint8", "quint8"):
        x = feed(c, dtype, 3, 4)
        c.op("Dequantize", x, f32(-2), f32(2), mode="SCALED", narrow_range=True, case="narrow")
        c.op("Dequantize", x, f32([-1, -2, 0, -4]), f32([1, 2, 3, 4]), mode="SCALED", axis=1, case="axis")
        c.op("Dequantize", x, f32([-1, -2, 0]), f32([1, 2, 3]), axis=0, case="axis0")
        c.op("Dequantize", feed(c, dtype, 0, 4), f32(-2), f32(2), case="empty")
        c.op("Dequantize", feed(c, dtype), f32(-2), f32(2), case="scalar")
    c.op("Dequantize", feed(c, "quint8", 3, 4), f32(-2), f32(2), dtype=tf.bfloat16, case="bfloat16")
    c.op("Dequantize", feed(c, "quint8", 3, 4), Feed(f32(-2), []), Feed(f32(2), []), case="range_fed")
    c.op("Dequantize", feed(c, "quint8", 4), f32(1), f32(1), mode="MIN_FIRST", case="one_value")
    weights = c.data("quint8", 3, 4, low=0, high=255)
    c.op("Dequantize", weights, f32(-2), f32(2), mode="MIN_FIRST", case="constant")


def quantize(c):
    """Every type in every mode: values on and past the range, halves, NaN-free."""
    x = [-7, -1.5, -1, -0.5, -0.004, 0, 0.004, 0.5, 0.75, 1, 2, 3.25, 9]
    for dtype in QUANTIZED:
        if dtype == "qint32":
            continue
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            for low, high in ((-1.5, 3.25), (0.25, 2.0)):
                case = f"{dtype}_{mode}_{low}"
                c.op("QuantizeV2", Feed(f32(x)), f32(low), f32(high), T=tf.as_dtype(dtype), mode=mode, case=case)
    kind = {"T": tf.qint8, "mode": "SCALED"}
    halves = Feed(f32([-127, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 127]))
    c.op("QuantizeV2", halves, f32(-127), f32(127), round_mode="HALF_TO_EVEN", case="even", **kind)
    c.op("QuantizeV2", halves, f32(-127), f32(127), narrow_range=True, case="narrow", **kind)
    y = c.feed("float32", 2, 3)
    c.op("QuantizeV2", y, f32([-1, -2, 0]), f32([1, 2, 3]), axis=1, case="axis", **kind)
    c.op("QuantizeV2", y, f32([-1, -2]), f32([1, 2]), axis=0, T=tf.quint8, case="axis0")
    c.op("QuantizeV2", y, f32(0), f32(0), T=tf.quint8, case="no_range")
    c.op("QuantizeV2", y, f32(0), f32(0), T=tf.quint8, mode="MIN_FIRST", case="no_range_first")
    c.op("QuantizeV2", y, f32(-1), f32(1), T=tf.quint8, ensure_minimum_range=3, case="minimum_range")
    c.op("QuantizeV2", c.feed("float32", 0, 3), f32(-1), f32(1), T=tf.quint8, case="empty")
    c.op("QuantizeV2", Feed(f32(0.3), []), f32(-1), f32(1), T=tf.quint8, case="scalar")
    c.op("QuantizeV2", y, f32(1), f32(-1), T=tf.quint8, case="crossed", fails="range from 1 to -1")


def narrowing(c):
    """From 32 bits to 8: the range asked for, or the one used."""
    x = feed(c, "qint32", 4, 5, low=-(2**28), high=2**28)
    low, high = f32(-300), f32(299)
    c.op("Requantize", x, low, high, f32(-20), f32(30), out_type=tf.quint8)
    c.op("Requantize", x, low, high, f32(0), f32(30), out_type=tf.quint8, case="positive")
    c.op("Requantize", x, low, high, f32(0), f32(0), out_type=tf.quint8, case="no_range")
    c.op("Requantize", x, low, high, f32(1), f32(2), out_type=tf.quint8, case="above", fails="begins at 0 or below")
    c.op("RequantizationRange", x, low, high)
    c.op("QuantizeDownAndShrinkRange", x, low, high, out_type=tf.quint8)
    y = feed(c, "qint32", 4, low=2**20, high=2**28)
    c.op("RequantizationRange", y, low, high, case="positive")
    c.op("QuantizeDownAndShrinkRange", y, low, high, out_type=tf.quint8, case="positive")


def layers(c):
    """Convolution, matrix product, pooling, activations."""
    x, w = feed(c, "quint8", 2, 5, 6, 3), feed(c, "quint8", 3, 3, 3, 4).value
    ranges = (f32(-1), f32(2), f32(-0.5), f32(0.75))
    for padding in ("SAME", "VALID"):
        for stride in (1, 2):
            options = {"strides": [1, stride, stride, 1], "padding": padding}
            c.op("QuantizedConv2D", x, w, *ranges, case=f"{padding}_{stride}", **options)
    options = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    c.op("QuantizedConv2D", x, w[:1, :1], *ranges, case="1x1", **options)
    c.op("QuantizedConv2D", x, w, f32(0), f32(6), f32(-1), f32(1), case="from_zero", **options)
    c.op("QuantizedConv2D", x, w, f32(0.5), f32(6), f32(-1), f32(1), case="without_zero", **options)
    a, b = feed(c, "quint8", 3, 5), feed(c, "quint8", 5, 4).value
    c.op("QuantizedMatMul", a, b, *ranges)
    c.op("QuantizedMatMul", a, b.T, *ranges, transpose_b=True, case="transpose_b")
    c.op("QuantizedMatMul", feed(c, "quint8", 5, 3), b, *ranges, transpose_a=True, case="transpose_a")
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        for low, high in ((-2, 10), (0, 3), (-8, -1)):
            c.op(op, feed(c, "quint8", 3, 7), f32(low), f32(high), case=f"{low}_{high}")
    image = feed(c, "quint8", 2, 5, 5, 3)
    for op in ("QuantizedMaxPool", "QuantizedAvgPool"):
        for padding in ("SAME", "VALID"):
            options = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": padding}
            c.op(op, image, f32(-1), f32(2), case=padding, **options)


def arithmetic(c):
    """Sums and products: equal shapes, scalars, a vector along the last dim."""
    ranges = (f32(-1), f32(2), f32(-4), f32(3))
    x = feed(c, "quint8", 3, 4)
    for dtype in ("quint8", "qint8"):
        y = feed(c, dtype, 3, 4)
        c.op("QuantizedBiasAdd", y, feed(c, dtype, 4).value, *ranges, out_type=tf.qint32)
    c.op("QuantizedAdd", x, feed(c, "quint8", 3, 4), *ranges)
    c.op("QuantizedAdd", x, feed(c, "quint8", 4), *ranges, case="vector")
    c.op("QuantizedAdd", feed(c, "quint8").value, x, *ranges, case="scalar")
    c.op("QuantizedMul", x, feed(c, "quint8", 3, 4), *ranges)
    c.op("QuantizedMul", x, feed(c, "quint8", 4).value, *ranges, case="vector")
    c.op("QuantizedMul", x, feed(c, "quint8").value, *ranges, case="scalar")


def moves(c):
    """Joining, reshaping and resizing."""
    axis = np.int32(1)
    for dtype in ("quint8", "qint32"):
        parts = [feed(c, dtype, 2, 3), feed(c, dtype, 2, 2), feed(c, dtype, 2, 1)]
        ranges = [f32(-1), f32(-1), f32(-1)], [f32(2), f32(2), f32(2)]
        c.op("QuantizedConcat", axis, parts, *ranges, case=f"{dtype}_same")
        ranges = [f32(-1), f32(0), f32(-0.5)], [f32(2), f32(3), f32(1)]
        c.op("QuantizedConcat", axis, parts, *ranges, case=f"{dtype}_ranges")
        ranges = [f32(1), f32(1.5), f32(0.5)], [f32(2), f32(3), f32(1)]
        c.op("QuantizedConcat", axis, parts, *ranges, case=f"{dtype}_positive")
    shape = np.array([3, -1], np.int32)
    c.op("QuantizedReshape", feed(c, "quint8", 2, 6), shape, f32(-1), f32(2))
    c.op("QuantizedReshape", feed(c, "qint32", 2, 6), Feed(shape), f32(-1), f32(2), case="fed")
    for align, half in ((False, False), (True, False), (False, True)):
        for size in ((7, 9), (2, 3)):
            for dtype in ("quint8", "qint32"):
                image = feed(c, dtype, 2, 4, 5, 3)
                options = {"align_corners": align, "half_pixel_centers": half}
                case = f"{align}_{half}_{size[0]}"
                c.op("QuantizedResizeBilinear", image, np.array(size, np.int32), f32(-1), f32(2), case=case, **options)
    image = c.feed("float32", 2, 4, 5, 3)
    c.op("QuantizedResizeBilinear", image, np.array([7, 9], np.int32), f32(0), f32(0))


def batch_norm(c):
    """Batch normalisation as a single op."""
    inputs = [feed(c, "quint8", 2, 3, 3, 4), f32(-3), f32(3)]
    for low, high in ((-1, 1), (0, 2), (-0.5, 0.5), (-2, 2)):
        inputs += [feed(c, "quint8", 4).value, f32(low), f32(high)]
    for scales in (True, False):
        c.op(
            "QuantizedBatchNormWithGlobalNormalization",
            *inputs,
            out_type=tf.qint32,
            variance_epsilon=0.001,
            scale_after_normalization=scales,
            case=f"scales_{scales}",
        )


def instance_norm(c):
    """Instance normalisation: the range of the result found or given, and one value everywhere."""
    x = feed(c, "quint8", 2, 3, 4, 2)
    c.op("QuantizedInstanceNorm", x, f32(-1), f32(2))
    c.op("QuantizedInstanceNorm", x, f32(-1), f32(2), variance_epsilon=0.5, case="epsilon")
    given = {"output_range_given": True, "given_y_min": -1.5, "given_y_max": 1.25}
    c.op("QuantizedInstanceNorm", x, f32(-1), f32(2), case="given", **given)
    flat = feed(c, "quint8", 1, 2, 2, 1, low=7, high=7)
    c.op("QuantizedInstanceNorm", flat, f32(-1), f32(2), min_separation=0.25, case="flat")
