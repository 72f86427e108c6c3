"""SavedModels of objects, as `tf.saved_model.save` writes them: Keras 3 models, modules that hold one, functions without
signatures. What Python's loader answers is right: TensorFlow's session cannot read the variables of Keras 3 in them."""
import os

import keras
import numpy as np
import tensorflow as tf
from saved_models import Case, rows


def flat(key, value):
    """What a value of a signature is served as: ragged tensors are several."""
    if not isinstance(value, tf.RaggedTensor):
        return {key: value.numpy()}
    splits = [s.numpy() for s in value.nested_row_splits]
    return {f"{key}.values": value.flat_values.numpy(), f"{key}.row_splits": splits[0],
            **{f"{key}.row_splits_{k}": s for k, s in enumerate(splits[1:], 1)}}


def paths(value, path):
    """The tensors of a function's result under the names that they are served by."""
    if isinstance(value, dict):
        parts = [(k, value[k]) for k in sorted(value)]
    elif isinstance(value, (list, tuple)):
        parts = list(enumerate(value))
    else:
        return {} if value is None else flat(path, value)
    return {k: v for key, part in parts for k, v in paths(part, f"{path}.{key}").items()}


def outputs(value):
    if isinstance(value, dict):
        parts = [(k, value[k]) for k in sorted(value)]
    else:
        parts = [(f"output_{k}", v) for k, v in enumerate(value if isinstance(value, (list, tuple)) else [value])]
    return {k: v for key, part in parts for k, v in paths(part, key).items()}


def loaded_answers(path, feeds):
    """{signature: {key: array}}: of the file's signatures by their keys, else of functions by the order of their arguments."""
    loaded = tf.saved_model.load(path)
    answers = {}
    for name, inputs in feeds.items():
        inputs = {k: tf.constant(v) for k, v in inputs.items()}
        if loaded.signatures:
            answers[name] = outputs(loaded.signatures[name](**inputs))
            continue
        function = loaded
        for part in ("__call__" if name == "serving_default" else name).split("."):
            function = getattr(function, part)
        answers[name] = outputs(function(*inputs.values()))
    return answers


class Held(tf.Module):
    """A module with a Keras model and what a case gives it."""

    def __init__(self, model=None, **more):
        super().__init__()
        if model is not None:
            self.model = model
        for key, value in more.items():
            setattr(self, key, value)


def dense_stack(seed, *units, inputs=4):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((inputs,)), *[keras.layers.Dense(n, activation="tanh") for n in units]])


def sequential(path):
    tf.saved_model.save(dense_stack(1, 5, 3), path)
    return {"serving_default": {"inputs": rows(3, 4)}}


def functional(path):
    keras.utils.set_random_seed(2)
    a, b = keras.Input((4,), name="a"), keras.Input((6,), name="b")
    x = keras.layers.Concatenate()([keras.layers.Dense(3, name="same")(a), keras.layers.Dense(3, activation="relu")(b)])
    x = keras.layers.BatchNormalization()(x)
    model = keras.Model({"a": a, "b": b}, {"sum": keras.layers.Dense(2, name="sum")(x), "x": x})
    model.layers[-2].moving_mean.assign(rows(6))
    tf.saved_model.save(model, path)
    return {"serving_default": {"inputs": rows(3, 4), "inputs_1": rows(3, 6, seed=2)}}


def nested(path):
    """Models in models, one of them shared; layers of the same name in each."""
    inner, other = dense_stack(3, 4), dense_stack(4, 4)
    outer = keras.Sequential([keras.Input((4,)), inner, other, inner, keras.layers.Dense(2, name="dense")])
    tf.saved_model.save(outer, path)
    return {"serving_default": {"inputs": rows(3, 4)}}


@keras.saving.register_keras_serializable("tests")
class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [keras.layers.Dense(4, name="dense") for _ in range(3)]
        self.norm = keras.layers.LayerNormalization()
        self.scale = self.add_weight(shape=(), initializer=keras.initializers.Constant(2.5), name="scale")

    def call(self, x, training=False):
        for block in self.blocks:
            x = x + keras.ops.gelu(block(x))
        return {"y": self.norm(x) * self.scale, "mean": keras.ops.mean(x, -1)}


def subclassed(path):
    keras.utils.set_random_seed(5)
    model = Subclassed()
    model(rows(2, 4))
    tf.saved_model.save(model, path)
    return {"serving_default": {"inputs": rows(2, 4)}}


def recurrent(path):
    keras.utils.set_random_seed(6)
    model = keras.Sequential([keras.Input((None,), dtype="int32"), keras.layers.Embedding(9, 4, mask_zero=True),
                              keras.layers.Bidirectional(keras.layers.GRU(3, return_sequences=True)), keras.layers.LSTM(4)])
    tf.saved_model.save(model, path)
    return {"serving_default": {"inputs": np.array([[1, 2, 3, 0], [4, 8, 0, 0]], np.int32)}}


def images(path):
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Rescaling(1 / 255), keras.layers.Conv2D(4, 3),
                              keras.layers.BatchNormalization(), keras.layers.ReLU(), keras.layers.DepthwiseConv2D(3),
                              keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(2)])
    tf.saved_model.save(model, path)
    return {"serving_default": {"inputs": rows(2, 8, 8, 3) * 255}}


def words_in_keras(path):
    text = keras.layers.TextVectorization(output_sequence_length=4, vocabulary=["alpha", "beta", "gamma"])
    keras.utils.set_random_seed(8)
    inputs = keras.Input((), dtype="string", name="text")
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(6, 3)(text(inputs)))
    tf.saved_model.save(keras.Model(inputs, keras.layers.Dense(2)(x)), path)
    return {"serving_default": {"inputs": np.array([b"alpha beta", b"delta, Gamma!", b""])}}


def module_with_a_model(path):
    module = Held(dense_stack(9, 5, 2), bias=tf.Variable(rows(2), name="dense/bias"))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def run(x):
        return {"y": module.model(x) + module.bias}

    module.run = run
    tf.saved_model.save(module, path, signatures={"serving_default": run})
    return {"serving_default": {"x": rows(3, 4)}}


def repeated_names(path):
    """Variables that are all called alike, of Keras and of TensorFlow."""
    module = Held(layers=[keras.layers.Dense(4, name="d") for _ in range(4)], w=[tf.Variable(float(k), name="w") for k in range(4)])
    for layer in module.layers:
        layer.build((None, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def run(x):
        for layer, w in zip(module.layers, module.w):
            x = layer(x) + w
        return x

    module.run = run
    tf.saved_model.save(module, path, signatures=run)
    return {"serving_default": {"x": rows(3, 4)}}


class Functions(tf.Module):
    """Several functions, no signatures."""

    def __init__(self):
        super().__init__()
        self.model, self.v = dense_stack(10, 4), tf.Variable([1.0, 2.0, 3.0, 4.0], name="v")
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)), -1)
        self.learned = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1.0)
        self.learned.insert(tf.constant(["a", "c"]), tf.constant([1.5, 2.5]))
        self.look = keras.layers.StringLookup(vocabulary=["x", "y"])

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def __call__(self, x):
        return self.model(x) * self.v

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def words(self, word):
        return self.table.lookup(word), {"learned": self.learned.lookup(word), "keras": self.look(word)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="left"), tf.TensorSpec([None], tf.int64, name="right")])
    def two(self, a, b):
        return {"sum": a + tf.cast(b, tf.float32), "none": None, "list": [b, a]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def split(self, text):
        return tf.strings.split(text)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def learn(self, x):
        return self.v.assign(self.v + x)


def functions(path):
    tf.saved_model.save(Functions(), path)
    words = np.array([b"a", b"b", b"c", b"x"])
    return {"serving_default": {"x": rows(3, 4)}, "__call__": {"x": rows(3, 4)}, "words": {"word": words},
            "two": {"left": rows(3), "right": np.arange(3)}, "split": {"text": np.array([b"a b c", b"", b"d"])}}


def flat_words(module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word")])
    def words(word):
        return {"id": module.table.lookup(word), "learned": module.learned.lookup(word), "keras": module.look(word)}

    return words


def functions_with_signatures(path):
    module = Functions()
    tf.saved_model.save(module, path, {"serving_default": module.__call__, "words": flat_words(module), "split": module.split})
    return {"serving_default": {"x": rows(3, 4)}, "words": {"word": np.array([b"a", b"c", b"y"])},
            "split": {"text": np.array([b"a b c", b"", b"d"])}}


def traces(path):
    module = Held(w=tf.Variable(3.0))

    @tf.function
    def call(x, training=False):
        return x * module.w if training else x + module.w

    call(tf.zeros([2]), True)
    call(tf.zeros([2]), False)
    module.call = call
    tf.saved_model.save(module, path)
    return {"call": {"x": rows(2)}}


def inner_functions(path):
    """Functions of what a module holds, its Keras model's own export among them."""
    encoder = Held(w=tf.Variable(rows(4)))
    encoder.encode = tf.function(lambda x: x * encoder.w, input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    tf.saved_model.save(Held(dense_stack(11, 2), encoder=encoder), path)
    return {"encoder.encode": {"x": rows(2, 4)}}


def ragged(path):
    module = Held(names=tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
        tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)), -1))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def split(text):
        words = tf.strings.split(text)
        return {"words": words, "letters": tf.strings.bytes_split(words), "ids": tf.ragged.map_flat_values(module.names.lookup, words),
                "count": words.row_lengths()}

    module.split = split
    tf.saved_model.save(module, path, signatures=split)
    return {"serving_default": {"text": np.array([b"a b cc", b"", b"b"])}}


def vocabulary_file(path):
    words = os.path.join(os.path.dirname(path), "words.txt")
    with open(words, "w") as f:
        f.write("alpha\nbeta\n")
    module = Held(ids=tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
        words, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 1))
    module.look = tf.function(lambda w: module.ids.lookup(w), input_signature=[tf.TensorSpec([None], tf.string, name="w")])
    module.count = tf.function(lambda w: module.ids.size() + tf.size(w, tf.int64),
                               input_signature=[tf.TensorSpec([None], tf.string, name="w")])
    tf.saved_model.save(module, path)
    os.remove(words)
    return {"look": {"w": np.array([b"beta", b"omega", b"alpha"])}}


OBJECT_CASES = [Case(make.__name__, make) for make in (
    sequential, functional, nested, subclassed, recurrent, images, words_in_keras, module_with_a_model, repeated_names, functions,
    functions_with_signatures, traces, inner_functions, ragged, vocabulary_file)]
