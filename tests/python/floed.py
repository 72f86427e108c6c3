"""What the tests share: the real floed in a process of its own, and the clients people use against it."""
import atexit
import gzip
import inspect
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import grpc
import numpy as np
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import model_service_pb2_grpc, predict_pb2, prediction_service_pb2_grpc

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = os.environ.get("FLOE_BUILD_DIR", os.path.join(ROOT, "build/release"))
FLOED = os.environ.get("FLOED", os.path.join(BUILD, "floed"))
FLOECTL = os.path.join(os.path.dirname(FLOED), "floectl")
CONFIG = os.path.join(ROOT, "config/floe.yaml")
MNIST = os.path.join(ROOT, "examples/mnist")
MODELS = ("mnist_beginner", "mnist_conv")
START_SECONDS = 120  # sanitizers are slow
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def digits():
    """The test digits, float32 [10000, 784] in 0..1."""
    with gzip.open(os.path.join(MNIST, "data/t10k-images-idx3-ubyte.gz")) as f:
        return np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255


def expected_classes(model):
    return np.fromfile(os.path.join(MNIST, "expected_classes", model + ".u8"), np.uint8)


def predict_request(model, inputs, signature="", outputs=(), version=None):
    """`inputs` values: numpy arrays (sent as tensor_content, as the client library does) or TensorProtos."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    for name, value in inputs.items():
        proto = value if isinstance(value, tf.make_tensor_proto(0).__class__) else tf.make_tensor_proto(value)
        request.inputs[name].CopyFrom(proto)
    request.output_filter.extend(outputs)
    return request


class Client:
    """Stubs on one channel. Use as a context manager, or close()."""

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target, options=[
            ("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)])
        self.prediction = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.channel.close()

    def predict(self, *args, timeout=60, metadata=None, **kwargs):
        return self.prediction.Predict(predict_request(*args, **kwargs), timeout=timeout, metadata=metadata)

    def softmax(self, model, x):
        """The reply's typed values as an array."""
        out = self.predict(model, {"input": x}).outputs["softmax"]
        return np.array(out.float_val, np.float32).reshape([d.size for d in out.tensor_shape.dim])

    def check(self, service=""):
        return self.health.Check(health_pb2.HealthCheckRequest(service=service), timeout=30).status

    def watch(self, service="", timeout=START_SECONDS):
        """A stream of statuses; waits for the server to listen."""
        call = self.health.Watch(health_pb2.HealthCheckRequest(service=service), timeout=timeout, wait_for_ready=True)
        return call


class Floed:
    """A running floed, whose health may be watched. Arguments are floed's; a free port is added where none is given.

    `under`: a command that becomes floed, such as prlimit with its arguments. `program`: a copy of it to run.
    """

    def __init__(self, *args, env=None, wait=True, under=(), program=FLOED, address="127.0.0.1", port=None):
        self.port = port or free_port()
        self.target = f"{address}:{self.port}"
        self.folder = tempfile.mkdtemp(prefix="floed")
        self.log_path = os.path.join(self.folder, "log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*under, program, "--enable_health_watch", *args, f"--bind_address={address}", f"--port={self.port}"],
                stdout=log, stderr=log, env={**os.environ, **(env or {})})
        atexit.register(self.process.kill)  # of a test that failed
        if wait:
            self.wait_serving()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_serving(self):
        with Client(self.target) as client:
            try:
                for reply in client.watch():
                    if reply.status == SERVING:
                        return
            except grpc.RpcError as error:
                self.kill()
                raise AssertionError(f"floed never served: {error}\n{self.log()}") from None
        raise AssertionError("floed ended its health stream before serving\n" + self.log())

    def wait_until(self, holds):
        """Until `holds()` says so."""
        end = time.monotonic() + START_SECONDS
        while not holds():
            assert time.monotonic() < end, "waited for " + inspect.getsource(holds).strip() + "\n" + self.log()
            time.sleep(0.02)

    def client(self):
        return Client(self.target)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout=60):
        """The exit status."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("floed did not end\n" + self.log()) from None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.terminate()
            code = self.wait()
        else:
            code = self.process.returncode
        log = self.log()
        shutil.rmtree(self.folder)
        assert code == 0, f"floed ended with {code}\n{log}"


class Manager:
    """The receiving end of sd_notify."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(START_SECONDS)

    def messages(self):
        """Each message's lines."""
        while True:
            yield self.socket.recv(65536).decode().split("\n")

    def wait_for(self, word):
        """Until a message says `word`."""
        next(words for words in self.messages() if word in words)
