"""Tensors as text and as the bytes of a protocol buffer."""

import numpy as np
import tensorflow as tf

from harness import COMPLEX, FLOATS, INTS, Feed


def cases(c):
    """All of the family."""
    kinds = FLOATS + INTS + COMPLEX + ("bool", "string")
    for dtype in kinds:
        c.op("SerializeTensor", c.feed(dtype, 2, 3))
        parse(c, tf.constant(c.data(dtype, 2, 3)), dtype)
        proto = tf.make_tensor_proto(c.data(dtype, 3), dtype=tf.as_dtype(dtype))
        listed(c, proto, dtype)
    c.op("SerializeTensor", c.feed("float32", declared=[]), case="scalar")
    c.op("SerializeTensor", c.feed("int32", 0, 3), case="empty")
    c.op("SerializeTensor", c.feed("string", 300), case="many")
    parse(c, tf.zeros([0, 3]), "empty")
    wrong(c)
    formats(c)


def parse(c, tensor, name):
    """What SerializeTensor gives."""
    data = tf.io.serialize_tensor(tensor).numpy()
    c.op("ParseTensor", Feed(np.array(data, object)), out_type=tensor.dtype, case=name)


def listed(c, proto, name):
    """Elements in a list of their type, whose last one stands for the rest."""
    if not proto.tensor_content:
        data = proto.SerializeToString()
    else:
        tensor = tf.make_ndarray(proto)
        content = tf.compat.v1.make_tensor_proto(tensor[:1], dtype=proto.dtype, shape=[2, 2])
        data = content.SerializeToString()
    c.op("ParseTensor", Feed(np.array(data, object)), out_type=tf.as_dtype(proto.dtype), case=f"{name}_listed")


def wrong(c):
    """Bytes that are no tensor, or another one."""
    data = tf.io.serialize_tensor(tf.constant([1.5, 2])).numpy()
    c.op("ParseTensor", Feed(np.array(data, object)), out_type=tf.int32, case="type", fails="mismatch")
    c.op("ParseTensor", Feed(np.array(data[:-1], object)), out_type=tf.float32, case="cut", fails="parse")
    proto = tf.make_tensor_proto([1.5, 2])
    proto.tensor_shape.dim[0].size = 3
    c.op("ParseTensor", Feed(np.array(proto.SerializeToString(), object)), out_type=tf.float32, case="size", fails="shape")
    proto.tensor_shape.dim[0].size = -1
    c.op("ParseTensor", Feed(np.array(proto.SerializeToString(), object)), out_type=tf.float32, case="dim", fails="dims")


def formats(c):
    """Templates."""
    for dtype in FLOATS + INTS + ("bool", "string"):
        c.op("StringFormat", [c.feed(dtype, 3, 2)], template="x: %s", case=dtype)
    odd = np.float32([1 / 3, 1e10, 1e-7, 0.1, 123456789, np.nan, -np.inf, -0.0])
    c.op("StringFormat", [Feed(odd)], template="{}", placeholder="{}", summarize=-1, case="floats")
    c.op("StringFormat", [Feed(odd.astype(np.float64))], template="{}", placeholder="{}", summarize=-1, case="doubles")
    text = np.array(['a"b', "line\n", "tab\t\\'", b"\xff\xc3\xa9"], object)
    c.op("StringFormat", [Feed(text)], template="{}", placeholder="{}", summarize=9, case="text")
    for summarize in (-1, 0, 1, 2, 3):
        inputs = [c.feed("int32", 5, 4, 7), c.feed("int32", 7), Feed(np.int32(4)), c.feed("int32", 2, 0)]
        c.op("StringFormat", inputs, template="%s and %s, %s or %s.", summarize=summarize, case=f"long_{summarize}")
    c.op("StringFormat", [], template="nothing", case="nothing")
