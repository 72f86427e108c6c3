"""What the benchmarks of the served model share: servers, and the load of `floectl bench`."""
import contextlib
import json
import os
import socket
import subprocess
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(argv, port):
    """The process, once something listens on `port`."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return process
        if process.poll() is not None:
            raise SystemExit(f"{argv[0]} ended with {process.returncode}")
        time.sleep(0.1)
    process.kill()
    raise SystemExit(f"{argv[0]} does not listen on {port}")


@contextlib.contextmanager
def running(argv, port):
    process = start(argv, port)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def serving(build, argv, port):
    """floed, once its models serve."""
    with running(argv, port) as process:
        status = [os.path.join(build, "floectl"), "status", "--target", f"127.0.0.1:{port}"]
        end = time.monotonic() + 60
        while (done := subprocess.run(status, capture_output=True, text=True, check=False)).returncode != 0:
            if process.poll() is not None:
                raise SystemExit(f"{argv[0]} ended with {process.returncode}")
            if time.monotonic() > end:
                raise SystemExit(f"{argv[0]} does not serve:\n{done.stdout}{done.stderr}")
            time.sleep(0.1)
        yield process


def echo(build, port, like):
    """The floor: answers what the server at port `like` answered, without looking at the input."""
    return [os.path.join(build, "echo_server"), "--listen", f"127.0.0.1:{port}", "--like", f"127.0.0.1:{like}"]


def bench_argv(build, port, model, *more):
    return [os.path.join(build, "floectl"), "bench", model, "--target", f"127.0.0.1:{port}", "--json", *map(str, more)]


def load(build, port, model, *more):
    """The report of `floectl bench`."""
    done = subprocess.run(bench_argv(build, port, model, *more), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"floectl bench failed against port {port}:\n{done.stderr}")
    return json.loads(done.stdout)


def cpu_seconds(pid):
    """What the process has taken so far, threads that ended included."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        user, system = f.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def peak_rss_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))


def add_arguments(parser):
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
