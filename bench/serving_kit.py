"""What the benchmarks of the served model share: servers, and the kit's load generator."""
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
        while subprocess.run(status, capture_output=True, check=False).returncode != 0:
            if process.poll() is not None:
                raise SystemExit(f"{argv[0]} ended with {process.returncode}")
            time.sleep(0.1)
        yield process


def echo(kit, port):
    """The floor: answers ten floats without looking at the input."""
    return [os.path.join(kit, "echo_server"), "--mode", "callback", "--listen", f"127.0.0.1:{port}",
            "--output-floats", "10"]


def loadgen_argv(kit, port, model, tensor, *more):
    return [os.path.join(kit, "loadgen"), "--target", f"127.0.0.1:{port}", "--model", model, "--input", tensor,
            "--json", *map(str, more)]


def load(kit, port, model, tensor, *more):
    """The load generator's report."""
    done = subprocess.run(loadgen_argv(kit, port, model, tensor, *more), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"loadgen failed against port {port}:\n{done.stderr}")
    return json.loads(done.stdout)


def add_arguments(parser):
    parser.add_argument("--kit", required=True, help="build of the benchmark kit, with echo_server and loadgen")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
