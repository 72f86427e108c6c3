"""Steps of networks: matrices, convolutions, pooling. As of steps.py."""

import tensorflow as tf

from steps_base import choice

def step_matmul(g):
    i = g.pick(lambda v: v.dtype in ("float32", "float64", "int32") and v.rank >= 2 and v.array.size)
    left = g.values[i].shape
    b = bool(g.rng.randint(2))
    n = int(g.rng.randint(1, 9))
    shape = [left[-1], n][::-1] if b else [left[-1], n]
    if g.rng.rand() < 0.3:
        shape = [int(d) for d in left[:-2]] + shape
    array = g.numbers(g.values[i].dtype, shape)
    j = g.feed(array) if g.rng.rand() < 0.3 else g.constant(array)
    g.step("matmul", lambda x, y: tf.matmul(x, y, transpose_b=b), [i, j])


def step_einsum(g):
    i = g.pick(lambda v: v.dtype in ("float32", "float64") and v.rank == 2 and v.array.size)
    a, b = g.values[i].shape
    equation, shape = choice(g, [("ab,bc->ac", [b, 3]), ("ab,cb->ca", [3, b]), ("ab,ab->a", [a, b]), ("ab,b->a", [b]),
                                 ("ab,cd->bd", [2, 3]), ("ab,bc->c", [b, 3])])
    g.step("einsum", lambda x, y: tf.einsum(equation, x, y), [i, g.constant(g.numbers(g.values[i].dtype, shape))])


def image(g, rank):
    """A value as images of so many dims, with channels last."""
    return g.pick(lambda v: v.dtype == "float32" and v.rank == rank and min(v.shape) > 0)


def step_conv(g):
    rank = int(choice(g, [3, 4, 4, 4, 5]))
    i = image(g, rank)
    spatial, channels = g.values[i].shape[1:-1], g.values[i].shape[-1]
    kernel = [int(g.rng.randint(1, min(d, 5) + 2)) for d in spatial]
    strides = [int(choice(g, [1, 1, 2, 3])) for _ in spatial]
    dilations = [int(choice(g, [1, 2])) if s == 1 else 1 for s in strides] if max(strides) == 1 else [1] * len(spatial)
    padding = choice(g, ["SAME", "VALID"])
    weights = g.numbers("float32", kernel + [channels, int(g.rng.randint(1, 9))])
    g.step("conv", lambda x, w: tf.nn.convolution(x, w, strides, padding, dilations=dilations), [i, g.constant(weights)])


def step_depthwise(g):
    i = image(g, 4)
    shape = g.values[i].shape
    kernel = [int(g.rng.randint(1, min(d, 4) + 2)) for d in shape[1:3]]
    s = int(choice(g, [1, 2]))
    weights = g.numbers("float32", kernel + [shape[-1], int(g.rng.randint(1, 3))])
    padding = choice(g, ["SAME", "VALID"])
    g.step("depthwise", lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], padding), [i, g.constant(weights)])


def step_conv_transpose(g):
    i = image(g, 4)
    n, h, w, c = g.values[i].shape
    kernel = [int(g.rng.randint(1, 4)), int(g.rng.randint(1, 4))]
    s, out = int(choice(g, [1, 2, 3])), int(g.rng.randint(1, 5))
    weights = g.numbers("float32", kernel + [out, c])
    g.step("conv_transpose", lambda x, k: tf.nn.conv2d_transpose(
        x, k, tf.stack([tf.shape(x)[0], h * s, w * s, out]), [1, s, s, 1], "SAME"), [i, g.constant(weights)])


def step_pool(g):
    rank = int(choice(g, [4, 4, 5]))
    i = image(g, rank)
    spatial = g.values[i].shape[1:-1]
    window = [int(g.rng.randint(1, min(d, 3) + 1)) for d in spatial]
    strides = [int(g.rng.randint(1, 4)) for _ in spatial]
    padding, kind = choice(g, ["SAME", "VALID"]), choice(g, ["MAX", "AVG"])
    g.step(f"pool_{kind.lower()}", lambda x: tf.nn.pool(x, window, kind, strides, padding), [i], exact=kind == "MAX")


def step_bias_relu(g):
    i = g.pick(lambda v: v.dtype == "float32" and v.rank >= 2 and min(v.shape) > 0)
    bias = g.constant(g.numbers("float32", [g.values[i].shape[-1]]))
    g.step("bias_relu", lambda x, b: tf.nn.relu(tf.nn.bias_add(x, b)), [i, bias])


def step_as_image(g):
    """New images, so that convolutions have something to work on."""
    rank = int(choice(g, [3, 4, 4, 5]))
    shape = [int(g.rng.randint(1, 4))] + [int(g.rng.randint(1, 9)) for _ in range(rank - 2)] + [int(choice(g, [1, 2, 3, 8]))]
    g.feed(g.numbers("float32", shape))


def step_space_batch(g):
    i = g.pick(lambda v: v.rank == 4 and min(v.shape) > 0)
    block = [int(g.rng.randint(1, 3)), int(g.rng.randint(1, 3))]
    shape = g.values[i].shape
    pads = [[0, -shape[1] % block[0]], [0, -shape[2] % block[1]]]
    g.step("space_to_batch", lambda x: tf.space_to_batch(x, block, pads), [i])


def step_resize(g):
    i = image(g, 4)
    size = [int(g.rng.randint(1, 10)), int(g.rng.randint(1, 10))]
    method = choice(g, ["bilinear", "nearest"])
    g.step(f"resize_{method}", lambda x: tf.image.resize(x, size, method), [i], exact=method == "nearest")
