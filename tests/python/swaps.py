"""Hot swaps under predicting clients, and what they leave behind in memory.

    $(scripts/pyenv.sh) tests/python/swaps.py [--swaps 1000] [--clients 20] [--rows 1] [--kib 1024] [--poll SECONDS] [--json FILE]

A model whose answer tells its version is replaced again and again while clients call it: every call must succeed, and
every reply must be one version's. Versions are put in place complete and found after SIGHUP, or by polling. Prints how
many calls were made, how many failed, and how the server's memory has grown. Runs in the environment of
scripts/pyenv.sh.
"""
import argparse
import json
import multiprocessing
import os
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import get_model_status_pb2

from floed import Client, Floed, predict_request

AVAILABLE = get_model_status_pb2.ModelVersionStatus.AVAILABLE
START = get_model_status_pb2.ModelVersionStatus.START
LOADING = get_model_status_pb2.ModelVersionStatus.LOADING
UNLOADING = get_model_status_pb2.ModelVersionStatus.UNLOADING


def graph(version, kib):
    """y[?, n] = x[?, k] . w with every weight `version`: ones give k * version everywhere. `kib` of weights."""
    k, n = 256, max(1, kib)
    definition = tf.compat.v1.GraphDef()
    x = definition.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = tf.float32.as_datatype_enum
    x.attr["shape"].shape.dim.add(size=-1)
    x.attr["shape"].shape.dim.add(size=k)
    w = definition.node.add(name="w", op="Const")
    w.attr["dtype"].type = tf.float32.as_datatype_enum
    w.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.full((k, n), version, np.float32)))
    y = definition.node.add(name="y", op="MatMul", input=["x", "w"])
    y.attr["T"].type = tf.float32.as_datatype_enum
    return definition.SerializeToString(), k


class Versions:
    """The versions on disk. A new one appears complete, by renaming; all but the last few are deleted."""

    def __init__(self, folder, kib, keep=3):
        self.base, self.kib, self.keep, self.newest = os.path.join(folder, "swapped"), kib, keep, 0
        os.mkdir(self.base)
        self.width = graph(1, 1)[1]

    def add(self):
        self.newest += 1
        path = os.path.join(self.base, f"new-{self.newest}")
        os.mkdir(path)
        with open(os.path.join(path, "frozen.pb"), "wb") as f:
            f.write(graph(self.newest, self.kib)[0])
        os.rename(path, os.path.join(self.base, str(self.newest)))
        if self.newest > self.keep:
            shutil.rmtree(os.path.join(self.base, str(self.newest - self.keep)))


def call_until(target, width, rows, ready, stop, counts, problems):
    """One client: `ready` is released after its first call, `counts` gets how many there were."""
    x = np.ones((rows, width), np.float32)
    request = predict_request("swapped", {"x": x})
    calls = 0
    with Client(target) as client:
        while not stop.is_set():
            try:
                reply = client.prediction.Predict(request, timeout=60)
            except grpc.RpcError as error:
                problems.put(f"{error.code()}: {error.details()}")
                continue
            finally:
                calls += 1
                if calls == 1:
                    ready.release()
            version = reply.model_spec.version.value
            values = np.array(reply.outputs["y"].float_val, np.float32)
            if len(values) == 0 or not (values == width * version).all():
                problems.put(f"version {version} answered {sorted(set(values.tolist()))[:5]}")
    counts.put(calls)


def client_process(threads, *args):
    started = [threading.Thread(target=call_until, args=args)
               for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


class Clients:
    """`count` clients in a few processes, calling while in the `with` block; `calls` and `problems` afterwards."""

    def __init__(self, target, width, rows, count):
        context = multiprocessing.get_context("spawn")
        self.ready, self.stop = context.Semaphore(0), context.Event()
        self.counts, self.queue = context.Queue(), context.Queue()
        processes = min(4, count)
        shares = [count // processes + (i < count % processes) for i in range(processes)]
        self.count, self.calls, self.problems = count, 0, []
        self.processes = [context.Process(target=client_process, args=(
            share, target, width, rows, self.ready, self.stop, self.counts, self.queue)) for share in shares]

    def __enter__(self):
        for process in self.processes:
            process.start()
        for _ in range(self.count):
            assert self.ready.acquire(timeout=120)
        return self

    def __exit__(self, *_):
        self.stop.set()
        for _ in range(self.count):
            self.calls += self.counts.get(timeout=300)
        while not self.queue.empty():
            self.problems.append(self.queue.get())
        for process in self.processes:
            process.join()


def states(client):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "swapped"
    reply = client.models.GetModelStatus(request, timeout=60)
    return {one.version: one.state for one in reply.model_version_status}


def wait_for(client, version, floed, pause):
    """Until `version` is available and nothing else is on its way."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        now = states(client)
        if now.get(version) == AVAILABLE and not any(s in (START, LOADING, UNLOADING) for s in now.values()):
            return
        pause.wait(0.005)
    raise AssertionError(f"version {version} did not come: {states(client)}\n{floed.log()[-4000:]}")


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def run(swaps, clients, rows=1, kib=1024, poll=0, rss_after=10):
    """The figures, as a dict. Memory is compared with that after `rss_after` swaps, when everything has been used: medians
    of 25 looks each, since what is in flight comes and goes."""
    folder = tempfile.mkdtemp(prefix="swaps")
    pause = threading.Event()
    try:
        versions = Versions(folder, kib)
        versions.add()
        config = os.path.join(folder, "floe.yaml")
        with open(config, "w", encoding="utf-8") as f:
            # A batch size chosen by measurement may differ between versions, and their memory with it.
            f.write(f"lifecycle: {{file_system_poll_wait_seconds: {poll}}}\n"
                    f"models: [{{name: swapped, base_path: {versions.base}, batching: {{max_batch_size: 16}}}}]\n")
        floed = Floed("--config", config)
        rss = []
        with floed.client() as client, Clients(floed.target, versions.width, rows, clients) as callers:
            for _ in range(swaps):
                versions.add()
                if not poll:
                    floed.process.send_signal(signal.SIGHUP)
                wait_for(client, versions.newest, floed, pause)
                rss.append(rss_kib(floed.process.pid))
        floed.close()
    finally:
        shutil.rmtree(folder)
    base = statistics.median(rss[rss_after:rss_after + 25] or rss)
    last = statistics.median(rss[-25:])
    return {"swaps": swaps, "clients": clients, "calls": callers.calls, "problems": callers.problems,
            "rss_kib_at_start": base, "rss_kib_at_end": last, "rss_growth_percent": 100 * (last - base) / base,
            "rss_kib": rss}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1, help="of a request")
    parser.add_argument("--kib", type=int, default=1024, help="of weights")
    parser.add_argument("--poll", type=int, default=0, help="file_system_poll_wait_seconds; 0: SIGHUP")
    parser.add_argument("--json", help="also write the figures to this file")
    args = parser.parse_args()
    figures = run(args.swaps, args.clients, args.rows, args.kib, args.poll)
    for problem in figures["problems"][:10]:
        print(problem)
    print(f"{figures['swaps']} swaps under {figures['clients']} clients: {figures['calls']} calls, "
          f"{len(figures['problems'])} failed or mixed; RSS {figures['rss_kib_at_start']:.0f} KiB -> "
          f"{figures['rss_kib_at_end']:.0f} KiB ({figures['rss_growth_percent']:+.2f} %)")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(figures, f, indent=1)
    return 1 if figures["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
