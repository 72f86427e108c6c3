"""The commands of docs/clients.md for Go and grpcurl, and replies beyond what clients take by default."""
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import grpc
import numpy as np
import pytest
from google.protobuf import json_format
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

import conformance
from floed import MNIST, ROOT, Floed, predict_request

REPLY_LIMIT = 4 << 20
LINES = re.findall(r"^    (\S.*)$", (pathlib.Path(ROOT) / "docs/clients.md").read_text(), re.M)

# y is x, of any number of rows of 1,000 values.
GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 1000 } } } } }
node { name: "y" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
"""


def line_with(word):
    (line,) = [line for line in LINES if word in line]
    return line


def test_grpcurls_message(client):
    words = shlex.split(line_with("grpcurl -plaintext -d"))
    assert words[-1] == "tensorflow.serving.PredictionService/Predict"
    request = json_format.ParseDict(json.loads(words[words.index("-d") + 1]), predict_pb2.PredictRequest())
    reply = client.prediction.Predict(request, timeout=30)
    expected = client.softmax("mnist_beginner", np.zeros([1, 784], np.float32))
    assert list(reply.outputs["softmax"].float_val) == expected.ravel().tolist()


def test_grpcurl(server, client):
    if shutil.which("grpcurl") is None:
        pytest.skip("needs grpcurl")

    def shown(word):
        line = line_with(word)
        assert "127.0.0.1:8500" in line
        return subprocess.run(shlex.split(line.replace("127.0.0.1:8500", server.target)), capture_output=True, text=True, check=True).stdout
    assert "tensorflow.serving.PredictionService" in shown("grpcurl -plaintext 127").splitlines()
    answer = json.loads(shown("grpcurl -plaintext -d"))["outputs"]["softmax"]["floatVal"]
    np.testing.assert_allclose(answer, client.softmax("mnist_beginner", np.zeros([1, 784], np.float32))[0], rtol=1e-6)


def test_go(server, client, tmp_path):
    """With Debian's packages, as no module can be fetched."""
    environment = {**os.environ, "GO111MODULE": "off", "GOCACHE": str(tmp_path / "cache")}
    environment["GOPATH"] = f"{tmp_path}/go:{os.environ.get('GOPATH', '')}:/usr/share/gocode".replace("::", ":")
    if not all(shutil.which(program) for program in ("go", "protoc", "protoc-gen-go")) or subprocess.run(
            ["go", "list", "google.golang.org/grpc"], env=environment, capture_output=True).returncode != 0:
        pytest.skip("needs Go with google.golang.org/grpc, and protoc-gen-go")
    lines = [line for line in LINES if line.startswith(("files=", "mkdir -p go", "protoc ", "GO111MODULE="))]
    assert len(lines) == 4
    for name in ("proto", "examples"):
        (tmp_path / name).symlink_to(os.path.join(ROOT, name))
    build = lines.pop().replace("GOPATH=$PWD/go:/usr/share/gocode ", "")
    subprocess.run(["bash", "-ec", "\n".join(lines)], cwd=tmp_path, env=environment, check=True)

    def run(*flags):
        return subprocess.run(["bash", "-ec", f"{build} {shlex.join(flags)}"], cwd=tmp_path, env=environment, capture_output=True,
                              text=True, check=False)
    expected = client.softmax("mnist_beginner", np.zeros([1, 784], np.float32))[0]

    def check(said):
        assert said.returncode == 0, said.stderr
        np.testing.assert_allclose([float(word) for word in said.stdout.strip("[]\n").split()], expected, rtol=1e-6)
    check(run("--target", server.target))
    certificate, key, ca = conformance.make_certificates(str(tmp_path))
    with contextlib.closing(Floed("--model_name=mnist_beginner", f"--model_base_path={MNIST}/models/mnist_beginner",
                                  f"--tls_certificate={certificate}", f"--tls_key={key}", wait=False)) as encrypted:
        encrypted.wait_until(lambda: run("--target", encrypted.target, "--tls-ca", ca).returncode == 0)
        check(run("--target", encrypted.target, "--tls-ca", ca, "--tls-name", "localhost"))
        assert "x509" in run("--target", encrypted.target, "--tls-ca", ca, "--tls-name", "other").stderr
    assert "need --tls-ca" in run("--tls-name", "other").stderr


def test_files_of_the_go_client_are_all_that_it_needs(tmp_path):
    lines = "\n".join(line for line in LINES if line.startswith(("files=", "protoc ")))
    with_protoc = lines.replace("protoc ", os.environ.get("FLOE_PROTOC", "protoc") + " ", 1) if "FLOE_PROTOC" in os.environ else lines
    plain = re.sub(r"--go_out=\S+ \$\(.*?\) ", f"--descriptor_set_out={tmp_path}/set ", with_protoc)
    assert plain != with_protoc
    subprocess.run(["bash", "-c", plain], cwd=ROOT, check=True)


def test_replies_beyond_4_mib(tmp_path):
    """Clients refuse them by default, the option lets them in, and the log says so once for each model."""
    (tmp_path / "model.pbtxt").write_text(GRAPH)
    server = Floed("--model_name=same", f"--model_base_path={tmp_path}/model.pbtxt")
    x = np.arange(1_100_000, dtype=np.float32).reshape(1100, 1000)

    def call(rows, options):
        with grpc.insecure_channel(server.target, options=options) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            return stub.Predict(predict_request("same", {"x": x[:rows]}), timeout=60)

    assert call(1000, []).ByteSize() < REPLY_LIMIT and "grpc.max_receive_message_length" not in server.log()
    with pytest.raises(grpc.RpcError) as info:
        call(1100, [])
    assert info.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "eceived message larger than max" in info.value.details()
    assert call(1100, [("grpc.max_receive_message_length", -1)]).ByteSize() > REPLY_LIMIT
    said = [line for line in server.log().splitlines() if "grpc.max_receive_message_length" in line]
    assert len(said) == 1 and "info" in said[0] and "model 'same'" in said[0], said
    server.close()
