"""The Python client of clients/python: its messages against TensorFlow Serving's, its calls against a live server, and its
wheel in an environment that has NumPy and grpcio only."""
import asyncio
import concurrent.futures
import contextlib
import pathlib
import pickle
import re
import subprocess
import sys

import grpc
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (get_model_metadata_pb2, get_model_status_pb2, predict_pb2, prediction_service_pb2_grpc)
from tritonclient.grpc import service_pb2

import conformance
from floed import CONFIG, FLOECTL, MNIST, ROOT, START_SECONDS, Floed, digits, expected_classes, predict_request
from own_python import ask, environment
from pages import blocks
from test_kserve import TYPES, write_types

FOLDER = pathlib.Path(ROOT) / "clients/python"
sys.path.insert(0, str(FOLDER / "src"))
import floe_client  # noqa: E402  pylint: disable=wrong-import-position
from floe_client import TLS, AsyncClient, Client, DecodeError, FloeError, Retry  # noqa: E402  pylint: disable=wrong-import-position
from floe_client import _messages, _tensor, _wire  # noqa: E402  pylint: disable=wrong-import-position

NUMBERS = [np.dtype(t) for t in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                                 "uint64", "bool", "complex64", "complex128", ml_dtypes.bfloat16)]
SHAPES = [(), (1,), (3,), (2, 3), (0, 4), (2, 1, 5)]


def some(dtype, shape, random):
    """Any bits of the dtype, the ends of its range and NaN among them."""
    bits = random.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8)
    array = (bits % 2 if dtype == bool else bits).view(dtype).reshape(shape)
    array = np.array(array)
    if array.size and dtype.kind in "iu":
        array.flat[0], array.flat[-1] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return array


# ---- messages, against those of the packages that others use

@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_requests_hold_what_tensorflow_reads(dtype):
    random = np.random.default_rng(1)
    for shape in SHAPES:
        array = some(dtype, shape, random)
        for given in (array, array.copy(order="F"), np.repeat(array[..., None], 2, -1)[..., 0]):
            call = _messages.predict("m", 7, "", "sig", {"x": (given, "")}, ["y", "z"])
            message = predict_pb2.PredictRequest.FromString(call.request)
            read_back = tf.make_ndarray(message.inputs["x"])
            assert read_back.dtype == dtype and read_back.shape == shape and read_back.tobytes() == array.tobytes()
            message.ClearField("inputs")
            assert message == predict_request("m", {}, "sig", ["y", "z"], 7)


def test_requests_of_strings_labels_and_other_byte_order():
    texts = np.array([["é", b"\xff\x00"]], object)
    call = _messages.predict("m", None, "stable", "", {"x": (texts, ""), "n": (np.arange(3, dtype=">i4"), "")}, [])
    message = predict_pb2.PredictRequest.FromString(call.request)
    assert message.model_spec.version_label == "stable" and not message.model_spec.HasField("version")
    assert list(message.inputs["x"].string_val) == ["é".encode(), b"\xff\x00"]
    assert tf.make_ndarray(message.inputs["n"]).tolist() == [0, 1, 2]
    for words in (np.array(["a", "bc"]), np.array([b"a", b"bc"])):
        message = predict_pb2.PredictRequest.FromString(_messages.predict("m", None, "", "", {"x": (words, "")}, []).request)
        assert tf.make_ndarray(message.inputs["x"]).tolist() == [b"a", b"bc"]
    with pytest.raises(TypeError, match="datetime64"):
        _messages.predict("m", None, "", "", {"x": (np.array(["2026-01-01"], "M8[D]"), "")}, [])
    with pytest.raises(TypeError, match="int"):
        _messages.predict("m", None, "", "", {"x": (np.array([1, "a"], object), "")}, [])
    with pytest.raises(ValueError, match="not both"):
        _messages.predict("m", 1, "stable", "", {}, [])


def typed(array):
    """The array as servers send it: in the fields with values."""
    content = tf.make_tensor_proto(array, dtype=tf.as_dtype(array.dtype) if array.dtype != object else tf.string)
    if array.dtype == object or not content.tensor_content:
        return content
    proto = content.__class__(dtype=content.dtype, tensor_shape=content.tensor_shape)
    kind = array.dtype
    if kind in (np.float16, ml_dtypes.bfloat16):
        proto.half_val.extend(array.view(np.uint16).ravel().tolist())
    elif kind.kind == "c":
        field = proto.scomplex_val if kind == np.complex64 else proto.dcomplex_val
        field.extend(array.ravel().view(array.real.dtype).tolist())
    else:
        name = {"float32": "float_val", "float64": "double_val", "int64": "int64_val", "uint64": "uint64_val",
                "uint32": "uint32_val", "bool": "bool_val"}.get(kind.name, "int_val")
        getattr(proto, name).extend(array.ravel().tolist())
    return proto


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_replies_are_what_was_sent(dtype):
    random = np.random.default_rng(2)
    for shape in SHAPES:
        array = some(dtype, shape, random)
        if dtype.kind in "fc" or dtype == ml_dtypes.bfloat16:
            array = np.array(np.nan_to_num(array.astype(complex if dtype.kind == "c" else float), posinf=1, neginf=-1) % 3 if dtype.kind != "c"
                             else np.nan_to_num(array, posinf=1, neginf=-1), dtype)  # Python's floats keep no NaN's bits
        for proto in (tf.make_tensor_proto(array, dtype=tf.as_dtype(dtype)), typed(array)):
            reply = predict_pb2.PredictResponse(outputs={"y": proto})
            reply.model_spec.version.value = 5
            for name in ("y", "longer", "y" * 9):  # the content is aligned, or not
                reply.outputs[name].CopyFrom(proto)
            outputs = _messages._read_outputs(memoryview(reply.SerializeToString()))
            assert outputs.version == 5 and len(outputs) == 3
            for got in outputs.values():
                assert got.dtype == dtype and got.shape == shape and got.tobytes() == array.tobytes()
                assert not got.flags.writeable and got.flags.aligned


def read(proto):
    return _tensor.decode(memoryview(proto.SerializeToString()))


def test_replies_of_strings_and_repeated_values():
    texts = np.array([[b"", b"a\x00"], [b"\xff", b"x" * 300]], object)
    assert read(typed(texts)).tolist() == texts.tolist()
    proto = tf.make_tensor_proto(1.5, shape=[2, 3])  # one value stands for six
    assert len(proto.float_val) == 1 and read(proto).tolist() == [[1.5] * 3] * 2
    proto.tensor_shape.dim[0].size = 1 << 40  # which costs no memory
    assert read(proto).shape == (1 << 40, 3)
    proto.float_val.append(1)
    with pytest.raises(DecodeError, match="2 values"):
        read(proto)
    with pytest.raises(DecodeError, match="bytes"):
        read(tf.make_tensor_proto(np.zeros(3)).__class__(dtype=1, tensor_content=b"abc"))
    with pytest.raises(DecodeError, match="type 20"):
        read(proto.__class__(dtype=20))


def test_unpacked_lists():
    """Other writers may send each number with a tag."""
    data = b"".join(_wire.number_field(1, 9) + _wire.field(2, _wire.field(2, _wire.number_field(1, 3))))
    data += b"".join(b"".join(_wire.number_field(10, value)) for value in (1, -1, 300))
    assert _tensor.decode(memoryview(data)).tolist() == [1, -1, 300]


def test_long_lists_of_numbers():
    values = np.random.default_rng(3).integers(-2**63, 2**63 - 1, 100_000) >> np.arange(100_000) % 64
    proto = tf.make_tensor_proto(np.int64(0)).__class__(dtype=9)
    proto.tensor_shape.dim.add().size = values.size
    proto.int64_val.extend(values.tolist())
    assert (read(proto) == values).all()


def replies():
    """A reply of each RPC, and what reads it."""
    predict = predict_pb2.PredictResponse()
    predict.model_spec.version.value = 3
    for k, dtype in enumerate(NUMBERS):
        predict.outputs[f"a{k}"].CopyFrom(tf.make_tensor_proto(np.ones([2, 2]), dtype=tf.as_dtype(dtype)))
        predict.outputs[f"b{k}"].CopyFrom(typed(np.array([[1, 2]]).astype(dtype)))
    predict.outputs["texts"].CopyFrom(typed(np.array([b"a", b"bc"], object)))
    metadata = get_model_metadata_pb2.GetModelMetadataResponse()
    metadata.model_spec.name, metadata.model_spec.version.value = "m", 4
    signatures = get_model_metadata_pb2.SignatureDefMap()
    signature = signatures.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    signature.inputs["x"].dtype = tf.bfloat16.as_datatype_enum
    for size in (-1, 3):
        signature.inputs["x"].tensor_shape.dim.add().size = size
    signature.outputs["y"].dtype = tf.string.as_datatype_enum
    signature.outputs["y"].tensor_shape.unknown_rank = True
    metadata.metadata["signature_def"].Pack(signatures)
    status = get_model_status_pb2.GetModelStatusResponse()
    for version, state in ((2, 30), (1, 50)):
        entry = status.model_version_status.add(version=version, state=state)
        entry.status.error_message = "gone" if state == 50 else ""
    index = service_pb2.RepositoryIndexResponse()
    index.models.add(name="m", version="4", state="UNAVAILABLE", reason="no such file")
    return [(predict, _messages._read_outputs), (metadata, _messages._read_metadata), (status, _messages._read_status),
            (index, _messages._read_models)]


def test_replies_of_the_other_rpcs():
    _, metadata, status, index = [reader(memoryview(message.SerializeToString())) for message, reader in replies()]
    signature = metadata.signatures["serving_default"]
    assert (metadata.name, metadata.version, signature.method) == ("m", 4, "tensorflow/serving/predict")
    assert signature.inputs == {"x": floe_client.TensorSpec("bfloat16", (None, 3))}
    assert signature.outputs == {"y": floe_client.TensorSpec("string", None)}
    assert [(v.version, v.state, v.message) for v in status] == [(2, "AVAILABLE", ""), (1, "END", "gone")]
    assert index == [floe_client.ModelState("m", 4, "UNAVAILABLE", "no such file")]


def test_replies_that_end_early_are_refused():
    index = service_pb2.RepositoryIndexResponse()
    index.models.add(name="m", version="4", state="READY")
    whole = index.SerializeToString()
    for size in range(1, len(whole)):
        with pytest.raises(DecodeError, match="ends within"):
            _messages._read_models(memoryview(whole[:size]))
    with pytest.raises(DecodeError, match="ends within"):  # the field in the field
        _messages._read_models(memoryview(whole[:1] + bytes([len(whole) - 3]) + whole[2:-1]))


def test_damaged_replies_are_refused():
    """Whatever the bytes: a reply is read, or DecodeError says what is wrong. Nothing is allocated by what bytes claim."""
    random = np.random.default_rng(4)
    refused = 0
    for message, reader in replies():
        whole = np.frombuffer(message.SerializeToString(), np.uint8)
        for _ in range(1500):
            data = whole[:random.integers(0, len(whole) + 1)].copy()
            places = random.integers(0, max(len(data), 1), random.integers(0, 4))
            if len(data):
                data[places] = random.integers(0, 256, len(places))
            try:
                reader(memoryview(data.tobytes()))
            except DecodeError:
                refused += 1
    assert refused > 1000


# ---- retries

@pytest.mark.parametrize("sent, code, pushback, left, low, high", [
    (1, "UNAVAILABLE", None, None, 0.05, 0.1), (2, "UNAVAILABLE", None, 10, 0.1, 0.2), (3, "UNAVAILABLE", None, 10, 0.15, 0.3),
    (4, "UNAVAILABLE", None, None, None, None), (1, "NOT_FOUND", None, None, None, None), (1, "INTERNAL", "5", None, None, None),
    (1, "UNAVAILABLE", "700", 10, 0.7, 0.7), (1, "RESOURCE_EXHAUSTED", "700", 10, 0.7, 0.7), (1, "RESOURCE_EXHAUSTED", None, 10, None, None),
    (1, "UNAVAILABLE", "-1", 10, None, None), (1, "UNAVAILABLE", "soon", 10, None, None), (1, "UNAVAILABLE", "700", 0.7, None, None),
    (3, "UNAVAILABLE", None, 0.1, None, None)])
def test_when_a_call_is_sent_again(sent, code, pushback, left, low, high):
    wait = Retry(attempts=4, first_wait=0.1, longest_wait=0.3).wait(sent, code, pushback, left)
    assert (wait is None) if low is None else low <= wait <= high


class Busy(grpc.GenericRpcHandler):
    """Refuses `refusals` calls of each path, then answers with nothing. Keeps the metadata that it gets."""

    def __init__(self, refusals, code=grpc.StatusCode.UNAVAILABLE, pushback="1"):
        self.refusals, self.code, self.pushback, self.seen = refusals, code, pushback, []

    def service(self, details):
        self.seen.append((details.method.rsplit("/", 1)[1], dict(details.invocation_metadata)))

        def answer(_request, context):
            if len(self.seen) <= self.refusals:
                context.set_trailing_metadata((("grpc-retry-pushback-ms", self.pushback),) if self.pushback else ())
                context.abort(self.code, "the queue is full")
            return b""
        return grpc.unary_unary_rpc_method_handler(answer)


@contextlib.contextmanager
def serving(handler):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(0)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, START_SECONDS))


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_refused_calls_are_sent_again(code):
    x = {"x": np.zeros(3)}
    busy = Busy(3, code)
    with serving(busy) as target, Client(target) as client:
        assert client.predict("m", x) == {} and len(busy.seen) == 4
    busy = Busy(4, code)
    with serving(busy) as target, Client(target) as client, pytest.raises(FloeError, match="the queue is full") as info:
        client.predict("m", x)
    assert len(busy.seen) == 4 and (info.value.code, info.value.model) == (code.name, "m")
    busy = Busy(9, code, "60000")
    with serving(busy) as target, Client(target) as client, pytest.raises(FloeError):
        client.predict("m", x, timeout=10)  # at once: that is beyond its deadline
    assert len(busy.seen) == 1

    async def call(target):
        async with AsyncClient(target) as client:
            return await client.predict("m", x)
    busy = Busy(3, code)
    with serving(busy) as target:
        assert run(call(target)) == {} and len(busy.seen) == 4


def test_other_failures_are_not_retried():
    for code, kind in ((grpc.StatusCode.INVALID_ARGUMENT, floe_client.InvalidArgument), (grpc.StatusCode.INTERNAL, FloeError)):
        busy = Busy(1, code)
        with serving(busy) as target, Client(target) as client, pytest.raises(kind):
            client.predict("m", {"x": np.zeros(3)})
        assert len(busy.seen) == 1


def test_no_server():
    with Client("127.0.0.1:1", retry=Retry(first_wait=0.001)) as client:
        assert client.ready() is False
        with pytest.raises(floe_client.Unavailable):
            client.status("m")


def test_tokens_and_headers_are_sent():
    tokens = iter(["first", "second"])
    busy = Busy(0)
    with serving(busy) as target:
        with Client(target, token=lambda: next(tokens)) as client:
            client.predict("m", {}, headers={"X-Request-Id": "7"})
            client.models()
        with Client(target, token="fixed") as client:
            client.status("m")
        with Client(target) as client:
            client.status("m")
    (_, predict), (_, models), (_, status), (_, plain) = busy.seen
    assert predict["authorization"] == "Bearer first" and predict["x-request-id"] == "7" and predict["floe-reply"] == "content"
    assert models["authorization"] == "Bearer second" and status["authorization"] == "Bearer fixed"
    assert "authorization" not in plain


def test_errors_can_be_pickled():
    error = pickle.loads(pickle.dumps(floe_client.NotFound("NOT_FOUND", "no such model", "m")))
    assert isinstance(error, floe_client.NotFound) and str(error) == "NOT_FOUND: no such model (model 'm')" and error.model == "m"


# ---- a live server

@pytest.fixture(scope="module")
def x():
    return digits()


def test_digits(server, client, x):
    with Client(server.target) as ours:
        for model in ("mnist_beginner", "mnist_conv"):
            got = ours.predict(model, {"input": x[:500]})
            assert got.version == 1 and (got["softmax"].argmax(1) == expected_classes(model)[:500]).all()
            assert got["softmax"].tobytes() == client.softmax(model, x[:500]).tobytes()
        alone = ours.predict("mnist_beginner", x[:2], outputs=["softmax"], signature="serving_default", version=1)["softmax"]
        assert alone.tobytes() == ours.predict("mnist_beginner", x[:2].tolist())["softmax"].tobytes()  # lists become float32


def test_what_is_served(server):
    with Client(server.target) as ours:
        assert ours.ready() and ours.ready("mnist_conv")
        with pytest.raises(floe_client.NotFound):
            ours.ready("other")
        assert [(m.name, m.version, m.state) for m in ours.models()] == [("mnist_beginner", 1, "READY"), ("mnist_conv", 1, "READY")]
        assert [(v.version, v.state) for v in ours.status("mnist_conv")] == [(1, "AVAILABLE")]
        signature = ours.metadata("mnist_conv").signatures["serving_default"]
        assert signature.inputs["input"] == floe_client.TensorSpec("float32", (None, 784))
        assert signature.outputs == {"softmax": floe_client.TensorSpec("float32", (None, 10))}


def test_errors_say_what_is_wrong(server, x):
    with Client(server.target) as ours:
        for kind, code, words, arguments in (
                (floe_client.NotFound, "NOT_FOUND", "mnist_beginner", ("mnist_begginer", x[:1])),
                (floe_client.InvalidArgument, "INVALID_ARGUMENT", "'input'", ("mnist_beginner", x[:1, :9])),
                (floe_client.InvalidArgument, "INVALID_ARGUMENT", "float64", ("mnist_beginner", x[:1].astype(float))),
                (floe_client.InvalidArgument, "INVALID_ARGUMENT", "'inptu'", ("mnist_beginner", {"inptu": x[:1]}))):
            with pytest.raises(kind, match=words) as info:
                ours.predict(*arguments)
            assert (info.value.code, info.value.model) == (code, arguments[0]) and words in info.value.message
        with pytest.raises(ValueError, match="keras_learning_phase"):
            ours.predict("mnist_conv", x[:1])
        with pytest.raises(FloeError) as info:
            ours.predict("mnist_beginner", x[:1], signature="no")
        assert info.value.code == "FAILED_PRECONDITION"
        with pytest.raises(floe_client.DeadlineExceeded):
            ours.predict("mnist_conv", {"input": np.concatenate([x] * 4)}, timeout=0.05)


@pytest.fixture(scope="module")
def types(tmp_path_factory):
    folder = write_types(tmp_path_factory.mktemp("types"))
    config = folder / "floe.yaml"
    config.write_text("models:\n" + "".join(f"  - {{name: {t}, base_path: {folder / t}}}\n" for t in TYPES))
    socket = folder / "socket"
    with contextlib.closing(Floed("--config", str(config), f"--grpc_socket_path={socket}")) as floed:
        floed.socket = f"unix:{socket}"
        yield floed


@pytest.mark.parametrize("reply", ["content", "typed"])
def test_every_dtype(types, reply):
    random = np.random.default_rng(5)
    with Client(types.target) as ours:
        for name, dtype in TYPES.items():
            if name == "BYTES":
                values = np.array([["a", "é", b""], [b"\xff", "x" * 70000, "\n"]], object)
                expected = [[v.encode() if isinstance(v, str) else v for v in row] for row in values]
            else:
                dtype = np.dtype(ml_dtypes.bfloat16 if name == "BF16" else dtype)
                values = random.integers(0, 2 if name == "BOOL" else 60, [2, 3]).astype(dtype)
                sums = name not in ("BOOL", "UINT16", "UINT32", "UINT64")
                expected = (values.astype(float) * 2 if sums else values).tolist()
            got = ours.predict(name, {"x": values}, headers={} if reply == "content" else {"floe-reply": "typed"})["y"]
            assert got.dtype == (object if name == "BYTES" else dtype) and got.tolist() == expected, name
        assert ours.predict("BF16", [[1, 2, 3]])["y"].tolist() == [[2, 4, 6]]
        assert ours.predict("BYTES", [["a", "b", "c"]])["y"].tolist() == [[b"a", b"b", b"c"]]
        assert ours.predict("INT8", {"x": [[1, 2, 3]]})["y"].dtype == np.int8


def test_large_messages_and_threads_and_sockets(types):
    big = np.arange(6_000_000, dtype=np.float32).reshape(-1, 3)  # 24 MB, both ways
    small = [np.full([1, 3], k, np.float32) for k in range(400)]
    with Client(types.socket) as ours:
        assert (ours.predict("FP32", big)["y"] == big + big).all()
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            for sent, got in zip(small, threads.map(lambda array: ours.predict("FP32", array)["y"], small)):
                assert (got == sent + sent).all()


def test_asyncio(types, x):
    async def work():
        async with AsyncClient(types.target) as ours:
            small = [np.full([1, 3], k, np.float32) for k in range(400)]
            for sent, got in zip(small, await asyncio.gather(*(ours.predict("FP32", array) for array in small))):
                assert (got["y"] == sent + sent).all()
            assert await ours.ready() and await ours.ready("FP32") and len(await ours.models()) == len(TYPES)
            assert (await ours.status("FP32"))[0].state == "AVAILABLE"
            assert (await ours.metadata("FP32")).signatures["serving_default"].inputs["x"].dtype == "float32"
            assert (await ours.predict("INT8", [[1, 2, 3]]))["y"].tolist() == [[2, 4, 6]]
            with pytest.raises(floe_client.NotFound):
                await ours.predict("other", {"x": x})
            with pytest.raises(floe_client.InvalidArgument):
                await ours.predict("FP32", {"x": x})
        async with AsyncClient("127.0.0.1:1", retry=Retry(attempts=1)) as ours:
            assert not await ours.ready()
    run(work())


async def predicted(x, target, **options):
    async with AsyncClient(target, **options) as ours:
        return (await ours.predict("mnist_beginner", {"input": x}))["softmax"].argmax(1).tolist()


def test_versions_and_labels(tmp_path):
    for version in (1, 2):
        with tf.Graph().as_default() as graph:
            tf.add(tf.compat.v1.placeholder(tf.float32, [None], "x"), float(version), name="y")
        tf.io.write_graph(graph.as_graph_def(), str(tmp_path / f"m/{version}"), "frozen.pb", as_text=False)
    config = tmp_path / "floe.yaml"
    config.write_text(f"models:\n  - {{name: m, base_path: {tmp_path}/m, versions: all, version_labels: {{stable: 1}}}}\n")
    with contextlib.closing(Floed("--config", str(config))) as floed, Client(floed.target) as ours:
        floed.wait_until(lambda: [v.state for v in ours.status("m")] == ["AVAILABLE"] * 2)
        zero = np.zeros(1, np.float32)
        for arguments, version in (({}, 2), ({"version": 1}, 1), ({"label": "stable"}, 1)):
            got = ours.predict("m", zero, **arguments)
            assert got.version == version == got["y"][0] and ours.metadata("m", **arguments).version == version
        assert sorted(v.version for v in ours.status("m")) == [1, 2]
        with pytest.raises(floe_client.NotFound):
            ours.predict("m", zero, version=3)


def test_a_full_queue_is_waited_for(tmp_path, x):
    """Many calls at a queue with room for two: floed says when to come again, and all are answered."""
    said = []

    class Noting(Retry):
        def wait(self, sent, code, pushback_ms, left):
            said.append((code, pushback_ms))
            return super().wait(sent, code, pushback_ms, left)

    config = tmp_path / "floe.yaml"
    config.write_text(f"models: [{{name: m, base_path: {MNIST}/models/mnist_conv, workers: 1, inline_below_us: 0, "
                      "batching: {max_enqueued_bytes: 7000}}]\n")

    async def work(target):
        async with AsyncClient(target, retry=Noting(attempts=10_000), timeout=START_SECONDS) as ours:
            return await asyncio.gather(*(ours.predict("m", {"input": x[k:k + 1]}) for k in range(60)))
    with contextlib.closing(Floed("--config", str(config))) as floed:
        answers = run(work(floed.target))
    assert [answer["softmax"].argmax() for answer in answers] == expected_classes("mnist_conv")[:60].tolist()
    assert said and all(code == "UNAVAILABLE" and int(pushback) >= 1 for code, pushback in said)


def test_tokens_of_a_server(tmp_path, x):
    tokens = tmp_path / "tokens"
    token = subprocess.run([FLOECTL, "token", "new", "--name", "test", "--role", "infer", "--file", tokens], capture_output=True,
                           text=True, check=True).stdout.strip()
    with contextlib.closing(Floed("--config", CONFIG, f"--auth_tokens_file={tokens}", wait=False)) as floed:
        floed.wait_until(lambda: "ready: " in floed.log())
        with Client(floed.target, token=lambda: token) as ours:
            assert ours.predict("mnist_beginner", {"input": x[:3]})["softmax"].argmax(1).tolist() == [7, 2, 1]
            with pytest.raises(FloeError) as info:
                ours.models()
            assert info.value.code == "PERMISSION_DENIED"
        assert run(predicted(x[:3], floed.target, token=token)) == [7, 2, 1]
        for wrong in (None, token[:-1]):
            with Client(floed.target, token=wrong) as ours, pytest.raises(FloeError) as info:
                ours.predict("mnist_beginner", {"input": x[:3]})
            assert info.value.code == "UNAUTHENTICATED"


def test_tls(tmp_path, x):
    certificate, key, ca = (pathlib.Path(p) for p in conformance.make_certificates(str(tmp_path)))
    with contextlib.closing(Floed("--config", CONFIG, f"--tls_certificate={certificate}", f"--tls_key={key}", f"--tls_client_ca={ca}",
                                  "--tls_client=required", wait=False)) as floed:
        pair = {"cert": certificate, "key": key}
        with Client(floed.target, tls=TLS(ca=ca, **pair), retry=Retry(attempts=100)) as ours:
            assert ours.predict("mnist_beginner", x[:3])["softmax"].argmax(1).tolist() == [7, 2, 1]
        with Client(floed.target, tls=TLS(ca=ca.read_bytes(), server_name="localhost", **pair)) as ours:
            assert ours.ready()
        assert run(predicted(x[:3], floed.target, tls=TLS(ca=ca, **pair))) == [7, 2, 1]
        for wrong in (TLS(ca=ca), TLS(ca=ca, server_name="other", **pair), True, False):
            with Client(floed.target, tls=wrong, retry=Retry(attempts=1)) as ours:
                assert not ours.ready(timeout=10)


def test_tensorflow_servings_client_gets_the_same(server, x):
    """What the README of the client promises: the RPCs are the same."""
    stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(server.target))
    request = predict_pb2.PredictRequest.FromString(_messages.predict("mnist_beginner", None, "", "", {"input": (x[:2], "")}, []).request)
    assert request == predict_request("mnist_beginner", {"input": x[:2]})
    outputs = _messages._read_outputs(memoryview(stub.Predict(request).SerializeToString()))  # typed, as other servers reply
    with Client(server.target) as ours:
        assert outputs["softmax"].tobytes() == ours.predict("mnist_beginner", x[:2])["softmax"].tobytes()


# ---- the package

@pytest.fixture(scope="module")
def python():
    """Of an environment with the packages of clients/python/requirements.txt."""
    return environment(FOLDER / "requirements.txt")


@pytest.fixture(scope="module")
def installed(python, tmp_path_factory):
    """An environment of its own with the wheel, for which nothing is downloaded: it sees the packages of the other."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = subprocess.run([FOLDER / "build.sh", folder], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([python, "-m", "venv", "--without-pip", folder / "env"], check=True)
    own = folder / "env/bin/python"
    packages = subprocess.run([python, "-c", "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))"],
                              capture_output=True, text=True, check=True).stdout
    site = next((folder / "env/lib").glob("python*/site-packages"))
    (site / "others.pth").write_text(packages)
    subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "--python", own, "install", "--quiet", "--no-index", wheel], check=True)
    return own


def test_wheel_needs_numpy_and_grpcio_only(installed, server):
    out, _ = ask(installed, f"""
        import importlib.metadata, importlib.util
        for other in ("google.protobuf", "tensorflow", "ml_dtypes"):
            try: found = importlib.util.find_spec(other)
            except ModuleNotFoundError: found = None
            assert found is None, other
        print(importlib.metadata.version("floe-client"))
        import numpy as np
        from floe_client import AsyncClient, Client, _tensor
        with Client("{server.target}") as client:
            print(client.predict("mnist_beginner", np.zeros([1, 784], np.float32))["softmax"].shape)
        try: _tensor.decode(memoryview(b"\\x08\\x0e"))
        except TypeError as error: print(error)
        """)
    version = re.search(r"project\(floe VERSION (\S+)", (pathlib.Path(ROOT) / "CMakeLists.txt").read_text()).group(1)
    assert out.splitlines() == [version, "(1, 10)", "bfloat16 needs the package ml_dtypes: pip install ml_dtypes"]


def test_import_is_quick(installed):
    """150 ms, or 50 beyond NumPy's own on a machine where that alone takes as long."""
    seen = []
    for _ in range(20):  # the machine has other work
        _, said = ask(installed, "from floe_client import Client", "-X", "importtime")
        times = {name: int(us) for us, name in re.findall(r"\| +(\d+) \| +(floe_client|numpy)$", said, re.M)}
        seen.append((times["floe_client"], times["floe_client"] - times["numpy"]))
        if seen[-1][0] < 150_000 or seen[-1][1] < 50_000:
            return
    raise AssertionError(f"the import takes {min(seen)} us")


def test_types(python, installed, tmp_path, server):
    done = subprocess.run([python, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", tmp_path], cwd=FOLDER,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    use = tmp_path / "use.py"  # who installs the wheel gets its types
    use.write_text('from floe_client import Client\nreveal_type(Client("a").predict("m", [1])["y"])\nClient(1)\n')
    done = subprocess.run([python, "-m", "mypy", "--strict", "--python-executable", installed, "--cache-dir", tmp_path, use],
                          capture_output=True, text=True, check=False)
    assert all(text in done.stdout for text in ("numpy.ndarray[Any, numpy.dtype[Any]]", 'incompatible type "int"', "Found 1 error")), done.stdout


@pytest.mark.parametrize("page", ["README.md", "clients/python/README.md", "docs/clients.md"])
def test_the_pages_examples(page, server, types, installed):
    found = [block.text for block in blocks(pathlib.Path(ROOT) / page) if block.language == "python" and "floe_client" in block.text]
    assert found
    for code in found:
        code = code.replace("127.0.0.1:8500", server.target).replace('"mine", [[5.1, 3.5, 1.4, 0.2]]', '"mnist_beginner", [[0.5] * 784]')
        assert "8500" not in code
        assert "softmax" in ask(installed, code)[0]
