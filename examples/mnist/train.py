#!/usr/bin/env python3
"""Trains the two example models in TensorFlow 1 style and freezes them for serving.

    python train.py --train-images train-images-idx3-ubyte.gz --train-labels train-labels-idx1-ubyte.gz

Writes, beside this file unless --out says otherwise:

    models/mnist_beginner/1/frozen.pb   softmax regression, 784 -> 10
    models/mnist_conv/1/frozen.pb       two convolutions, two dense layers, dropout behind a v1 cond
    expected_classes/MODEL.u8           TensorFlow's class for each test digit, one byte a digit

Both take `input`, float32 [N, 784], pixels divided by 255, and give `softmax`, float32 [N, 10].
mnist_conv has a second placeholder, the bool scalar `keras_learning_phase`: true turns dropout on.

The idx files are MNIST's own, gzipped or not. Needs tensorflow 2.15 or newer (or tensorflow-cpu) and numpy.
"""
import argparse
import gzip
import os
import struct
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
HERE = os.path.dirname(os.path.abspath(__file__))
PIXELS, CLASSES = 784, 10


def read_idx(path):
    """An idx file of unsigned bytes, as an array of its own shape."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    zeros, element_type, rank = struct.unpack_from(">HBB", data)
    if zeros != 0 or element_type != 8:
        raise SystemExit(f"{path}: not an idx file of unsigned bytes")
    shape = struct.unpack_from(f">{rank}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load(images_path, labels_path):
    """Digits as float32 [N, 784] in 0..1, and their labels."""
    images, labels = read_idx(images_path), read_idx(labels_path)
    if images.shape[1:] != (28, 28) or len(images) != len(labels):
        raise SystemExit(f"{images_path} and {labels_path} do not belong together: {images.shape}, {labels.shape}")
    return images.reshape(-1, PIXELS).astype(np.float32) / 255, labels


def shifted(images, rng, most):
    """The batch moved by up to `most` pixels in each direction: cheap new training digits."""
    if most == 0:
        return images
    down, right = rng.integers(-most, most + 1, 2)
    moved = np.roll(images.reshape(-1, 28, 28), (down, right), axis=(1, 2))
    return moved.reshape(-1, PIXELS)


def beginner():
    """Returns (input, logits, feeds while training, feeds while serving)."""
    x = tf1.placeholder(tf.float32, [None, PIXELS], name="input")
    weights = tf1.get_variable("weights", [PIXELS, CLASSES], initializer=tf1.zeros_initializer())
    biases = tf1.get_variable("biases", [CLASSES], initializer=tf1.zeros_initializer())
    logits = tf.matmul(x, weights) + biases
    tf.nn.softmax(logits, name="softmax")
    return x, logits, {}, {}


def conv(channels=(16, 32), units=128):
    """As beginner(). The size of the model is that of the first dense layer: 49 * channels[1] * units."""
    x = tf1.placeholder(tf.float32, [None, PIXELS], name="input")
    learning = tf1.placeholder(tf.bool, [], name="keras_learning_phase")

    def variable(name, shape):
        start = tf1.glorot_uniform_initializer(seed=9) if len(shape) > 1 else tf1.zeros_initializer()
        return tf1.get_variable(name, shape, initializer=start)

    def dense(h, name, inputs, outputs):
        return tf.matmul(h, variable(name + "/weights", [inputs, outputs])) + variable(name + "/biases", [outputs])

    h = tf.reshape(x, [-1, 28, 28, 1])
    for name, inputs, outputs in (("conv1", 1, channels[0]), ("conv2", *channels)):
        h = tf.nn.conv2d(h, variable(name + "/weights", [5, 5, inputs, outputs]), 1, "SAME")
        h = tf.nn.relu(tf.nn.bias_add(h, variable(name + "/biases", [outputs])))
        h = tf.nn.max_pool2d(h, 2, 2, "SAME")
    h = tf.reshape(h, [-1, 49 * channels[1]])
    h = tf.nn.relu(dense(h, "dense1", 49 * channels[1], units))
    h = tf1.cond(learning, lambda: tf1.nn.dropout(h, rate=0.5), lambda: tf.identity(h))
    logits = dense(h, "dense2", units, CLASSES)
    tf.nn.softmax(logits, name="softmax")
    return x, logits, {learning: True}, {learning: False}


def train(build, images, labels, steps, rate, shift, batch=64):
    """Trains build()'s model with Adam from fixed seeds and returns the frozen GraphDef."""
    rng = np.random.default_rng(3)
    with tf.Graph().as_default() as graph:
        tf1.set_random_seed(5)
        x, logits, training, _ = build()
        label = tf1.placeholder(tf.int64, [None])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))
        step = tf1.train.AdamOptimizer(rate).minimize(loss)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(steps):
                pick = rng.integers(0, len(images), batch)
                session.run(step, {x: shifted(images[pick], rng, shift), label: labels[pick], **training})
            return tf1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["softmax"])


def classes(graph_def, images, serving):
    """TensorFlow's class per digit, computed from the frozen graph."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        feeds = {name + ":0": value for name, value in serving.items()}
        with tf1.Session(graph=graph) as session:
            parts = [session.run("softmax:0", {"input:0": images[k:k + 500], **feeds})
                     for k in range(0, len(images), 500)]
    return np.concatenate(parts).argmax(1).astype(np.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train-images", required=True)
    parser.add_argument("--train-labels", required=True)
    parser.add_argument("--test-images", default=os.path.join(HERE, "data/t10k-images-idx3-ubyte.gz"))
    parser.add_argument("--test-labels", default=os.path.join(HERE, "data/t10k-labels-idx1-ubyte.gz"))
    parser.add_argument("--out", default=HERE)
    args = parser.parse_args()

    tf1.disable_control_flow_v2()  # cond as Switch and Merge, as TensorFlow 1 wrote it
    images, labels = load(args.train_images, args.train_labels)
    test_images, test_labels = load(args.test_images, args.test_labels)
    recipes = {
        "mnist_beginner": (beginner, {}, dict(steps=3000, rate=1e-3, shift=0)),
        "mnist_conv": (conv, {"keras_learning_phase": np.bool_(False)}, dict(steps=4000, rate=1e-3, shift=2)),
    }
    for name, (build, serving, settings) in recipes.items():
        graph_def = train(build, images, labels, **settings)
        path = os.path.join(args.out, "models", name, "1", "frozen.pb")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(graph_def.SerializeToString(deterministic=True))
        expected = classes(graph_def, test_images, serving)
        os.makedirs(os.path.join(args.out, "expected_classes"), exist_ok=True)
        expected.tofile(os.path.join(args.out, "expected_classes", name + ".u8"))
        print(f"{name}: {os.path.getsize(path)} bytes, accuracy {(expected == test_labels).mean():.4f},"
              f" ops {sorted({node.op for node in graph_def.node})}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
