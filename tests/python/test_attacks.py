"""Clients that keep to no rule, and who has to suffer for it: nobody else. bench/attacks.py has figures."""
import os
import resource
import subprocess
import sys
import threading
import time
import zlib

import grpc
import numpy as np
import pytest
import tensorflow as tf

import conformance
import http2
from floed import FLOED, MNIST, ROOT, START_SECONDS, Client, Floed, Manager, free_port, predict_request

sys.path.insert(0, os.path.join(ROOT, "bench"))
import attacks  # noqa: E402 # pylint: disable=wrong-import-position

MB = 1 << 20


def rss_mb(floed):
    with open(f"/proc/{floed.process.pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / MB


@pytest.fixture
def serve(tmp_path):
    """Starts floed with mnist_beginner and `wide`, whose answer is what it was sent."""
    with tf.Graph().as_default() as graph:
        tf.identity(tf.compat.v1.placeholder(tf.float32, [None], name="x"), name="y")
    (tmp_path / "wide/1").mkdir(parents=True)
    (tmp_path / "wide/1/frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    started = []

    def start(server="", **options):
        config = tmp_path / "floe.yaml"
        config.write_text(f"server: {{{server}}}\nmodels:\n  - {{name: digits, base_path: {MNIST}/models/mnist_beginner}}\n"
                          f"  - {{name: wide, base_path: {tmp_path}/wide}}\n")
        started.append(Floed("--config", str(config), **options))
        return started[-1]
    yield start
    for floed in started:
        floed.close()


def splat(model, key, dims):
    """One float32 that stands for all, as bytes."""
    proto = tf.make_tensor_proto(np.float32(1))
    for dim in dims:
        proto.tensor_shape.dim.add().size = dim
    return predict_request(model, {key: proto}).SerializeToString()


def flood(target, request, count, more=()):
    """Sends so many calls on one connection, which is returned and reads nothing yet."""
    connection = http2.Connection(target, timeout=START_SECONDS)
    for _ in range(count):
        connection.data(connection.open(http2.call_headers(more=more)), http2.message(request), end=True)
    return connection


def ends(connection, count):
    """grpc-status of so many calls, as text; None where the connection ended before."""
    found = []
    while len(found) < count:
        frame = connection.receive()
        if frame is None:
            return found + [None]
        kind, flags, _, payload = frame
        if kind == http2.HEADERS and flags & http2.END_STREAM:
            found.append(payload)
    return found


def neighbour(floed, calls=20):
    """The slowest of some calls on a new connection, in seconds."""
    slowest, digit = 0, np.zeros([1, 784], np.float32)
    with floed.client() as client:
        for _ in range(calls):
            begin = time.monotonic()
            assert client.predict("digits", {"input": digit}).outputs
            slowest = max(slowest, time.monotonic() - begin)
    return slowest


def test_small_messages_that_claim_much_cost_nothing(serve):
    floed = serve()
    neighbour(floed)
    before = rss_mb(floed)
    with flood(floed.target, splat("digits", "input", [64, MB]), 500) as connection:
        slowest = neighbour(floed)
        refused = ends(connection, 500)
    grown = rss_mb(floed) - before
    print(f"claims: {grown:.0f} MB more, the neighbour waited {slowest * 1e3:.0f} ms at most")
    assert len(refused) == 500 and grown < 100 and slowest < 5


def test_what_stands_for_much_is_filled_by_the_models_workers(serve):
    floed = serve()
    neighbour(floed)
    with flood(floed.target, splat("wide", "x", [16 * MB]), 30):
        slowest = neighbour(floed)
        most = rss_mb(floed)
    print(f"splats: {most:.0f} MB, the neighbour waited {slowest * 1e3:.0f} ms at most")
    # Some on the workers, and what the connection may have of unsent replies: not 30 times 128 MB.
    assert most < 2500 and slowest < 5


def test_a_compressed_bomb_is_refused(serve):
    floed = serve()
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = packer.compress(bytes(256 * MB)) + packer.flush()
    with http2.Connection(floed.target, timeout=START_SECONDS) as connection:
        stream = connection.open(http2.call_headers(more=[("grpc-encoding", "gzip")]))
        connection.data(stream, http2.message(bomb, compressed=True), end=True)
        assert ends(connection, 1)[0] is not None
    assert rss_mb(floed) < 250
    assert neighbour(floed) < 5


def test_who_does_not_read_is_refused_more_and_cut(serve):
    floed = serve("max_call_bytes_per_connection: 512MiB, send_timeout_seconds: 2")
    request = splat("wide", "x", [16 * MB])
    connection = http2.Connection(floed.target, settings=((http2.INITIAL_WINDOW_SIZE, 0),), timeout=START_SECONDS)
    for _ in range(24):  # 1.5 GB of replies
        connection.data(connection.open(http2.call_headers(more=[("floe-reply", "content")])), http2.message(request), end=True)
    most, cut = 0, []
    while not cut:
        assert neighbour(floed, calls=2) < 5
        most = max(most, rss_mb(floed))
        cut = [line for line in floed.log().splitlines() if "does not read" in line]
    floed.wait_until(lambda: "is closed: its replies are not read" in floed.log())
    connection.close()
    print(f"unread replies: {most:.0f} MB; {cut[0]}")
    assert most < 1500


def test_a_log_that_nobody_reads_stops_nothing(tmp_path):
    reader, writer = os.pipe()
    port = free_port()
    config = tmp_path / "floe.yaml"
    config.write_text(f"server: {{max_connections_per_address: 3}}\nlog: {{level: trace}}\n"
                      f"models: [{{name: digits, base_path: {MNIST}/models/mnist_beginner}}]\n")
    os.set_blocking(writer, False)
    try:
        while os.write(writer, bytes(4096)):
            pass
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    floed = subprocess.Popen([FLOED, "--config", str(config), f"--port={port}"], stderr=writer)
    os.close(writer)
    target = f"127.0.0.1:{port}"
    with Client(target) as client:
        next(reply for reply in client.watch() if reply.status)
        for _ in range(3):  # each is refused some, which is logged
            kept = []
            for _ in range(10):
                try:
                    kept.append(http2.Connection(target))
                except OSError:
                    pass
            for connection in kept:
                connection.close()
        assert client.check() is not None
        with Client(target) as other:
            assert other.health.Check(tf_health(), timeout=30, wait_for_ready=True)
    floed.terminate()
    assert floed.wait(START_SECONDS) == 0
    os.close(reader)


def tf_health():
    from grpc_health.v1 import health_pb2  # pylint: disable=import-outside-toplevel
    return health_pb2.HealthCheckRequest()


def test_the_probe_needs_no_room_among_the_connections(tmp_path):
    manager = Manager(str(tmp_path))
    config = tmp_path / "floe.yaml"
    config.write_text(f"server: {{max_connections: 2, max_calls: 1}}\n"
                      f"models: [{{name: digits, base_path: {MNIST}/models/mnist_beginner}}]\n")
    floed = Floed("--config", str(config), wait=False,
                  env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "2000000"})
    manager.wait_for("READY=1")
    with http2.Connection(floed.target), http2.Connection(floed.target):
        for _ in range(4):
            manager.wait_for("WATCHDOG=1")
    assert "did not answer its own probe" not in floed.log()
    floed.close()


WATCHDOG_SECONDS = 30  # of the unit


def test_the_probe_is_answered_during_floods_of_headers(tmp_path):
    manager = Manager(str(tmp_path))
    config = tmp_path / "floe.yaml"
    config.write_text(f"models: [{{name: digits, base_path: {MNIST}/models/mnist_beginner}}]\n")
    floed = Floed("--config", str(config), wait=False,
                  env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1500000"})
    manager.wait_for("READY=1")
    attack = attacks.Attack(floed.target, 10, lambda: rss_mb(floed) > 3000)
    fed = [time.monotonic()]
    over = threading.Event()

    def watch():
        while not over.is_set():
            manager.wait_for("WATCHDOG=1")
            fed.append(time.monotonic())
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    attack.begin("headers")
    attack.close()
    end = time.monotonic()
    over.set()
    thread.join()
    fed.append(max(end, fed[-1]))
    longest = max(b - a for a, b in zip(fed, fed[1:]))
    print(f"headers: {len(fed)} answers, {longest:.2f} s between them at most, {rss_mb(floed):.0f} MB")
    assert longest < WATCHDOG_SECONDS / 3
    assert "did not answer its own probe" not in floed.log()
    floed.close()


def wait_by_hand(target, calls=100):
    """The slowest of some calls in seconds, without gRPC's threads, beside which nobody may fork."""
    slowest = 0
    with http2.Connection(target, timeout=START_SECONDS) as connection:
        for _ in range(calls):
            begin = time.monotonic()
            stream = connection.open(http2.call_headers(conformance.CHECK))
            connection.data(stream, http2.message(b""), end=True)
            assert ends(connection, 1)[0] is not None
            slowest = max(slowest, time.monotonic() - begin)
    return slowest


FLOODS = ("literal", "fields", "empty", "references", "resets", "provoked", "pings", "settings", "updates", "priorities")


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    with conformance.serve_floed(str(tmp_path_factory.mktemp("net"))) as (target, floed):
        neighbour(floed)
        yield target


@pytest.mark.parametrize("name", FLOODS)
def test_floods_of_frames_are_cut_and_cost_nothing(name, net):
    before = net.rss_mb()
    attack = attacks.Attack(net.address, 1, lambda: net.rss_mb() > before + 500)
    waited = []
    meanwhile = threading.Thread(target=lambda: waited.append(wait_by_hand(net.address)))
    meanwhile.start()
    attack.begin(name)
    grown, cuts = net.rss_mb() - before, attack.cuts()
    meanwhile.join()
    attack.close()
    print(f"{name}: {grown:.0f} MB more, cut {cuts} times, the neighbour waited {waited[0] * 1e3:.0f} ms at most")
    assert grown < 64 and cuts > 0 and waited[0] < 2


def test_the_configuration_is_for_this_machine(serve):
    floed = serve()
    with floed.client() as client:
        call = client.channel.unary_unary("/floe.Admin/GetConfig")
        assert b"enable_config_rpcs" in call(b"", timeout=30)


def test_names_from_outside_are_escaped_and_cut(serve):
    floed = serve()
    with floed.client() as client, pytest.raises(grpc.RpcError) as info:
        client.predict("no\nsuch\x1b[2J" + "x" * 100000, {})
    assert info.value.code() == grpc.StatusCode.NOT_FOUND
    assert "\x1b" not in info.value.details() and "\n" not in info.value.details()
    assert len(info.value.details()) < 3000
