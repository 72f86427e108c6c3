"""What people read when something is wrong: errors and log lines of the real programs."""
import http.client
import json
import os
import pickle
import re
import subprocess
import sys
import types


import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_service_pb2_grpc

from floed import CONFIG, FLOECTL, FLOED, Floed, MNIST, ROOT, predict_request


IMAGE = np.zeros((1, 784), np.float32)


def said(*command, rc):
    """What a command writes to standard error, which ends with `rc` and writes nothing else."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == rc, done
    return done.stderr


def test_refused_requests_are_logged_with_the_id_that_the_caller_got():
    server = Floed("--config", CONFIG)

    def refused(model, x, **metadata):
        with pytest.raises(grpc.RpcError) as error:
            client.predict(model, {"input": x}, metadata=list(metadata.items()))
        return dict(error.value.trailing_metadata())["x-request-id"]

    with server.client() as client:
        made = refused("mnist_beginner", IMAGE[:, :5])
        more = [refused("mnist_beginner", IMAGE[:, :n]) for n in (6, 7, 8)]
        unknown = refused("mnits\x1b[31m", IMAGE)
        with pytest.raises(grpc.RpcError) as error:
            client.predict("mnist_conv", {"input": IMAGE}, metadata=[("floe-priority", "9"), ("x-request-id", "head-1")])
    assert error.value.details().endswith("[request 'head-1']")
    server.wait_until(lambda: "'head-1'" in server.log())
    lines = [line for line in server.log().splitlines() if " refused: " in line]
    assert len(lines) == 3, lines
    assert re.search(rf" info request '{made}' of model 'mnist_beginner' refused: INVALID_ARGUMENT: .*784", lines[0])
    assert not any(id in server.log() for id in more)
    assert rf"info request '{unknown}' of model 'mnits\x1b[31m' refused: NOT_FOUND: " in lines[1]
    assert "info request 'head-1' refused: INVALID_ARGUMENT: metadata floe-priority is '9'" in lines[2]
    server.close()


def test_messages_that_are_too_large_are_logged():
    server = Floed("--config", CONFIG, "--grpc_max_message_bytes=10KB")
    with server.client() as client, pytest.raises(grpc.RpcError) as error:
        client.predict("mnist_beginner", {"input": np.zeros((8, 784), np.float32)}, metadata=[("x-request-id", "large-1")])
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    server.wait_until(lambda: "request 'large-1' refused: RESOURCE_EXHAUSTED: " in server.log())
    assert "the server accepts 10000" in server.log()
    server.close()


@pytest.mark.parametrize("program, args, words", [
    (FLOECTL, ["statuss"], "floectl has no command 'statuss'; nearest: 'status'"),
    (FLOECTL, ["status", "--tarjet", "x"], "floectl status has no flag '--tarjet'; nearest: '--target'"),
    (FLOECTL, ["status", "-p", "8500"], "named by --target HOST:PORT"),
    (FLOECTL, ["status", "--target", "http://localhost:8500/"], "is a URL; expected HOST:PORT or unix:PATH, such as localhost:8500"),
    (FLOED, ["--prt=8500"], "floed has no flag '--prt'; nearest: '--port'"),
    (FLOED, ["--log_level=warnin"], "expected one of 'trace'"),
])
def test_wrong_command_lines(program, args, words):
    assert words in said(program, *args, rc=2)


@pytest.mark.parametrize("text, words", [
    ("tls: {cert: x}", "f.yaml:1: tls: the keys of TLS are server.tls.certificate"),
    ("server:\n\tport: 1", "f.yaml:2: not valid YAML (column 6): illegal map value; a tab indents line 2"),
    ("server:\n  bind_address: 0.0.0.0", "f.yaml:2: server.bind_address: '0.0.0.0' is reachable from other machines"),
    ("models:\n- name: a\n  base_path: s3://bucket/a", "f.yaml:3: models[0].base_path: 's3://bucket/a' is a URL"),
    ("models:\n- name: a\n  base_path: ~/a", "f.yaml:3: models[0].base_path: '~/a' begins with '~'"),
])
def test_wrong_configurations(tmp_path, text, words):
    (tmp_path / "f.yaml").write_text(text + "\n")
    assert words in said(FLOED, "--config", tmp_path / "f.yaml", "--check-config", rc=1)


def weak(*command):
    """The command for a process that file modes bind, whoever runs the tests."""
    dropped = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", *command] if os.geteuid() == 0 else [*command]


def test_sockets_without_permission(tmp_path):
    path = tmp_path / "socket"
    server = Floed("--config", CONFIG, f"--grpc_socket_path={path}")
    path.chmod(0)
    assert f"this user may not open the socket unix:{path}" in said(*weak(FLOECTL, "status", "--target", f"unix:{path}"), rc=1)
    path.chmod(0o700)
    server.close()
    tmp_path.chmod(0o500)
    log = said(*weak(FLOED, "--config", CONFIG, "--port=0", f"--grpc_socket_path={path}"), rc=1)
    assert f"cannot listen on unix:{path}: this user may not make files in its directory" in log
    tmp_path.chmod(0o700)


def test_refused_gzip_names_the_key(server):
    with grpc.insecure_channel(server.target, compression=grpc.Compression.Gzip) as channel, pytest.raises(grpc.RpcError) as error:
        prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(
            predict_request("mnist_beginner", {"input": IMAGE}), timeout=60)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "set server.enable_compression: true" in error.value.details()


def test_float64_names_the_cast(client):
    with pytest.raises(grpc.RpcError) as error:
        client.predict("mnist_beginner", {"input": IMAGE.astype(np.float64)})
    assert 'takes float32, but float64 was sent; cast it first, in NumPy with x.astype("float32")' in error.value.details()


def test_a_cut_shard_is_told_in_words(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(np.ones((64, 64), np.float32))
    module.f = tf.function(lambda x: x @ module.v, input_signature=[tf.TensorSpec([None, 64], tf.float32)])
    tf.saved_model.save(module, tmp_path / "1", signatures=module.f)
    shard = tmp_path / "1/variables/variables.data-00000-of-00001"
    os.truncate(shard, 5000)
    message = said(FLOECTL, "inspect", tmp_path / "1", rc=1)
    assert f"the file {shard} is cut short, or not all of it has been copied yet: it has 5000 bytes" in message, message
    assert re.search(r"the values are the 16384 at byte \d+; copy it again", message), message


def frozen(name):
    """The bytes of an example's file."""
    with open(f"{MNIST}/models/{name}/1/frozen.pb", "rb") as f:
        return f.read()


def status(server, *args):
    """What floectl status prints; a model that does not serve is no matter here."""
    done = subprocess.run([FLOECTL, "status", "--target", server.target, *args], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1) and done.stdout, done
    return done.stdout


def test_models_that_fail_or_are_new(tmp_path):
    for model, content in ("fine", frozen("mnist_beginner")), ("cut", frozen("mnist_beginner")[:100]):
        (tmp_path / model / "1").mkdir(parents=True)
        (tmp_path / model / "1/frozen.pb").write_bytes(content)
    only = Floed(f"--model_base_path={tmp_path}/cut", wait=False)
    only.wait_until(lambda: "not ready: Serving 0 of 1 models" in only.log())
    assert " ready: Serving 0" not in only.log().replace("not ready", "") and " warning " not in only.log(), only.log()
    assert re.search(r"^default +1 +FAILED +", status(only), re.M), status(only)
    # A version that is copied while the server runs is told of, and is no warning.
    (tmp_path / "cut/2").mkdir()
    (tmp_path / "cut/2/frozen.pb").write_bytes(frozen("mnist_beginner"))
    only.wait_until(lambda: " ready: Serving 1 of 1 models" in only.log())
    assert " info --model_base_path: model 'default' version 2 is not loaded yet: its files have just changed" in only.log(), only.log()
    assert " warning " not in only.log()
    with only.client() as client, pytest.raises(grpc.RpcError) as error:
        client.predict("default", {"input": IMAGE}, version=1)
    assert "version 1" in error.value.details() and "END" not in error.value.details()
    only.close()


def test_variants_of_a_signature_are_told_apart(server):
    lines = [line.split("  ")[1] for line in status(server, "--model", "mnist_conv").splitlines() if line.startswith("  serving_default")]
    assert lines[:2] == ["serving_default", "serving_default with 'keras_learning_phase'"], lines
    sizes = re.search(r"model 'mnist_conv': batches of at most (.*)", server.log())[1]
    assert "rows of serving_default (" in sizes and "rows of serving_default with 'keras_learning_phase' (" in sizes, sizes


def test_sizes_have_one_style(server):
    assert re.search(r"memory [\d.]+ [KMG]iB of [\d.]+ [KMG]iB", status(server))
    shown = subprocess.run([FLOECTL, "inspect", f"{MNIST}/models/mnist_conv/1/frozen.pb"], check=True, capture_output=True, text=True, timeout=60)
    for text in status(server), shown.stdout, server.log():
        assert not re.search(r"\d ?[kKMG]B\b", text), text


EVIL = "a\x1b]0;x\x07\u202eb"


@pytest.mark.parametrize("args", [(), ("--json",)])
def test_names_do_not_steer_the_terminal(tmp_path, args):
    (tmp_path / "m/1").mkdir(parents=True)
    (tmp_path / "m/1/frozen.pb").write_bytes(frozen("mnist_beginner"))
    (tmp_path / "f.yaml").write_text(f"models:\n- name: {json.dumps(EVIL)}\n  base_path: {tmp_path}/m\n")
    server = Floed("--config", tmp_path / "f.yaml")
    graph = tf.Graph()
    with graph.as_default():
        tf.identity(tf.compat.v1.placeholder(tf.float32, [None], name="x"), name="y")
    definition = graph.as_graph_def()
    definition.node[0].name = definition.node[1].input[0] = EVIL
    (tmp_path / "g.pb").write_bytes(definition.SerializeToString())
    said_by = {command[0]: subprocess.run([FLOECTL, *command, *args], capture_output=True, timeout=60, check=False) for command in (
        ["status", "--target", server.target], ["inspect", tmp_path / "g.pb"], ["bench", EVIL], ["inspect", EVIL])}
    for name, done in said_by.items():
        text = (done.stdout + done.stderr).decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", text), (name, text)
        if args and done.returncode == 0:
            json.loads(done.stdout)
    assert "a" + (r"\u001b" if args else r"\x1b") in said_by["status"].stdout.decode(), said_by["status"]
    log = server.log()
    assert r"\x1b]0;x\x07\u202eb" in log and not re.search("[\x1b\x07\u202e]", log), log
    server.close()


def test_http_1_is_answered(server):
    for method, path in ("GET", "/v1/models/m"), ("POST", "/v1/models/m:predict"):
        connection = http.client.HTTPConnection(server.target, timeout=60)
        connection.request(method, path, body=b"{}" if method == "POST" else None)
        reply = connection.getresponse()
        assert reply.status == 404 and reply.read()
        connection.close()
    with server.client() as client:
        client.predict("mnist_beginner", {"input": IMAGE})


CONVERSIONS = "docs/models.md#models-of-other-frameworks"


@pytest.mark.parametrize("name, content", [
    ("model.onnx", b"\x08\x08\x12\x07pytorch\x1a\x05" + b"2.0.0"),
    ("model.pkl", pickle.dumps({"coef": 1}, protocol=4)),
    ("model.pt", pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)),
])
def test_files_of_other_frameworks_link_to_the_conversion(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert CONVERSIONS in said(FLOECTL, "inspect", tmp_path / name, rc=1)


@pytest.fixture(scope="module", name="conversions")
def run_conversions(tmp_path_factory):
    """A directory in which the Python of docs/models.md has run: a model of PyTorch's names and a pickle became others."""
    with open(os.path.join(ROOT, "docs/models.md"), encoding="utf-8") as f:
        section = f.read().split("## Models of other frameworks\n")[1].split("\n## ")[0]
    random = np.random.default_rng(1)
    state = {name: tf.constant(random.normal(size=shape), tf.float32) for name, shape in
             {"0.weight": (8, 1, 3, 3), "0.bias": (8,), "4.weight": (10, 8), "4.bias": (10,)}.items()}
    fitted = types.SimpleNamespace(n_features_in_=4, coef_=random.normal(size=(3, 4)), intercept_=random.normal(size=3))
    folder = tmp_path_factory.mktemp("conversions")
    (folder / "model.pkl").write_bytes(pickle.dumps(fitted))
    torch = types.ModuleType("torch")
    torch.load = lambda path, weights_only: state
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setitem(sys.modules, "torch", torch)
        for program in re.findall("```python\n(.*?)```", section, re.S):
            exec(compile(program, "models.md", "exec"), {"__name__": "models"})  # pylint: disable=exec-used
    return folder, {name: value.numpy().astype(np.float64) for name, value in state.items()}, fitted


def run_file(path, **inputs):
    """What floectl run computes."""
    np.savez(path.parent / "in.npz", **inputs)
    subprocess.run([FLOECTL, "run", path, "-i", path.parent / "in.npz", "-o", path.parent / "out.npz"], check=True, timeout=60)
    (value,) = np.load(path.parent / "out.npz").values()
    return value


def test_the_documented_conversion_of_pytorch(conversions):
    folder, weights, _ = conversions
    x = np.random.default_rng(2).normal(size=(2, 1, 28, 28)).astype(np.float32)  # as PyTorch has images
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    hidden = np.einsum("ncijkl,ockl->noij", windows, weights["0.weight"]) + weights["0.bias"][:, None, None]
    expected = np.maximum(hidden, 0).mean(axis=(2, 3)) @ weights["4.weight"].T + weights["4.bias"]
    shown = subprocess.run([FLOECTL, "inspect", folder / "model.keras", "--json"], check=True, capture_output=True, timeout=60).stdout
    key = json.loads(shown)["signatures"][0]["inputs"][0]["key"]
    np.testing.assert_allclose(run_file(folder / "model.keras", **{key: x.transpose(0, 2, 3, 1)}), expected, rtol=1e-4, atol=1e-4)


def test_the_documented_conversion_of_a_pickle(conversions):
    folder, _, fitted = conversions
    x = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
    scores = np.exp(x @ fitted.coef_.T + fitted.intercept_)
    np.testing.assert_allclose(run_file(folder / "exported/1", x=x), scores / scores.sum(1, keepdims=True), rtol=1e-5)


def test_file_urls_and_sizes_are_served():
    server = Floed(f"--model_base_path=file://{MNIST}/models/mnist_beginner", "--model_name=m", "--memory_limit=4GB",
                   "--log_level=warning")
    with server.client() as client:
        assert client.predict("m", {"input": IMAGE}).outputs
    server.close()
