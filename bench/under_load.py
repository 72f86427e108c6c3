#!/usr/bin/env python3
"""How a loaded floed behaves, as ratios from one run (docs/performance.md).

    bench/under_load.py [--build build/release] [FIGURE...]

    tail       p99.9 / p50 at half of the peak, arrivals at random, against the echo server at the same rate
    batching   64 callers of single rows against the engine alone at batch 64; p99 / p50
    overload   throughput at 150 % of the peak against the peak, with a deadline of 200 ms
    refusal    how soon a full queue refuses
    neighbour  p99 of a model while another gets ten times its load, against alone
    loading    p99 of a model while a large one is loaded again and again, against without
    first      the first request after READY against the median of the next thousand

`--model PATH` names the model of `batching` (a directory with one, its file, or a name in ../shared/models) and may name that of
`overload`, `--large PATH` that of `loading`; figures whose models are not given are left out. Without FIGURE: all.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from serving_kit import ROOT, add_arguments, bench_argv, echo, free_port, load, running, serving

DIGIT = 1  # row of a call
DIGITS = 16  # rows: enough work for a server to be the limit, and not its client on the same machine
MNIST = os.path.join(ROOT, "examples/mnist/models")


class Floed:
    """floed's argv for some models: {name: base_path}, with settings they share."""

    def __init__(self, args, models, folder, settings=""):
        self.port = free_port()
        config = os.path.join(folder, f"{self.port}.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write("models:\n" + "".join(f"  - {{name: {n}, base_path: {p}{settings}}}\n" for n, p in models.items()))
        self.argv = [os.path.join(args.build, "floed"), "--config", config, f"--port={self.port}"]


def peak(args, port, model, rows, concurrency=16):
    return load(args.build, port, model, "--batch", rows, "--concurrency", concurrency, "--seconds", args.seconds)["calls_per_second"]


def open_loop(args, port, model, rows, rate, *more):
    seconds = max(args.seconds, 1000 / rate)  # ten requests beyond p99, or it is the luck of one
    return load(args.build, port, model, "--batch", rows, "--rate", rate, "--seconds", seconds, *more)


def quantile(rounds, name):
    return statistics.median(r["latency_us"][name] for r in rounds)


def tail(args, folder):
    floed, floor = Floed(args, {"m": MNIST + "/mnist_beginner"}, folder), free_port()
    with serving(args.build, floed.argv, floed.port), running(echo(args.build, floor, floed.port), floor):
        rate = peak(args, floed.port, "m", DIGIT) / 2
        rounds = {port: [] for port in (floor, floed.port)}
        for _ in range(args.rounds):
            for port, found in rounds.items():
                found.append(open_loop(args, port, "m", DIGIT, rate))
    spread = {port: quantile(found, "p99.9") / quantile(found, "p50") for port, found in rounds.items()}
    print(f"tail: p99.9 / p50 at {rate:.0f} requests/s: echo {spread[floor]:.1f}, floed {spread[floed.port]:.1f}, "
          f"ratio {spread[floed.port] / spread[floor]:.2f} (at most 1.5)")


def engine_rows_per_second(args, batch):
    """floectl bench, one thread."""
    out = subprocess.run([os.path.join(args.build, "floectl"), "bench", args.model, "--batch", str(batch), "--json",
                          "--seconds", str(args.seconds)], capture_output=True, text=True, check=True).stdout
    return batch * 1e6 / json.loads(out)["p50_us"]


def batching(args, folder):
    if not args.model:
        return
    floed = Floed(args, {"m": args.model}, folder)
    with serving(args.build, floed.argv, floed.port):
        served, engine = [], []
        for _ in range(args.rounds):
            served.append(load(args.build, floed.port, "m", "--batch", 1, "--concurrency", 64, "--connections", 4,
                               "--seconds", args.seconds))
            engine.append(engine_rows_per_second(args, 64))
    throughput = statistics.median(r["calls_per_second"] for r in served)
    print(f"batching: {throughput:.0f} rows/s served, {statistics.median(engine):.0f} in process, ratio "
          f"{throughput / statistics.median(engine):.2f} (at least 0.95); p99 / p50 "
          f"{quantile(served, 'p99') / quantile(served, 'p50'):.1f} (at most 3)")


def overload(args, folder):
    model, rows = (args.model, 1) if args.model else (MNIST + "/mnist_conv", DIGITS)
    floed = Floed(args, {"m": model}, folder)
    ratios, errors = [], {}
    with serving(args.build, floed.argv, floed.port):
        for _ in range(args.rounds):
            best = peak(args, floed.port, "m", rows, 64)
            out = open_loop(args, floed.port, "m", rows, 1.5 * best, "--concurrency", 20000, "--timeout", 0.2, "--no-fail")
            ratios.append(out["calls_per_second"] / best)
            for name, found in out["errors"].items():
                errors[name] = errors.get(name, 0) + found["count"]
    print(f"overload: at 150 % of a peak of {best:.0f} requests/s throughput is {statistics.median(ratios):.2f} of it "
          f"(at least 0.95; rounds: {', '.join(f'{r:.2f}' for r in ratios)}); refused or late: {errors}")


@contextlib.contextmanager
def meanwhile(pressure):
    """`pressure`, a function that ends when the event it gets is set, runs in a thread of its own."""
    stop = threading.Event()
    thread = threading.Thread(target=pressure, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def p99s(args, ports, rows, rate):
    """The median p99 of model `a` behind each port, measured by turns."""
    rounds = [[open_loop(args, port, "a", rows, rate) for port in ports] for _ in range(args.rounds)]
    return [quantile(found, "p99") for found in zip(*rounds)]


def neighbour(args, folder):
    floed = Floed(args, {"a": MNIST + "/mnist_conv", "b": MNIST + "/mnist_conv"}, folder)
    with serving(args.build, floed.argv, floed.port):
        rate = peak(args, floed.port, "a", DIGITS) / 15

        def ten_times(stop):
            # Nice: it stands for clients elsewhere, and must not hold up the one that measures.
            argv = ["nice", "-n", "10", *bench_argv(args.build, floed.port, "b", "--batch", DIGITS, "--rate", 10 * rate,
                                                    "--seconds", args.seconds, "--no-fail")]
            while not stop.is_set():
                subprocess.run(argv, capture_output=True, check=False)
        [alone] = p99s(args, [floed.port], DIGITS, rate)
        with meanwhile(ten_times):
            [beside] = p99s(args, [floed.port], DIGITS, rate)
    print(f"neighbour: p99 {alone:.0f} us alone, {beside:.0f} us beside ten times its load, ratio {beside / alone:.2f} "
          f"(at most 1.5)")


def loading(args, folder):
    if not args.large:
        return
    floed, floor = Floed(args, {"a": MNIST + "/mnist_beginner"}, folder), free_port()
    ports = floed.port, floor

    def load_again(stop):
        small = {"a": MNIST + "/mnist_beginner"}
        for both in (True, False) * 1000:
            if stop.is_set():
                return
            reload_models(args, floed.port, {**small, "large": args.large} if both else small, folder)
    with serving(args.build, floed.argv, floed.port), running(echo(args.build, floor, floed.port), floor):
        # At a quarter of the peak the client and the server have no CPU to spare on a machine of two: at a tenth they do.
        rate = peak(args, floed.port, "a", DIGIT) / 10
        alone = p99s(args, ports, DIGIT, rate)
        with meanwhile(load_again):
            beside = p99s(args, ports, DIGIT, rate)
    ratio, machine = (b / a for a, b in zip(alone, beside))
    print(f"loading: at {rate:.0f} requests/s p99 {alone[0]:.0f} us, {beside[0]:.0f} us while a large model loads, ratio "
          f"{ratio:.2f} (at most 1.25); meanwhile that of the echo server, which loads nothing: {machine:.2f}")


def reload_models(args, port, models, folder):
    """Through HandleReloadConfigRequest."""
    file = os.path.join(folder, "models.config")
    with open(file, "w", encoding="utf-8") as f:
        f.write("model_config_list {\n" + "".join(
            f'  config {{ name: "{n}" base_path: "{p}" model_platform: "tensorflow" }}\n'
            for n, p in models.items()) + "}\n")
    subprocess.run([os.path.join(args.build, "floectl"), "config", "apply", "--target", f"127.0.0.1:{port}", file],
                   capture_output=True, check=True)


def clients():
    """tests/python/floed.py, which needs the clients' packages: run it with $(scripts/pyenv.sh)."""
    sys.path.insert(0, os.path.join(ROOT, "tests/python"))
    import floed
    return floed


def refusal(args, folder):
    import grpc
    import numpy as np

    kit = clients()
    # Room for two requests, which wait for more of their kind.
    floed = Floed(args, {"m": MNIST + "/mnist_conv"}, folder,
                  ", batching: {batch_timeout_micros: 3000000, max_enqueued_bytes: 7000}")
    request = kit.predict_request("m", {"input": np.zeros([1, 784], np.float32)})
    times = []
    with serving(args.build, floed.argv, floed.port), kit.Client(f"127.0.0.1:{floed.port}") as client:
        while len(times) < 1000:
            waiting = [client.prediction.Predict.future(request) for _ in range(2)]
            while not any(w.done() for w in waiting):
                begin = time.perf_counter()
                try:
                    client.prediction.Predict(request)
                except grpc.RpcError as error:
                    if error.code() == grpc.StatusCode.UNAVAILABLE:
                        times.append(time.perf_counter() - begin)
    print(f"refusal: a full queue refuses in {1e3 * statistics.median(times):.2f} ms, p99 "
          f"{1e3 * statistics.quantiles(times, n=100)[-1]:.2f} ms (under 5), as its client sees it")


def first(args, folder):
    import numpy as np

    kit = clients()
    row = {"input": np.zeros([1, 784], np.float32)}
    ratios, floors = [], []
    for _ in range(args.rounds):
        floed = Floed(args, {"warm": MNIST + "/mnist_beginner", "m": MNIST + "/mnist_conv"}, folder)
        with serving(args.build, floed.argv, floed.port), kit.Client(f"127.0.0.1:{floed.port}") as client:
            next(iter(client.watch("model/m")))  # waits until the port is open
            while client.check("model/m") != 1:
                time.sleep(0.01)
            request = kit.predict_request("m", row)

            def after_others():
                for _ in range(100):
                    client.predict("warm", row)  # the connection, and the client itself
                return timed()

            def timed():
                begin = time.perf_counter()
                client.prediction.Predict(request)
                return time.perf_counter() - begin

            first_one = after_others()
            usual = statistics.median(timed() for _ in range(1000))
            ratios.append(first_one / usual)
            floors += [after_others() / usual for _ in range(5)]
    print(f"first: the first request takes {statistics.median(ratios):.2f} x the median of the next thousand "
          f"(at most 1.2); one after a hundred to another model, with all long in use: {statistics.median(floors):.2f}")


FIGURES = {f.__name__: f for f in (tail, batching, overload, refusal, neighbour, loading, first)}


def model_path(text):
    """A path, or the name of a model of the examples or of the data beside the checkout."""
    for folder in (MNIST, os.path.join(ROOT, "../shared/models")):
        if not os.path.exists(text) and os.path.exists(os.path.join(folder, text)):
            return os.path.realpath(os.path.join(folder, text))
    return os.path.abspath(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--model", type=model_path, help="of `batching` and `overload`")
    parser.add_argument("--large", type=model_path, help="of `loading`")
    parser.add_argument("figures", nargs="*", metavar="FIGURE", choices=[*FIGURES, []], help=", ".join(FIGURES))
    args = parser.parse_args()
    for path in (args.model, args.large):
        if path and not os.path.exists(path):
            parser.error(f"there is no {path}: give the path of a directory with a model's file, or of that file")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.figures or FIGURES:
            FIGURES[name](args, folder)


if __name__ == "__main__":
    sys.exit(main())
