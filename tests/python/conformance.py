"""What is asked of a gRPC server by test_conformance.py: where it is, the servers it may be, certificates, helpers."""
import asyncio
import concurrent.futures
import contextlib
import dataclasses
import os
import subprocess
import threading

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from floed import FLOED, MNIST, Floed

MB = 1 << 20
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
PREDICT = "/tensorflow.serving.PredictionService/Predict"
OPTIONS = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
           ("grpc.use_local_subchannel_pool", 1))


@dataclasses.dataclass
class Target:
    """A server whose model `wide` answers with what it was sent. `pid` is known of those that a test started."""
    address: str
    ca: str = ""          # PEM file; "": plain text
    name: str = ""        # in its certificate, where it has another than the address
    pid: int = 0

    def options(self):
        return [*OPTIONS, *([("grpc.ssl_target_name_override", self.name)] if self.name else [])]

    def credentials(self):
        with open(self.ca, "rb") as f:
            return grpc.ssl_channel_credentials(f.read())

    def channel(self, more=()):
        if self.ca:
            return grpc.secure_channel(self.address, self.credentials(), [*self.options(), *more])
        return grpc.insecure_channel(self.address, [*self.options(), *more])

    def aio_channel(self):
        if self.ca:
            return grpc.aio.secure_channel(self.address, self.credentials(), self.options())
        return grpc.aio.insecure_channel(self.address, self.options())

    def rss_mb(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") / MB


def request_of(values):
    """A PredictRequest for `wide`."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "wide"
    tensor = request.inputs["x"]
    tensor.dtype = tf.float32.as_datatype_enum
    tensor.tensor_shape.dim.add().size = len(values)
    tensor.tensor_content = values.tobytes()
    return request


def values_of(size, seed=1):
    """`size` bytes as floats from 1 to 2, no two parts alike."""
    bits = np.arange(size // 4, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed)
    return (bits >> np.uint32(9) | np.uint32(0x3F800000)).view(np.float32)


def check_echo(values, reply):
    tensor = reply.outputs["y"]
    got = np.frombuffer(tensor.tensor_content, np.float32) if tensor.tensor_content else np.array(tensor.float_val, np.float32)
    assert got.tobytes() == values.tobytes()


CONTENT = (("floe-reply", "content"),)


def echo(channel, size, seed=1, timeout=120):
    values = values_of(size, seed)
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    check_echo(values, stub.Predict(request_of(values), timeout=timeout, metadata=CONTENT))


def identity_model(folder):
    with tf.Graph().as_default() as graph:
        tf.identity(tf.compat.v1.placeholder(tf.float32, [None], name="x"), name="y")
    os.makedirs(os.path.join(folder, "wide/1"), exist_ok=True)
    with open(os.path.join(folder, "wide/1/frozen.pb"), "wb") as f:
        f.write(graph.as_graph_def().SerializeToString())


@contextlib.contextmanager
def serve_floed(folder, server="", tls=None):
    """`tls`: paths (certificate, key, ca) of make_certificates."""
    identity_model(folder)
    config = os.path.join(folder, "floe.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"server: {{{server}}}\nmodels:\n  - {{name: digits, base_path: {MNIST}/models/mnist_beginner}}\n"
                f"  - {{name: wide, base_path: {folder}/wide}}\n")
    more = [f"--tls_certificate={tls[0]}", f"--tls_key={tls[1]}"] if tls else []
    floed = Floed("--config", config, *more, wait=False)
    target = Target(floed.target, tls[2] if tls else "", "localhost" if tls else "", floed.process.pid)
    try:
        with target.channel() as channel:
            watch = channel.unary_stream(WATCH)(b"", timeout=120, wait_for_ready=True)
            next(reply for reply in watch if reply == b"\x08\x01")
            watch.cancel()
        yield target, floed
    finally:
        floed.close()


class PlainServer(grpc.GenericRpcHandler):
    """The same service by gRPC's own server, for comparison."""

    def service(self, details):
        def predict(request, context):
            if request.model_spec.name != "wide":
                context.abort(grpc.StatusCode.NOT_FOUND, f"there is no model '{request.model_spec.name}'")
            reply = predict_pb2.PredictResponse()
            reply.outputs["y"].CopyFrom(request.inputs["x"])
            return reply
        if details.method == PREDICT:
            return grpc.unary_unary_rpc_method_handler(predict, predict_pb2.PredictRequest.FromString,
                                                       predict_pb2.PredictResponse.SerializeToString)
        if details.method == CHECK:
            return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x08\x01")
        if details.method == WATCH:
            return grpc.unary_stream_rpc_method_handler(self.watch)
        return None

    @staticmethod
    def watch(_request, context):
        yield b"\x08\x01"
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait()


@contextlib.contextmanager
def serve_plain():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(64), handlers=[PlainServer()],
                         options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield Target(f"127.0.0.1:{port}")
    server.stop(0)


def make_certificates(folder):
    """Paths of a server's certificate for localhost, its key, and the CA's certificate."""
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test ca")
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    with open(os.path.join(folder, "names"), "w", encoding="ascii") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-out", "server.pem", "-extfile", "names")
    return tuple(os.path.join(folder, name) for name in ("server.pem", "server.key", "ca.pem"))


async def gather(count, at_once, call):
    """call(i) for each of `count`, at most so many at a time."""
    gate = asyncio.Semaphore(at_once)

    async def one(i):
        async with gate:
            return await call(i)
    return await asyncio.gather(*(one(i) for i in range(count)))
