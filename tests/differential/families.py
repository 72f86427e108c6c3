"""Families of random graphs: a function of a seeded generator each, which gives a Graph."""

import numpy as np
import tensorflow as tf

import steps
import steps_more
from graph import Graph, Refused
from steps import THEMES, choice, is_number


def start(rng, dtypes, v2=True):
    """A graph with some inputs and constants."""
    g = Graph(rng, v2)
    rows = int(choice(g, [1, 2, 3, 4]))
    for _ in range(int(rng.randint(1, 4))):
        rank = int(choice(g, [0, 1, 2, 2, 3, 4, 5]))
        shape = ([rows] + [int(choice(g, [1, 2, 3, 4, 5])) for _ in range(rank - 1)])[:rank]
        if rng.rand() < 0.04 and shape:
            shape[int(rng.randint(rank))] = 0
        g.feed(g.numbers(choice(g, dtypes), shape))
    if rng.rand() < 0.5:
        g.constant(g.numbers(choice(g, dtypes), [int(d) for d in rng.randint(1, 4, rng.randint(3))]))
    return g


def grow(g, kinds, count):
    """Adds about so many steps."""
    before = len(g.steps)
    for _ in range(20 * count):
        if len(g.steps) - before >= count:
            return
        try:
            choice(g, kinds)(g)
        except Refused:
            pass


def themed(theme, dtypes):
    def make(rng):
        g = start(rng, dtypes)
        grow(g, THEMES[theme], int(rng.randint(5, 41)))
        return g
    return make


def body_of(g, value):
    """A function that keeps dtype and shape, for branches and loops."""
    kind = choice(g, ["add", "mul", "neg", "relu", "reverse", "mean", "clip", "roll"])
    constant = g.numbers(value.dtype, value.shape[-1:] if g.rng.rand() < 0.5 else [])

    def run(x):
        if kind == "add":
            return x + constant
        if kind == "mul":
            return tf.clip_by_value(x * constant, tf.constant(-50, x.dtype), tf.constant(50, x.dtype))
        if kind == "neg":
            return -x
        if kind == "relu":
            return tf.nn.relu(x)
        if kind == "reverse" and value.rank:
            return tf.reverse(x, [0])
        if kind == "mean" and value.rank:
            return tf.zeros_like(x) + tf.reduce_max(x, -1, keepdims=True) if value.shape[-1] else x
        if kind == "clip":
            return tf.minimum(x, tf.constant(2, x.dtype))
        return tf.roll(x, 1, 0) if value.rank else x + x

    return run


def numeric(v):
    return v.dtype in ("float32", "float64", "int32", "int64")


def step_cond(g):
    i = g.pick(numeric)
    yes, no, more = (body_of(g, g.values[i]) for _ in range(3))
    outer, inner = (g.feed(np.bool_(g.rng.randint(2)), []) for _ in range(2))
    shape = choice(g, ["same", "same", "longer", "captured"])
    rank = g.values[i].rank

    def run(x, p, q):
        def otherwise():
            nested = tf.cond(q, lambda: more(x), lambda: no(x))
            return tf.concat([nested, nested], 0) if shape == "longer" and rank else nested
        early = yes(x)
        return tf.cond(p, lambda: early + x if shape == "captured" else yes(x), otherwise)

    g.step("cond", run, [i, outer, inner])


def step_switch_case(g):
    i = g.pick(numeric)
    branches = [body_of(g, g.values[i]) for _ in range(3)]
    index = g.feed(np.int32(g.rng.randint(-1, 4)), [])
    g.step("switch_case", lambda x, n: tf.switch_case(n, [lambda b=b: b(x) for b in branches]), [i, index])


def step_while(g):
    i = g.pick(numeric)
    body, rounds = body_of(g, g.values[i]), int(g.rng.randint(0, 5))
    kind = choice(g, ["plain", "rotate", "grow", "condition", "invariant"])
    value = g.values[i]
    limit = g.feed(np.int32(rounds), [])

    def run(x, n):
        zero = tf.constant(0)
        if kind == "rotate":
            out = tf.while_loop(lambda k, *_: k < n, lambda k, a, b, c: (k + 1, b, c, body(a)),
                                [zero, x, x + x, -x])
            return list(out[1:])
        if kind == "grow" and value.rank:
            shape = tf.TensorShape([None] + list(value.shape[1:]))
            out = tf.while_loop(lambda k, _: k < n, lambda k, a: (k + 1, tf.concat([a, body_row(a)], 0)), [zero, x],
                                shape_invariants=[tf.TensorShape([]), shape])
            return [out[0], out[1]]
        if kind == "condition":
            out = tf.while_loop(lambda k, _: k < n, lambda k, a: (k + 1, tf.cond(k % 2 < 1, lambda: body(a), lambda: a)),
                                [zero, x])
            return [out[1]]
        if kind == "invariant":
            out = tf.while_loop(lambda k, *_: k < n, lambda k, a, b: (k + 1, body(a) + b, b), [zero, x, x])
            return [out[1]]
        return [tf.while_loop(lambda k, _: k < n, lambda k, a: (k + 1, body(a)), [zero, x])[1]]

    def body_row(a):
        return a[:1] + tf.ones_like(a[:1])

    g.step(f"while_{kind}", run, [i, limit])


def step_arrays(g):
    i = g.pick(lambda v: numeric(v) and v.rank and v.shape[0] > 0)
    value = g.values[i]
    kind = choice(g, ["map", "map", "pair", "number", "choice", "scan", "fold", "array", "turned", "rows"])
    row = body_of(g, type(value)(value.array[0], True))

    def run(x):
        if kind == "map":
            return tf.map_fn(row, x)
        if kind == "pair":
            return list(tf.map_fn(lambda ab: (row(ab[0]), ab[0] + ab[1]), (x, x + x)))
        if kind == "number":
            return tf.map_fn(lambda k: row(x[k]) + tf.cast(k, x.dtype), tf.range(tf.shape(x)[0]), fn_output_signature=x.dtype)
        if kind == "choice":
            return tf.map_fn(lambda a: tf.cond(tf.reduce_max(a) > 0, lambda: row(a), lambda: -a), x)
        if kind == "scan":
            return tf.scan(lambda a, b: tf.minimum(a + row(b), tf.constant(50, x.dtype)), x)
        if kind == "fold":
            return tf.foldl(lambda a, b: tf.maximum(a, row(b)), x)
        n = tf.shape(x)[0]
        if kind == "turned":
            rows, array = tf.TensorArray(x.dtype, n).unstack(x), tf.TensorArray(x.dtype, n)
            out = tf.while_loop(lambda k, _: k < n, lambda k, a: (k + 1, a.write(n - 1 - k, row(rows.read(k)))),
                                [tf.constant(0), array])
            return out[1].stack()
        if kind == "array":
            array = tf.TensorArray(x.dtype, n, element_shape=value.shape[1:])
            out = tf.while_loop(lambda k, _: k < n, lambda k, a: (k + 1, a.write(n - 1 - k, row(x[k]))),
                                [tf.constant(0), array])
            return out[1].stack()
        array = tf.TensorArray(x.dtype, n).unstack(x)
        return array.read(n - 1) + array.read(0)

    g.step(f"arrays_{kind}", run, [i])


CONTROL = [step_cond, step_cond, step_while, step_while, step_arrays, step_switch_case, steps.step_binary, steps.step_unary,
           steps.step_reshape, steps.step_slice, steps.step_concat, steps.step_reduce, steps.step_gather, steps.step_boolean_mask]


def control(v2):
    def make(rng):
        g = start(rng, ["float32", "float32", "int32", "float64"], v2)
        grow(g, CONTROL, int(rng.randint(3, 12)))
        return g
    return make


def specials(rng):
    """NaN, infinities, signed zeros and subnormals through what must keep or order them."""
    g = Graph(rng)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 2.5])
    for _ in range(2):
        shape = [int(d) for d in rng.randint(1, 5, rng.randint(1, 4))]
        g.feed(rng.choice(odd, shape).astype(choice(g, ["float32", "float32", "float64", "float16"])))
    kinds = [steps.step_reshape, steps.step_gather, steps.step_concat, steps.step_compare, steps.step_select,
             steps.step_transpose, steps.step_segment, steps.step_slice, steps.step_tile]

    def negate(g):
        g.step("neg", tf.negative, [g.pick(lambda v: is_number(v) and v.dtype[0] == "f")])

    def test(g):
        g.step("test", choice(g, [tf.math.is_nan, tf.math.is_inf, tf.math.is_finite]), [g.pick(steps.is_float)])

    def add(g):
        i = g.pick(steps.is_float)
        g.step("add", tf.add, [i, steps.partner(g, i)])

    def total(g):
        i = g.pick(lambda v: steps.is_float(v) and v.rank)
        axis = steps.axis_of(g, i)
        g.step("sum", lambda x: tf.reduce_sum(x, axis), [i], exact=g.values[i].dtype != "float16")

    grow(g, kinds + [negate, test, add, total], int(rng.randint(3, 12)))
    return g


def sweep(rng):
    """One convolution or pooling of odd sizes, and what follows it in a network."""
    g = Graph(rng)
    steps.step_as_image(g)
    grow(g, [steps.step_conv, steps.step_pool, steps.step_depthwise, steps.step_conv_transpose], int(rng.randint(1, 3)))
    grow(g, [steps.step_bias_relu, steps.step_unary, steps.step_binary, steps.step_pool, steps.step_conv], int(rng.randint(0, 4)))
    return g


def wide(rng):
    """Every numeric dtype."""
    g = start(rng, [*steps_more.EVERY])
    grow(g, [steps_more.step_wide_cast, steps_more.step_wide_binary, steps_more.step_wide_binary, steps_more.step_complex,
             steps.step_reshape, steps.step_transpose, steps.step_concat, steps.step_slice, steps.step_gather,
             steps.step_select, steps.step_cast, steps.step_stack, steps.step_tile, steps.step_reverse],
         int(rng.randint(5, 41)))
    return g


def lists(rng):
    """Raw lists of tensors among other steps."""
    g = start(rng, ["float32", "float32", "float64", "int32", "int64", "bool", "string"])
    grow(g, [steps_more.step_list, steps_more.step_list, steps.step_reshape, steps.step_binary, steps.step_concat,
             steps.step_tile, steps.step_gather], int(rng.randint(5, 20)))
    return g


def large(rng):
    """Enough elements that threads share element-wise work."""
    g = Graph(rng, most=1 << 17)
    rows = int(rng.randint(33, 70))
    g.feed(g.numbers(choice(g, ["float32", "float32", "float64", "int32", "float16"]), [rows, 1024]))
    grow(g, [steps.step_unary, steps.step_smooth_unary, steps.step_binary, steps.step_clip, steps.step_compare,
             steps.step_cast, steps.step_select, steps.step_bias_relu], int(rng.randint(2, 6)))
    i = g.pick(lambda v: v.array.size > 32768)
    axis = int(rng.randint(2))
    if is_number(g.values[i]) and rng.rand() < 0.5:
        g.step("max", lambda x: tf.reduce_max(x, axis), [i])
    return g


def typed_sweep(rng):
    """As sweep, in other dtypes and with channels first."""
    g = Graph(rng)
    shape = [int(rng.randint(1, 4)), *[int(d) for d in rng.randint(1, 8, 3)]]
    g.feed(g.numbers(choice(g, ["float64", "float16", "float32"]), shape))
    grow(g, [steps_more.step_typed_conv], int(rng.randint(1, 3)))
    grow(g, [steps_more.step_typed_conv, steps.step_unary, steps.step_binary, steps.step_transpose], int(rng.randint(0, 4)))
    return g


ALL = ["float32", "float32", "float64", "int32", "int64", "bool", "float16", "bfloat16", "int8", "uint8", "string",
       "int16", "uint16", "uint32", "uint64", "complex64", "complex128"]
FAMILIES = {
    "elementwise": themed("elementwise", ["float32", "float32", "float64", "int32", "float16", "bfloat16", "int64", "bool"]),
    "shapes": themed("shapes", ["float32", "int32", "float64", "bool", "int8", "float16", "string"]),
    "indices": themed("indices", ["float32", "int32", "int64", "float64", "bool"]),
    "linear": themed("linear", ["float32", "float32", "float64", "int32"]),
    "fused": themed("fused", ["float32"]),
    "strings": themed("strings", ["string", "string", "int32", "bool", "float32"]),
    "mixed": themed("mixed", ALL),
    "control": control(True),
    "control_v1": control(False),
    "specials": specials,
    "sweep": sweep,
    "wide": wide,
    "lists": lists,
    "large": large,
    "typed_sweep": typed_sweep,
}
