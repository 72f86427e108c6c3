#!/usr/bin/env python3
"""What each door costs, and what watching costs those who predict; ratios from one run.

    bench/doors.py [--build build/release] [--rounds 9] [--calls 2000] [--only doors|following|scrape|watched]

doors     one caller asks one floed by Predict, KServe's ModelInfer, REST v2 with binary tensors and REST v1, in turns: p50, and the
          server's CPU time a call. Requests are bytes that were made before, so that the client costs little and the same.
following what an id, a trace, times and a token cost a Predict.
scrape    how long /metrics takes with 50 models.
watched   the p99 of `floectl bench` while nobody looks, while /metrics is read each second, and while a browser would have
          the page of the model open; and again while nobody looks, which says what the noise is.

json_bench measures numbers in JSON.
"""
import argparse
import contextlib
import json
import os
import platform
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from serving_kit import ROOT, add_arguments, free_port, load, running, serving

MODEL, FEATURES = "mnist_beginner", 784


def field(number, value):
    """A field of a protobuf message: bytes, or a number."""
    def varint(n):
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes([*out, n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def predict_message(rows, values):
    shape = b"".join(field(2, field(1, dim)) for dim in (rows, FEATURES))
    tensor = field(1, 1) + field(2, shape) + field(4, values)
    return field(1, field(1, MODEL.encode())) + field(2, field(1, b"input") + field(2, tensor))


def infer_message(rows, values):
    tensor = field(1, b"input") + field(2, b"FP32") + field(3, rows) + field(3, FEATURES)
    return field(1, MODEL.encode()) + field(5, tensor) + field(7, values)


class Grpc:
    """Calls of one method with one message, by frames of HTTP/2 that differ in their stream alone."""

    FRAME = 16384

    def __init__(self, port, path, message, **more):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        headers = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "a", "te": "trailers",
                   "content-type": "application/grpc", **headers}
        block = b"".join(b"\0" + bytes([len(n)]) + n.encode() + bytes([len(v)]) + v.encode() for n, v in headers.items())
        body = b"\0" + struct.pack(">I", len(message)) + message
        pieces = [body[i:i + self.FRAME] for i in range(0, len(body), self.FRAME)]
        self.frames = [(1, 4, block)] + [(0, int(piece is pieces[-1]), piece) for piece in pieces]
        self.stream = 1
        self.buffer = b""
        # Windows that all replies fit into.
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, struct.pack(">HI", 4, 2**30)) +
                            self.frame(8, 0, 0, struct.pack(">I", 2**30)))

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def call(self, may_fail=False):
        self.socket.sendall(b"".join(self.frame(kind, flags, self.stream, payload) for kind, flags, payload in self.frames))
        answered = 0
        while True:
            while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
                more = self.socket.recv(1 << 18)
                if not more:
                    raise SystemExit("floed closed the connection")
                self.buffer += more
            size, kind, flags = int.from_bytes(self.buffer[:3], "big"), self.buffer[3], self.buffer[4]
            stream = int.from_bytes(self.buffer[5:9], "big")
            self.buffer = self.buffer[9 + size:]
            if kind == 4 and not flags:
                self.socket.sendall(self.frame(4, 1, 0, b""))
            if stream != self.stream:
                continue
            if kind == 0:
                answered += size
            if flags & 1 and kind in (0, 1):
                break
        self.stream += 2
        if not answered and not may_fail:
            raise SystemExit("floed answered with an error")
        return answered > 0


class Http:
    """The same request over one connection of HTTP/1.1."""

    def __init__(self, port, method, path, body=b"", headers=""):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = f"{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body

    def call(self):
        self.socket.sendall(self.request)
        reply = b""
        while (end := reply.find(b"\r\n\r\n")) < 0:
            reply += self.socket.recv(1 << 18)
        head = reply[:end].decode().lower()
        if " 200 " not in head.splitlines()[0] + " ":
            raise SystemExit(f"floed answered: {reply.decode(errors='replace')}")
        size = int(head.split("content-length:")[1].split()[0])
        while len(reply) < end + 4 + size:
            reply += self.socket.recv(1 << 18)
        return reply[end + 4:]


def binary(port, rows, values):
    about = json.dumps({"inputs": [{"name": "input", "shape": [rows, FEATURES], "datatype": "FP32",
                                    "parameters": {"binary_data_size": len(values)}}],
                        "parameters": {"binary_data_output": True}}).encode()
    return Http(port, "POST", f"/v2/models/{MODEL}/infer", about + values, f"Inference-Header-Content-Length: {len(about)}\r\n")


def cpu_nanoseconds(pid):
    """Of all threads. Those of floed stay."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="utf-8") as f:
            total += int(f.read().split()[0])
    return total


def measure(caller, calls, pid):
    times = []
    for _ in range(calls // 10):
        caller.call()
    before = cpu_nanoseconds(pid)
    for _ in range(calls):
        start = time.perf_counter_ns()
        caller.call()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3, (cpu_nanoseconds(pid) - before) / calls / 1e3


def doors(args):
    port = free_port()
    with serving(args.build, [os.path.join(args.build, "floed"), "--config", os.path.join(ROOT, "config/floe.yaml"), f"--port={port}"],
                 port) as floed:
        for rows in (1, 8):
            numbers = [random.random() for _ in range(rows * FEATURES)]
            values = struct.pack(f"<{len(numbers)}f", *numbers)
            as_json = json.dumps({"inputs": [numbers[i:i + FEATURES] for i in range(0, len(numbers), FEATURES)]}).encode()
            callers = {"Predict": Grpc(port, "/tensorflow.serving.PredictionService/Predict", predict_message(rows, values)),
                       "ModelInfer": Grpc(port, "/inference.GRPCInferenceService/ModelInfer", infer_message(rows, values)),
                       "REST v2, binary": binary(port, rows, values),
                       "REST v1, JSON": Http(port, "POST", f"/v1/models/{MODEL}:predict", as_json)}
            compare(f"{MODEL}, {rows} rows", args, {name: (caller, floed.pid) for name, caller in callers.items()})


def following(args):
    """Ids and times that are asked for, and callers that are known."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        tokens = os.path.join(folder, "tokens")
        token = subprocess.run([os.path.join(args.build, "floectl"), "token", "new", "--name", "bench", "--role", "infer", "--role", "read",
                                "--file", tokens], capture_output=True, text=True, check=True).stdout.strip()
        base = [f"--model_name={MODEL}", f"--model_base_path={os.path.join(ROOT, 'examples/mnist/models', MODEL)}"]
        message = predict_message(1, struct.pack(f"<{FEATURES}f", *[0.5] * FEATURES))
        ports = [free_port(), free_port()]
        floed = os.path.join(args.build, "floed")
        plain = stack.enter_context(serving(args.build, [floed, *base, f"--port={ports[0]}"], ports[0]))
        known = stack.enter_context(running([floed, *base, f"--port={ports[1]}", f"--auth_tokens_file={tokens}"], ports[1]))

        def caller(port, **headers):
            return Grpc(port, "/tensorflow.serving.PredictionService/Predict", message, **headers)
        bearer = caller(ports[1], authorization=f"Bearer {token}")
        while not bearer.call(may_fail=True):
            time.sleep(0.1)
        compare(f"{MODEL}, 1 row", args, {
            "Predict": (caller(ports[0]), plain.pid),
            "with id and trace": (caller(ports[0], x_request_id="a" * 20, traceparent=f"00-{'a' * 32}-{'b' * 16}-01"), plain.pid),
            "with times": (caller(ports[0], floe_timing="1"), plain.pid),
            "with a token": (bearer, known.pid)})


def compare(what, args, callers):
    rounds = {name: [] for name in callers}
    for _ in range(args.rounds):
        for name, (caller, pid) in callers.items():
            rounds[name].append(measure(caller, args.calls, pid))
    first = next(iter(callers))
    print(f"\n{what}       p50 us  CPU us a call    ratio to {first}: p50, CPU (medians of the rounds' ratios)")
    for name, of_name in rounds.items():
        ratios = [statistics.median(a[i] / b[i] for a, b in zip(of_name, rounds[first])) for i in (0, 1)]
        print(f"  {name:20s} {statistics.median(r[0] for r in of_name):8.1f} {statistics.median(r[1] for r in of_name):8.1f}"
              f" {ratios[0]:18.3f} {ratios[1]:8.3f}")


def scrape(args):
    port = free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        base = os.path.join(ROOT, "examples/mnist/models", MODEL)
        config.write("models:\n" + "".join(f"  - {{name: m{i}, base_path: {base}}}\n" for i in range(50)))
        config.flush()
        with serving(args.build, [os.path.join(args.build, "floed"), "--config", config.name, f"--port={port}"], port) as floed:
            for i in range(50):
                Http(port, "POST", f"/v1/models/m{i}:predict", json.dumps({"instances": [[0.0] * FEATURES]}).encode()).call()
            caller = Http(port, "GET", "/metrics")
            size = len(caller.call())
            p50, cpu = measure(caller, 200, floed.pid)
    print(f"\n/metrics with 50 models that were called: {p50 / 1e3:.2f} ms, {cpu / 1e3:.2f} ms of CPU, {size / 1024:.0f} KiB (mark: 3 ms)")


@contextlib.contextmanager
def scraped(port):
    """/metrics is read each second."""
    stopped, caller = threading.Event(), Http(port, "GET", "/metrics")
    def run():
        while not stopped.wait(1):
            caller.call()
    thread = threading.Thread(target=run)
    thread.start()
    yield
    stopped.set()
    thread.join()


@contextlib.contextmanager
def page_open(port):
    """A browser has the model's page open."""
    with socket.create_connection(("127.0.0.1", port)) as page:
        page.sendall(f"GET /page/events/{MODEL} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n".encode())
        def drain():
            with contextlib.suppress(OSError):
                while page.recv(1 << 16):
                    pass
        thread = threading.Thread(target=drain)
        thread.start()
        yield
        page.shutdown(socket.SHUT_RDWR)
        thread.join()


def watched(args):
    port = free_port()
    states = {"nobody looks": contextlib.nullcontext, "scraped each second": lambda: scraped(port),
              "page open": lambda: page_open(port), "nobody looks again": contextlib.nullcontext}
    p99 = {name: [] for name in states}
    with serving(args.build, [os.path.join(args.build, "floed"), "--config", os.path.join(ROOT, "config/floe.yaml"), f"--port={port}"], port):
        for _ in range(args.rounds):
            for name, state in states.items():
                with state():
                    report = load(args.build, port, MODEL, "--concurrency", 4, "--seconds", args.seconds)
                p99[name].append(report["latency_us"]["p99"])
    base = p99["nobody looks"]
    print(f"\np99 of 4 callers of {MODEL}, {args.rounds} rounds of {args.seconds:g} s in turns (mark: 3 % more)")
    for name, values in p99.items():
        ratios = [a / b for a, b in zip(values, base)]
        low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
        print(f"  {name:20s} {statistics.median(values):8.0f} us   ratio {statistics.median(ratios):.3f} (quartiles {low:.3f} to {high:.3f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.set_defaults(rounds=9)
    parser.add_argument("--calls", type=int, default=2000, help="of a door in a round")
    parser.add_argument("--only", choices=["doors", "following", "scrape", "watched"])
    args = parser.parse_args()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "")
    print(f"{cpu or platform.machine()}, {os.cpu_count()} CPUs; load before: {os.getloadavg()[0]:.1f}")
    for name, run in (("doors", doors), ("following", following), ("scrape", scrape), ("watched", watched)):
        if args.only in (None, name):
            run(args)


if __name__ == "__main__":
    sys.exit(main())
