#!/usr/bin/env python3
"""Writes the small models that mutants.py changes: FOLDER/KIND/NAME/..., each NAME a version's directory.

    $(scripts/pyenv.sh) tests/fuzz/make_mutant_seeds.py FOLDER
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import keras
import tensorflow as tf
import tf_keras
from google.protobuf import text_format


def dense(layers, package):
    return package.Sequential([layers.Input([4]), layers.Dense(5, activation="relu"), layers.BatchNormalization(), layers.Dense(3)])


def images(layers, package):
    x = y = layers.Input([8, 8, 3])
    y = layers.Conv2D(4, 3, strides=2, padding="same")(y)
    y = layers.DepthwiseConv2D(3, activation="relu")(y)
    return package.Model(x, layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling2D()(y)))


def sequences(layers, package):
    x = layers.Input([6], dtype="int32")
    y = layers.Bidirectional(layers.LSTM(3))(layers.Embedding(11, 4, mask_zero=True)(x))
    return package.Model(x, layers.Dense(1)(y))


def nested(layers, package):
    inner = package.Sequential([layers.Input([4]), layers.Dense(4, activation="tanh")])
    x = layers.Input([4])
    return package.Model(x, layers.Add()([inner(x), inner(inner(x))]))


MODELS = {"dense": dense, "images": images, "sequences": sequences, "nested": nested}


def keras_files(folder):
    for label, package in (("3", keras), ("2", tf_keras)):
        for name, build in MODELS.items():
            for kind in ("h5", "keras"):
                package.backend.clear_session()
                place = folder / kind / (name + label)
                place.mkdir(parents=True)
                build(package.layers, package).save(place / ("model." + kind))


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.reshape(tf.range(9.0), [3, 3]) / 9, name="w")
        self.b = tf.Variable([0.5, -1, 2], name="b")
        self.n = tf.Variable(3, name="n")
        self.words = tf.Variable(["a", "bc", ""], name="words")
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def flow(self, x):
        y = tf.cond(self.n > 2, lambda: tf.matmul(x, self.w), lambda: x + self.b)
        return {"y": tf.while_loop(lambda i, v: i < self.n, lambda i, v: (i + 1, tf.tanh(tf.matmul(v, self.w))), [0, y])[1]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def lookup(self, words):
        rows = tf.nn.embedding_lookup(self.w, self.table.lookup(words) % 3)
        return {"rows": rows, "words": tf.gather(self.words, self.n - 1)}


def saved_models(folder):
    for kind in ("saved_model", "checkpoint"):
        module = Module()
        tf.saved_model.save(module, str(folder / kind / "module"), {"serving_default": module.flow, "lookup": module.lookup})
        for name in ("dense", "images"):
            MODELS[name](tf_keras.layers, tf_keras).export(str(folder / kind / name))


def graph_defs(folder):
    def made(name, build):
        graph = tf.Graph()
        with graph.as_default():
            build()
        place = folder / "text" / name
        place.mkdir(parents=True)
        (place / "frozen.pbtxt").write_text(text_format.MessageToString(graph.as_graph_def()))

    def product():
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], "x")
        tf.nn.softmax(tf.nn.relu(tf.matmul(x, tf.ones([4, 3])) + tf.constant([1.0, 2, 3])), name="y")

    def convolution():
        x = tf.compat.v1.placeholder(tf.float32, [None, 6, 6, 2], "x")
        y = tf.nn.conv2d(x, tf.ones([3, 3, 2, 3]), [1, 2, 2, 1], "SAME")
        tf.reshape(tf.nn.max_pool2d(y, 2, 1, "VALID"), [-1, 12], name="y")

    def loop():
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], "x")
        tf.identity(tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.concat([v, x], 0)), [0, x],
                                  shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])])[1], name="y")

    for name, build in (("product", product), ("convolution", convolution), ("loop", loop)):
        made(name, build)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    keras_files(target)
    saved_models(target)
    graph_defs(target)
