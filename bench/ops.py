#!/usr/bin/env python3
"""floe and TensorFlow on graphs of one op each, one thread, as ratios from one run.

    bench/ops.py [NAME...] [--build build/release] [--seconds 0.15] [--rounds 3] [--below RATIO]

Finds ops whose kernel was forgotten. NAME: the beginning of cases' names; without any, all run. `after_conv_...` are Keras'
activations, each with the convolution and the bias before it. Both programs run in turn. Times are the least of each program's
calls, because other programs only add to them. `ratio` is TensorFlow's time by floe's: above 1, floe is faster. The
slowest come first. Calls of TensorFlow cost some 50 us each, so that a fast op says little. Needs tensorflow-cpu.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
RNG = np.random.RandomState(0)
IMAGES, ROWS, PHOTO, SOUND = [8, 64, 64, 32], [64, 1024], [1, 224, 224, 3], [1, 16000]


def weights(*shape):
    return tf.constant(RNG.randn(*shape).astype("float32") * 0.1)


def conv(shape, taps, outputs, stride=1, dilation=1):
    return shape, lambda x: tf.nn.conv2d(x, weights(*taps, shape[3], outputs), stride, "SAME", dilations=dilation)


def depthwise(size, channels, taps, stride=1):
    return [1, size, size, channels], lambda x: tf.nn.depthwise_conv2d(x, weights(taps, taps, channels, 1), [1, stride, stride, 1], "SAME")


def transposed(size, inputs, outputs, taps, stride):
    return [1, size, size, inputs], lambda x: tf.nn.conv2d_transpose(
        x, weights(taps, taps, outputs, inputs), [1, size * stride, size * stride, outputs], stride, "SAME")


def activated(function):
    return [1, 256, 256, 3], lambda x: function(tf.nn.conv2d(x, weights(3, 3, 3, 64) * 4, 1, "SAME") + weights(64))


def elementwise(function):
    return ROWS, function


def normalised(axes):
    def run(x):
        mean, variance = tf.nn.moments(x, axes, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5)
    return IMAGES, run


CASES = {name: elementwise(function) for name, function in {
    "acos": lambda x: tf.acos(tf.tanh(x)), "atan2": lambda x: tf.atan2(x, x + 1), "cast": lambda x: tf.cast(x * 100, tf.int32),
    "clip": lambda x: tf.clip_by_value(x, -0.5, 0.5), "elu": tf.nn.elu, "erf": tf.math.erf, "exp": tf.exp, "expm1": tf.math.expm1,
    "floordiv": lambda x: tf.math.floordiv(x, 0.37), "log1p": lambda x: tf.math.log1p(tf.abs(x)),
    "pow": lambda x: tf.pow(tf.abs(x) + 0.1, 2.3), "select": lambda x: tf.where(x > 0, x, x * 0.1), "sigmoid": tf.sigmoid,
    "sin": tf.sin, "softplus": tf.nn.softplus, "tan": tf.tan, "tanh": tf.tanh}.items()}
CASES.update({
    "argmax": ([64, 1000], lambda x: tf.argmax(x, -1)), "cumsum": (ROWS, lambda x: tf.cumsum(x, -1)),
    "sort": ([64, 1000], tf.sort), "topk": ([64, 1000], lambda x: tf.math.top_k(x, 5)[0]),
    "gather": ([5000, 64], lambda x: tf.gather(x, tf.constant(RNG.randint(0, 5000, 2000)))),
    "gather_nd": ([100, 100, 16], lambda x: tf.gather_nd(x, tf.constant(RNG.randint(0, 100, (3000, 2))))),
    "one_hot": ([64, 100], lambda x: tf.one_hot(tf.cast(x * 50 + 50, tf.int32), 100)),
    "segment_sum": ([3000, 16], lambda x: tf.math.unsorted_segment_sum(x, tf.constant(RNG.randint(0, 500, 3000)), 500)),
    "band_part": ([8, 64, 64], lambda x: tf.linalg.band_part(x, 0, -1)),
    "concat": (IMAGES, lambda x: tf.concat([x, x * 2], -1)), "split": (IMAGES, lambda x: tf.add_n(tf.split(x, 4, -1))),
    "pad": (IMAGES, lambda x: tf.pad(x, [[0, 0], [1, 1], [2, 2], [0, 0]])),
    "mirror_pad": (IMAGES, lambda x: tf.pad(x, [[0, 0], [1, 1], [2, 2], [0, 0]], "REFLECT")),
    "slice": (IMAGES, lambda x: x[:, 1:-1, ::2, 3:20]), "reverse": (PHOTO, lambda x: x[..., ::-1]),
    "tile": ([64, 64, 8], lambda x: tf.tile(x, [1, 2, 3])), "depth_to_space": (IMAGES, lambda x: tf.nn.depth_to_space(x, 2)),
    "bias": (IMAGES, lambda x: x + weights(32)), "planes": (IMAGES, lambda x: x + weights(64, 1, 1)),
    "distances": ([200, 32], lambda x: tf.reduce_sum((x[:, None] - x[None]) ** 2, -1)),
    "softmax": (ROWS, tf.nn.softmax), "softmax_of_ten": ([256, 10], tf.nn.softmax), "softmax_along_1": (IMAGES, lambda x: tf.nn.softmax(x, 1)),
    "lrn": (IMAGES, tf.nn.lrn), "layer_norm": normalised([-1]), "instance_norm": normalised([1, 2]),
    "matmul": ([64, 512], lambda x: tf.matmul(x, weights(512, 512))), "matmul_values": ([128, 256], lambda x: tf.matmul(x, x, transpose_b=True)),
    "batch_matmul": ([16, 64, 64], lambda x: tf.matmul(x, x)), "einsum_outer": ([64, 32], lambda x: tf.einsum("bi,bj->bij", x, x)),
    "conv_1x1": conv([1, 56, 56, 64], (1, 1), 64), "conv_3x3": conv([1, 56, 56, 64], (3, 3), 64),
    "conv_3x3_by_2": conv([1, 56, 56, 64], (3, 3), 128, 2), "conv_3x3_dilated": conv([1, 56, 56, 32], (3, 3), 32, 1, 2),
    "conv_7x7_by_2": conv(PHOTO, (7, 7), 64, 2), "conv_to_1": conv([1, 128, 128, 32], (3, 3), 1),
    "conv_of_1": conv([1, 128, 128, 1], (3, 3), 32), "conv_1x7": conv([1, 28, 28, 64], (1, 7), 64),
    "conv_groups": ([1, 28, 28, 64], lambda x: tf.nn.conv2d(x, weights(3, 3, 16, 64), 1, "SAME")),
    "depthwise_3": depthwise(56, 128, 3), "depthwise_3_by_2": depthwise(56, 128, 3, 2), "depthwise_5": depthwise(28, 128, 5),
    "depthwise_7": depthwise(28, 96, 7), "transposed_2": transposed(32, 64, 32, 2, 2), "transposed_4": transposed(32, 64, 32, 4, 2),
    "transposed_5_to_3": transposed(32, 32, 3, 5, 2),
    "conv_3d": ([1, 8, 32, 32, 16], lambda x: tf.nn.conv3d(x, weights(3, 3, 3, 16, 32), [1, 1, 1, 1, 1], "SAME")),
    "transposed_3d": ([1, 8, 16, 16, 16], lambda x: tf.nn.conv3d_transpose(x, weights(2, 2, 2, 8, 16), [1, 16, 32, 32, 8], [1, 2, 2, 2, 1])),
    "conv_1d": ([1, 1000, 32], lambda x: tf.nn.conv1d(x, weights(5, 32, 64), 1, "SAME")),
    "max_pool_2": (IMAGES, lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID")), "max_pool_3": (IMAGES, lambda x: tf.nn.max_pool2d(x, 3, 1, "SAME")),
    "max_pool_photo": (PHOTO, lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID")), "avg_pool": ([8, 7, 7, 512], lambda x: tf.nn.avg_pool2d(x, 7, 1, "VALID")),
    "resize_bilinear": ([1, 480, 640, 3], lambda x: tf1.image.resize_bilinear(x, [224, 224])),
    "resize_nearest": ([1, 64, 64, 32], lambda x: tf1.image.resize_nearest_neighbor(x, [128, 128])),
    "crop_and_resize": ([1, 64, 64, 16], lambda x: tf.image.crop_and_resize(
        x, tf.constant(RNG.rand(20, 4).astype("float32")), tf.zeros(20, tf.int32), [14, 14])),
    "standardize": (PHOTO, tf.image.per_image_standardization), "hsv": (PHOTO, lambda x: tf.image.rgb_to_hsv(tf.abs(x))),
    "rfft": ([16, 1024], lambda x: tf.abs(tf.signal.rfft(x))), "stft": (SOUND, lambda x: tf.abs(tf.signal.stft(x, 400, 160, 512))),
    "non_max_suppression": ([200, 4], lambda x: tf.image.non_max_suppression(tf.abs(x), tf.constant(RNG.rand(200).astype("float32")), 50)),
})
# As Keras 3 writes them into a graph.
ACTIVATIONS = {
    "none": lambda x: x, "relu": tf.nn.relu, "relu6": tf.nn.relu6, "leaky_relu": tf.nn.leaky_relu, "elu": tf.nn.elu, "selu": tf.nn.selu,
    "celu": lambda x: tf.maximum(x, 0) + tf.math.expm1(tf.minimum(x, 0)), "gelu": tf.nn.gelu,
    "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True), "silu": lambda x: x * tf.sigmoid(x), "sigmoid": tf.sigmoid, "tanh": tf.tanh,
    "softplus": tf.nn.softplus, "softsign": tf.nn.softsign, "exponential": tf.exp,
    "hard_sigmoid": lambda x: tf.nn.relu6(x + 3) / 6, "hard_sigmoid_2": lambda x: tf.clip_by_value(x * 0.2 + 0.5, 0, 1),
    "hard_silu": lambda x: x * (tf.nn.relu6(x + 3) / 6), "hard_tanh": lambda x: tf.clip_by_value(x, -1, 1),
    "mish": lambda x: x * tf.tanh(tf.nn.softplus(x)), "log_sigmoid": tf.math.log_sigmoid,
    "squareplus": lambda x: (x + tf.sqrt(x * x + 4)) / 2, "tanh_shrink": lambda x: x - tf.tanh(x),
    "soft_shrink": lambda x: tf.where(x > 0.5, x - 0.5, tf.where(x < -0.5, x + 0.5, tf.zeros_like(x))),
    "hard_shrink": lambda x: tf.where(tf.abs(x) > 0.5, x, tf.zeros_like(x)),
    "threshold": lambda x: tf.where(x > 0.1, x, tf.constant(0.2)),
    "sparse_plus": lambda x: tf.where(x <= -1, tf.zeros_like(x), tf.where(x < 1, (x + 1) ** 2 / 4, x)),
    "sparse_sigmoid": lambda x: tf.where(x <= -1, 0.0, tf.where(x >= 1, 1.0, 0.5 * (x + 1)))}
CASES.update({"after_conv_" + name: activated(function) for name, function in ACTIVATIONS.items()})
for axes in ([0], [1], [3], [1, 2], [1, 3]):
    CASES["sum_" + "".join(map(str, axes))] = (IMAGES, lambda x, axes=axes: tf.reduce_sum(x, axes))
for order in ([0, 3, 1, 2], [0, 2, 3, 1], [0, 2, 1, 3], [3, 2, 1, 0]):
    CASES["transpose_" + "".join(map(str, order))] = (IMAGES, lambda x, order=order: tf.transpose(x, order))


class TensorFlow:
    def __init__(self, graph):
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        self.session = tf1.Session(graph=graph, config=config)
        self.call = self.session.make_callable("y:0", ["x:0"])

    def us(self, values, seconds):
        for _ in range(5):
            self.call(values)
        least, end = np.inf, time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            self.call(values)
            least = min(least, time.perf_counter() - start)
        return least * 1e6


class Floe:
    def __init__(self, graph, values, floectl, folder):
        self.floectl, self.model, self.inputs = floectl, os.path.join(folder, "graph.pb"), os.path.join(folder, "in.npz")
        with open(self.model, "wb") as f:
            f.write(graph.as_graph_def().SerializeToString())
        np.savez(self.inputs, x=values)

    def us(self, seconds):
        done = subprocess.run([self.floectl, "bench", self.model, "--inputs", self.inputs, "--seconds", str(seconds), "--json"],
                              check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["min_us"]


def times_of(case, args, folder):
    """floe's and TensorFlow's."""
    shape, build = case
    graph = tf.Graph()
    with graph.as_default():
        tf.identity(build(tf1.placeholder("float32", shape, name="x")), name="y")
    values = RNG.randn(*shape).astype("float32")
    theirs, ours = TensorFlow(graph), Floe(graph, values, os.path.join(args.build, "floectl"), folder)
    with theirs.session:
        rounds = [(ours.us(args.seconds), theirs.us(values, args.seconds)) for _ in range(args.rounds)]
    return map(min, zip(*rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--below", type=float, default=np.inf, help="show ratios below this alone")
    args = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if args.names and not name.startswith(tuple(args.names)):
                continue
            ours, theirs = times_of(case, args, folder)
            found.append((theirs / ours, name, ours, theirs))
    print("| op | floe us | TensorFlow us | ratio |\n| --- | --- | --- | --- |")
    for ratio, name, ours, theirs in sorted(found):
        if ratio < args.below:
            print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
