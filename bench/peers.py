#!/usr/bin/env python3
"""floe, TensorFlow, ONNX Runtime and OpenVINO on the same frozen graph and the same threads, as ratios from one run.

    bench/peers.py MODEL... [--batch 1 32] [--threads 1] [--peers tensorflow onnxruntime openvino]
                            [--build build/release] [--rounds 5] [--seconds 0.5] [--json FILE]

MODEL is a frozen GraphDef, or a folder with graph.pb and io.npz (arrays in__NAME to feed and out__NAME to fetch). All take turns
for some rounds. Times are the least of the rounds' medians, because other programs only add to them; p99 is that of the same
round. `ratio` is the best peer's time by floe's: above 1, floe is faster. FLOE_FORCE_ISA lowers floe's instruction set alone.
A peer whose package is missing, or that cannot load the graph, has a dash. Needs tensorflow-cpu, and for the other peers
onnxruntime with tf2onnx, and openvino.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


# ---- the peers, each in a process of its own ----

def graph_def_of(path):
    import tensorflow as tf
    graph_def = tf.compat.v1.GraphDef()
    with open(path, "rb") as f:
        graph_def.ParseFromString(f.read())
    return graph_def


def tensorflow(path, feeds, fetches, threads):
    import tensorflow as tf
    tf1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def_of(path), name="")
    options = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
    session = tf1.Session(graph=graph, config=options)
    call = session.make_callable([name + ":0" for name in fetches], [name + ":0" for name in feeds])  # its cheapest way
    values = list(feeds.values())
    return lambda: call(*values)


def to_onnx(path, feeds, fetches, folder):
    """The frozen graph as model.onnx in `folder`."""
    onnx = os.path.join(folder, "model.onnx")
    subprocess.run([sys.executable, "-m", "tf2onnx.convert", "--graphdef", path, "--output", onnx, "--opset", "17",
                    "--inputs", ",".join(name + ":0" for name in feeds),
                    "--outputs", ",".join(name + ":0" for name in fetches)], check=True, capture_output=True)
    return onnx


def onnxruntime(path, feeds, fetches, threads):
    import onnxruntime as ort
    with tempfile.TemporaryDirectory() as folder:
        onnx = to_onnx(path, feeds, fetches, folder)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    values = {i.name: feeds[i.name.split(":")[0]] for i in session.get_inputs()}
    return lambda: session.run(None, values)


def openvino(path, feeds, fetches, threads):
    import openvino as ov
    model = ov.convert_model(path, input=[(name + ":0", list(value.shape)) for name, value in feeds.items()],
                             output=[name + ":0" for name in fetches])
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                      "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    values = {}
    for i, port in enumerate(compiled.inputs):
        names = {name.split(":")[0] for name in port.get_names()}
        values[i] = next(feeds[name] for name in feeds if name in names)
    return lambda: request.infer(values)


PEERS = {"tensorflow": tensorflow, "onnxruntime": onnxruntime, "openvino": openvino}


def serve(name, path, inputs, threads):
    """A peer's process: loads, then measures once for each line it reads."""
    arrays = np.load(inputs)
    feeds = {key[4:]: arrays[key] for key in arrays.files if key.startswith("in__")}
    fetches = [str(key) for key in arrays["fetches"]]
    try:
        start = time.perf_counter()
        call = PEERS[name](path, feeds, fetches, threads)
        call()
        print(json.dumps({"load_ms": (time.perf_counter() - start) * 1e3}), flush=True)
    except Exception as error:  # whatever a peer raises, it has no figure
        print(json.dumps({"error": str(error).strip().splitlines()[-1][:200] if str(error).strip() else repr(error)}), flush=True)
        return
    for line in sys.stdin:
        seconds, samples = float(line), []
        end = time.perf_counter() + seconds / 10
        while time.perf_counter() < end:
            call()
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end or len(samples) < 3:
            call()
            samples.append((time.perf_counter() - start) * 1e6)
        print(json.dumps({"p50_us": float(np.median(samples)), "p99_us": float(np.percentile(samples, 99)),
                          "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


class Peer:
    def __init__(self, name, path, inputs, threads, script=__file__):
        self.name = name
        self.process = subprocess.Popen([sys.executable, os.path.abspath(script), "--serve", name, path, inputs, str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.loaded = self.read()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        return {"error": "ended without a word"}

    def measure(self, seconds):
        if "error" in self.loaded:
            return None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


# ---- what is measured ----

def of_graph(path, batch):
    """Placeholders with values to feed them, and the nodes that nothing consumes."""
    import tensorflow as tf
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def_of(path), name="")
    rng = np.random.default_rng(1)
    feeds, consumed = {}, set()
    for op in graph.get_operations():
        consumed.update([t.op.name for t in op.inputs] + [other.name for other in op.control_inputs])
        if op.type == "Placeholder":
            tensor = op.outputs[0]
            dims = tensor.shape.as_list() if tensor.shape.rank is not None else []
            shape = [batch if i == 0 and d is None else d or 1 for i, d in enumerate(dims)]
            kind = tensor.dtype.as_numpy_dtype
            feeds[op.name] = rng.random(shape).astype(kind) if tensor.dtype.is_floating else np.zeros(shape, kind)
    ignored = {"Const", "Placeholder", "NoOp", "Assert"}
    return feeds, [op.name for op in graph.get_operations()
                   if op.name not in consumed and op.type not in ignored and op.outputs]


def of_folder(folder, batch):
    arrays = np.load(os.path.join(folder, "io.npz"))
    feeds = {}
    for key in arrays.files:
        if key.startswith("in__"):
            value = arrays[key]
            feeds[key[4:]] = np.resize(value, (batch, *value.shape[1:])) if value.ndim else value
    return feeds, [key[5:] for key in arrays.files if key.startswith("out__")]


class FloeFailed(SystemExit):
    """With what floectl said."""


def floe_argv(args, path, inputs, fetches, more=()):
    argv = [os.path.join(args.build, "floectl"), "bench", path, "--inputs", inputs, "--threads", str(args.threads),
            "--seconds", str(args.seconds), "--json", *more]
    for name in fetches:
        argv += ["--fetch", name]
    return argv


def floe(args, path, inputs, fetches, more=()):
    argv = floe_argv(args, path, inputs, fetches, more)
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        raise FloeFailed(f"{' '.join(argv)}: {done.stderr.strip()}")
    figures = json.loads(done.stdout)
    return {"p50_us": figures["p50_us"], "p99_us": figures["p99_us"], "load_ms": figures["load_ms"],
            "rss_mb": figures["peak_rss_bytes"] / 2**20}


def measure(args, model, batch, folder):
    path = os.path.join(model, "graph.pb") if os.path.isdir(model) else model
    feeds, fetches = of_folder(model, batch) if os.path.isdir(model) else of_graph(path, batch)
    inputs, for_peers = os.path.join(folder, "in.npz"), os.path.join(folder, "peers.npz")
    np.savez(inputs, **feeds)
    np.savez(for_peers, fetches=np.array(fetches), **{"in__" + name: value for name, value in feeds.items()})
    peers = [Peer(name, path, for_peers, args.threads) for name in args.peers]
    rounds = {"floe": []} | {peer.name: [] for peer in peers}
    for _ in range(args.rounds):
        rounds["floe"].append(floe(args, path, inputs, fetches))
        for peer in peers:
            if (figures := peer.measure(args.seconds)) and "p50_us" in figures:
                rounds[peer.name].append(figures)
    row = {"model": os.path.basename(os.path.normpath(model)), "batch": batch, "threads": args.threads,
           "errors": {peer.name: peer.loaded["error"] for peer in peers if "error" in peer.loaded}}
    for peer in peers:
        peer.end()
    for name, figures in rounds.items():
        row[name] = min(figures, key=lambda f: f["p50_us"]) if figures else None
    times = [row[name]["p50_us"] for name in args.peers if row[name]]
    row["ratio"] = min(times) / row["floe"]["p50_us"] if times else None
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--batch", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each engine in a round")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--json", help="also write the figures to this file")
    args = parser.parse_args()
    for model in args.models:
        if not os.path.exists(os.path.join(model, "graph.pb") if os.path.isdir(model) else model):
            parser.error(f"{model}: no frozen graph")

    print("| Model | Batch | floe ms | " + " | ".join(args.peers) + " | ratio | floe p99 : p50 | floe loads in | floe RSS |")
    print("| --- " * (7 + len(args.peers)) + "|")
    rows = []
    for model in args.models:
        for batch in args.batch:
            with tempfile.TemporaryDirectory() as folder:
                row = measure(args, model, batch, folder)
            rows.append(row)
            mine = row["floe"]
            cells = [row["model"], str(batch), f"{mine['p50_us'] / 1e3:.3g}"]
            cells += [f"{row[name]['p50_us'] / 1e3:.3g}" if row[name] else "-" for name in args.peers]
            cells += [f"{row['ratio']:.2f}" if row["ratio"] else "-", f"{mine['p99_us'] / mine['p50_us']:.2f}",
                      f"{mine['load_ms']:.0f} ms", f"{mine['rss_mb']:.0f} MB"]
            print("| " + " | ".join(cells) + " |", flush=True)
            for name, error in row["errors"].items():
                print(f"{row['model']}: {name}: {error}", file=sys.stderr)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:5], int(sys.argv[5]))
    else:
        main()
