"""Serialized tf.train.Examples and CSV lines into tensors."""

import numpy as np
import tensorflow as tf

from harness import Feed

NOTHING = np.array([], object)


def feature(values):
    """A tf.train.Feature of ints, floats or bytes."""
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(**features):
    """The bytes of an Example."""
    of = {key: feature(values) for key, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=of)).SerializeToString(deterministic=True)


def texts(*values, shape="rows"):
    """Strings to feed."""
    return Feed(np.array(list(values), object), shape)


FIXED = (
    example(x=[1.5, -2.0], n=[3], s=[b"ab", b""], other=[b"left out"]),
    example(x=[0.25, 4.0], n=[-(2**63)], s=[b"\xff\0", b"Floe"]),
    example(n=[2**63 - 1], x=[1e30, -0.0]),
)
LISTS = (
    example(x=[1.5, -2.0, 3.0], n=[3, 4], s=[b"ab"]),
    example(n=[5], s=[b"", b"c", b"d"]),
    b"",
    example(x=[7.0]),
)
# Legal but unusual: values one by one, unknown fields, a key twice, an entry without a value.
ODD = (
    b"\x0a\x0f\x0a\x0d\x0a\x01n\x12\x08\x1a\x06\x0a\x04\x01\x02\x03\x04",
    b"\x0a\x0f\x0a\x0d\x0a\x01n\x12\x08\x1a\x06\x08\x01\x08\x02\x08\x03",
    b"\x0a\x1a\x0a\x0b\x0a\x01n\x12\x06\x1a\x04\x0a\x02\x01\x02\x0a\x0b\x0a\x01n\x12\x06\x1a\x04\x0a\x02\x07\x08",
    b"\x0a\x07\x0a\x05\x0a\x01n\x12\0",
    b"\x10\x05\x0a\x0f\x0a\x0d\x12\x08\x1a\x06\x0a\x04\x01\x02\x03\x04\x0a\x01n",
)


def cases(c):
    """All of the family."""
    dense(c)
    lists(c)
    single(c)
    errors(c)


def spec(**more):
    """The attributes of ParseExampleV2."""
    base = {
        "num_sparse": 0,
        "sparse_types": [],
        "ragged_value_types": [],
        "ragged_split_types": [],
        "dense_shapes": [],
    }
    return {**base, **more}


def parse(c, serialized, sparse=(), dense_keys=(), ragged=(), defaults=(), names=NOTHING, **more):
    """A case of ParseExampleV2."""
    keys = [np.array(list(k), object) for k in (sparse, dense_keys, ragged)]
    attrs = {k: more.pop(k) for k in list(more) if k.endswith(("types", "shapes"))}
    c.op("ParseExampleV2", serialized, names, *keys, list(defaults), **spec(num_sparse=len(sparse), **attrs), **more)


DEFAULTS = (np.array([9, 8], np.float32), np.array([], np.int64), np.array(["left", "right"], object))
SHAPES = [[2], [], [2]]


def dense(c):
    """Features of a fixed size, with and without defaults; rows stay apart."""
    parse(c, texts(*FIXED), (), ("x", "n", "s"), (), DEFAULTS, dense_shapes=SHAPES, case="dense")
    parse(c, texts(*FIXED[:1]), (), ("x", "n", "s"), (), DEFAULTS, dense_shapes=SHAPES, case="dense_one")
    parse(c, texts(shape=[None]), (), ("x", "n", "s"), (), DEFAULTS, dense_shapes=SHAPES, case="dense_none")
    scalar = Feed(np.array(FIXED[2], object), [])
    parse(c, scalar, (), ("x", "n", "s"), (), DEFAULTS, dense_shapes=SHAPES, case="dense_scalar")
    named = np.array(["first", "second", "third"], object)
    parse(c, texts(*FIXED), (), ("n",), (), DEFAULTS[1:2], dense_shapes=[[1]], case="named", names=named)
    table = np.arange(4, dtype=np.float32).reshape(2, 2)
    of = texts(example(x=[1.0, 2.0, 3.0, 4.0]), b"")
    parse(c, of, (), ("x",), (), (table,), dense_shapes=[[2, 2]], case="matrix")
    nothing = np.zeros((0,), np.int64)
    parse(c, texts(b"", example(n=[])), (), ("n",), (), (nothing,), dense_shapes=[[0]], case="no_values", fails="required")
    fed = Feed(np.array([5, 6], np.int64), [2])
    parse(c, texts(b"", example(n=[1, 2])), (), ("n",), (), (fed,), dense_shapes=[[2]], case="fed_default")
    c.op(
        "ParseExample",
        texts(*FIXED),
        NOTHING,
        [],
        [np.array(k, object) for k in ("x", "n", "s")],
        list(DEFAULTS),
        sparse_types=[],
        dense_shapes=SHAPES,
        case="dense",
    )


def lists(c):
    """Sparse, padded and ragged features."""
    kinds = [tf.float32, tf.int64, tf.string]
    keys = ("x", "n", "s")
    parse(c, texts(*LISTS), keys, sparse_types=kinds, case="sparse")
    parse(c, texts(shape=[None]), keys, sparse_types=kinds, case="sparse_none")
    parse(c, Feed(np.array(LISTS[0], object), []), keys, sparse_types=kinds, case="sparse_scalar")
    for splits in (tf.int32, tf.int64):
        more = {"ragged_value_types": kinds, "ragged_split_types": [splits] * 3}
        parse(c, texts(*LISTS), (), (), keys, **more, case=f"ragged_{splits.name}")
        parse(c, texts(shape=[None]), (), (), keys, **more, case=f"ragged_none_{splits.name}")
        parse(c, Feed(np.array(LISTS[1], object), []), (), (), keys, **more, case=f"ragged_scalar_{splits.name}")
    pads = (np.array([-1], np.float32), np.array(7, np.int64), np.array(["pad"], object))
    parse(c, texts(*LISTS), (), keys, (), pads, dense_shapes=[[None]] * 3, case="padded")
    parse(c, texts(shape=[None]), (), keys, (), pads, dense_shapes=[[None]] * 3, case="padded_none")
    parse(c, Feed(np.array(LISTS[1], object), []), (), keys, (), pads, dense_shapes=[[None]] * 3, case="padded_scalar")
    pairs = texts(example(n=[1, 2, 3, 4]), example(n=[5, 6]), b"")
    parse(c, pairs, (), ("n",), (), (pads[1],), dense_shapes=[[None, 2]], case="padded_pairs")
    mixed = {"sparse_types": [tf.int64], "ragged_value_types": [tf.string], "ragged_split_types": [tf.int32]}
    some = (np.array([0.5], np.float32),)
    parse(c, texts(*LISTS), ("n",), ("x",), ("s",), some, dense_shapes=[[None]], **mixed, case="mixed")
    for i, odd in enumerate(ODD):
        parse(c, texts(odd), ("n",), sparse_types=[tf.int64], case=f"odd_{i}")
    c.op(
        "ParseExample",
        texts(*LISTS),
        NOTHING,
        [np.array(k, object) for k in ("n", "s")],
        [np.array("x", object)],
        [pads[0]],
        sparse_types=[tf.int64, tf.string],
        dense_shapes=[[None]],
        case="mixed",
    )


def single(c):
    """One example."""
    for name, data in (("full", FIXED[0]), ("default", FIXED[2])):
        c.op(
            "ParseSingleExample",
            Feed(np.array(data, object), []),
            list(DEFAULTS),
            num_sparse=2,
            sparse_keys=["other", "nowhere"],
            dense_keys=["x", "n", "s"],
            sparse_types=[tf.string, tf.int64],
            dense_shapes=SHAPES,
            case=name,
        )
    c.op(
        "ParseSingleExample",
        Feed(np.array(LISTS[1], object), []),
        [np.array("pad", object)],
        num_sparse=1,
        sparse_keys=["n"],
        dense_keys=["s"],
        sparse_types=[tf.int64],
        dense_shapes=[[None]],
        case="padded",
    )


def errors(c):
    """What no example, or the wrong one, must give."""
    one = (np.array([1], np.int64),)
    options = {"dense_keys": ("n",), "defaults": one, "dense_shapes": [[1]]}
    parse(c, texts(example(n=[1]), b"\x0a\x05\x0a\x7f\x0a\x01n"), **options, case="cut", fails="parse example 1")
    parse(c, texts(b"text"), **options, case="text", fails="parse example 0")
    parse(c, texts(example(n=[1.5])), **options, case="type", fails="types don't match")
    parse(c, texts(example(n=[1, 2])), **options, case="count", fails="Number of values")
    parse(c, texts(example(n=[])), **options, case="empty", fails="Number of values")
    required = {**options, "defaults": (np.array([], np.int64),)}
    parse(c, texts(b""), **required, case="missing", fails="required")
    wrong = {**options, "defaults": (np.array([1, 2], np.int64),)}
    parse(c, texts(b""), **wrong, case="default_shape", fails="not compatible")
    names = np.array(["a", "b"], object)
    parse(c, texts(example(n=[1])), **options, names=names, case="names", fails="names")
    parse(c, texts(example(n=[1.5])), names=np.array(["here"], object), **options, case="named_error", fails="'here'")
    parse(c, texts(example(n=[1])), ("n",), sparse_types=[tf.string], case="sparse_type", fails="types don't match")
    bad = b"\x0a\x0a\x0a\x08\x0a\x01n\x12\x03\x1a\x01\x0a"
    parse(c, texts(bad), ("n",), sparse_types=[tf.int64], case="cut_list", fails="parse")
    pairs = {"dense_keys": ("n",), "defaults": (np.array(7, np.int64),), "dense_shapes": [[None, 2]]}
    parse(c, texts(example(n=[1, 2, 3])), **pairs, case="pairs", fails="multiple of 2")
