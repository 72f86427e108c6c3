"""One request is followed: its id, its trace, its times, and its line of the access log, over real sockets.

Also what docs/tracing.md says of request logs, and docs/floectl.md of replay.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import get_model_metadata_pb2, prediction_log_pb2
from tritonclient.grpc import service_pb2, service_pb2_grpc

from floed import CONFIG, FLOECTL, MNIST, Floed, digits, predict_request

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
BODY = {"instances": [[0.5] * 784]}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "access.log"


@pytest.fixture(scope="module")
def floed(log):
    with open(CONFIG, encoding="utf-8") as f:
        text = f.read().replace("slow_request_ms: 0", f"slow_request_ms: 0, access_path: {log}")
    config = log.parent / "floe.yaml"
    config.write_text(text.replace("../", f"{os.path.dirname(CONFIG)}/../"))
    with contextlib.closing(Floed("--config", str(config))) as floed:
        yield floed


@pytest.fixture(scope="module")
def client(floed):
    with floed.client() as client:
        yield client


def lines(floed, log, holds):
    """The access log, once a line of it is as is wished; that line."""
    found = []

    def there():
        found[:] = [line for line in map(json.loads, log.read_text().splitlines()) if holds(line)]
        return found
    floed.wait_until(there)
    return found[0]


def call(client, *metadata, rows=1, model="mnist_beginner"):
    """The trailing metadata of a Predict."""
    _, done = client.prediction.Predict.with_call(predict_request(model, {"input": digits()[:rows]}), timeout=60, metadata=metadata)
    return dict(done.trailing_metadata())


def ask(floed, model="mnist_beginner", body=None, **headers):
    return requests.post(f"http://127.0.0.1:{floed.port}/v1/models/{model}:predict", json=body or BODY, timeout=60,
                         headers={key.replace("_", "-"): value for key, value in headers.items()})


def continued(header):
    """Of this trace, and a span of the server's own."""
    match = re.fullmatch(f"00-{TRACE}-([0-9a-f]{{16}})-01", header)
    assert match and match[1] != "b7ad6b7169203331", header
    return match[1]


def test_who_asks_for_nothing_is_told_nothing(floed, client):
    assert not set(call(client)) & {"x-request-id", "traceparent", "floe-queue-us", "floe-run-us"}
    assert not set(ask(floed).headers) & {"x-request-id", "traceparent", "floe-queue-us", "Server-Timing"}


def test_grpc(client):
    assert call(client, ("x-request-id", "mine"))["x-request-id"] == "mine"
    first, second = (call(client, ("traceparent", PARENT)) for _ in range(2))
    assert continued(first["traceparent"]) != continued(second["traceparent"])
    assert first["x-request-id"] and first["x-request-id"] != second["x-request-id"]
    times = call(client, ("floe-timing", "1"), rows=1000)
    assert int(times["floe-queue-us"]) >= 0 and int(times["floe-run-us"]) > 0 and times["x-request-id"]
    assert "traceparent" not in call(client, ("traceparent", "00-no"), ("floe-timing", "1"))
    with pytest.raises(grpc.RpcError) as info:
        call(client, ("floe-timing", "yes"))
    assert info.value.code() == grpc.StatusCode.INVALID_ARGUMENT and "use 1 or 0" in info.value.details()


def test_http(floed):
    reply = ask(floed, x_request_id="mine", traceparent=PARENT, floe_timing="1")
    assert reply.status_code == 200
    assert reply.headers["x-request-id"] == "mine"
    continued(reply.headers["traceparent"])
    queue, run = (int(reply.headers[key]) for key in ("floe-queue-us", "floe-run-us"))
    assert reply.headers["Server-Timing"] == f"queue;dur={queue / 1000:g}, run;dur={run / 1000:g}"
    refused = ask(floed, model="none", traceparent=PARENT)
    assert refused.status_code == 404 and refused.headers["x-request-id"] in refused.json()["error"]
    continued(refused.headers["traceparent"])


def test_access_log(floed, client, log):
    call(client, ("x-request-id", "one"), ("traceparent", PARENT), rows=3)
    line = lines(floed, log, lambda line: line.get("request_id") == "one")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("time"))
    assert line.pop("peer").startswith("127.0.0.1:")
    line.pop("caller", None)
    assert line.pop("request_bytes") > 3 * 784 * 4 and line.pop("reply_bytes") > 3 * 10 * 4
    assert line.pop("total_us") >= line.pop("run_us") > 0 and line.pop("queue_us") >= 0
    assert line == {"method": "/tensorflow.serving.PredictionService/Predict", "model": "mnist_beginner", "version": 1,
                    "signature": "serving_default", "code": "OK", "batch_rows": 3, "request_id": "one", "trace_id": TRACE}
    ask(floed, x_request_id="two", model="none")
    line = lines(floed, log, lambda line: line.get("request_id") == "two")
    assert (line["method"], line["model"], line["code"]) == ("/v1/models/none:predict", "none", "NOT_FOUND")
    assert "none" in line["error"] and "version" not in line


def test_metadata_is_followed(floed, client, log):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "mnist_beginner"
    _, done = client.prediction.GetModelMetadata.with_call(request, timeout=60, metadata=(("x-request-id", "meta"), ("traceparent", PARENT),
                                                                                         ("floe-timing", "1")))
    told = dict(done.trailing_metadata())
    assert told["x-request-id"] == "meta" and int(told["floe-run-us"]) >= 0 and continued(told["traceparent"])
    _, done = client.prediction.GetModelMetadata.with_call(request, timeout=60)
    assert "x-request-id" not in dict(done.trailing_metadata())
    for path in ("v1/models", "v1/models/mnist_beginner", "v2/models/mnist_beginner", "metrics", "healthz"):
        reply = requests.get(f"http://127.0.0.1:{floed.port}/{path}", timeout=60,
                             headers={"x-request-id": path, "floe-timing": "1", "traceparent": PARENT})
        assert (reply.status_code, reply.headers["x-request-id"]) == (200, path)
        assert "run;dur=" in reply.headers["Server-Timing"] and continued(reply.headers["traceparent"])


def test_messages_of_a_stream_are_followed(floed):
    def message(name, model="mnist_beginner"):
        request = service_pb2.ModelInferRequest(model_name=model, id=name)
        request.inputs.add(name="input", datatype="FP32", shape=[1, 784])
        request.raw_input_contents.append(digits()[:1].tobytes())
        return request

    with grpc.insecure_channel(floed.target) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        asked = iter([message("a"), message("b", "none")])
        good, bad = stub.ModelStreamInfer(asked, timeout=60, metadata=(("x-request-id", "stream"), ("floe-timing", "1"), ("traceparent", PARENT)))
        for reply, name in ((good, "a"), (bad, "b")):
            parameters = reply.infer_response.parameters
            assert reply.infer_response.id == name and parameters["x-request-id"].string_param == "stream"
            continued(parameters["traceparent"].string_param)
        assert good.infer_response.raw_output_contents and good.infer_response.parameters["floe-run-us"].int64_param > 0
        assert "NOT_FOUND" in bad.error_message
        plain = next(iter(stub.ModelStreamInfer(iter([message("c")]), timeout=60)))
        assert not set(plain.infer_response.parameters) & {"x-request-id", "floe-run-us", "traceparent"}


def test_refused_calls_have_a_line(floed, log):
    with grpc.insecure_channel(floed.target) as channel:
        with pytest.raises(grpc.RpcError):
            channel.unary_unary("/no.such/Method")(b"", timeout=60, metadata=(("x-request-id", "unknown rpc"),))
    base = f"http://127.0.0.1:{floed.port}"
    assert requests.get(f"{base}/nowhere", timeout=60, headers={"x-request-id": "unknown route"}).headers["x-request-id"] == "unknown route"
    assert requests.delete(f"{base}/v1/models", timeout=60).status_code == 405
    assert requests.post(f"{base}/v2/repository/index", data=b" " * 5000, timeout=60).status_code == 413
    with socket.create_connection(("127.0.0.1", int(floed.port))) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nno colon\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    line = lines(floed, log, lambda line: line.get("request_id") == "unknown rpc")
    assert (line["refused"], line["code"], line["method"]) == ("unknown", "UNIMPLEMENTED", "/no.such/Method")
    assert lines(floed, log, lambda line: line.get("request_id") == "unknown route")["code"] == "NOT_FOUND"
    for refused, code in (("unknown", "UNIMPLEMENTED"), ("size", "RESOURCE_EXHAUSTED"), ("head", "INVALID_ARGUMENT")):
        assert lines(floed, log, lambda line: (line.get("refused"), line["code"]) == (refused, code))["peer"].startswith("127.0.0.1:")
    metrics = requests.get(f"{base}/metrics", timeout=60).text
    for line in ('floe_rpcs_total{method="other",code="UNIMPLEMENTED"} 1', 'floe_http_requests_total{route="other",status="404"} 1',
                 'floe_http_requests_total{route="POST /v2/repository/index",status="413"} 1', 'floe_log_dropped_total{log="access"} 0'):
        assert line in metrics, line


def test_access_log_is_rotated(floed, client, log):
    call(client, ("x-request-id", "before"))
    lines(floed, log, lambda line: line.get("request_id") == "before")
    moved = log.rename(log.with_suffix(".1"))
    floed.process.send_signal(signal.SIGHUP)
    floed.wait_until(log.exists)
    call(client, ("x-request-id", "after"))
    lines(floed, log, lambda line: line.get("request_id") == "after")
    assert "before" in moved.read_text() and "before" not in log.read_text()


def test_one_in_some(tmp_path):
    path = tmp_path / "access.log"
    with open(CONFIG, encoding="utf-8") as f:
        text = f.read().replace("slow_request_ms: 0", f"slow_request_ms: 0, access_path: {path}, access_one_in: 10")
    (tmp_path / "floe.yaml").write_text(text.replace("../", f"{os.path.dirname(CONFIG)}/../"))
    with contextlib.closing(Floed("--config", str(tmp_path / "floe.yaml"))) as floed, floed.client() as client:
        for _ in range(25):
            call(client)
        for _ in range(4):
            ask(floed, model="none")
    codes = [json.loads(line)["code"] for line in path.read_text().splitlines()]
    assert sorted(codes) == ["NOT_FOUND"] * 4 + ["OK"] * 3


def replay(file, target, *args, code=0):
    done = subprocess.run([FLOECTL, "replay", str(file), "--target", target, "--json", *args], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def test_requests_are_recorded_and_sent_again(tmp_path):
    (tmp_path / "log").mkdir()
    path = tmp_path / "floe.yaml"
    path.write_text(f"log: {{requests_directory: {tmp_path}/log, requests_file_bytes: 32KiB}}\n"
                    f"models:\n  - {{name: one, base_path: {MNIST}/models/mnist_conv, log_one_in: 1}}\n"
                    f"  - {{name: none, base_path: {MNIST}/models/mnist_beginner}}\n")
    file = tmp_path / "log/one.tfrecord"
    with contextlib.closing(Floed("--config", str(path))) as floed, floed.client() as client:
        sent = [predict_request("one", {"input": digits()[i:i + 1]}) for i in range(4)]
        answers = [client.prediction.Predict(request, timeout=60) for request in sent]
        call(client, model="none")
        with pytest.raises(grpc.RpcError):
            client.predict("one", {"input": digits()[:1, :5]})
        floed.wait_until(file.exists)
        floed.wait_until(lambda: file.stat().st_size > 4 * 784 * 4)
        # Requests of KServe and of REST are recorded as those of a Predict.
        stub = service_pb2_grpc.GRPCInferenceServiceStub(client.channel)
        infer = service_pb2.ModelInferRequest(model_name="one", raw_input_contents=[digits()[4:6].tobytes()])
        infer.inputs.add(name="input", datatype="FP32", shape=[2, 784])
        told = stub.ModelInfer(infer, timeout=60)
        assert requests.post(f"http://{floed.target}/v1/models/one:predict", json={"inputs": digits()[:1].tolist()}, timeout=60).ok
        floed.wait_until(lambda: len(list(tf.data.TFRecordDataset(str(file)))) == 6)
        logs = [prediction_log_pb2.PredictionLog.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(file))]
        assert [log.predict_log.request for log in logs[:4]] == sent
        assert [log.predict_log.response for log in logs[:4]] == answers
        for log, rows in ((logs[4], digits()[4:6]), (logs[5], digits()[:1])):
            assert log.predict_log.request.model_spec.name == "one" and not log.predict_log.request.model_spec.HasField("version")
            np.testing.assert_array_equal(tf.make_ndarray(log.predict_log.request.inputs["input"]), rows)
        (recorded,) = logs[4].predict_log.response.outputs.values()
        assert np.float32(recorded.float_val).tobytes() == told.raw_output_contents[0]
        assert not (tmp_path / "log/none.tfrecord").exists()
        saved = tmp_path / "saved.tfrecord"
        saved.write_bytes(file.read_bytes())
        result = replay(saved, floed.target, "--times", "3", "--rate", "200", "--concurrency", "4")
        assert (result["sent"], result["succeeded"], result["compared"], result["differing"]) == (18, 18, 18, 0)
        assert 0 < result["p50_ms"] <= result["max_ms"]
        floed.wait_until((tmp_path / "log/one.tfrecord.1").exists)  # it was full
        other = replay(saved, floed.target, "--model", "none", code=1)
        assert (other["differing"], other["first_differing"]) == (6, 1)
        failed = replay(saved, floed.target, "--model", "other", code=1)
        assert failed["errors"] == {"NOT_FOUND": 6} and failed["compared"] == 0
    whole = saved.read_bytes()
    saved.write_bytes(whole[:-1])
    assert "record 6" in replay(saved, floed.target, code=1)
    # The records warm a version up.
    model = tmp_path / "model/1"
    model.mkdir(parents=True)
    shutil.copy(f"{MNIST}/models/mnist_conv/1/frozen.pb", model)
    (model / "assets.extra").mkdir()
    (model / "assets.extra/tf_serving_warmup_requests").write_bytes(whole)
    with contextlib.closing(Floed(f"--model_base_path={tmp_path}/model", "--model_name=m")) as floed:
        assert "6 recorded requests" in floed.log()
