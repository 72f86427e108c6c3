#!/usr/bin/env python3
"""What clients that keep to no rule do to floed and to its other callers (docs/security.md).

    $(scripts/pyenv.sh) bench/attacks.py [--build build/release] [--seconds 8] [--most-rss-mb 6000] [--tls] [--floed ARGUMENT]... [ATTACK...]

Each attack runs against a floed of its own on loopback, for a bounded time and with a bounded number of messages, and
stops when floed's memory reaches the bound. Printed: floed's memory before, at most and 5 s after; the CPU it took;
how long a neighbour's calls took before and meanwhile, on a connection it had and on new ones; how long the
watchdog had to wait, whose probe is due every 0.75 s; and how often the server cut an attacker's connection. With
--table: a row of Markdown for each attack. Attackers are nice and come from an address of their own: they stand for other
machines. A neighbour that shared the CPU with them would wait for them, and not for floed.

    headers     2 connections that send header blocks of 16 MB again and again
    resets      4 connections that open streams and reset them at once
    streams     100,000 streams opened on 4 connections that never acknowledge SETTINGS
    gzip        a compressed message that becomes 1 GB
    unfinished  16 messages of 200 MB that never end
    replies     200 replies of 64 MB that nobody reads
    claims      1,000 small messages that stand for 256 MB each, of which the model takes none
    splats      1,000 small messages that stand for 64 MB each, all of which the model takes
    reflection  20,000 requests for descriptors whose answers nobody reads
    silent      500 connections that say nothing
    literal     a header of 1 GiB in CONTINUATION frames
    fields      header blocks with 4,000 fields of 1 kB
    empty       CONTINUATION frames without content
    references  header blocks of references to one entry of the HPACK table of 4 kB
    provoked    streams that the server must reset: WINDOW_UPDATEs of 0 and beyond the limit
    pings, settings, updates, priorities: floods of such frames
    bytes       DATA frames of one byte
    slow        500 connections that send a byte of their head each second
    bodies      500 uploads of a byte each second
    idle        connections that say nothing after the preface; --idle N of them
    files       300 connections to a floed that may open 64 files
    smuggled, lines, pipelined: HTTP/1.1 with shapes that proxies disagree on, lines of 1 MB, and requests whose
                answers nobody reads
    handshakes, halves: handshakes of TLS without end, and such that stop in the middle; need --tls
"""
import argparse
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "tests/python"))
import http2  # noqa: E402
from attack_kinds import ATTACKS, FRAMES, MB, PLAIN, TLS, Attack, field, in_thread, splat, varint  # noqa: E402

class Watchdog:
    """The receiving end of floed's watchdog messages, one due every 0.75 s."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.fed = []
        in_thread(self.run)

    def environment(self):
        return {**os.environ, "NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": "1500000"}

    def run(self):
        while True:
            if "WATCHDOG=1" in self.socket.recv(65536).decode().split("\n"):
                self.fed.append(time.monotonic())

    def longest(self, begin, end):
        """Seconds without a message, at most, within these times."""
        times = [begin, *(at for at in list(self.fed) if begin < at < end), end]
        return max(later - earlier for earlier, later in zip(times, times[1:]))


class Watch:
    """floed's memory and CPU from outside."""

    def __init__(self, pid):
        self.pid, self.most, self.stopped = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def rss_mb(self):
        try:
            with open(f"/proc/{self.pid}/statm", encoding="ascii") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") / MB
        except (OSError, IndexError):
            return 0

    def cpu_seconds(self):
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
                parts = f.read().rsplit(")", 1)[1].split()
            return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            return 0

    def run(self):
        while not self.stopped.wait(0.05):
            self.most = max(self.most, self.rss_mb())


def neighbour(target, ca):
    """In a process of its own: calls without end; a line each: known or new, when it began, how long it took, its code."""
    import grpc  # pylint: disable=import-outside-toplevel
    request = splat("mnist_beginner", [1, 784], b"input")
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]

    def call(channel, path, payload):
        begin, code = time.monotonic(), "OK"
        try:
            channel.unary_unary(path)(payload, timeout=40, wait_for_ready=True)
        except grpc.RpcError as error:
            code = error.code().name
        return begin, time.monotonic() - begin, code

    def channel_to():
        if not ca:
            return grpc.insecure_channel(target, options=options)
        with open(ca, "rb") as f:
            return grpc.secure_channel(target, grpc.ssl_channel_credentials(f.read()),
                                       options=[*options, ("grpc.ssl_target_name_override", "localhost")])

    def known():
        channel = channel_to()
        while True:
            begin, took, code = call(channel, "/grpc.health.v1.Health/Check", b"")
            os.write(1, f"known {begin} {took} {code}\n".encode())
            time.sleep(0.02)

    def new():
        while True:
            with channel_to() as channel:
                begin, took, code = call(channel, http2.PREDICT, request)
            os.write(1, f"new {begin} {took} {code}\n".encode())
            time.sleep(0.1)
    threading.Thread(target=new, daemon=True).start()
    known()


def worst_p99_ms(lines, begin, end):
    """The larger of the two kinds'."""
    worst = 0
    for kind in ("known", "new"):
        times = sorted(took for k, at, took, _ in lines if k == kind and begin <= at < end)
        if times:
            worst = max(worst, times[min(len(times) - 1, int(0.99 * len(times)))] * 1e3)
    return worst


def quantiles(lines, begin, end):
    """"p99 / most ms (calls)" of the calls that began between, by kind of connection."""
    texts = []
    for kind in ("known", "new"):
        times = sorted(took for k, at, took, _ in lines if k == kind and begin <= at < end)
        failed = sum(code not in ("OK", "INVALID_ARGUMENT") for k, at, _, code in lines if k == kind and begin <= at < end)
        if not times:
            texts.append(f"{kind}: none")
            continue
        p99 = times[min(len(times) - 1, int(0.99 * len(times)))]
        texts.append(f"{kind} {p99 * 1e3:.1f} / {times[-1] * 1e3:.1f} of {len(times)}" + (f", {failed} failed" if failed else ""))
    return "; ".join(texts)


def wide_model(folder):
    """y = x, float32 of any length."""
    graph = b""
    for name, op, inputs in (("x", b"Placeholder", []), ("y", b"Identity", [b"x"])):
        kind = b"dtype" if op == b"Placeholder" else b"T"
        node = field(1, name.encode()) + field(2, op) + b"".join(field(3, i) for i in inputs)
        node += field(5, field(1, kind) + field(2, b"\x30\x01"))
        if op == b"Placeholder":
            unknown = field(2, b"\x08" + b"\xff" * 9 + b"\x01")
            node += field(5, field(1, b"shape") + field(2, field(7, unknown)))
        graph += field(1, node)
    os.makedirs(os.path.join(folder, "wide/1"))
    with open(os.path.join(folder, "wide/1/frozen.pb"), "wb") as f:
        f.write(graph + field(4, b"\x08" + varint(1395)))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def front(args, floed, folder):
    """Starts the proxy of --nginx in front of floed: its process and address."""
    listen = f"127.0.0.1:{free_port()}"
    with open(os.path.join(ROOT, "examples/front/nginx.conf"), encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"listen .*;", f"listen {listen} http2;", text).replace("server 127.0.0.1:8500;", f"server {floed};")
    text = re.sub(r" *ssl_certificate.*\n", "", text).replace("http {", "http { access_log off; " + "".join(
        f"{what}_temp_path {folder}/{what}; " for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")))
    os.chmod(folder, 0o755)  # its workers are another user's
    config = os.path.join(folder, "nginx.conf")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\n" + text)
    return subprocess.Popen([args.nginx, "-p", folder, "-c", config], stderr=subprocess.DEVNULL), listen  # pylint: disable=consider-using-with


def encryption(args, folder):
    if not args.tls:
        return []
    import conformance  # pylint: disable=import-outside-toplevel
    certificate, key, _ = conformance.make_certificates(folder)
    return [f"--tls_certificate={certificate}", f"--tls_key={key}"]


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def run(args, name):
    with tempfile.TemporaryDirectory() as folder:
        wide_model(folder)
        config = os.path.join(folder, "floe.yaml")
        with open(config, "w", encoding="utf-8") as f:
            more = "".join(", " + key for key in args.server)
            f.write(f"server: {{enable_reflection: {'true' if name == 'reflection' else 'false'}{more}}}\nmodels:\n"
                    f"  - {{name: mnist_beginner, base_path: {ROOT}/examples/mnist/models/mnist_beginner}}\n"
                    f"  - {{name: wide, base_path: {folder}/wide}}\n")
        target = f"127.0.0.1:{free_port()}"
        log = open(os.path.join(folder, "log"), "wb")  # pylint: disable=consider-using-with
        watchdog = Watchdog(folder)
        floed = subprocess.Popen([os.path.join(args.build, "floed"), "--config", config,  # pylint: disable=consider-using-with
                                  f"--port={target.rsplit(':', 1)[1]}", *encryption(args, folder),
                                  *args.floed], stdout=log, stderr=log, preexec_fn=few_files if name == "files" else None,
                                 env=watchdog.environment())
        proxy = None
        if args.nginx:
            proxy, target = front(args, target, folder)
        other = subprocess.Popen([sys.executable, __file__, "--neighbour", target,
                                  "--ca", f"{folder}/ca.pem" if args.tls else ""], stdout=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with
        lines = []

        def collect():
            for line in other.stdout:
                kind, begin, took, code = line.split()
                lines.append((kind, float(begin), float(took), code))
        in_thread(collect)
        watch = Watch(floed.pid)
        try:
            while not any(kind == "new" and code == "OK" for kind, _, _, code in lines) and floed.poll() is None:
                time.sleep(0.1)
                if sum(kind == "new" for kind, *_ in lines) > 100:
                    break
            time.sleep(3)
            attack = Attack(target, args.seconds, lambda: not 0 < watch.rss_mb() < args.most_rss_mb)
            begin, rss, cpu = time.monotonic(), watch.rss_mb(), watch.cpu_seconds()
            watch.most = rss
            attack.idle_connections = args.idle
            attack.begin(name)
            end, used = time.monotonic(), watch.cpu_seconds() - cpu
            time.sleep(1)
            most, cuts = watch.most, attack.cuts()
            attack.close()
            time.sleep(5)
            if args.table:
                print(f"| {name} | {rss:.0f} -> {most:.0f} -> {watch.rss_mb():.0f} | {100 * used / (end - begin):.0f} % | "
                      f"{worst_p99_ms(lines, begin - 3, begin):.0f} -> {worst_p99_ms(lines, begin, end):.0f} | {cuts} |", flush=True)
                return
            print(f"{name:<11} RSS MB {rss:.0f} -> {most:.0f} -> {watch.rss_mb():.0f}; CPU {used:.1f} s in {end - begin:.1f} s"
                  + (f"; floed ended with {floed.poll()}" if floed.poll() is not None else ""), flush=True)
            print(f"{'':<11} neighbour's p99 / most ms: before {quantiles(lines, begin - 3, begin)}; "
                  f"meanwhile {quantiles(lines, begin, end)}", flush=True)
            print(f"{'':<11} watchdog's longest wait: {watchdog.longest(begin, end):.2f} s; cut {cuts} times", flush=True)
            if args.log:
                with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as f:
                    print(f.read()[-args.log:])
        finally:
            if proxy is not None:
                proxy.terminate()
                proxy.wait()
            other.kill()
            floed.kill()
            other.wait()
            floed.wait()
            log.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="of " + ", ".join(ATTACKS))
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--most-rss-mb", type=float, default=6000)
    parser.add_argument("--floed", action="append", default=[], metavar="ARGUMENT", help="for floed, e.g. --floed=--port=1")
    parser.add_argument("--server", action="append", default=[], metavar="'KEY: VALUE'", help="of floe.yaml's section")
    parser.add_argument("--log", type=int, default=0, help="characters of floed's log to print")
    parser.add_argument("--nginx", help="nginx, to be attacked in front of floed, with examples/front/nginx.conf")
    parser.add_argument("--tls", action="store_true", help="floed and the neighbour speak TLS; only handshakes and halves attack it")
    parser.add_argument("--idle", type=int, default=20000, metavar="N", help="connections of the attack idle")
    parser.add_argument("--table", action="store_true", help="rows of Markdown")
    parser.add_argument("--neighbour", help=argparse.SUPPRESS)
    parser.add_argument("--ca", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.neighbour:
        return neighbour(args.neighbour, args.ca)
    if args.table:
        print("| Attack | RSS in MB: before, at most, 5 s after | CPU | Neighbour's p99 in ms: before, meanwhile | Cut |")
        print("| --- | --- | --- | --- | --- |")
    for name in args.attacks or (TLS if args.tls else FRAMES + PLAIN):
        if name not in ATTACKS:
            parser.error(f"no attack {name}; there are {', '.join(ATTACKS)}")
        run(args, name)
    return None


if __name__ == "__main__":
    main()
