"""KServe's SDK and ovmsclient, in an environment of their own (requirements_sdks.txt), against a live server."""
import json
import os
import subprocess

import numpy as np
import pytest

from floed import MNIST, ROOT, digits

FOLDER = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="module")
def answers(server):
    """What sdk_clients.py got."""
    if not os.environ.get("FLOE_SDKS"):
        pytest.skip("the SDKs are asked with --full")
    offline = ["--offline"] if os.environ.get("FLOE_OFFLINE") else []
    done = subprocess.run([ROOT + "/scripts/pyenv.sh", *offline, FOLDER + "/requirements_sdks.txt"], capture_output=True, text=True, check=False)
    if done.returncode and offline:
        pytest.skip("there is no Python environment for the SDKs")
    assert done.returncode == 0, done.stderr
    done = subprocess.run([done.stdout.strip(), FOLDER + "/sdk_clients.py", server.target, MNIST + "/data/digits.npy"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def softmax(client):
    return client.softmax("mnist_beginner", digits()[:8])


def equal(answer, softmax):
    return np.array(answer, np.float32).tobytes() == softmax.tobytes()


def test_kserves_sdk_over_http(answers, softmax):
    got = answers["kserve rest"]
    assert got["live"] and got["ready"] and got["model"]
    assert equal(got["softmax"], softmax) and equal(got["binary"], softmax) and equal(got["v1"], softmax)
    assert "400" in got["error"] and "[?,784]" in got["error"]


def test_kserves_sdk_over_grpc(answers, softmax):
    got = answers["kserve grpc"]
    assert got["live"] and got["ready"] and got["model"] and not got["other"]
    assert equal(got["softmax"], softmax)


@pytest.mark.parametrize("door", ["ovms grpc", "ovms http"])
def test_ovmsclient(answers, softmax, door):
    got = answers[door]
    assert got["status"]["1"]["state"] == "AVAILABLE"
    if door == "ovms grpc":
        assert got["metadata"]["inputs"]["input"] == {"shape": [-1, 784], "dtype": "DT_FLOAT"}
        assert got["metadata"]["outputs"]["softmax"] == {"shape": [-1, 10], "dtype": "DT_FLOAT"}
    else:  # TensorFlow Serving's JSON, which it hands on as it is; it reads OpenVINO Model Server's spelling only
        inputs = got["metadata"]["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]
        assert inputs["input"]["tensor_shape"]["dim"][1]["size"] == "784"
    assert equal(got["softmax"], softmax) and equal(got["version 1"], softmax)
    assert got["missing"].startswith("ModelNotFoundError") and got["wrong"].startswith("InvalidInputError")
