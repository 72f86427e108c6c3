"""Windows that leave elements out: strides beyond the kernel, outputs of one pixel, padding."""

import numpy as np
import tensorflow as tf

from harness import Feed

SIZES_OF_STRIDES = ((1, 3), (2, 3), (3, 3), (4, 3), (7, 4), (8, 5), (9, 7))


def ramp(c, dtype, *shape):
    """Numbers by which every element is told from every other."""
    return c.feed(dtype, *shape, low=-9, high=9)


def convolutions(c):
    """One tap and a stride: the output of one pixel is a matrix row of no other pixel."""
    for images in (1, 3):
        for size, strides in (((2, 2), (2, 2)), ((2, 2), (1, 2)), ((2, 3), (2, 1)), ((4, 1), (3, 2)), ((1, 1), (2, 2))):
            for padding in ("SAME", "VALID"):
                name = f"one_tap_{images}_{size[0]}x{size[1]}_{strides[0]}{strides[1]}_{padding}"
                c.op(
                    "Conv2D",
                    ramp(c, "float32", images, *size, 3),
                    c.data("float32", 1, 1, 3, 5),
                    strides=[1, *strides, 1],
                    padding=padding,
                    case=name,
                    rtol=1e-5,
                    atol=1e-4,
                )
    for images, length in ((1, 2), (3, 2), (2, 5)):
        x, w = ramp(c, "float32", images, length, 4), c.data("float32", 1, 4, 3)

        def conv1d(enter, x=x, w=w):
            return tf.nn.conv1d(enter("x", x), w, stride=3, padding="SAME")

        c.graph(f"Conv1D_one_tap_{images}_{length}", conv1d, rtol=1e-5, atol=1e-4)


def strides(c):
    """SAME windows with gaps between them: where the first begins differs from op to op."""
    for size, stride in SIZES_OF_STRIDES:
        for taps in (1, 2):
            case = f"gaps_{size}_{stride}_{taps}"
            for dtype in ("float32", "float64", "float16"):
                c.op(
                    "Conv3D",
                    ramp(c, dtype, 2, size, 3, 2, 1),
                    c.data(dtype, taps, 1, 1, 1, 2),
                    strides=[1, stride, 2, 3, 1],
                    padding="SAME",
                    case=case,
                    atol=2e-2 if dtype == "float16" else 1e-4,
                )
            x = ramp(c, "float32", 2, size, 2, 3)
            c.op("Conv2D", x, c.data("float32", taps, 1, 3, 2), strides=[1, stride, 2, 1], padding="SAME", case=case, atol=1e-4)
            x = ramp(c, "float32", 2, size, size, 3)
            steps = [1, stride, stride, 1]
            c.op("DepthwiseConv2dNative", x, c.data("float32", taps, 1, 3, 1), strides=steps, padding="SAME", case=case, atol=1e-4)
            for op in ("MaxPool", "AvgPool"):
                c.op(op, x, ksize=[1, taps, 1, 1], strides=steps, padding="SAME", case=case)
            x = ramp(c, "float32", 2, size, 4, 3, 3)
            for op in ("MaxPool3D", "AvgPool3D"):
                steps = [1, stride, 3, 2, 1]
                c.op(op, x, ksize=[1, taps, 1, 2, 1], strides=steps, padding="SAME", case=case)
                c.op(op, x, ksize=[1, taps, 1, 2, 1], strides=steps, padding="VALID" if taps <= size else "SAME", case=f"{case}_valid")
        outputs = -(-size // stride)
        for spatial, op in ((2, "Conv2DBackpropInput"), (3, "Conv3DBackpropInputV2")):
            ones = [1] * (spatial - 1)
            c.op(
                op,
                np.int32([2, size, *ones, 2]),
                c.data("float32", 1, *ones, 2, 3),
                ramp(c, "float32", 2, outputs, *ones, 3),
                strides=[1, stride, *ones, 1],
                padding="SAME",
                case=f"gaps_{size}_{stride}",
                atol=1e-4,
            )


def short_inputs(c):
    """Inputs smaller than the window by less than two strides have an output without elements."""
    open_feed = lambda *shape: Feed(c.data("float32", *shape), [None] * len(shape))
    for size, taps, stride in ((1, 2, 1), (1, 4, 2), (2, 6, 3), (3, 4, 1)):
        case = f"short_{size}_{taps}_{stride}"
        steps = [1, stride, stride, 1]
        c.op("Conv2D", open_feed(2, size, 9, 3), c.data("float32", taps, 1, 3, 2), strides=steps, padding="VALID", case=case)
        c.op("DepthwiseConv2dNative", open_feed(2, size, 9, 3), c.data("float32", taps, 1, 3, 1), strides=steps, padding="VALID", case=case)
        c.op("MaxPool", open_feed(2, size, 9, 3), ksize=[1, taps, 1, 1], strides=steps, padding="VALID", case=case)
        sizes = {"ksizes": [1, taps, 1, 1], "strides": steps, "rates": [1, 1, 1, 1], "padding": "VALID"}
        c.op("ExtractImagePatches", open_feed(2, size, 9, 3), case=case, **sizes)


def slices(c):
    """Masks of an axis that shrinks count for nothing; strides of any size."""
    ints = lambda *values: np.array(values, np.int32)
    for begin_mask in range(4):
        for end_mask in range(4):
            c.op(
                "StridedSlice",
                c.feed("int32", 4, 6),
                ints(1, 2),
                ints(3, 0),
                ints(1, 1),
                begin_mask=begin_mask,
                end_mask=end_mask,
                shrink_axis_mask=2,
                case=f"shrink_{begin_mask}{end_mask}",
            )
    c.op("StridedSlice", c.feed("int32", 5), ints(-2), ints(0), ints(1), begin_mask=1, shrink_axis_mask=1, case="shrink_end")
    for name, stride in (("up", 2**31 - 1), ("down", -(2**31))):
        c.op("StridedSlice", c.feed("int32", 4, 3), ints(0, 2), ints(9, -9), ints(1, stride), case=f"far_{name}")
    far = lambda *values: np.array(values, np.int64)
    for name, begin, end, stride in (
        ("up", -(2**63), 2**63 - 1, 2**63 - 1),
        ("down", 2**63 - 1, -(2**63), -(2**63)),
        ("one", -(2**63), 2**63 - 1, 1),
        ("back", 2**63 - 1, -(2**63), -1),
        ("none", 2**63 - 1, -(2**63), 1),
    ):
        c.op("StridedSlice", c.feed("int32", 4, 3), far(begin), far(end), far(stride), case=f"farther_{name}")


def cases(c):
    """All of the family."""
    convolutions(c)
    strides(c)
    short_inputs(c)
    slices(c)
