"""Lookup tables: filled from tensors and files, read by key."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_lookup_ops as raw

from harness import Feed

WORDS, MORE = ["red", "green", "blue"], np.array(["blue", "pink", "red", ""], object)


def looked_up(c, name, table, fill, find, keys, fallback, init=("fill",), size=None):
    """A table made by `table`, filled by `fill`, read by `find`."""

    def build(enter):
        handle = table()
        fill(handle)
        found = [find(handle, enter("keys", keys), enter("fallback", fallback))]
        return found + ([size(handle)] if size else [])

    c.graph(name, build, init=init)


def tensors(c):
    """Every pair of types that TensorFlow has."""
    values = {
        "int32": np.array([-7, 0, 9], np.int32),
        "int64": np.array([1 << 40, 0, -9], np.int64),
        "float32": np.array([0.5, -1.25, 3], np.float32),
        "float64": np.array([0.1, -1e100, 3], np.float64),
        "bool": np.array([True, False, True]),
        "string": np.array(["x", "", "häß"], object),
    }
    pairs = {
        "string": ("int32", "int64", "float32", "float64", "bool", "string"),
        "int64": ("int32", "int64", "float32", "float64", "string"),
        "int32": ("int32", "float32", "float64", "string"),
    }
    keys = {
        "string": (np.array(WORDS, object), Feed(MORE)),
        "int64": (np.array([5, -5, 1 << 50]), Feed(np.array([[-5, 0], [1 << 50, 5]]))),
        "int32": (np.array([5, -5, 0], np.int32), Feed(np.array([0, 1, -5], np.int32))),
    }
    dtype = lambda name: tf.string if name == "string" else tf.as_dtype(name)
    for key, names in pairs.items():
        for value in names:
            looked_up(
                c,
                f"{key}_to_{value}",
                lambda: raw.hash_table_v2(dtype(key), dtype(value)),
                lambda t: raw.initialize_table_v2(t, keys[key][0], values[value], name="fill"),
                raw.lookup_table_find_v2,
                keys[key][1],
                values[value][1],
                size=raw.lookup_table_size_v2,
            )
    looked_up(
        c,
        "imported",
        lambda: raw.hash_table_v2(tf.string, tf.int64),
        lambda t: raw.lookup_table_import_v2(t, WORDS, values["int64"], name="fill"),
        raw.lookup_table_find_v2,
        Feed(MORE),
        np.int64(-1),
    )


def mutable(c):
    """Tables whose values may change, here before the first request only."""
    keys, values = np.array(["red", "green", "red"], object), np.array([1, 2, 3], np.int64)
    for fill in (raw.lookup_table_import_v2, raw.lookup_table_insert_v2):
        looked_up(
            c,
            f"mutable_{fill.__name__}",
            lambda: raw.mutable_hash_table_v2(tf.string, tf.int64),
            lambda t: fill(t, keys, values, name="fill"),
            raw.lookup_table_find_v2,
            Feed(MORE),
            np.int64(-1),
            size=raw.lookup_table_size_v2,
        )
    looked_up(
        c,
        "mutable_of_vectors",
        lambda: raw.mutable_hash_table_of_tensors_v2(tf.string, tf.float32, value_shape=[2]),
        lambda t: raw.lookup_table_insert_v2(
            t, WORDS, np.array([[1, 2], [3, 4], [5, 6]], np.float32), name="fill"
        ),
        raw.lookup_table_find_v2,
        Feed(MORE),
        np.array([-1, -2], np.float32),
    )


def files(c):
    """A vocabulary, by word and by line number."""
    text = lambda t, **more: raw.initialize_table_from_text_file_v2(t, "assets/colours", name="fill", **more)
    looked_up(
        c,
        "words_of_file",
        lambda: raw.hash_table_v2(tf.string, tf.int64, shared_name="words"),
        lambda t: text(t, key_index=-2, value_index=-1, offset=10),
        raw.lookup_table_find_v2,
        Feed(np.array(["green", "no colour", "red"], object)),
        np.int64(-1),
        size=raw.lookup_table_size_v2,
    )
    looked_up(
        c,
        "lines_of_file",
        lambda: raw.hash_table_v2(tf.int64, tf.string),
        lambda t: text(t, key_index=-1, value_index=-2, vocab_size=2),
        raw.lookup_table_find_v2,
        Feed(np.array([[0, 1, 2, -1]])),
        "none",
    )


def first_version(c):
    """The same ops by their first names, with handles that are names."""
    find, size = raw.lookup_table_find, raw.lookup_table_size
    values = np.array([4, 5, 6], np.int64)
    common = (find, Feed(MORE), np.int64(-1))
    table = lambda: raw.hash_table(tf.string, tf.int64)
    looked_up(
        c, "v1", table, lambda t: raw.initialize_table(t, WORDS, values, name="fill"), *common, size=size
    )
    file = lambda t: raw.initialize_table_from_text_file(t, "assets/colours", -2, -1, name="fill")
    looked_up(c, "v1_file", table, file, *common)
    changing = lambda: raw.mutable_hash_table(tf.string, tf.int64)
    for fill in (raw.lookup_table_import, raw.lookup_table_insert):
        looked_up(c, f"v1_{fill.__name__}", changing, lambda t: fill(t, WORDS, values, name="fill"), *common)
    looked_up(
        c,
        "v1_of_vectors",
        lambda: raw.mutable_hash_table_of_tensors(tf.string, tf.int64, value_shape=[1]),
        lambda t: raw.lookup_table_insert(t, WORDS, values[:, None], name="fill"),
        find,
        Feed(MORE),
        np.array([-1], np.int64),
    )


def buckets(c):
    """Words outside a vocabulary."""
    long = ["x" * n for n in (3, 7, 8, 16, 17, 32, 33, 64, 65, 127, 128, 200)]
    for count in (1, 10, 1 << 40):
        c.op(
            "StringToHashBucketFast",
            Feed(np.array(long + list(MORE), object)),
            num_buckets=count,
            case=str(count),
        )

    def build(enter):
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(WORDS, np.arange(3, dtype=np.int64)), 4
        )
        tf.compat.v1.tables_initializer(name="fill_all")
        return [table.lookup(enter("words", Feed(MORE)))]

    c.graph("vocabulary_with_buckets", build, init=("fill_all",))


def cases(c):
    """All of the family."""
    tensors(c)
    mutable(c)
    files(c)
    first_version(c)
    buckets(c)
