"""Images and volumes with channels in front (NCHW, NCDHW)."""

import numpy as np
import tensorflow as tf

from harness import Feed


def case(c, name, op, inputs, **attributes):
    """An op of raw_ops on inputs by name; TensorFlow must not be asked for the op's own output, which would keep its layout."""
    volume = next(iter(v for v in inputs.values() if hasattr(v, "value"))).value.ndim == 5
    attributes.setdefault("data_format", "NCDHW" if volume else "NCHW")

    def build(enter):
        entered = {key: enter(key, value) for key, value in inputs.items()}
        return tf.identity(getattr(tf.raw_ops, op)(name=op, **entered, **attributes), name="out")

    c.graph(f"{op}_{name}", build, rtol=1e-4, atol=1e-5)


def convolutions(c):
    """Attributes that differ in height and width."""
    for padding in ("SAME", "VALID"):
        name = padding.lower()
        case(c, name, "Conv2D", {"input": c.feed("float32", 2, 3, 9, 8), "filter": c.data("float32", 3, 2, 3, 5)},
             strides=[1, 1, 2, 3], padding=padding)
        case(c, name, "DepthwiseConv2dNative", {"input": c.feed("float32", 2, 3, 9, 8), "filter": c.data("float32", 3, 2, 3, 2)},
             strides=[1, 1, 2, 2], padding=padding)
        case(c, name, "Conv3D", {"input": c.feed("float32", 2, 2, 4, 5, 6), "filter": c.data("float32", 2, 3, 1, 2, 3)},
             strides=[1, 1, 1, 2, 1], padding=padding)
    case(c, "dilated", "Conv2D", {"input": c.feed("float32", 2, 3, 9, 8), "filter": c.data("float32", 3, 2, 3, 5)},
         strides=[1, 1, 1, 1], dilations=[1, 1, 2, 3], padding="SAME")
    case(c, "explicit", "Conv2D", {"input": c.feed("float32", 2, 3, 9, 8), "filter": c.data("float32", 3, 2, 3, 5)},
         strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 0, 0, 2, 1, 0, 3])
    case(c, "backward", "Conv2DBackpropInput",
         {"input_sizes": np.array((2, 3, 6, 12), np.int32), "filter": c.data("float32", 3, 2, 3, 4), "out_backprop": c.feed("float32", 2, 4, 3, 4)},
         strides=[1, 1, 2, 3], padding="SAME")


def pools(c):
    """Windows that differ in height and width. TensorFlow's optimizer does not know those over volumes."""
    for op in ("MaxPool", "AvgPool"):
        for padding in ("SAME", "VALID"):
            inputs = {"value" if op == "AvgPool" else "input": c.feed("float32", 2, 3, 9, 8)}
            case(c, padding.lower(), op, inputs, ksize=[1, 1, 2, 3], strides=[1, 1, 3, 2], padding=padding)


def network(c):
    """The ops of a residual block, some of which do not care for the layout."""

    def build(enter):
        x = enter("x", c.feed("float32", 3, 4, 7, 6))
        y = tf.nn.conv2d(x, c.data("float32", 3, 3, 4, 4), 1, "SAME", data_format="NCHW")
        y = tf.raw_ops.FusedBatchNormV3(x=y, scale=c.data("float32", 4), offset=c.data("float32", 4), mean=c.data("float32", 4),
                                        variance=np.arange(1, 5, dtype=np.float32), is_training=False, data_format="NCHW").y
        y = tf.nn.relu(y) + x
        first, second = tf.split(y, 2, axis=1)
        y = tf.pad(tf.concat([second, first], axis=1), [[0, 0], [0, 0], [1, 0], [0, 2]])
        y = tf.nn.bias_add(tf.nn.conv2d(y, c.data("float32", 2, 2, 4, 6), 2, "VALID", data_format="NCHW"), c.data("float32", 6), data_format="NCHW")
        return tf.identity(tf.reduce_mean(tf.nn.relu6(y), [2, 3]), name="out")

    c.graph("channels_first_network", build, rtol=1e-4, atol=1e-5, batchable=True)


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


def cases(c):
    """The cases of this family."""
    convolutions(c)
    pools(c)
    network(c)
    layouts(c)
