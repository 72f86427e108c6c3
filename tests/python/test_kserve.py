"""KServe v2 over gRPC with Triton's own client: sync, asyncio and streams, against TensorFlow's answers, Predict's over the
same socket, and a float64 oracle."""
import asyncio
import contextlib
import os
import pathlib
import queue

import grpc
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from floed import MODELS, ROOT, START_SECONDS, Floed, digits, expected_classes
from pages import blocks

# One graph with an output for each datatype: y = x + x, or x itself where there is no sum.
TYPES = {"FP32": "float32", "FP64": "float64", "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
         "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "FP16": "float16", "BOOL": "bool",
         "BYTES": "string", "BF16": "bfloat16"}
SUMS = {"FP32", "FP64", "INT8", "INT16", "INT32", "INT64", "UINT8", "FP16", "BF16"}


def write_types(folder):
    """A SavedModel-like folder for each datatype."""
    for datatype, dtype in TYPES.items():
        path = folder / datatype / "1"
        path.mkdir(parents=True)
        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(dtype, [None, 3], "x")
            tf.identity(x + x if datatype in SUMS else x, "y")
        tf.io.write_graph(graph.as_graph_def(), str(path), "frozen.pb", as_text=False)
    return folder


@pytest.fixture(scope="module")
def types(tmp_path_factory):
    folder = write_types(tmp_path_factory.mktemp("types"))
    config = folder / "floe.yaml"
    config.write_text("models:\n" + "".join(f"  - {{name: {t}, base_path: {folder / t}}}\n" for t in TYPES))
    with contextlib.closing(Floed("--config", str(config))) as floed:
        yield floed


@pytest.fixture(scope="module")
def x():
    return digits()


@pytest.fixture
def kserve(server):
    with contextlib.closing(triton.InferenceServerClient(server.target)) as client:
        yield client


def fed(**arrays):
    """Inputs as clients make them."""
    out = []
    for name, array in arrays.items():
        datatype = {np.dtype(ml_dtypes.bfloat16): "BF16"}.get(array.dtype) or triton_datatype(array)
        tensor = triton.InferInput(name, list(array.shape), datatype)
        if datatype == "BF16":
            tensor._raw_content = array.tobytes()  # NumPy has no such type, nor has the client's setter
        else:
            tensor.set_data_from_numpy(array)
        out.append(tensor)
    return out


def triton_datatype(array):
    from tritonclient.utils import np_to_triton_dtype
    return np_to_triton_dtype(array.dtype)


def fails(code, call):
    """The message of a call that must fail with `code`."""
    with pytest.raises(InferenceServerException) as info:
        call()
    assert info.value.status() == f"StatusCode.{code}", info.value
    return info.value.message()


# ---- answers

@pytest.mark.parametrize("model", MODELS)
def test_digits_get_tensorflows_class_and_predicts_bits(kserve, client, x, model):
    for first in range(0, 2000, 500):
        rows = x[first:first + 500]
        reply = kserve.infer(model, fed(input=rows), request_id=str(first))
        got = reply.as_numpy("softmax")
        assert (got.argmax(1) == expected_classes(model)[first:first + 500]).all()
        assert got.tobytes() == client.softmax(model, rows).tobytes()
        assert reply.get_response().id == str(first)
        assert reply.get_response().model_name == model
        assert reply.get_response().model_version == "1"


@pytest.mark.parametrize("datatype", TYPES)
def test_every_datatype(types, datatype):
    dtype = ml_dtypes.bfloat16 if datatype == "BF16" else object if datatype == "BYTES" else TYPES[datatype]
    if datatype == "BYTES":
        values = np.array([[b"", b"a\x00b", b"\xff\xfe"], ["é".encode(), b"x" * 70000, b"\n"]], object)
    elif datatype == "BOOL":
        values = np.array([[True, False, True], [False, False, True]])
    elif datatype in ("FP32", "FP64", "FP16", "BF16"):
        values = np.array([[0.5, -3, np.inf], [np.nan, 1e-3, -0.0]]).astype(dtype)
    else:
        info = np.iinfo(dtype)
        values = np.array([[0, 1, info.max // 2], [info.min // 2, 5, 7]], dtype)
    with contextlib.closing(triton.InferenceServerClient(types.target)) as client:
        reply = client.infer(datatype, fed(x=values))
        metadata = client.get_model_metadata(datatype)
    assert [i.datatype for i in metadata.inputs] == [datatype] == [o.datatype for o in metadata.outputs]
    if datatype == "BF16":
        got = np.frombuffer(reply.get_response().raw_output_contents[0], dtype).reshape(values.shape)
    else:
        got = reply.as_numpy("y")
    if datatype in SUMS:
        # Twice a value is exact in every type.
        wide = values.astype(np.float64) if values.dtype.kind not in "iu" else values.astype(object)
        expected = (wide + wide).astype(dtype)
        exact = np.float64 if values.dtype.kind not in "iu" else object  # NaN of bfloat16 equals none
        np.testing.assert_array_equal(got.astype(exact), expected.astype(exact))
    else:
        assert got.tolist() == values.tolist()


def test_the_pages_client(server, capsys):
    [code] = [block.text for block in blocks(pathlib.Path(ROOT) / "docs/kserve.md") if block.language == "python"]
    exec(code.replace("127.0.0.1:8500", server.target), {})  # pylint: disable=exec-used
    assert capsys.readouterr().out.startswith("[[")


def test_typed_contents_equal_raw(server, kserve, x):
    stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(server.target))
    request = service_pb2.ModelInferRequest(model_name="mnist_beginner", id="typed")
    tensor = request.inputs.add(name="input", datatype="FP32", shape=[2, 784])
    tensor.contents.fp32_contents.extend(x[:2].ravel().tolist())
    reply = stub.ModelInfer(request)
    assert reply.id == "typed" and not reply.raw_output_contents
    got = np.array(reply.outputs[0].contents.fp32_contents, np.float32).reshape(reply.outputs[0].shape)
    raw = kserve.infer("mnist_beginner", fed(input=x[:2])).as_numpy("softmax")
    assert got.tobytes() == raw.tobytes()


def test_large_requests(kserve, client, x):
    rows = np.concatenate([x] * 2)  # 62 MB, and 0.8 MB of reply
    got = kserve.infer("mnist_beginner", fed(input=rows)).as_numpy("softmax")
    assert (got[:10000] == got[10000:]).all()
    assert (got[:10000].argmax(1) == expected_classes("mnist_beginner")).all()


# ---- what else the client asks

def test_health_and_metadata(kserve):
    assert kserve.is_server_live() and kserve.is_server_ready()
    assert kserve.is_model_ready("mnist_beginner") and kserve.is_model_ready("mnist_beginner", "1")
    assert not kserve.is_model_ready("mnist_beginner", "2") and not kserve.is_model_ready("unknown")
    server = kserve.get_server_metadata()
    assert server.name == "floe" and server.version and "statistics" in server.extensions
    model = kserve.get_model_metadata("mnist_beginner")
    assert (model.name, list(model.versions), model.platform) == ("mnist_beginner", ["1"], "tensorflow_graphdef")
    assert [(i.name, i.datatype, list(i.shape)) for i in model.inputs] == [("input", "FP32", [-1, 784])]
    assert [(o.name, o.datatype, list(o.shape)) for o in model.outputs] == [("softmax", "FP32", [-1, 10])]
    config = kserve.get_model_config("mnist_beginner").config
    assert config.max_batch_size > 1 and list(config.input[0].dims) == [784]


def test_statistics_count(kserve, x):
    def stats():
        return kserve.get_inference_statistics("mnist_beginner").model_stats[0]
    before = stats()
    for _ in range(5):
        kserve.infer("mnist_beginner", fed(input=x[:3]))
    with pytest.raises(InferenceServerException):
        kserve.infer("mnist_beginner", fed(input=x[:3].astype(np.float64)))
    after = stats()
    assert after.inference_stats.success.count - before.inference_stats.success.count == 5
    assert after.inference_stats.fail.count - before.inference_stats.fail.count == 1
    assert after.inference_count - before.inference_count == 15
    assert 0 < after.execution_count - before.execution_count <= 5
    assert after.inference_stats.compute_infer.ns > before.inference_stats.compute_infer.ns
    by_rows = [{batch.batch_size: batch.compute_infer.count for batch in stats.batch_stats} for stats in (before, after)]
    assert by_rows[1][3] - by_rows[0].get(3, 0) == after.execution_count - before.execution_count
    assert after.last_inference > before.last_inference - 1 > 1_600_000_000_000


def test_parameters(server, kserve, x):
    reply = kserve.infer("mnist_beginner", fed(input=x[:1]), priority=1, timeout=30_000_000, parameters={"mine": 1},
                         outputs=[triton.InferRequestedOutput("softmax")])
    assert reply.as_numpy("softmax").shape == (1, 10)
    fails("DEADLINE_EXCEEDED", lambda: kserve.infer("mnist_conv", fed(input=x), timeout=1))


def test_errors_name_what_is_wrong(kserve, x):
    def infer(model="mnist_beginner", outputs=None, version="", **arrays):
        return kserve.infer(model, fed(**arrays), model_version=version,
                            outputs=outputs and [triton.InferRequestedOutput(o) for o in outputs])
    assert "mnist_beginner" in fails("NOT_FOUND", lambda: infer("mnist_begginer", input=x[:1]))
    assert "version 7" in fails("NOT_FOUND", lambda: infer(version="7", input=x[:1]))
    assert "takes FP32, but FP64" in fails("INVALID_ARGUMENT", lambda: infer(input=x[:1].astype(np.float64)))
    assert "'input'" in fails("INVALID_ARGUMENT", lambda: infer(input=x[:1, :9]))
    assert "nearest: 'input'" in fails("INVALID_ARGUMENT", lambda: infer(inptu=x[:1]))
    assert "softmax" in fails("INVALID_ARGUMENT", lambda: infer(outputs=["softmaxx"], input=x[:1]))
    assert "shared memory" in fails("UNIMPLEMENTED", lambda: kserve.register_system_shared_memory("a", "/a", 1))


# ---- asyncio and streams

def test_asyncio_and_its_stream(server, x):
    async def run():
        async with triton_aio.InferenceServerClient(server.target) as client:
            assert await client.is_server_ready()
            replies = await asyncio.gather(*[client.infer("mnist_beginner", fed(input=x[k:k + 1 + k % 3])) for k in range(50)])

            async def requests():
                for k in range(100):
                    yield {"model_name": "mnist_beginner", "inputs": fed(input=x[k:k + 1]), "request_id": str(k)}
            streamed = [(result, error) async for result, error in client.stream_infer(requests())]
        return replies, streamed
    replies, streamed = asyncio.run(run())
    classes = expected_classes("mnist_beginner")
    for k, reply in enumerate(replies):
        assert (reply.as_numpy("softmax").argmax(1) == classes[k:k + 1 + k % 3]).all()
    assert [result.get_response().id for result, _ in streamed] == [str(k) for k in range(100)]
    assert [result.as_numpy("softmax").argmax() for result, _ in streamed] == classes[:100].tolist()
    assert not any(error for _, error in streamed)


def test_stream_keeps_order_and_survives_a_bad_message(kserve, x):
    got = queue.Queue()
    kserve.start_stream(lambda result, error: got.put((result, error)))
    classes = expected_classes("mnist_conv")
    for k in range(60):
        # Large and small ones of two models; number 20 is wrong.
        model, rows = ("mnist_conv", x[k:k + 40]) if k % 3 else ("mnist_beginner", x[k:k + 1])
        kserve.async_stream_infer(model, fed(input=rows[:, :9] if k == 20 else rows), request_id=str(k))
    answers = [got.get(timeout=START_SECONDS) for _ in range(60)]
    kserve.stop_stream()
    for k, (result, error) in enumerate(answers):
        if k == 20:
            assert result is None and "INVALID_ARGUMENT: input 'input'" in error.message()
            continue
        assert error is None and result.get_response().id == str(k)
        if k % 3:
            assert (result.as_numpy("softmax").argmax(1) == classes[k:k + 40]).all()


def test_stream_takes_large_messages(kserve, x):
    got = queue.Queue()
    kserve.start_stream(lambda result, error: got.put((result, error)))
    for k in range(6):
        kserve.async_stream_infer("mnist_beginner", fed(input=x[k:5000 + k]), request_id=str(k))  # 15.7 MB
    answers = [got.get(timeout=START_SECONDS) for _ in range(6)]
    kserve.stop_stream()
    for k, (result, error) in enumerate(answers):
        assert error is None, error
        assert (result.as_numpy("softmax").argmax(1) == expected_classes("mnist_beginner")[k:5000 + k]).all()


def test_stream_that_is_not_read_holds_little(server, x):
    """A client that sends without reading is paused, not served into memory."""
    stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(server.target))
    request = service_pb2.ModelInferRequest(model_name="mnist_beginner")
    request.inputs.add(name="input", datatype="FP32", shape=[1000, 784])
    request.raw_input_contents.append(x[:1000].tobytes())

    def rss():
        with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    before = rss()
    sent = []

    def requests():
        for k in range(2000):  # 6 GB
            sent.append(k)
            yield request
    call = stub.ModelStreamInfer(requests())
    first = next(call)
    assert first.infer_response.outputs[0].shape == [1000, 10]
    call.cancel()
    assert len(sent) < 2000
    assert rss() - before < 200_000


# ---- the repository

def test_index_load_and_unload(tmp_path):
    config = tmp_path / "floe.yaml"
    models = os.path.join(ROOT, "examples/mnist/models")
    config.write_text("models:\n" + "".join(f"  - {{name: {m}, base_path: {models}/{m}}}\n" for m in MODELS))
    with contextlib.closing(Floed("--config", str(config))) as floed, \
            contextlib.closing(triton.InferenceServerClient(floed.target)) as client:
        def index():
            return {m.name: m.state for m in client.get_model_repository_index().models}
        assert index() == {m: "READY" for m in MODELS}
        client.unload_model(MODELS[0])
        assert index().get(MODELS[0]) is None and not client.is_model_ready(MODELS[0])
        fails("NOT_FOUND", lambda: client.get_model_metadata(MODELS[0]))
        fails("NOT_FOUND", lambda: client.unload_model(MODELS[0]))
        client.load_model(MODELS[0])
        assert index() == {m: "READY" for m in MODELS} and client.is_model_ready(MODELS[0])
        assert "'config'" in fails("INVALID_ARGUMENT", lambda: client.load_model(MODELS[0], config="{}"))
        assert "'/etc'" in fails("INVALID_ARGUMENT", lambda: client.load_model("/etc"))
        fails("NOT_FOUND", lambda: client.load_model("other"))


def test_reflection_lists_the_service(server):
    from google.protobuf.descriptor_pool import DescriptorPool
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
    database = ProtoReflectionDescriptorDatabase(grpc.insecure_channel(server.target))
    assert "inference.GRPCInferenceService" in database.get_services()
    service = DescriptorPool(database).FindServiceByName("inference.GRPCInferenceService")
    assert service.methods_by_name["ModelStreamInfer"].client_streaming
