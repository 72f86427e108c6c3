"""Sockets of the service manager: they outlive floed, and what comes between two processes waits for the next.

FLOE_RESTARTS=N sets the number of restarts under load (3).
"""
import os
import socket
import subprocess
import threading

import grpc
import numpy as np
import pytest

from floed import FLOED, MNIST, SERVING, Client, digits, predict_request

RESTARTS = int(os.environ.get("FLOE_RESTARTS", "3"))


class SocketUnit:
    """The listening socket, and floed with it as systemd starts it (sd_listen_fds(3))."""

    def __init__(self, *args):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.target = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.args = args
        self.process = None

    def start(self):
        fd = self.socket.fileno()
        # A shell puts the descriptor and the process's own number in place, then becomes floed.
        script = f'exec 3<&{fd}; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@"'
        self.process = subprocess.Popen(["bash", "-c", script, "bash", FLOED, *self.args], pass_fds=[fd],
                                        stderr=subprocess.PIPE, text=True)

    def stop(self):
        self.process.terminate()
        _, log = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, log
        return log

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.socket.close()


@pytest.fixture
def unit(tmp_path):
    config = tmp_path / "floe.yaml"
    config.write_text(f"""
server: {{drain_lame_duck_seconds: 0}}
models: [{{name: mnist_beginner, base_path: {MNIST}/models/mnist_beginner}}]
""")
    unit = SocketUnit("--config", str(config))
    yield unit
    unit.close()


def test_the_manager_s_socket_serves_and_the_log_says_so(unit):
    x = digits()[:1]
    unit.start()
    with Client(unit.target) as client:
        next(reply for reply in client.watch("model/mnist_beginner") if reply.status == SERVING)
        client.predict("mnist_beginner", {"input": x})
    log = unit.stop()
    assert unit.target in log and "service manager" in log


def test_no_call_fails_over_restarts(unit):
    x = digits()
    done, failures = [0] * 4, []
    leaving = threading.Event()

    def caller(n):  # as clients are that know nothing of restarts: no retry policy, no wait_for_ready
        with grpc.insecure_channel(unit.target, options=[
                ("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]) as channel:
            predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict",
                                          request_serializer=lambda r: r.SerializeToString())
            while not leaving.is_set():
                request = predict_request("mnist_beginner", {"input": x[np.arange(n, n + 2)]})
                try:
                    predict(request, timeout=60)
                    done[n] += 1
                except grpc.RpcError as error:
                    failures.append(f"{error.code()}: {error.details()}")

    def more_calls():
        enough = [n + 20 for n in done]
        while any(n < m for n, m in zip(done, enough)) and not failures:
            assert unit.process.poll() is None, unit.process.stderr.read()
            leaving.wait(0.01)
        assert not failures, failures[:5]

    unit.start()
    threads = [threading.Thread(target=caller, args=(n,), daemon=True) for n in range(len(done))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(RESTARTS):
            more_calls()
            unit.stop()
            unit.start()
        more_calls()
    finally:
        leaving.set()
        for thread in threads:
            thread.join()
    unit.stop()
    print(f"{RESTARTS} restarts, {sum(done)} calls, {len(failures)} failed")
    assert not failures, failures[:5]


def test_stopping_before_it_listens_leaves_callers_to_the_next_process(unit, tmp_path):
    config = tmp_path / "loading.yaml"
    # A version that has only just been written is looked at again before it is loaded.
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "frozen.pb").write_bytes(b"half")
    config.write_text(f"models: [{{name: m, base_path: {tmp_path}/m}}]")
    unit.args = ("--config", str(config))
    with socket.create_connection(unit.socket.getsockname()) as caller:
        unit.start()
        for line in unit.process.stderr:
            if "with 1 models" in line:
                break
        log = unit.stop()
        assert "no listener was open yet" in log
        unit.socket.settimeout(10)
        waiting, peer = unit.socket.accept()
        waiting.close()
        assert peer == caller.getsockname()
