"""Models of text: rows are split into any number of words or letters, which are looked up, counted and padded."""

import numpy as np
import tensorflow as tf

from harness import Feed

WORDS = ["the", "cat", "sat", "on", "mat", "日本", "häß", "the cat", "cat sat"]
TEXTS = ["the cat sat on the mat", "", "   ", "日本 häß  cat", "dog " * 70 + "mat", "Mat\tTHE\ncat", "cat", " the cat "]


def texts(values=TEXTS):
    """One text a row."""
    return Feed(np.array(values, object))


def ids_of(words):
    """Numbers of the words from 2 on; others are 1."""
    table = tf.lookup.KeyValueTensorInitializer(tf.constant(WORDS), tf.range(2, 2 + len(WORDS), dtype=tf.int64))
    return tf.lookup.StaticHashTable(table, 1).lookup(words)


def looked_up(ragged):
    """The ragged tensor of numbers, as a preprocessing layer makes it."""
    return ragged.with_flat_values(tf.where(tf.equal(ragged.flat_values, ""), tf.zeros([], tf.int64), ids_of(ragged.flat_values)))


def clean(text):
    """Lower case without punctuation."""
    return tf.strings.regex_replace(tf.strings.lower(text), "[,.]", "")


def embedding(seed=3):
    """A row of numbers for each word."""
    return tf.constant(np.random.default_rng(seed).uniform(-1, 1, (12, 5)).astype(np.float32))


def dense(x):
    """A product, so that sums of more than one row are in it."""
    x = tf.ensure_shape(x, [None, 12 if x.shape[-1] is None else x.shape[-1]])
    weights = np.random.default_rng(5).uniform(-1, 1, (x.shape[-1], 3)).astype(np.float32)
    return tf.nn.softmax(tf.linalg.matmul(x, tf.constant(weights)))


def cases(c):
    """All of the family."""
    padded(c)
    counted(c)
    divided(c)
    pooled(c)


def padded(c):
    """A fixed number of words or letters."""

    def model(split):
        def build(enter):
            ids = looked_up(split(clean(enter("text", texts())))).to_tensor(shape=[None, 7])
            return tf.reduce_mean(tf.gather(embedding(), ids), axis=1)

        return build

    def ngrams(text):
        return tf.strings.ngrams(tf.strings.split(text), [1, 2], separator=" ")

    def letters(text):
        return tf.strings.unicode_split(text, "UTF-8")

    init = ["key_value_init/LookupTableImportV2"]
    for name, split in (("words", tf.strings.split), ("ngrams", ngrams), ("letters", letters)):
        c.graph(f"padded_{name}", model(split), batchable=True, init=init)
    c.graph("split_at_commas", model(lambda text: tf.strings.split(text, ",")), batchable=True, init=init)
    sizes = {"padded_nothing": ["", " ", ""], "padded_one_row": ["the cat"], "padded_no_rows": []}
    for name, values in sizes.items():

        def build(enter, values=values):
            ids = looked_up(tf.strings.split(enter("text", texts(values)))).to_tensor(shape=[None, 4])
            return tf.gather(embedding(), ids)

        c.graph(name, build, batchable=bool(values), init=init)

    def columns(enter):
        text = tf.squeeze(enter("text", Feed(np.array([[t] for t in TEXTS], object))), 1)
        return looked_up(tf.strings.split(text)).to_tensor(shape=[None, 5])

    c.graph("padded_column", columns, batchable=True, init=init)


def counted(c):
    """How often each word is in a row."""
    init = ["key_value_init/LookupTableImportV2"]
    for name, options in {"often": {}, "at_all": {"binary_output": True}, "floats": {"dtype": tf.float32}}.items():

        def build(enter, options=options):
            ids = looked_up(tf.strings.split(enter("text", texts())))
            counts = tf.math.bincount(ids, minlength=12, maxlength=12, axis=-1, **options)
            return dense(tf.cast(counts, tf.float32))

        c.graph(f"counted_{name}", build, batchable=True, init=init)

    def sparse(enter):
        ids = looked_up(tf.strings.split(enter("text", texts()))).to_sparse()
        counts = tf.raw_ops.SparseBincount(
            indices=ids.indices, values=ids.values, dense_shape=ids.dense_shape, size=np.int64(12), weights=np.array([], np.float32)
        )
        return dense(counts)

    c.graph("counted_sparse", sparse, batchable=True, init=init)

    def lengths(enter):
        return tf.strings.split(enter("text", texts())).row_lengths()

    c.graph("how_many_words", lengths, batchable=True)


def divided(c):
    """Ragged and sparse tensors on the way."""
    def rows_of_a_table(enter):
        rows = enter("rows", Feed(np.array([3, 1, 0, 0, 2], np.int32)))
        found = tf.raw_ops.RaggedGather(
            params_nested_splits=[np.array([0, 3, 3, 4, 6])],
            params_dense_values=np.array([1.5, 2, 3, 4, 5, 6], np.float32),
            indices=rows,
            OUTPUT_RAGGED_RANK=1,
        )
        ragged = tf.RaggedTensor.from_row_splits(found.output_dense_values * 2, found.output_nested_splits[0], validate=False)
        return ragged.to_tensor(shape=[None, 3], default_value=-1.0)

    c.graph("rows_of_a_ragged_table", rows_of_a_table, batchable=True)

    def dense_of_sparse(enter):
        text = enter("text", texts(TEXTS[:4]))
        words = tf.strings.split(text).to_sparse()
        shape = tf.stack([tf.shape(text, tf.int64)[0], 8])
        return tf.raw_ops.SparseToDense(
            sparse_indices=words.indices, output_shape=shape, sparse_values=words.values, default_value="-"
        )

    c.graph("sparse_to_dense", dense_of_sparse, batchable=True)

    def joined(enter):
        letters = tf.strings.unicode_decode(enter("text", texts()), "UTF-8")
        return tf.strings.unicode_encode(letters.with_values(letters.values + 1), "UTF-8")

    c.graph("letters_and_back", joined, batchable=True)


def pooled(c):
    """Sums over the words of a row, whose number does not matter."""
    init = ["key_value_init/LookupTableImportV2"]
    for name in ("sum", "prod", "max", "min"):

        def build(enter, name=name):
            text = enter("text", texts())
            words = tf.strings.split(text)
            vectors = dense(tf.gather(embedding(), ids_of(words.flat_values)))
            reduce = getattr(tf.math, f"unsorted_segment_{name}")
            return reduce(vectors, words.value_rowids(), tf.shape(text)[0])

        c.graph(f"words_{name}", build, batchable=True, init=init)
