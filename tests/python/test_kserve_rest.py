"""KServe v2's REST API of a running floed, called by Triton's own client and by hand."""
import contextlib
import json
import os

import numpy as np
import pytest
import requests
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from floed import MODELS, ROOT, Floed, digits, expected_classes


@pytest.fixture(scope="module")
def x():
    return digits()


@pytest.fixture
def http(server):
    client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
    yield client
    client.close()


def url(floed, path):
    return f"http://127.0.0.1:{floed.port}{path}"


def infer(http, model, rows, binary_in, binary_out, **kwargs):
    given = triton.InferInput("input", list(rows.shape), "FP32")
    given.set_data_from_numpy(rows, binary_data=binary_in)
    return http.infer(model, [given], outputs=[triton.InferRequestedOutput("softmax", binary_data=binary_out)], **kwargs)


@pytest.mark.parametrize("binary_out", [False, True])
@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_digits_get_tensorflows_classes_and_grpcs_bits(http, client, x, model, binary_in, binary_out):
    got = infer(http, model, x[:32], binary_in, binary_out, request_id="9").as_numpy("softmax")
    np.testing.assert_array_equal(got.argmax(1), expected_classes(model)[:32])
    assert got.astype(np.float32).tobytes() == client.softmax(model, x[:32]).tobytes()


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_packed_requests(http, x, algorithm):
    for binary in (False, True):
        got = infer(http, "mnist_conv", x[:4], binary, binary, request_compression_algorithm=algorithm).as_numpy("softmax")
        np.testing.assert_array_equal(got.argmax(1), expected_classes("mnist_conv")[:4])


def test_server_and_models(server, http):
    assert http.is_server_live() and http.is_server_ready()
    assert http.is_model_ready("mnist_conv") and http.is_model_ready("mnist_conv", "1")
    assert not http.is_model_ready("mnist_conv", "7") and not http.is_model_ready("other")
    about = http.get_server_metadata()
    assert about["name"] == "floe" and "binary_tensor_data" in about["extensions"]
    model = http.get_model_metadata("mnist_conv")
    assert (model["name"], model["versions"]) == ("mnist_conv", ["1"])
    assert {"name": "input", "datatype": "FP32", "shape": [-1, 784]} in model["inputs"]
    assert model["outputs"] == [{"name": "softmax", "datatype": "FP32", "shape": [-1, 10]}]
    assert sorted(entry["name"] for entry in http.get_model_repository_index()) == sorted(MODELS)
    assert requests.get(url(server, "/v2/models/mnist_conv/versions/7"), timeout=60).status_code == 404


def test_replies_name_the_request(server, x):
    body = {"id": "mine", "inputs": [{"name": "input", "shape": [1, 784], "datatype": "FP32", "data": x[:1].tolist()}]}
    reply = requests.post(url(server, "/v2/models/mnist_conv/versions/1/infer"), json=body, timeout=60).json()
    assert (reply["id"], reply["model_name"], reply["model_version"]) == ("mine", "mnist_conv", "1")
    assert reply["outputs"][0]["shape"] == [1, 10] and len(reply["outputs"][0]["data"]) == 10


def test_refusals(server, http, x):
    with pytest.raises(InferenceServerException, match=r"shape \[1,100\], the model takes"):
        infer(http, "mnist_conv", x[:1, :100].copy(), True, True)
    body = {"inputs": [{"name": "input", "shape": [1, 784], "datatype": "FP32", "data": [0.0] * 783 + ["a"]}]}
    reply = requests.post(url(server, "/v2/models/mnist_conv/infer"), data=json.dumps(body), timeout=60)
    assert reply.status_code == 400 and "inputs[0].data[783]: the string 'a'" in reply.json()["error"]
    for length in ("99999999", "-1", "x"):
        reply = requests.post(url(server, "/v2/models/mnist_conv/infer"), data=json.dumps(body), timeout=60,
                              headers={"Inference-Header-Content-Length": length})
        assert reply.status_code == 400 and "Inference-Header-Content-Length" in reply.json()["error"]


def test_configuration_and_statistics(server, http, x):
    infer(http, "mnist_conv", x[:3], True, True)
    config = http.get_model_config("mnist_conv")
    assert config["name"] == "mnist_conv" and config["input"][0]["dims"] == [-1, 784]
    counted = http.get_inference_statistics("mnist_conv", "1")["model_stats"]
    assert [(entry["name"], entry["version"]) for entry in counted] == [("mnist_conv", "1")]
    assert counted[0]["inference_count"] >= 3 and counted[0]["inference_stats"]["success"]["ns"] > 0
    assert sorted(entry["name"] for entry in http.get_inference_statistics()["model_stats"]) == sorted(MODELS)
    for path in ("/v2/models/other/config", "/v2/models/other/stats", "/v2/models/mnist_conv/versions/7/config"):
        assert requests.get(url(server, path), timeout=60).status_code == 404
    assert requests.get(url(server, "/v2/models/mnist_conv/versions/a/stats"), timeout=60).status_code == 400


def test_models_are_unloaded_and_loaded():
    with contextlib.closing(Floed("--config", os.path.join(ROOT, "config/floe.yaml"))) as floed, \
            contextlib.closing(triton.InferenceServerClient(floed.target)) as http:
        http.unload_model(MODELS[0])
        assert not http.is_model_ready(MODELS[0]) and http.is_model_ready(MODELS[1])
        index = requests.post(url(floed, "/v2/repository/index"), json={"ready": True}, timeout=60).json()
        assert [entry["name"] for entry in index] == [MODELS[1]]
        http.load_model(MODELS[0])
        assert http.is_model_ready(MODELS[0])
        for path, body, status, text in (
                (f"{MODELS[0]}/load", '{"parameters": {"config": "{}"}}', 400, "'config'"),
                (f"{MODELS[0]}/load", '{"parameters": [1]}', 400, "parameters: a list where an object belongs"),
                (f"{MODELS[0]}/load", "{", 400, "JSON"),
                ("other/load", "", 404, "'other'"),
                ("%2Fetc/unload", "", 400, "'/etc'")):
            reply = requests.post(url(floed, f"/v2/repository/models/{path}"), data=body, timeout=60)
            assert reply.status_code == status and text in reply.json()["error"], (path, body, reply.text)
