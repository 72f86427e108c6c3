"""Steps of several ops that passes make one step of, or move. As of steps.py."""

import numpy as np
import tensorflow as tf

from steps_base import choice, is_float


def image(g):
    return g.pick(lambda v: v.dtype == "float32" and v.rank == 4 and min(v.shape) > 0)


def filter_for(g, height, width, channels, out):
    kernel = [int(g.rng.randint(1, min(d, 3) + 1)) for d in (height, width)]
    return g.constant(g.numbers("float32", kernel + [channels, out]))


def step_turned_conv(g):
    """A convolution with channels last among values with channels in front, as converters write it."""
    i = image(g)
    _, channels, height, width = g.values[i].shape
    out, stride, prelu = int(g.rng.randint(1, 5)), int(choice(g, [1, 1, 2])), bool(g.rng.randint(2))
    bias = g.numbers("float32", [1, out, 1, 1])
    slope = g.numbers("float32", [out, 1, 1])

    def run(x, w):
        y = tf.nn.conv2d(tf.transpose(x, [0, 2, 3, 1]), w, stride, "SAME")
        y = tf.transpose(y, [0, 3, 1, 2]) + bias
        return tf.nn.relu(y) + slope * (y - tf.abs(y)) * 0.5 if prelu else y

    g.step("turned_conv", run, [i, filter_for(g, height, width, channels, out)], exact=False)


def step_residual(g):
    i = image(g)
    _, height, width, channels = g.values[i].shape
    first, relu = bool(g.rng.randint(2)), bool(g.rng.randint(2))

    def run(x, w):
        y = tf.nn.conv2d(tf.nn.relu(x), w, 1, "SAME")
        y = y + x if first else x + y
        return tf.nn.relu6(y) if relu else y

    g.step("residual", run, [i, filter_for(g, height, width, channels, channels)], exact=False)


def step_padded_conv(g):
    i = image(g)
    _, height, width, channels = g.values[i].shape
    pads = [[0, 0], list(map(int, g.rng.randint(0, 3, 2))), list(map(int, g.rng.randint(0, 3, 2))), [0, 0]]
    value, deep = float(choice(g, [0, 0, 0, 1])), bool(g.rng.randint(2))
    weights = filter_for(g, height, width, channels, 1 if deep else int(g.rng.randint(1, 5)))

    def run(x, w):
        x = tf.pad(x, pads, constant_values=value)
        return tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID") if deep else tf.nn.conv2d(x, w, 1, "VALID")

    g.step("padded_conv", run, [i, weights], exact=False)


def step_attention(g):
    i = g.pick(lambda v: v.dtype == "float32" and v.rank == 3 and min(v.shape) > 0)
    _, length, width = g.values[i].shape
    head = int(g.rng.randint(1, 5))
    masked, scale = bool(g.rng.randint(2)), float(choice(g, [1, 0.5, 0.25]))
    mask = np.triu(np.full((length, length), -1e9, np.float32), 1)
    weights = [g.constant(g.numbers("float32", [width, head])) for _ in range(3)]

    def run(x, *w):
        q, k, v = (tf.tensordot(x, m, 1) for m in w)
        scores = tf.matmul(q, k, transpose_b=True) * scale
        return tf.matmul(tf.nn.softmax(scores + mask if masked else scores), v)

    g.step("attention", run, [i, *weights], exact=False)


def step_layer_norm(g):
    i = g.pick(lambda v: v.dtype == "float32" and v.rank >= 2 and min(v.shape) > 0)
    width = g.values[i].shape[-1]
    scale, offset = g.numbers("float32", [width]), g.numbers("float32", [width])

    def run(x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-1) * scale + offset

    g.step("layer_norm", run, [i], exact=False)


def step_gelu(g):
    i = g.pick(lambda v: is_float(v) and v.dtype == "float32")
    approximate = bool(g.rng.randint(2))
    g.step("gelu", lambda x: tf.nn.gelu(x, approximate=approximate), [i], exact=False)


def new_image(g, channels):
    return g.feed(g.numbers("float32", [int(g.rng.randint(1, 4)), int(g.rng.randint(1, 9)), int(g.rng.randint(1, 20)), channels]))


def step_grouped_conv(g):
    """Groups of one channel and of more, which fill whole vectors or not."""
    width, groups = int(choice(g, [1, 2, 3, 4, 8, 16])), int(choice(g, [2, 3, 4, 8, 16]))
    channels, out = width * groups, groups * int(choice(g, [width, width, 1, 3]))
    i, stride, padding = new_image(g, channels), int(choice(g, [1, 1, 2])), choice(g, ["SAME", "VALID"])
    _, height, columns, _ = g.values[i].shape
    bias, relu = g.numbers("float32", [out]), bool(g.rng.randint(2))

    def run(x, w):
        y = tf.nn.conv2d(x, w, stride, padding) + bias
        return tf.nn.relu6(y) if relu else y

    g.step("grouped_conv", run, [i, filter_for(g, height, columns, width, out)], exact=False)


def step_narrow_conv(g):
    """Many channels to a few, as the last convolution of a generator has them."""
    i = new_image(g, int(choice(g, [20, 32, 64, 90])))
    _, height, width, channels = g.values[i].shape
    out, kind = int(g.rng.randint(1, 5)), int(g.rng.randint(3))

    def run(x, w):
        y = tf.nn.conv2d(x, w, 1, "SAME")
        return [y, tf.nn.relu(y + 1), y + x[..., :out]][kind]

    g.step("narrow_conv", run, [i, filter_for(g, height, width, channels, out)], exact=False)


def step_group_norm(g):
    """Its second reshape gets the number of rows from the value, and a convolution follows."""
    groups, each = int(g.rng.randint(1, 6)), int(g.rng.randint(1, 12))
    i = new_image(g, groups * each)
    _, height, width, channels = g.values[i].shape
    swish = bool(g.rng.randint(2))

    def run(x, w):
        y = tf.reshape(x, [-1, height, width, groups, each])
        mean, variance = tf.nn.moments(y, [1, 2, 4], keepdims=True)
        y = (y - mean) * tf.math.rsqrt(variance + 0.1)
        y = tf.reshape(y, tf.stack([tf.shape(x)[0], height, width, channels]))
        return tf.nn.conv2d(tf.nn.silu(y) if swish else y, w, 1, "SAME")

    g.step("group_norm", run, [i, filter_for(g, height, width, channels, channels)], exact=False)


def step_classes(g):
    """Probabilities of rows of every length that is computed in its own way."""
    i = g.feed(g.numbers("float32", [int(g.rng.randint(1, 70)), int(g.rng.randint(2, 70))]))
    g.step("classes", choice(g, [tf.nn.softmax, tf.nn.softmax, tf.nn.log_softmax]), [i], exact=False)


BRANCHES = [1, 1, 3, 3, 5, "MAX", "AVG", "transpose", "nearest", "bilinear", "split", "slice"]


def branch(g, x, kind, channels, out):
    """The number of the value of one branch over image x."""
    def step(name, run, *inputs, exact=True):
        return g.step(f"branch_{name}", run, list(inputs), exact=exact)[0]

    _, height, width, _ = g.values[x].shape
    if kind in ("MAX", "AVG"):
        return step(kind.lower(), lambda v: tf.nn.pool(v, 3, kind, 1, "SAME"), x, exact=kind == "MAX")
    if kind in ("nearest", "bilinear"):
        half = step("half", lambda v: tf.nn.max_pool2d(v, 2, 2, "SAME"), x)
        return step(kind, lambda v: tf.image.resize(v, [height, width], kind), half, exact=kind == "nearest")
    if kind == "split":
        return step("split", lambda v: tf.split(v, [channels - channels // 2, channels // 2], -1), x)
    if kind == "slice":
        return step("slice", lambda v: v[..., channels // 3:], x)
    if kind == "transpose":
        weights = g.constant(g.numbers("float32", [2, 2, out, channels]))
        return step("transpose", lambda v, w: tf.nn.conv2d_transpose(
            v, w, tf.concat([tf.shape(v)[:3], [out]], 0), 1, "SAME"), x, weights, exact=False)
    weights = g.constant(g.numbers("float32", [kind, kind, channels, out]))
    return step("conv", lambda v, w: tf.nn.conv2d(v, w, 1, "SAME"), x, weights, exact=False)


def normed(g, x, channels):
    scale, offset = (g.numbers("float32", [channels]) for _ in range(2))
    return g.step("normed", lambda v: tf.nn.relu(v * scale + offset), [x], exact=False)[0]


def step_joined_branches(g):
    """Branches that are concatenated, once or as in a dense block, with channels enough for windows of the whole."""
    x = new_image(g, int(g.rng.randint(1, 25)))
    for _ in range(int(g.rng.randint(1, 4))):
        channels = g.values[x].shape[-1]
        source = normed(g, x, channels) if g.rng.rand() < 0.6 else x
        parts = [branch(g, source, choice(g, BRANCHES), channels, int(g.rng.randint(12, 25)))
                 for _ in range(int(g.rng.randint(1, 4)))]
        if g.rng.rand() < 0.8:
            parts.append(x)
        order = [parts[i] for i in g.rng.permutation(len(parts))]
        x = g.step("joined", lambda *v: tf.concat(v, -1), order)[0]


FUSED = [step_turned_conv, step_turned_conv, step_residual, step_padded_conv, step_attention, step_layer_norm, step_gelu,
         step_grouped_conv, step_narrow_conv, step_group_norm, step_classes, step_joined_branches, step_joined_branches]
