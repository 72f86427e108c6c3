"""Graphs as layers write them, which passes rewrite or whose rows take a proof."""

import numpy as np
import tensorflow as tf

from harness import v1


def dilations(c):
    """Dilated convolutions made of blocks."""
    for rate in (2, 3):
        filters = c.data("float32", 3, 3, 2, 4)

        def image(enter, rate=rate, filters=filters):
            x = enter("x", c.feed("float32", 3, 9, 8, 2))
            out = tf.nn.atrous_conv2d(x, tf.constant(filters), rate, "SAME")
            return tf.nn.relu(tf.nn.bias_add(out, tf.constant(c.data("float32", 4))), name="out")

        c.graph(f"dilated_image_{rate}", image)

        if rate > 2:
            continue

        def sized(enter, rate=rate, filters=filters):
            x = enter("x", c.feed("float32", 3, 9, 8, 2, declared=[None, None, None, 2]))
            return tf.identity(tf.nn.atrous_conv2d(x, tf.constant(filters), rate, "SAME"), name="out")

        c.graph(f"dilated_image_of_any_size_{rate}", sized)

        def valid(enter, rate=rate, filters=filters):
            x = enter("x", c.feed("float32", 3, 9, 8, 2))
            return tf.identity(tf.nn.atrous_conv2d(x, tf.constant(filters), rate, "VALID"), name="out")

        c.graph(f"dilated_valid_{rate}", valid)

        def sequence(enter, rate=rate):
            x = tf.pad(enter("x", c.feed("float32", 3, 10, 2)), [[0, 0], [2 * rate, 0], [0, 0]])
            out = tf.nn.convolution(x, tf.constant(c.data("float32", 3, 2, 4)), padding="VALID", dilations=rate)
            return tf.identity(out, name="out")

        c.graph(f"dilated_sequence_{rate}", sequence)

        def depthwise(enter, rate=rate):
            x = enter("x", c.feed("float32", 3, 9, 8, 2))
            blocks, ones = [rate, rate], c.data("float32", 3, 3, 2, 2)
            pads = [[rate, rate + (-(9 + 2 * rate)) % rate], [rate, rate + (-(8 + 2 * rate)) % rate]]
            apart = tf.space_to_batch(x, blocks, pads)
            out = tf.nn.depthwise_conv2d(apart, tf.constant(ones), [1, 1, 1, 1], "VALID")
            return tf.batch_to_space(out, blocks, [[0, 0], [1, 0]], name="out")

        c.graph(f"dilated_depthwise_{rate}", depthwise)


def normalisation(c):
    """Layer normalisation by the batch normalisation of a batch of one."""
    for name, declared in (("", "rows"), ("_of_any_length", [None, None, 8])):

        def build(enter, declared=declared):
            x = enter("x", c.feed("float32", 4, 5, 8, declared=declared))
            shape = tf.shape(x)
            rows = 1 * shape[0] * shape[1]
            flat = tf.reshape(x, [1, rows, 1 * shape[2], 1])
            normal, _, _ = v1.nn.fused_batch_norm(
                flat, tf.ones([rows]), tf.zeros([rows]), epsilon=1e-3, data_format="NCHW"
            )
            scale, shift = tf.constant(c.data("float32", 8)), tf.constant(c.data("float32", 8))
            return tf.add(tf.reshape(normal, shape) * scale, shift, name="out")

        c.graph(f"layer_norm{name}", build)


def steps(c):
    """A layer for every step of a sequence, as TimeDistributed has it."""

    def build(enter):
        x = tf.transpose(enter("x", c.feed("float32", 4, 5, 3)), [1, 0, 2])
        w = tf.constant(c.data("float32", 3, 2))
        out = tf.stack([tf.nn.relu(tf.matmul(x[i], w)) for i in range(5)])
        return tf.transpose(out, [1, 0, 2], name="out")

    c.graph("steps_stacked", build)

    def taken_apart(enter):
        x = tf.transpose(enter("x", c.feed("float32", 4, 3, 2)), [1, 0, 2])
        return tf.add_n([part * float(i) for i, part in enumerate(tf.unstack(x))], name="out")

    c.graph("steps_unstacked", taken_apart)


def cases(c):
    """All of the family."""
    dilations(c)
    normalisation(c)
    steps(c)
