"""A server that is asked for more than it can do, or whose kernel does not come back."""
import os
import threading
import time

import grpc
import numpy as np
import pytest
import tensorflow as tf

from floed import MNIST, NOT_SERVING, SERVING, Floed, Manager, predict_request

SECONDS = float(os.environ.get("FLOE_OVERLOAD_SECONDS", "8"))  # the figure to reach is for 60
WATCHDOG_SECONDS = 3.0
DEADLINE_SECONDS = 0.5
ROWS = 64
Code = grpc.StatusCode


class Load:
    """Calls of many digits, without waiting for their answers; counts how they ended."""

    def __init__(self, client):
        self.call = client.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        self.request = predict_request("mnist_conv", {"input": np.zeros([ROWS, 784], np.float32)}).SerializeToString()
        self.codes, self.lock = {}, threading.Condition()
        self.open = 0

    def send(self):
        with self.lock:
            self.open += 1
        self.call.future(self.request, timeout=DEADLINE_SECONDS).add_done_callback(self.ended)

    def ended(self, future):
        with self.lock:
            self.codes[future.code()] = self.codes.get(future.code(), 0) + 1
            self.open -= 1
            self.lock.notify_all()

    def keep(self, calls, seconds):
        """Keeps so many open; answers a second."""
        end = time.monotonic() + seconds
        before = self.codes.get(Code.OK, 0)
        while time.monotonic() < end:
            with self.lock:
                self.lock.wait_for(lambda: self.open < calls)
            self.send()
        return (self.codes.get(Code.OK, 0) - before) / seconds

    def offer(self, rate, seconds):
        start = time.monotonic()
        for i in range(int(rate * seconds)):
            time.sleep(max(0, start + i / rate - time.monotonic()))  # the pace of the load
            self.send()
        with self.lock:
            assert self.lock.wait_for(lambda: self.open == 0, timeout=60)


@pytest.fixture
def watched(tmp_path):
    """A server with a watchdog, and when it was fed."""
    config = tmp_path / "floe.yaml"  # one worker: its clients are to be the stronger
    config.write_text(f"models: [{{name: mnist_conv, base_path: {MNIST}/models/mnist_conv, workers: 1}}]\n")
    manager = Manager(str(tmp_path))
    floed = Floed("--config", str(config), wait=False,
                  env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1e6))})
    manager.wait_for("READY=1")
    fed = []

    def listen():
        for words in manager.messages():
            if "STOPPING=1" in words:
                return
            if "WATCHDOG=1" in words:
                fed.append(time.monotonic())
    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    yield floed, fed
    floed.close()
    thread.join()


def test_the_watchdog_is_fed_at_three_times_the_peak(watched):
    floed, fed = watched
    with floed.client() as client:
        load = Load(client)
        peak = load.keep(16, 2)
        begin = time.monotonic()
        before = dict(load.codes)
        load.offer(3 * peak, SECONDS)
        end = time.monotonic()
        ended = {code.name: count - before.get(code, 0) for code, count in load.codes.items()}
        assert client.check("model/mnist_conv") == SERVING
    times = [begin, *(t for t in list(fed) if begin < t < end), end]
    longest = max(b - a for a, b in zip(times, times[1:]))
    print(f"watchdog: {len(times) - 2} pings in {end - begin:.1f} s at 3 x {peak:.0f} requests/s of {ROWS} rows, "
          f"{longest:.2f} s apart at most (fewer than {WATCHDOG_SECONDS}); {ended}")
    assert longest < WATCHDOG_SECONDS
    assert set(ended) <= {"OK", "DEADLINE_EXCEEDED", "UNAVAILABLE"}
    assert ended["OK"] > 0 and sum(ended.values()) > ended["OK"]


def test_a_full_queue_says_when_to_come_again(tmp_path):
    config = tmp_path / "floe.yaml"  # room for two requests, which wait for more of their kind
    config.write_text(f"models: [{{name: m, base_path: {MNIST}/models/mnist_conv, "
                      "batching: {batch_timeout_micros: 60000000, max_enqueued_bytes: 7000}}]\n")
    floed = Floed("--config", str(config))
    with floed.client() as client:
        request = predict_request("m", {"input": np.zeros([1, 784], np.float32)})
        calls, ended = [client.prediction.Predict.future(request) for _ in range(3)], threading.Event()
        for call in calls:
            call.add_done_callback(lambda _: ended.set())
        assert ended.wait(60)
        refused = [call for call in calls if call.done()]
        assert refused[0].code() == grpc.StatusCode.UNAVAILABLE, refused[0].details()
        assert int(dict(refused[0].trailing_metadata())["grpc-retry-pushback-ms"]) >= 1
        for call in calls:
            call.cancel()
    floed.close()


def endless(folder):
    """A model that counts down its input, and never arrives when that is above zero."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], name="x")
        y = tf.while_loop(lambda v: tf.reduce_any(v > 0), lambda v: v * 1.5, [x])
        tf.identity(y, name="y")
    (folder / "1").mkdir(parents=True)
    (folder / "1/frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())


def test_a_stuck_kernel_is_seen_and_neighbours_serve(tmp_path):
    endless(tmp_path / "endless")
    config = tmp_path / "floe.yaml"
    config.write_text(f"models:\n  - {{name: endless, base_path: {tmp_path}/endless}}\n"
                      f"  - {{name: fine, base_path: {tmp_path}/endless}}\n")
    floed = Floed("--config", str(config))
    done = np.zeros([1, 4], np.float32)
    with floed.client() as client:
        states, neighbour = client.watch("model/endless"), client.watch("model/fine")
        assert next(states).status == SERVING and next(neighbour).status == SERVING
        assert client.predict("endless", {"x": done}).outputs
        stuck = client.prediction.Predict.future(predict_request("endless", {"x": done + 1}))
        assert next(states).status == NOT_SERVING  # after ten seconds without progress
        assert client.check("model/fine") == SERVING and client.check("") == SERVING
        assert client.predict("fine", {"x": done}).outputs
        stuck.cancel()
        assert next(states).status == SERVING
        assert client.predict("endless", {"x": done}).outputs
        assert client.check("model/fine") == SERVING
        neighbour.cancel()
        states.cancel()
    assert "'endless' makes no progress" in floed.log()
    floed.close()
