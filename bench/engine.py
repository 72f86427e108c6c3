#!/usr/bin/env python3
"""The engine against TensorFlow, in one process and one thread each, on the same frozen graph, as ratios from one run.

    bench/engine.py MODEL.pb... [--batch 1 32] [--build build/release] [--json FILE]

floe is timed by `floectl bench`, TensorFlow by Session.make_callable, the cheapest way it has to run a graph.
Needs tensorflow-cpu and numpy; `$(scripts/pyenv.sh) bench/engine.py ...` has them.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


def load(path):
    graph_def = tf1.GraphDef()
    with open(path, "rb") as f:
        graph_def.ParseFromString(f.read())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    return graph


def ends(graph, batch):
    """Placeholders with values to feed them, and output 0 of the nodes that nothing consumes."""
    rng = np.random.default_rng(1)
    feeds, consumed = {}, set()
    for op in graph.get_operations():
        consumed.update([t.op.name for t in op.inputs] + [other.name for other in op.control_inputs])
        if op.type == "Placeholder":
            tensor = op.outputs[0]
            dims = tensor.shape.as_list() if tensor.shape.rank is not None else []
            shape = [batch if i == 0 and d is None else d or 1 for i, d in enumerate(dims)]
            kind = tensor.dtype.as_numpy_dtype
            feeds[tensor] = rng.random(shape).astype(kind) if tensor.dtype.is_floating else np.zeros(shape, kind)
    ignored = {"Const", "Placeholder", "NoOp", "Assert"}
    return feeds, [op.outputs[0] for op in graph.get_operations()
                   if op.name not in consumed and op.type not in ignored and op.outputs]


def tensorflow_us(graph, feeds, fetches, seconds):
    options = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf1.Session(graph=graph, config=options) as session:
        call = session.make_callable(fetches, list(feeds))
        values = list(feeds.values())
        end, samples = time.perf_counter() + seconds / 10, []
        while time.perf_counter() < end:
            call(*values)
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end or len(samples) < 3:
            call(*values)
            samples.append((time.perf_counter() - start) * 1e6)
    return float(np.median(samples))


def floe(args, path, feeds, fetches):
    with tempfile.TemporaryDirectory() as folder:
        inputs = os.path.join(folder, "in.npz")
        np.savez(inputs, **{tensor.op.name: value for tensor, value in feeds.items()})
        argv = [os.path.join(args.build, "floectl"), "bench", path, "--inputs", inputs, "--threads", "1",
                "--seconds", str(args.seconds), "--json"]
        for tensor in fetches:
            argv += ["--fetch", tensor.name]
        return json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.pb")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--json", help="also write the figures to this file")
    args = parser.parse_args()

    rows = []
    print(f"{'model':40s} {'batch':>5s} {'floe us':>10s} {'TensorFlow us':>14s} {'times faster':>12s} {'load ms':>8s}")
    for path in args.models:
        graph = load(path)
        for batch in args.batch:
            feeds, fetches = ends(graph, batch)
            mine, theirs = floe(args, path, feeds, fetches), tensorflow_us(graph, feeds, fetches, args.seconds)
            rows.append({"model": path, "batch": batch, "floe": mine, "tensorflow_p50_us": theirs,
                         "ratio": theirs / mine["p50_us"]})
            name = os.sep.join(path.split(os.sep)[-3:])[-40:]
            print(f"{name:40s} {batch:5d} {mine['p50_us']:10.2f} {theirs:14.2f} {rows[-1]['ratio']:12.2f}"
                  f" {mine['load_ms']:8.2f}", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    sys.exit(main())
