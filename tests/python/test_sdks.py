"""KServe's SDK and ovmsclient, in an environment of their own (requirements_sdks.txt), against a live server."""
import json
import subprocess

import numpy as np
import pytest

from floed import MNIST, digits
from own_python import FOLDER, python_of


@pytest.fixture(scope="module")
def answers(server):
    """What sdk_clients.py got."""
    python = python_of("requirements_sdks.txt")
    done = subprocess.run([python, FOLDER + "/sdk_clients.py", server.target, MNIST + "/data/digits.npy"],
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
