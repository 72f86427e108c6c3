"""Whether a server is a gRPC server, asked by several stacks: gRPC's own (sync, asyncio, and floectl's C++), grpclib on another
HTTP/2 library, curl, and frames by hand. Run against floed with and without TLS, and against gRPC's own server for comparison.

FLOE_CONFORMANCE_TARGET=HOST:PORT[,CA.pem] asks a server that runs already, with the model `wide` of bench/attacks.py.
FLOE_CONFORMANCE_FULL=1 takes minutes: messages up to 256 MB, 100,000 calls, a minute of expired deadlines, and gRPC's
own server. conformance_foreign.py asks stacks and proxies that the build does not need.
"""
import asyncio
import os
import subprocess
import sys
import time

import grpc
import grpclib.client
import pytest
from grpc_health.v1 import health_pb2
from tensorflow_serving.apis import predict_pb2

import http2
from conformance import (CHECK, CONTENT, MB, PREDICT, WATCH, Target, check_echo, echo, gather, make_certificates,
                         request_of, serve_floed, serve_plain, values_of)
from floed import FLOECTL

FULL = bool(os.environ.get("FLOE_CONFORMANCE_FULL"))
GIVEN = os.environ.get("FLOE_CONFORMANCE_TARGET", "")
SERVERS = ["given"] if GIVEN else ["floed", "floed-tls", *(["plain"] if FULL else [])]


@pytest.fixture(scope="module", params=SERVERS)
def target(request, tmp_path_factory):
    kind = request.param
    folder = str(tmp_path_factory.mktemp("conformance"))
    if kind == "given":
        yield Target(*GIVEN.split(","))
    elif kind == "plain":
        with serve_plain() as plain:
            yield plain
    else:
        limits = "max_message_bytes: 512MiB, max_call_bytes: 4GiB, max_call_bytes_per_address: 4GiB, max_call_bytes_per_connection: 4GiB"
        with serve_floed(folder, limits if FULL else "",
                         make_certificates(folder) if kind == "floed-tls" else None) as (floed, _):
            yield floed


def plain_only(target):
    if target.ca:
        pytest.skip("frames by hand are plain text")


@pytest.mark.parametrize("size", [0, 4, 16380, 16384, 16388, 65536, MB, 16 * MB, *([64 * MB, 256 * MB] if FULL else [])])
def test_messages_of_every_size_come_back(target, size):
    with target.channel() as channel:
        echo(channel, size)


def test_the_empty_message_is_a_message(target):
    with target.channel() as channel:
        assert channel.unary_unary(CHECK)(b"", timeout=30) == b"\x08\x01"


def test_a_thousand_calls_at_once_on_one_connection(target):
    async def run():
        async with target.aio_channel() as channel:
            predict = channel.unary_unary(PREDICT, predict_pb2.PredictRequest.SerializeToString,
                                          predict_pb2.PredictResponse.FromString)
            sizes = (0, 64, 4096, 20000, 200_000)

            async def one(i):
                values = values_of(sizes[i % len(sizes)] // 4 * 4, seed=i)
                check_echo(values, await predict(request_of(values), timeout=120, metadata=CONTENT))
            await gather(1000, 1000, one)
    asyncio.run(run())


def test_another_stack_understands(target):
    """grpclib, on the Python library h2."""
    async def run():
        import ssl  # pylint: disable=import-outside-toplevel
        host, port = target.address.rsplit(":", 1)
        context = None
        if target.ca:
            context = ssl.create_default_context(cafile=target.ca)
            context.set_alpn_protocols(["h2"])
            host = "localhost"
        async with grpclib.client.Channel(host, int(port), ssl=context) as channel:
            predict = grpclib.client.UnaryUnaryMethod(channel, PREDICT, predict_pb2.PredictRequest, predict_pb2.PredictResponse)
            check = grpclib.client.UnaryUnaryMethod(channel, CHECK, health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse)
            watch = grpclib.client.UnaryStreamMethod(channel, WATCH, health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse)
            assert (await check(health_pb2.HealthCheckRequest())).status == 1

            async def one(i):
                values = values_of(40_000 * (i % 4), seed=i)
                check_echo(values, await predict(request_of(values), metadata=CONTENT))
            await gather(100, 100, one)
            async with watch.open() as stream:
                await stream.send_message(health_pb2.HealthCheckRequest(), end=True)
                assert (await stream.recv_message()).status == 1
                await stream.cancel()
            with pytest.raises(grpclib.GRPCError) as error:
                await grpclib.client.UnaryUnaryMethod(channel, "/no.Such/Method", health_pb2.HealthCheckRequest,
                                                      health_pb2.HealthCheckResponse)(health_pb2.HealthCheckRequest())
            assert error.value.status == grpclib.Status.UNIMPLEMENTED
    asyncio.run(run())


def test_grpcs_cpp_client_understands(target):
    if target.pid == 0:
        pytest.skip("needs a floed of its own")
    tls = ["--tls-ca", target.ca, "--tls-name", target.name] if target.ca else []
    done = subprocess.run([FLOECTL, "log-level", "--target", target.address, *tls], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "info\n"), done.stderr


@pytest.mark.parametrize("method, message, code", [
    ("/no.such.Service/Method", b"", grpc.StatusCode.UNIMPLEMENTED),
    (PREDICT, predict_pb2.PredictRequest(model_spec={"name": "näme\n%41"}).SerializeToString(), grpc.StatusCode.NOT_FOUND),
])
def test_errors_have_their_code_and_text(target, method, message, code):
    with target.channel() as channel, pytest.raises(grpc.RpcError) as error:
        channel.unary_unary(method)(message, timeout=30)
    assert error.value.code() == code
    assert error.value.details() and (code != grpc.StatusCode.NOT_FOUND or "%41" in error.value.details())


def test_curl_is_answered(target, tmp_path):
    (tmp_path / "request").write_bytes(http2.message(b""))
    tls = ["--cacert", target.ca, "--http2"] if target.ca else ["--http2-prior-knowledge"]
    address = target.address.replace("127.0.0.1", "localhost") if target.ca else target.address
    done = subprocess.run(["curl", "--silent", "--show-error", *tls, "--noproxy", "*", "--max-time", "30", "--dump-header", "-",
                           "--output", str(tmp_path / "reply"), "-H", "content-type: application/grpc", "-H", "te: trailers",
                           "--data-binary", f"@{tmp_path}/request", f"http{'s' if target.ca else ''}://{address}{CHECK}"],
                          capture_output=True, text=True, check=True)
    assert done.stdout.startswith("HTTP/2 200") and "grpc-status: 0" in done.stdout
    assert (tmp_path / "reply").read_bytes() == http2.message(b"\x08\x01")


def end_of(connection, stream):
    """The payload of the frame that ends the stream, and its kind."""
    while True:
        frame = connection.receive()
        assert frame is not None, "the server closed the connection"
        kind, flags, of, payload = frame
        if of == stream and (kind == http2.RST_STREAM or (kind in (http2.HEADERS, http2.DATA) and flags & http2.END_STREAM)):
            return kind, payload


def check_by_hand(connection):
    """Whether this connection still serves."""
    stream = connection.open(http2.call_headers(CHECK))
    connection.data(stream, http2.message(b""), end=True)
    assert end_of(connection, stream)[0] == http2.HEADERS


def test_a_cancelled_upload_leaves_its_connection_whole(target):
    plain_only(target)
    with http2.Connection(target.address) as connection:
        for _ in range(20):
            stream = connection.open()
            connection.data(stream, b"\0" + (4 * MB).to_bytes(4, "big") + bytes(30_000))
            connection.send(http2.frame(http2.RST_STREAM, 0, stream, b"\0\0\0\x08"))
            check_by_hand(connection)


def test_a_message_that_ends_early_is_an_error_of_its_call_alone(target):
    plain_only(target)
    with http2.Connection(target.address) as connection:
        for part in (b"", b"\0\0\0", b"\0\0\0\0\x09half"):
            stream = connection.open(http2.call_headers(CHECK))
            connection.data(stream, part, end=True)
            end_of(connection, stream)  # with a status or a reset
            check_by_hand(connection)


def test_a_half_closed_stream_goes_on(target):
    with target.channel() as channel:
        watch = channel.unary_stream(WATCH)(b"", timeout=60)  # the client sends no more
        assert next(watch) == b"\x08\x01"
        echo(channel, 4096)
        watch.cancel()
        echo(channel, 4096)


def test_a_deadline_in_mid_reply_ends_its_call_alone(target):
    """The reply is large and its reader reads nothing, so it cannot be over by the deadline."""
    plain_only(target)
    with http2.Connection(target.address, settings=((http2.INITIAL_WINDOW_SIZE, 1000),)) as connection:
        headers = http2.call_headers(more=[("grpc-timeout", "300m"), CONTENT[0]])
        stream = connection.open(headers)
        connection.data(stream, http2.message(request_of(values_of(8 * MB)).SerializeToString()), end=True)
        kind, payload = end_of(connection, stream)
        assert kind == http2.RST_STREAM or b"grpc-status" in payload or payload  # trailers may be compressed
        check_by_hand(connection)


KILLED = """
import sys, grpc
address, ca, name, path, method = sys.argv[1:]
options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
if ca:
    channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(open(ca, "rb").read()),
                                  options + [("grpc.ssl_target_name_override", name)])
else:
    channel = grpc.insecure_channel(address, options)
request = open(path, "rb").read()
print("sending", flush=True)
while True:
    channel.unary_unary(method)(request)
"""


def test_killed_clients_are_forgotten(target, tmp_path):
    (tmp_path / "request").write_bytes(request_of(values_of(32 * MB)).SerializeToString())
    command = [sys.executable, "-c", KILLED, target.address, target.ca, target.name, str(tmp_path / "request"), PREDICT]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client, target.channel() as channel:
        assert client.stdout.readline() == b"sending\n"
        for _ in range(5):
            echo(channel, 4096)
        client.kill()
    with target.channel() as channel:
        for _ in range(20):
            echo(channel, 100_000)


def test_expired_deadlines_cost_no_connection(target):
    """200 a second; honest calls on the same connection are answered, and it is not closed."""
    seconds, states = (60, []) if FULL else (3, [])

    async def run():
        async with target.aio_channel() as channel:
            watch, check = channel.unary_stream(WATCH), channel.unary_unary(CHECK)
            await check(b"", timeout=30)
            ready = channel.get_state()

            async def expire():
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    async for _ in watch(b"", timeout=0.02):
                        pass
                states.append(error.value.code())
            begin, calls, tasks = time.monotonic(), 0, []
            while time.monotonic() - begin < seconds:
                while calls < (time.monotonic() - begin) * 200:
                    tasks.append(asyncio.ensure_future(expire()))
                    calls += 1
                assert await check(b"", timeout=30) == b"\x08\x01"
                assert channel.get_state() == ready
                await asyncio.sleep(0.02)
            await asyncio.gather(*tasks)
            return calls
    calls = asyncio.run(run())
    assert len(states) == calls >= 150 * seconds and set(states) == {grpc.StatusCode.DEADLINE_EXCEEDED}


def test_many_calls_over_one_connection_leave_nothing(target):
    async def run(count):
        async with target.aio_channel() as channel:
            check = channel.unary_unary(CHECK)

            async def one(_i):
                assert await check(b"", timeout=60) == b"\x08\x01"
            await gather(count // 4, 64, one)
            before = target.rss_mb() if target.pid else 0
            await gather(count - count // 4, 64, one)
            return (target.rss_mb() if target.pid else 0) - before
    grown = asyncio.run(run(100_000 if FULL else 4000))
    assert grown < 8


def test_calls_in_flight_survive_the_goodbye(tmp_path):
    """SIGTERM, which sends GOAWAY: all that was sent before is answered."""
    if GIVEN:
        pytest.skip("ends the server")
    with serve_floed(str(tmp_path)) as (target, floed):
        async def run():
            answered = []
            async with target.aio_channel() as channel:
                predict = channel.unary_unary(PREDICT, predict_pb2.PredictRequest.SerializeToString,
                                              predict_pb2.PredictResponse.FromString)

                async def one(i):
                    values = values_of(400_000, seed=i)
                    check_echo(values, await predict(request_of(values), timeout=60, metadata=CONTENT))
                    answered.append(i)
                    if len(answered) == 10:
                        floed.terminate()
                await gather(100, 100, one)
        asyncio.run(run())
        assert floed.wait() == 0
