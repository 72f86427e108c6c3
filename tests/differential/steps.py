"""The steps random graphs are made of: each takes values that fit and adds to the graph.

A function whose name begins with "step_" is one kind of step; `THEMES` lists them. It raises
Refused where nothing in the graph fits.
"""

import numpy as np
import tensorflow as tf

from graph import Refused
from harness import FLOATS
from steps_base import NUMBERS, SIGNED, axes_of, axis_of, bounded, choice, ints, is_float, is_number
from steps_fused import FUSED
from steps_linear import (step_as_image, step_bias_relu, step_conv, step_conv_transpose, step_depthwise, step_einsum,
                          step_matmul, step_pool, step_resize, step_space_batch)
from steps_more import step_complex, step_list, step_typed_conv, step_wide_binary, step_wide_cast

# -- element-wise --------------------------------------------------------------------------------

EXACT_UNARY = {
    "neg": tf.negative, "abs": tf.abs, "sign": tf.sign, "relu": tf.nn.relu, "floor": tf.floor, "ceil": tf.math.ceil,
    "round": tf.round, "square": tf.square, "identity": tf.identity, "relu6": tf.nn.relu6, "rint": tf.math.rint,
    "zeros_like": tf.zeros_like, "ones_like": tf.ones_like,
}
FLOAT_ONLY = {"floor", "ceil", "round", "rint"}
SMOOTH_UNARY = {
    "tanh": tf.tanh, "sigmoid": tf.sigmoid, "sin": tf.sin, "cos": tf.cos, "softplus": tf.math.softplus, "elu": tf.nn.elu,
    "erf": tf.math.erf, "atan": tf.atan, "selu": tf.nn.selu, "softsign": tf.nn.softsign,
    "exp": lambda x: tf.exp(tf.minimum(x, tf.constant(3, x.dtype))),
    "log1p": lambda x: tf.math.log1p(tf.abs(x)), "sqrt": lambda x: tf.sqrt(tf.abs(x) + tf.constant(1, x.dtype)),
    "rsqrt": lambda x: tf.math.rsqrt(tf.abs(x) + tf.constant(1, x.dtype)), "leaky": lambda x: tf.nn.leaky_relu(x, 0.3),
    "swish": tf.nn.silu, "expm1": lambda x: tf.math.expm1(tf.minimum(x, tf.constant(3, x.dtype))),
}


def step_unary(g):
    name = choice(g, sorted(EXACT_UNARY))
    i = g.pick(is_float if name in FLOAT_ONLY else lambda v: is_number(v) and v.dtype[0] != "u")
    if name in ("floor", "ceil", "round", "rint", "sign") and not g.values[i].exact:
        raise Refused("not exact")
    g.step(name, EXACT_UNARY[name], [i])


def step_smooth_unary(g):
    name = choice(g, sorted(SMOOTH_UNARY))
    g.step(name, SMOOTH_UNARY[name], [g.pick(is_float)], exact=False)


def partner(g, i):
    """A value that broadcasts with value i: one of the graph, a constant, or an input."""
    value = g.values[i]
    if g.rng.rand() < 0.5:
        def fits(v):
            if v.dtype != value.dtype:
                return False
            try:
                np.broadcast_shapes(v.shape, value.shape)
            except ValueError:
                return False
            return True
        return g.pick(fits)
    shape = [1 if g.rng.rand() < 0.3 else d for d in value.shape][int(g.rng.randint(value.rank + 1)):]
    array = g.numbers(value.dtype, shape)
    return g.feed(array) if g.rng.rand() < 0.3 else g.constant(array)


BINARY = {"add": tf.add, "sub": tf.subtract, "mul": tf.multiply, "maximum": tf.maximum, "minimum": tf.minimum,
          "squared_difference": tf.math.squared_difference}
DIVIDING = {"floordiv": tf.math.floordiv, "floormod": tf.math.floormod, "truncatediv": tf.truncatediv,
            "div_no_nan": tf.math.divide_no_nan, "realdiv": tf.realdiv, "pow": tf.pow, "atan2": tf.atan2,
            "xdivy": tf.math.xdivy, "xlog1py": tf.math.xlog1py}


def in_order(g, i, j):
    return (i, j) if g.rng.rand() < 0.5 else (j, i)


def step_binary(g):
    i = g.pick(lambda v: is_number(v) and v.dtype in NUMBERS + ("int8", "uint8"))
    name = choice(g, sorted(BINARY))
    if name == "sub" and g.values[i].dtype in ("uint16", "uint32", "uint64"):
        raise Refused("wraps around to large numbers")
    g.step(name, BINARY[name], in_order(g, i, partner(g, i)))


def step_dividing(g):
    name = choice(g, sorted(DIVIDING))
    float_only = name in ("div_no_nan", "realdiv", "atan2", "pow", "xdivy", "xlog1py")
    i = g.pick(is_float if float_only else lambda v: v.dtype in FLOATS + ("int32", "int64") and name != "truncatediv"
               or v.dtype in ("int32", "int64"))
    j = partner(g, i)
    if name in ("floordiv", "floormod") and not (g.values[i].exact and g.values[j].exact):
        raise Refused("not exact")
    # Zeros are replaced. What a sum in another order may leave beside zero is not to be compared with it.
    shift = lambda y: tf.where(tf.equal(y, tf.zeros_like(y)), tf.ones_like(y), y) if name != "div_no_nan" else y
    # xlog1py is infinite at y = -1, and there 0 where x is 0.
    if not g.values[j].exact or (name == "xlog1py" and not g.values[i].exact):
        shift = lambda y: tf.abs(y) + tf.ones_like(y)
    base = lambda x: tf.abs(x) + tf.ones_like(x) if name == "pow" else x
    exponent = lambda y: tf.clip_by_value(y, tf.constant(-2, y.dtype), tf.constant(2, y.dtype)) if name == "pow" else y
    exact = name in ("floordiv", "floormod", "truncatediv") and g.values[i].dtype not in ("float16", "bfloat16")
    g.step(name, lambda x, y: DIVIDING[name](base(x), exponent(shift(y))), [i, j], exact=exact)


COMPARING = {"less": tf.less, "greater_equal": tf.greater_equal, "equal": tf.equal, "not_equal": tf.not_equal}


def step_compare(g):
    i = g.pick(lambda v: is_number(v) and v.exact)
    j = partner(g, i)
    if not g.values[j].exact:
        raise Refused("not exact")
    g.step("compare", choice(g, list(COMPARING.values())), in_order(g, i, j))


def step_logical(g):
    i = g.pick(lambda v: v.dtype == "bool")
    run = choice(g, [tf.logical_and, tf.logical_or, tf.math.logical_xor])
    g.step("logical", run, [i, partner(g, i)])


def step_select(g):
    c = g.pick(lambda v: v.dtype == "bool")
    shape = g.values[c].shape

    def fits(v):
        try:
            np.broadcast_shapes(v.shape, shape)
        except ValueError:
            return False
        return v.dtype != "bool"

    i = g.pick(fits)
    g.step("select", tf.where, [c, i, partner(g, i)])


def step_cast(g):
    i = g.pick(lambda v: v.exact and (is_number(v) or v.dtype == "bool"))
    to = choice(g, ["float32", "float64", "int32", "int64", "float16", "bfloat16", "int8", "uint8", "bool"])
    if to[0] == "u" and not bounded(0, 200)(g.values[i]) or to == "int8" and not bounded(-100, 100)(g.values[i]):
        raise Refused("range")
    g.step(f"cast_{to}", lambda x: tf.cast(x, to), [i])


def step_clip(g):
    g.step("clip", lambda x: tf.clip_by_value(x, tf.constant(-3, x.dtype), tf.constant(2, x.dtype)),
           [g.pick(lambda v: v.dtype in FLOATS + SIGNED)])


def step_standardise(g):
    i = g.pick(lambda v: is_float(v) and v.rank > 0 and v.array.size and v.dtype not in ("float16", "bfloat16"))
    axes, keep = axes_of(g, i) or [-1], True

    def run(x):
        mean = tf.reduce_mean(x, axes, keepdims=keep)
        spread = tf.reduce_mean(tf.math.squared_difference(x, mean), axes, keepdims=keep)
        return (x - mean) / tf.sqrt(spread + tf.constant(0.5, x.dtype))

    g.step("standardise", run, [i], exact=False)


# -- shapes --------------------------------------------------------------------------------------

def step_reshape(g):
    i = g.pick(lambda v: v.array.size > 0)
    size, shape = g.values[i].array.size, []
    while size > 1 and len(shape) < 4:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        d = int(choice(g, divisors))
        shape.append(d)
        size //= d
    shape = shape + [size] if size > 1 else shape
    if shape and g.rng.rand() < 0.3:
        shape[int(g.rng.randint(len(shape)))] = -1
    g.step("reshape", tf.reshape, [i, ints(g, np.array(shape, "int32"))])


def step_flatten_rows(g):
    i = g.pick(lambda v: v.rank >= 2)
    g.step("flatten_rows", lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], -1])), [i])


def step_transpose(g):
    i = g.pick(lambda v: v.rank >= 2)
    g.step("transpose", tf.transpose, [i, ints(g, g.rng.permutation(g.values[i].rank))])


def step_expand(g):
    i = g.pick()
    g.step("expand_dims", tf.expand_dims, [i, ints(g, int(g.rng.randint(g.values[i].rank + 1)))])


def step_squeeze(g):
    i = g.pick(lambda v: 1 in v.shape)
    axes = [a for a, d in enumerate(g.values[i].shape) if d == 1 and g.rng.rand() < 0.7]
    g.step("squeeze", lambda x: tf.squeeze(x, axes or None), [i])


def step_slice(g):
    i = g.pick(lambda v: v.rank >= 1 and v.array.size)
    begin = [int(g.rng.randint(d)) for d in g.values[i].shape]
    size = [-1 if g.rng.rand() < 0.3 else int(g.rng.randint(d - b + 1)) for d, b in zip(g.values[i].shape, begin)]
    dtype = choice(g, ["int32", "int64"])
    g.step("slice", tf.slice, [i, ints(g, begin, dtype), ints(g, size, dtype)])


def step_strided_slice(g):
    i = g.pick(lambda v: v.rank >= 1)
    shape = g.values[i].shape
    n = int(g.rng.randint(1, len(shape) + 1))
    begin = [int(g.rng.randint(-d - 1, d + 1)) for d in shape[:n]]
    end = [int(g.rng.randint(-d - 1, d + 2)) for d in shape[:n]]
    strides = [int(choice(g, [1, 1, 1, 2, -1, -2, 3])) for _ in range(n)]
    masks = {m: int(g.rng.randint(1 << n)) if g.rng.rand() < 0.4 else 0 for m in ("begin_mask", "end_mask", "new_axis_mask")}
    masks["shrink_axis_mask"] = int(g.rng.randint(1 << n)) if g.rng.rand() < 0.4 else 0
    if g.rng.rand() < 0.3:
        masks["ellipsis_mask"] = 1 << int(g.rng.randint(n))
    dtype = choice(g, ["int32", "int64"])
    g.step("strided_slice", lambda x, b, e, s: tf.strided_slice(x, b, e, s, **masks),
           [i, ints(g, begin, dtype), ints(g, end, dtype), g.constant(np.array(strides, dtype))])


def step_pad(g):
    i = g.pick(lambda v: v.rank >= 1 and v.dtype not in ("string", "bool"))
    mode = choice(g, ["CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC"])
    most = [3 if mode == "CONSTANT" else max(d - (mode == "REFLECT"), 0) for d in g.values[i].shape]
    pads = [[int(g.rng.randint(min(m, 2) + 1)), int(g.rng.randint(min(m, 2) + 1))] for m in most]
    g.step(f"pad_{mode.lower()}", lambda x, p: tf.pad(x, p, mode), [i, ints(g, pads)])


def step_tile(g):
    i = g.pick(lambda v: v.rank >= 1)
    g.step("tile", tf.tile, [i, ints(g, [int(choice(g, [1, 1, 2, 3, 0])) for _ in g.values[i].shape])])


def step_concat(g):
    i = g.pick(lambda v: v.rank >= 1)
    axis = axis_of(g, i)
    others = [d for a, d in enumerate(g.values[i].shape) if a != axis % g.values[i].rank]
    same = lambda v: v.dtype == g.values[i].dtype and v.rank == g.values[i].rank and \
        [d for a, d in enumerate(v.shape) if a != axis % v.rank] == others
    parts = [i] + [g.pick(same) for _ in range(int(g.rng.randint(1, 3)))]
    g.step("concat", lambda *x: tf.concat(x, axis), parts)


def step_stack(g):
    i = g.pick()
    same = lambda v: v.dtype == g.values[i].dtype and v.shape == g.values[i].shape
    axis = int(g.rng.randint(g.values[i].rank + 1))
    g.step("stack", lambda *x: tf.stack(x, axis), [i] + [g.pick(same) for _ in range(int(g.rng.randint(1, 3)))])


def step_unstack(g):
    i = g.pick(lambda v: v.rank >= 1 and 1 <= min(v.shape) <= 4)
    axis = choice(g, [a for a, d in enumerate(g.values[i].shape) if 1 <= d <= 4])
    n = g.values[i].shape[axis]
    g.step("unstack", lambda x: tf.unstack(x, n, axis), [i])


def step_split(g):
    i = g.pick(lambda v: v.rank >= 1)
    axis = axis_of(g, i)
    size = g.values[i].shape[axis]
    if size == 0:
        raise Refused("empty")
    if g.rng.rand() < 0.5:
        n = int(choice(g, [k for k in range(1, min(size, 4) + 1) if size % k == 0]))
        g.step("split", lambda x: tf.split(x, n, axis), [i])
    else:
        cut = int(g.rng.randint(size + 1))
        g.step("split_v", lambda x: tf.split(x, [cut, size - cut], axis), [i])


def step_reverse(g):
    i = g.pick(lambda v: v.rank >= 1)
    g.step("reverse", tf.reverse, [i, ints(g, [axis_of(g, i)])])


def step_roll(g):
    i = g.pick(lambda v: v.rank >= 1)
    axis = axis_of(g, i)
    g.step("roll", lambda x, s: tf.roll(x, s, axis), [i, ints(g, int(g.rng.randint(-3, 4)))])


def step_broadcast(g):
    i = g.pick(lambda v: v.array.size > 0)
    shape = [int(g.rng.randint(1, 4)) if d == 1 else d for d in g.values[i].shape]
    shape = [int(d) for d in g.rng.randint(1, 3, g.rng.randint(3))] + shape
    g.step("broadcast_to", tf.broadcast_to, [i, ints(g, np.array(shape, "int32"))])


def step_shape(g):
    i = g.pick()
    run = choice(g, [tf.shape, tf.size, tf.rank])
    g.step("shape", run, [i])


def step_fill(g):
    i = g.pick(lambda v: v.rank >= 1)
    value = g.numbers("float32", [])
    g.step("fill", lambda x: tf.fill(tf.shape(x), value), [i])


def step_range(g):
    i = g.pick(lambda v: v.rank >= 1)
    g.step("range", lambda x: tf.range(tf.shape(x)[0]), [i])


def step_rows_read(g):
    """The number of rows goes into a kernel's arguments."""
    i = g.pick(lambda v: v.rank >= 1 and is_number(v))
    kind = choice(g, ["pad", "slice", "roll", "strided", "tile"])

    def run(x):
        n = tf.shape(x)[0]
        rest = len(x.shape) - 1 if x.shape.rank is not None else rank - 1
        if kind == "pad":
            return tf.pad(x, tf.concat([[[0, n]], tf.zeros([rest, 2], tf.int32)], 0))
        if kind == "slice":
            return tf.slice(x, tf.concat([[n // 2], tf.zeros([rest], tf.int32)], 0), -tf.ones([rest + 1], tf.int32))
        if kind == "roll":
            return tf.roll(x, n - 1, 0)
        if kind == "strided":
            return x[:n - 1]
        return tf.tile(x, tf.concat([[n], tf.ones([rest], tf.int32)], 0))

    rank = g.values[i].rank
    g.step(f"rows_{kind}", run, [i])


def step_row_numbers(g):
    """Numbers reckoned from the number of rows and moved about: known before a run, and others for each batch."""
    i = g.pick(lambda v: v.rank >= 1)
    moves = {
        "concat": lambda t, axis: tf.concat([t, t + 1], axis),
        "transpose": lambda t, axis: tf.transpose(t),
        "pad": lambda t, axis: tf.pad(t, [[0, 1], [1, 0]]),
        "reverse": lambda t, axis: tf.reverse(t, [axis]),
        "gather": lambda t, axis: tf.gather(t, [1, 0, 1], axis=axis),
        "tile": lambda t, axis: tf.tile(t, [1 + axis, 2 - axis]),
        "times": lambda t, axis: t * [3, -2][axis],
        "slice": lambda t, axis: t[:, :2] if axis else t[1 - axis:, :] + t[:1, :],
        "stack": lambda t, axis: tf.stack([t, -t], axis)[1],
        "split": lambda t, axis: tf.concat(tf.split(tf.tile(t, [2, 2]), 2, axis), 1 - axis),
    }
    chosen = [(choice(g, sorted(moves)), int(g.rng.randint(2))) for _ in range(1 + g.rng.randint(4))]

    def run(x):
        n = tf.shape(x)[0]
        table = tf.reshape(tf.stack([n, 2 * n + 1, n * 0 + 3, 5 - n]), [2, 2])
        for move, axis in chosen:
            table = moves[move](tf.tile(table, [2, 2]), axis)[:4, :4]
        return table

    g.step("row_numbers", run, [i])


# -- reductions and scans ------------------------------------------------------------------------

def largest_product(array):
    return np.prod(np.maximum(np.abs(array.astype("float64")), 1))


def step_reduce(g):
    i = g.pick(lambda v: is_number(v) and v.dtype in NUMBERS + ("uint8", "int8") and v.array.size)
    name = choice(g, ["sum", "max", "min", "mean", "prod"])
    run = getattr(tf, f"reduce_{name}")
    axes, keep = axes_of(g, i), bool(g.rng.rand() < 0.5)
    exact = name not in ("mean", "prod") and g.values[i].dtype not in ("float16", "bfloat16")
    if name == "mean" and not is_float(g.values[i]):
        raise Refused("integers")
    # A product that leaves the type's range on the way is infinite or NaN in one order and not in another.
    if name == "prod" and is_float(g.values[i]) and largest_product(g.values[i].array) > 6e4:
        raise Refused("overflow")
    if g.rng.rand() < 0.3:
        g.step(name, lambda x: run(x, keepdims=keep), [i], exact=exact)
    else:
        g.step(name, lambda x, a: run(x, a, keep), [i, ints(g, np.array(axes, "int32"))], exact=exact)


def step_reduce_bool(g):
    i = g.pick(lambda v: v.dtype == "bool" and v.array.size)
    run, axes = choice(g, [tf.reduce_any, tf.reduce_all]), axes_of(g, i)
    g.step("reduce_bool", lambda x: run(x, axes), [i])


def step_cumsum(g):
    i = g.pick(lambda v: v.dtype in ("float32", "float64", "int32", "int64") and v.rank)
    axis, exclusive, reverse = axis_of(g, i), bool(g.rng.randint(2)), bool(g.rng.randint(2))
    g.step("cumsum", lambda x: tf.cumsum(x, axis, exclusive, reverse), [i])


def step_arg(g):
    i = g.pick(lambda v: is_number(v) and v.exact and v.rank and min(v.shape) > 0 and v.dtype in NUMBERS)
    run, axis = choice(g, [tf.argmax, tf.argmin]), axis_of(g, i)
    g.step("arg", lambda x: run(x, axis), [i])


def step_top_k(g):
    i = g.pick(lambda v: is_number(v) and v.exact and v.rank and v.shape[-1] > 0 and v.dtype in NUMBERS)
    k = int(g.rng.randint(1, g.values[i].shape[-1] + 1))
    g.step("top_k", lambda x: list(tf.math.top_k(x, k)), [i])


def step_softmax(g):
    i = g.pick(lambda v: is_float(v) and v.rank and v.shape[-1] > 0)
    g.step("softmax", choice(g, [tf.nn.softmax, tf.nn.log_softmax]), [i], exact=False)


def step_segment(g):
    i = g.pick(lambda v: v.dtype in ("float32", "float64", "int32", "int64") and v.rank and v.shape[0] > 0)
    rows = g.values[i].shape[0]
    name = choice(g, ["sum", "max", "min", "prod"])
    if g.rng.rand() < 0.5:
        ids = ints(g, np.sort(g.rng.randint(0, 4, rows)))
        g.step(f"segment_{name}", getattr(tf.math, f"segment_{name}"), [i, ids], exact=name != "prod")
    else:
        ids = ints(g, g.rng.randint(-1, 4, rows))
        run = getattr(tf.math, f"unsorted_segment_{name}")
        g.step(f"unsorted_segment_{name}", lambda x, s: tf.clip_by_value(run(x, s, 4), tf.cast(-100, x.dtype), tf.cast(100, x.dtype)), [i, ids],
               exact=name != "prod")


# -- indices -------------------------------------------------------------------------------------

def step_gather(g):
    i = g.pick(lambda v: v.rank and min(v.shape) > 0)
    axis = axis_of(g, i)
    shape = [int(d) for d in g.rng.randint(0, 4, g.rng.randint(3))]
    where = g.rng.randint(0, g.values[i].shape[axis], shape)
    g.step("gather", lambda x, n: tf.gather(x, n, axis=axis), [i, ints(g, where)])


def step_gather_nd(g):
    i = g.pick(lambda v: v.rank and min(v.shape) > 0)
    depth = int(g.rng.randint(1, g.values[i].rank + 1))
    rows = int(g.rng.randint(0, 4))
    where = np.stack([g.rng.randint(0, d, rows) for d in g.values[i].shape[:depth]], -1)
    g.step("gather_nd", tf.gather_nd, [i, ints(g, where)])


def step_scatter_nd(g):
    i = g.pick(lambda v: v.dtype in ("float32", "int32", "float64") and v.rank and 0 < v.shape[0] <= 8)
    where = g.rng.randint(0, 5, [g.values[i].shape[0], 1]).astype("int32")
    g.step("scatter_nd", lambda n, x: tf.scatter_nd(n, x, tf.concat([[5], tf.shape(x)[1:]], 0)),
           [ints(g, where, "int32"), i])


def step_one_hot(g):
    i = g.pick(lambda v: v.dtype in ("int32", "int64") and v.rank < 4)
    g.step("one_hot", lambda x: tf.one_hot(x, 4, axis=-1), [i])


def step_where(g):
    g.step("where", tf.where, [g.pick(lambda v: v.rank and (v.dtype == "bool" or is_number(v) and v.exact))])


def step_boolean_mask(g):
    i = g.pick(lambda v: v.rank)
    rows = g.values[i].shape[0]
    mask = g.feed(g.rng.randint(0, 2, rows).astype(bool))
    g.step("boolean_mask", lambda x, m: tf.gather(x, tf.reshape(tf.where(m), [-1])), [i, mask])


def step_unique(g):
    i = g.pick(lambda v: v.rank == 1 and v.exact and v.dtype in ("float32", "int32", "int64", "string"))
    g.step("unique", lambda x: list(tf.unique(x)), [i])


def step_sort(g):
    i = g.pick(lambda v: v.rank and v.exact and v.dtype in ("float32", "int32", "int64"))
    direction = choice(g, ["ASCENDING", "DESCENDING"])
    g.step("sort", lambda x: tf.sort(x, direction=direction), [i])


def step_reverse_sequence(g):
    i = g.pick(lambda v: v.rank >= 2 and min(v.shape) > 0)
    rows, steps = g.values[i].shape[:2]
    g.step("reverse_sequence", lambda x, n: tf.reverse_sequence(x, n, 1, 0), [i, ints(g, g.rng.randint(0, steps + 1, rows))])


# -- strings -------------------------------------------------------------------------------------

def step_strings(g):
    kind = choice(g, ["join", "lower", "upper", "strip", "length", "as_string", "replace", "substr", "new"])
    text = lambda v: v.dtype == "string"
    if kind == "new":
        g.feed(g.numbers("string", [int(d) for d in g.rng.randint(1, 4, g.rng.randint(3))]))
    elif kind == "join":
        i = g.pick(text)
        g.step(kind, lambda x, y: tf.strings.join([x, y], "-"), [i, g.pick(lambda v: text(v) and v.shape == g.values[i].shape)])
    elif kind == "as_string":
        g.step(kind, tf.strings.as_string, [g.pick(lambda v: v.dtype in ("int32", "int64", "bool"))])
    elif kind == "replace":
        g.step(kind, lambda x: tf.strings.regex_replace(x, "[a-c]+", "_"), [g.pick(text)])
    elif kind == "substr":
        g.step(kind, lambda x: tf.strings.substr(tf.strings.join([x, tf.fill(tf.shape(x), "abcd")]), 1, 3), [g.pick(text)])
    else:
        g.step(kind, getattr(tf.strings, kind), [g.pick(text)])


THEMES = {
    "elementwise": [step_unary, step_binary, step_binary, step_binary, step_dividing, step_compare, step_select, step_clip,
                    step_reduce, step_standardise, step_smooth_unary, step_cast, step_wide_cast, step_logical, step_reshape, step_expand],
    "shapes": [step_reshape, step_reshape, step_flatten_rows, step_transpose, step_expand, step_squeeze, step_slice,
               step_strided_slice, step_pad, step_tile, step_concat, step_stack, step_unstack, step_split, step_reverse,
               step_roll, step_broadcast, step_shape, step_fill, step_range, step_rows_read, step_row_numbers,
               step_binary, step_reduce],
    "indices": [step_gather, step_gather_nd, step_scatter_nd, step_one_hot, step_where, step_boolean_mask, step_unique,
                step_sort, step_reverse_sequence, step_segment, step_arg, step_top_k, step_cumsum, step_reshape, step_binary,
                step_reduce, step_compare, step_select, step_shape],
    "linear": [step_matmul, step_matmul, step_einsum, step_conv, step_conv, step_conv, step_depthwise, step_conv_transpose,
               step_pool, step_bias_relu, step_as_image, step_space_batch, step_resize, step_binary, step_unary, step_reshape,
               step_transpose, step_softmax],
    "fused": FUSED + [step_conv, step_conv_transpose, step_as_image, step_transpose, step_concat, step_split, step_pad, step_reduce,
                      step_binary, step_bias_relu, step_unary, step_reshape, step_matmul, step_softmax, step_pool],
    "strings": [step_strings, step_strings, step_strings, step_gather, step_reshape, step_concat, step_stack, step_slice,
                step_where, step_select, step_unique, step_transpose, step_tile, step_reverse],
}
THEMES["mixed"] = sorted({step for steps in THEMES.values() for step in steps} |
                         {step_complex, step_list, step_typed_conv, step_wide_binary, step_wide_cast}, key=lambda step: step.__name__)
