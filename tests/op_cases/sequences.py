"""Serialized tf.train.SequenceExamples into tensors."""

import numpy as np
import tensorflow as tf

import examples
from examples import NOTHING, texts
from harness import Feed

TYPES = {"x": tf.float32, "n": tf.int64, "s": tf.string}
EMPTY = {"x": np.float32([]), "n": np.int64([]), "s": NOTHING}


def feature(values):
    """A tf.train.Feature; without values it is of no type."""
    return examples.feature(values) if values else tf.train.Feature()


def sequence(context, **lists):
    """The bytes of a SequenceExample."""
    of = {key: feature(values) for key, values in context.items()}
    steps = {key: tf.train.FeatureList(feature=[feature(v) for v in values]) for key, values in lists.items()}
    whole = tf.train.SequenceExample(
        context=tf.train.Features(feature=of), feature_lists=tf.train.FeatureLists(feature_list=steps)
    )
    return whole.SerializeToString(deterministic=True)


WHOLE = (
    sequence({"n": [3], "s": [b"first"]}, x=[[1.5, -2.0], [0.25, 4.0]], n=[[1], [2], [3]], s=[[b"a"], [], [b"bb", b"c"]]),
    sequence({"n": [-4], "s": []}, x=[[1e30, -0.0]], n=[], s=[[b"", b"d"]]),
    sequence({"n": [5], "x": [2.0]}, x=[], n=[[7], [8]], s=[]),
)


def spec(**kinds):
    """Inputs after serialized and debug_name, and attributes; by kind the keys."""
    keys = lambda kind: list(kinds.get(kind, ""))
    of = lambda kind: [TYPES[key] for key in keys(kind)]
    inputs = [np.array(keys(kind), object) for kind in ("cs", "cd", "cr", "ls", "ld", "lr")]
    shapes = {"x": kinds.get("x_shape", [2]), "n": [1], "s": [1]}
    inputs.append(np.array([kinds.get("missing", False)] * len(keys("ld")), bool))
    inputs.append([kinds.get("defaults", EMPTY)[key] for key in keys("cd")])
    more = {
        "Ncontext_sparse": len(keys("cs")),
        "context_sparse_types": of("cs"),
        "context_ragged_value_types": of("cr"),
        "context_ragged_split_types": [kinds.get("splits", tf.int64)] * len(keys("cr")),
        "context_dense_shapes": [[] for _ in keys("cd")],
        "Nfeature_list_sparse": len(keys("ls")),
        "Nfeature_list_dense": len(keys("ld")),
        "feature_list_dense_types": of("ld"),
        "feature_list_sparse_types": of("ls"),
        "feature_list_ragged_value_types": of("lr"),
        "feature_list_ragged_split_types": [kinds.get("splits", tf.int64)] * len(keys("lr")),
        "feature_list_dense_shapes": [shapes[key] for key in keys("ld")],
    }
    return inputs, more


def parse(c, serialized, name, fails=None, names=NOTHING, **kinds):
    """One case."""
    inputs, more = spec(**kinds)
    options = {"fails": fails} if fails else {}
    c.op("ParseSequenceExampleV2", serialized, names, *inputs, **more, **options, case=name)


def cases(c):
    """All of the family."""
    whole = texts(*WHOLE)
    parse(c, whole, "context", cd="n", cs="xs")
    parse(c, whole, "sparse", ls="xns")
    parse(c, whole, "dense", ld="xn")
    parse(c, whole, "ragged", lr="xns", cr="ns")
    parse(c, whole, "ragged_int", lr="sn", cr="x", splits=tf.int32)
    parse(c, whole, "all", cd="n", cs="s", cr="x", ls="s", ld="x", lr="n")
    parse(c, texts(shape=[None]), "none", cs="s", ls="s", ld="x", lr="n", cr="x")
    for k, text in enumerate(WHOLE):
        one = Feed(np.array(text, object), [])
        parse(c, one, f"one_{k}", cd="n", cs="s", ls="s", ld="x", lr="n")
    parse(c, Feed(np.array(WHOLE[0], object), []), "one_ragged_int", lr="s", splits=tf.int32)
    bare = texts(sequence({}), sequence({"x": [1.0]}, other=[[1]]), b"")
    defaults = {"x": np.float32(-1), "n": np.int64(9), "s": np.array("none", object)}
    parse(c, bare, "missing", cd="xns", defaults=defaults, ld="xn", missing=True, ls="s")
    twice = WHOLE[0] + sequence({"n": [6]}, x=[[7.0, 8.0]])
    parse(c, texts(twice), "twice", cd="n", ld="x", ls="s")
    errors(c)


def errors(c):
    """Messages that are none, or hold something else."""
    whole = texts(*WHOLE)
    parse(c, texts(b"\x0a\x05abc"), "malformed", fails="arse", ls="s")
    parse(c, texts(WHOLE[0][:-1]), "cut", fails="arse", ls="s")
    parse(c, texts(sequence({})), "required", fails="required", ld="x")
    parse(c, texts(sequence({})), "context_required", fails="required", cd="n")
    parse(c, texts(sequence({}, n=[[1.5]])), "type", fails="ypes", ls="n")
    parse(c, texts(sequence({}, n=[[1.5]])), "type_dense", fails="ypes", ld="n")
    parse(c, whole, "count", fails="alues", ld="x", x_shape=[3])
    parse(c, texts(sequence({}), sequence({})), "named", fails="second", names=np.array(["first", "second"], object)[::-1].copy(), ld="x")
