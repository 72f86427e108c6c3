#!/usr/bin/env python3
"""floe on a GPU against ONNX Runtime's CUDA provider (use_tf32 0 and 1) and torch, in turns, as one table and one JSON.

    bench/gpu.py make FOLDER [--models DIR]       on any machine with TensorFlow: the models, in both formats where tf2onnx is
    bench/gpu.py run FOLDER [--device 0] [--build build/release] [--rounds 5] [--seconds 0.5] [--json FILE] [--quick]
    bench/gpu.py run FOLDER --dry-run             says what it would run; nothing is started

`make` copies the reference models (../shared/models, or DIR), and writes resnet50 and large_1400, whose weights are random. `run`
needs numpy, and for the peers onnxruntime-gpu and torch with onnx2torch. What is missing is named and left out. Each call has
its inputs and outputs on the host, for all. Times are the least of the rounds' medians. Last come the figures that floe has set
itself, with what was measured. Exit status 1: floe gave no time for a model. --quick: one short round, to try the script.
"""
import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

visible = os.environ.get("CUDA_VISIBLE_DEVICES")
import numpy as np

import peers
import serving_kit

# On import, peers hides the GPUs from TensorFlow.
if visible is None:
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
else:
    os.environ["CUDA_VISIBLE_DEVICES"] = visible

# Model, batch, and the figure to reach: the least ratio to ONNX Runtime with use_tf32=0, or the most microseconds.
FIGURES = [("resnet50", 64, {"ratio": 0.9}), ("transformer", 64, {"ratio": 0.9}), ("medium_1400", 32, {"ratio": 2.0}),
           ("large_1400", 32, {"ratio": 2.0}), ("tiny_dense", 1, {"us": 15.0})]
OTHER_BATCHES = [1, 32]
SERVED = {"model": "resnet50", "clients": 64, "least": 0.85}  # of the engine's rows a second at a batch of as many


# ---- the peers, each in a process of its own ----

def onnx_file(path):
    """What `make` has left beside the graph; None: it is made from the graph now."""
    beside = os.path.join(os.path.dirname(path), "model.onnx")
    return beside if os.path.exists(beside) else None


def onnxruntime(path, feeds, fetches, tf32):
    import onnxruntime as ort
    with tempfile.TemporaryDirectory() as folder:
        onnx = onnx_file(path) or peers.to_onnx(path, feeds, fetches, folder)
        session = ort.InferenceSession(onnx, providers=[("CUDAExecutionProvider", {"use_tf32": tf32})])
    if session.get_providers()[0] != "CUDAExecutionProvider":
        raise RuntimeError("it computes on the CPU: its CUDA provider does not load")
    values = {i.name: feeds[i.name.split(":")[0]] for i in session.get_inputs()}
    return lambda: session.run(None, values)


def torch(path, feeds, fetches, _):
    import onnx2torch
    import torch as t
    t.backends.cuda.matmul.allow_tf32 = t.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        onnx = onnx_file(path) or peers.to_onnx(path, feeds, fetches, folder)
        model = onnx2torch.convert(onnx).cuda().eval()
        names = onnx_inputs(onnx)
    values = [t.from_numpy(feeds[name]) for name in names]

    def call():
        with t.inference_mode():
            made = model(*[value.cuda() for value in values])
            return [one.cpu() for one in (made if isinstance(made, (list, tuple)) else [made])]
    return call


def onnx_inputs(onnx):
    import onnx as o
    return [i.name.split(":")[0] for i in o.load(onnx, load_external_data=False).graph.input]


PEERS = {"ort": lambda *call: onnxruntime(*call[:3], "0"), "ort_tf32": lambda *call: onnxruntime(*call[:3], "1"), "torch": torch}
PACKAGES = {"ort": ["onnxruntime"], "ort_tf32": ["onnxruntime"], "torch": ["torch", "onnx2torch", "onnx"]}


def missing():
    """By peer: the packages that it needs and that are not here."""
    gone = {name: [p for p in packages if importlib.util.find_spec(p) is None] for name, packages in PACKAGES.items()}
    return {name: packages for name, packages in gone.items() if packages}


# ---- models ----

def write_frozen(keras_model, shape, folder):
    """graph.pb, and io.npz with one row and what TensorFlow answers."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    call = tf.function(lambda x: keras_model(x, training=False))
    frozen = convert_variables_to_constants_v2(call.get_concrete_function(tf.TensorSpec([None, *shape], tf.float32, name="input")))
    os.makedirs(folder)
    with open(os.path.join(folder, "graph.pb"), "wb") as f:
        f.write(frozen.graph.as_graph_def().SerializeToString())
    x = np.random.default_rng(1).random((1, *shape), np.float32)
    name = frozen.inputs[0].name.split(":")[0], frozen.outputs[0].name.split(":")[0]
    np.savez(os.path.join(folder, "io.npz"), **{"in__" + name[0]: x, "out__" + name[1]: frozen(tf.constant(x))[0].numpy()})


def make_models(folder):
    import tensorflow as tf
    keras = tf.keras
    keras.utils.set_random_seed(1)
    write_frozen(keras.applications.ResNet50(weights=None), (224, 224, 3), os.path.join(folder, "resnet50"))
    chain = [keras.layers.Input((1400, 30))]
    chain += [keras.layers.Conv1D(n, 20, activation="relu") for n in (128, 256, 512, 512, 256, 128)]
    chain += [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
    write_frozen(keras.Sequential(chain), (1400, 30), os.path.join(folder, "large_1400"))


def make(args):
    os.makedirs(args.folder, exist_ok=True)
    if os.path.isdir(args.models):
        for name in sorted(os.listdir(args.models)):
            if os.path.exists(os.path.join(args.models, name, "io.npz")):
                shutil.copytree(os.path.join(args.models, name), os.path.join(args.folder, name))
    else:
        print(f"{args.models}: there is no such folder, its models are left out", file=sys.stderr)
    make_models(args.folder)
    if importlib.util.find_spec("tf2onnx") is None:
        print("tf2onnx is not installed: `run` will need it for the peers, with TensorFlow", file=sys.stderr)
        return 0
    for name in models_in(args.folder):
        path = os.path.join(args.folder, name, "graph.pb")
        feeds, fetches = peers.of_folder(os.path.dirname(path), 1)
        try:
            peers.to_onnx(path, feeds, fetches, os.path.dirname(path))
        except subprocess.CalledProcessError:
            print(f"{name}: tf2onnx cannot convert it; the peers do without", file=sys.stderr)
    return 0


def models_in(folder):
    return sorted(name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "io.npz")))


# ---- what is measured ----

def wanted_of(name, batch):
    return next((figure for model, rows, figure in FIGURES if (model, rows) == (name, batch)), {})


def calls_of(models):
    """(model, batch): those of the figures first."""
    calls = [(model, batch) for model, batch, _ in FIGURES if model in models]
    calls += [(model, batch) for model in models for batch in OTHER_BATCHES if (model, batch) not in calls]
    return calls


def measure(args, name, batch, names, folder):
    path = os.path.join(args.folder, name, "graph.pb")
    feeds, fetches = peers.of_folder(os.path.dirname(path), batch)
    inputs, for_peers = os.path.join(folder, "in.npz"), os.path.join(folder, "peers.npz")
    np.savez(inputs, **feeds)
    np.savez(for_peers, fetches=np.array(fetches), **{"in__" + key: value for key, value in feeds.items()})
    row = {"model": name, "batch": batch, "errors": {}, "floe": None, **{peer: None for peer in PEERS}}
    others = [peers.Peer(peer, path, for_peers, 1, __file__) for peer in names]
    rounds = {"floe": [], **{peer: [] for peer in names}}
    for _ in range(args.rounds):
        try:
            rounds["floe"].append(peers.floe(args, path, inputs, fetches, ["--device", f"cuda:{args.device}"]))
        except peers.FloeFailed as error:
            row["errors"]["floe"] = str(error)
        for peer in others:
            if (figures := peer.measure(args.seconds)) and "p50_us" in figures:
                rounds[peer.name].append(figures)
    for peer in others:
        if "error" in peer.loaded:
            row["errors"][peer.name] = peer.loaded["error"]
        peer.end()
    for engine, figures in rounds.items():
        row[engine] = min(figures, key=lambda f: f["p50_us"]) if figures else None
    row["ratio"] = row["ort"]["p50_us"] / row["floe"]["p50_us"] if row["ort"] and row["floe"] else None
    return row


CONFIG = """server: {{port: 0}}
models:
  - name: {name}
    base_path: {base}
    device: cuda:{device}
    batching: {{max_batch_size: {rows}}}
"""


def served(args, row, folder):
    """Calls a second of clients that send one row each, as a part of the engine's rows a second."""
    name, clients = SERVED["model"], SERVED["clients"]
    version = os.path.join(folder, name, "1")
    os.makedirs(version)
    os.symlink(os.path.abspath(os.path.join(args.folder, name, "graph.pb")), os.path.join(version, "graph.pb"))
    config = os.path.join(folder, "floe.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(CONFIG.format(name=name, base=os.path.join(folder, name), device=args.device, rows=clients))
    port = serving_kit.free_port()
    argv = [os.path.join(args.build, "floed"), "--config", config, f"--port={port}"]
    with serving_kit.serving(args.build, argv, port):
        out = serving_kit.load(args.build, port, name, "--batch", 1, "--concurrency", clients, "--seconds", max(3, args.seconds))
    engine = clients / row["floe"]["p50_us"] * 1e6
    return {"model": name, "clients": clients, "calls_per_second": out["calls_per_second"], "engine_rows_per_second": engine,
            "part": out["calls_per_second"] / engine}


# ---- what is printed ----

def time_of(row, engine):
    return f"{row[engine]['p50_us']:.4g}" if row[engine] else "-"


def print_row(row):
    wanted = row["wanted"]
    goal = f"ratio {wanted['ratio']}" if "ratio" in wanted else f"{wanted['us']} us" if "us" in wanted else ""
    cells = [row["model"], str(row["batch"])] + [time_of(row, engine) for engine in ("floe", *PEERS)]
    print("| " + " | ".join(cells + [f"{row['ratio']:.2f}" if row["ratio"] else "-", goal]) + " |", flush=True)
    for engine, error in row["errors"].items():
        print(f"{row['model']}: {engine}: {error}", file=sys.stderr)


def judge(rows, of_served):
    """Each figure: what was wanted, what was measured (None: nothing), whether that is enough."""
    figures = []
    for model, batch, wanted in FIGURES:
        row = next((r for r in rows if (r["model"], r["batch"]) == (model, batch)), None)
        for kind, limit in wanted.items():
            got = None if row is None else row["ratio"] if kind == "ratio" else row["floe"] and row["floe"]["p50_us"]
            met = None if got is None else got >= limit if kind == "ratio" else got <= limit
            figures.append({"figure": f"{model} batch {batch}: " + ("ratio to ort" if kind == "ratio" else "us"), "wanted": limit,
                            "measured": got, "met": met})
    part = of_served and of_served.get("part")
    figures.append({"figure": f"{SERVED['clients']} clients of {SERVED['model']}: part of the engine's rows a second",
                    "wanted": SERVED["least"], "measured": part, "met": part and part >= SERVED["least"]})
    return figures


def device_name(index):
    try:
        done = subprocess.run(["nvidia-smi", "-i", str(index), "--query-gpu=name,driver_version", "--format=csv,noheader"],
                              check=False, capture_output=True, text=True)
    except OSError:
        return "unknown: there is no nvidia-smi"
    return done.stdout.strip() or "unknown: nvidia-smi names none"


def run(args):
    if args.quick:
        args.rounds, args.seconds = 1, 0.01
    gone, models = missing(), models_in(args.folder)
    for peer, packages in gone.items():
        print(f"{peer} is left out: {' and '.join(packages)} not installed")
    for name in sorted({model for model, _, _ in FIGURES} - set(models)):
        print(f"{name} is left out: not in {args.folder}")
    names = [peer for peer in PEERS if peer not in gone]
    if args.dry_run:
        for name, batch in calls_of(models):
            path = os.path.join(args.folder, name, "graph.pb")
            fetches = peers.of_folder(os.path.dirname(path), batch)[1]
            print(" ".join(peers.floe_argv(args, path, "INPUTS", fetches, ["--device", f"cuda:{args.device}"])), "against", *names)
        return 0
    result = {"device": device_name(args.device), "missing": gone, "rows": [], "served": None}
    print("| Model | Batch | floe us | " + " | ".join(PEERS) + " | ratio to ort | wanted |")
    print("| --- " * (5 + len(PEERS)) + "|")
    for name, batch in calls_of(models):
        with tempfile.TemporaryDirectory() as folder:
            row = measure(args, name, batch, names, folder) | {"wanted": wanted_of(name, batch)}
            result["rows"].append(row)
            print_row(row)
            if (name, batch) == (SERVED["model"], SERVED["clients"]) and row["floe"]:
                try:
                    result["served"] = served(args, row, folder)
                except SystemExit as error:
                    result["served"] = {"error": str(error)}
    result["figures"] = judge(result["rows"], result["served"])
    for figure in result["figures"]:
        said = {True: "met", False: "NOT met", None: "not measured"}[figure["met"]]
        print(f"{figure['figure']}: wanted {figure['wanted']}, measured {figure['measured'] or '-'}: {said}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
    return 0 if result["rows"] and all(row["floe"] for row in result["rows"]) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("folder")
    maker.add_argument("--models", default=os.path.join(peers.ROOT, "..", "shared", "models"))
    runner = commands.add_parser("run")
    runner.add_argument("folder")
    runner.add_argument("--device", type=int, default=0)
    runner.add_argument("--build", default=os.path.join(peers.ROOT, "build/release"), help="where floectl and floed are")
    runner.add_argument("--rounds", type=int, default=5)
    runner.add_argument("--seconds", type=float, default=0.5, help="of each engine in a round")
    runner.add_argument("--json", help="also write the figures to this file")
    runner.add_argument("--quick", action="store_true")
    runner.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    args.threads = 1
    return make(args) if args.command == "make" else run(args)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        peers.PEERS.update(PEERS)
        peers.serve(*sys.argv[2:5], int(sys.argv[5]))
    else:
        sys.exit(main())
