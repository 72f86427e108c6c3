"""Steps over every numeric dtype, over raw lists of tensors, and of convolutions in other layouts and dtypes."""

import numpy as np
import tensorflow as tf

from graph import Refused
from harness import COMPLEX, FLOATS, INTS
from steps_base import choice

EVERY = FLOATS + INTS + COMPLEX
WIDE_CASTS = ("int16", "uint16", "uint32", "uint64", "complex64", "complex128")
RAW = tf.raw_ops


def step_wide_cast(g):
    """To the dtypes that models seldom use."""
    i = g.pick(lambda v: v.exact and (v.dtype in FLOATS + INTS or v.dtype == "bool"))
    to = choice(g, WIDE_CASTS)
    numbers = g.values[i].array.astype(np.float64)
    if to in INTS and numbers.size and (numbers.min() < (0 if to[0] == "u" else -3e4) or numbers.max() > 3e4):
        raise Refused("range")
    g.step(f"cast_{to}", lambda x: tf.cast(x, to), [i])


def second(g, i):
    """A value of the same dtype that broadcasts with value i."""
    value = g.values[i]
    shape = value.shape[int(g.rng.randint(value.rank + 1)):]
    array = g.numbers(value.dtype, shape)
    return g.feed(array) if g.rng.rand() < 0.3 else g.constant(array)


def step_wide_binary(g):
    i = g.pick(lambda v: v.dtype in EVERY)
    dtype = g.values[i].dtype
    names = ["add", "multiply", "equal", "not_equal"]
    if dtype[0] != "u":  # differences of unsigned numbers wrap around to large ones
        names.append("subtract")
    if dtype not in COMPLEX:
        names += ["maximum", "minimum"]
    name = choice(g, names)
    j = second(g, i)
    if name in ("equal", "not_equal") and not g.values[i].exact:
        raise Refused("not exact")
    g.step(f"wide_{name}", getattr(tf, name, None) or getattr(tf.math, name), [i, j])


def step_complex(g):
    """Parts of complex numbers and numbers of parts."""
    kind = choice(g, ["make", "real", "imag", "conj", "abs", "neg", "square"])
    if kind == "make":
        i = g.pick(lambda v: v.dtype in ("float32", "float64"))
        g.step(kind, tf.complex, [i, g.constant(g.numbers(g.values[i].dtype, g.values[i].shape))])
        return
    run = {"real": tf.math.real, "imag": tf.math.imag, "conj": tf.math.conj, "abs": tf.abs, "neg": tf.negative,
           "square": tf.square}[kind]
    g.step(f"complex_{kind}", run, [g.pick(lambda v: v.dtype in COMPLEX)], exact=kind != "abs")


def step_list(g):
    """Raw operations on a list of tensors, within one step: a list itself is no output."""
    i = g.pick(lambda v: v.dtype in ("float32", "float64", "int32", "int64", "bool", "string") and v.rank and
               2 <= v.shape[0] <= 8 and v.array.size)
    value = g.values[i]
    n, dtype, element = value.shape[0], tf.as_dtype(value.dtype), np.array(value.shape[1:], "int32")
    kind = choice(g, ["stack", "push", "pop", "gather", "scatter", "concat", "split", "resize", "length", "item"])
    where = g.rng.randint(0, n, int(g.rng.randint(1, 5))).astype("int32")
    order = g.rng.permutation(n).astype("int32")
    cut, longer, k = int(g.rng.randint(1, n)), int(g.rng.randint(1, 4)), int(g.rng.randint(n))

    def stacked(items, count=-1):
        return RAW.TensorListStack(input_handle=items, element_shape=element, element_dtype=dtype, num_elements=count)

    def run(x):
        items = RAW.TensorListFromTensor(tensor=x, element_shape=element)
        if kind == "push":
            empty = RAW.EmptyTensorList(element_shape=element, max_num_elements=-1, element_dtype=dtype)
            for row in (*order[:longer], k):
                empty = RAW.TensorListPushBack(input_handle=empty, tensor=x[int(row)])
            return stacked(empty)
        if kind == "pop":
            popped = RAW.TensorListPopBack(input_handle=items, element_shape=element, element_dtype=dtype)
            return [popped.tensor, stacked(popped.output_handle)]
        if kind == "gather":
            return RAW.TensorListGather(input_handle=items, indices=where, element_shape=element, element_dtype=dtype)
        if kind == "scatter":
            return stacked(RAW.TensorListScatterV2(tensor=x, indices=order, element_shape=element, num_elements=-1))
        if kind == "concat":
            if not len(element):
                raise ValueError("scalars")
            joined = RAW.TensorListConcatV2(input_handle=items, element_shape=element, element_dtype=dtype,
                                            leading_dims=np.zeros([0], "int64"))
            return [joined.tensor, joined.lengths]
        if kind == "split":
            parts = RAW.TensorListSplit(tensor=x, element_shape=np.array([-1, *element], "int32"),
                                        lengths=np.array([cut, n - cut], "int64"))
            last = RAW.TensorListGetItem(input_handle=parts, index=1, element_dtype=dtype,
                                         element_shape=np.array([-1, *element], "int32"))
            return [last, RAW.TensorListLength(input_handle=parts)]
        if kind == "resize":
            shorter = RAW.TensorListResize(input_handle=items, size=cut)
            return [stacked(shorter), RAW.TensorListLength(input_handle=RAW.TensorListResize(input_handle=items, size=n + longer))]
        if kind == "length":
            return RAW.TensorListLength(input_handle=items)
        if kind == "item":
            changed = RAW.TensorListSetItem(input_handle=items, index=k, item=x[0])
            return [stacked(changed), RAW.TensorListGetItem(input_handle=items, index=k, element_shape=element, element_dtype=dtype)]
        return stacked(items, n)

    g.step(f"list_{kind}", run, [i])


def step_typed_conv(g):
    """Convolutions and pooling in float64 and half, and as channels-first models write them for a CPU."""
    i = g.pick(lambda v: v.dtype in ("float32", "float64", "float16") and v.rank == 4 and min(v.shape) > 0)
    value = g.values[i]
    first = bool(g.rng.randint(2))
    height, width, channels = (value.shape[2], value.shape[3], value.shape[1]) if first else value.shape[1:]
    kernel = [int(g.rng.randint(1, min(d, 4) + 1)) for d in (height, width)]
    s, padding = int(choice(g, [1, 1, 2])), choice(g, ["SAME", "VALID"])
    kind = choice(g, ["conv", "conv", "depthwise", "max", "avg"])
    out = int(g.rng.randint(1, 6))
    w = g.constant(g.numbers(value.dtype, kernel + [channels, 2 if kind == "depthwise" else out]))

    def run(x, w):
        x = tf.transpose(x, [0, 2, 3, 1]) if first else x
        if kind == "conv":
            y = tf.nn.conv2d(x, w, s, padding)
        elif kind == "depthwise":
            y = tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], padding)
        else:
            y = (tf.nn.max_pool2d if kind == "max" else tf.nn.avg_pool2d)(x, kernel, s, padding)
        return tf.transpose(y, [0, 3, 1, 2]) if first else y

    exact = kind == "max" or value.dtype != "float16" and kind != "avg"
    g.step(f"typed_{kind}_{'first' if first else 'last'}", run, [i, w], exact=exact)
