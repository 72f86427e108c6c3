"""Models on a GPU: floed with the library that nvcc built, over the fake CUDA runtime (tests/cuda/fake_cudart.cc)."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf

from floed import BUILD, FLOECTL, FLOED, MNIST, NOT_SERVING, SERVING, Floed, digits, predict_request
from tensorflow_serving.apis import prediction_log_pb2

LIBRARY = os.path.join(BUILD, "fake_cuda/libfloe_cuda.so")
LAUNCH_FAILURE = 719  # CUDA's number, after which the device is lost
pytestmark = pytest.mark.skipif(not os.path.exists(LIBRARY), reason="needs nvcc 13")


def config(folder, models, top=""):
    """A floe.yaml; `models`: name -> further lines, of the models of MNIST in `folder`."""
    lines = [top, "lifecycle: {file_system_poll_wait_seconds: 0}", "models:" if models else "models: []"]
    for name, more in models.items():
        lines += [f"  - name: {name}", f"    base_path: {folder}/{name}", *(f"    {line}" for line in more)]
    path = folder / "floe.yaml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(os.path.join(MNIST, "models"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "fails").write_text("")
    return tmp_path


@contextlib.contextmanager
def start(folder, models, top="backend: cuda", more_env=None, **kwargs):
    env = {**(more_env or {}), "FLOE_CUDA_LIBRARY": LIBRARY, "FAKE_CUDA_FAIL_RUNS": str(folder / "fails"),
           "FAKE_CUDA_PROCESSES": str(folder / "processes"),
           "FAKE_CUDA_MADE": str(folder / "made")}
    server = Floed("--config", config(folder, models, top), env=env, **kwargs)
    yield server
    server.close()


def status(server):
    done = subprocess.run([FLOECTL, "status", "--json", "--no-fail", "--target", server.target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["stats"]


def place(server, model):
    return next(m for m in status(server)["models"] if m["name"] == model)["versions"][0]["place"]


def tensorflows_answer(model, x):
    graph = tf.compat.v1.GraphDef.FromString(open(os.path.join(MNIST, "models", model, "1/frozen.pb"), "rb").read())
    with tf.Graph().as_default() as built:
        tf.import_graph_def(graph, name="")
        feeds = {"input:0": x}
        if any(node.name == "keras_learning_phase" for node in graph.node):
            feeds["keras_learning_phase:0"] = False
        with tf.compat.v1.Session(graph=built) as session:
            return session.run("softmax:0", feeds)


def test_answers_are_tensorflows_and_a_row_alone_has_the_same_bits(folder):
    x = digits()[:5]
    with start(folder, {"mnist_beginner": [], "mnist_conv": ["batching: {max_batch_size: 5}"]}) as server, server.client() as client:
        for model in ("mnist_beginner", "mnist_conv"):
            together = client.softmax(model, x)
            np.testing.assert_allclose(together, tensorflows_answer(model, x), rtol=1e-4, atol=1e-6)
            alone = np.concatenate([client.softmax(model, row[None]) for row in x])
            assert alone.tobytes() == together.tobytes()
            found = place(server, model)
            assert found["device"] == "cuda:0" and not found["why_cpu"] and not found["error"]
            assert found["islands"] and all(island["nodes"] > 0 for island in found["islands"])
            assert int(found["device_bytes"]) > 10000
        backend = status(server)["server"]["backend"]
        (device,) = backend["devices"]
        assert backend["name"] == "cuda" and "driver 13.0" in backend["versions"]
        assert (device["device"], device["name"], device["compute_capability"]) == ("cuda:0", "Fake H100", "9.0")
        assert int(device["memory_limit_bytes"]) == int(device["total_bytes"]) // 100 * 90
        assert 0 < int(device["memory_bytes"]) < int(device["memory_limit_bytes"])
        assert int(device["runs"]) >= 12 and int(device["failed_runs"]) == 0
        text = subprocess.run([FLOECTL, "status", "--target", server.target, "--model", "mnist_conv"], capture_output=True, text=True)
        assert "and a trial of" in server.log() and set((folder / "processes").read_text().split()) == {str(server.process.pid)}
        assert "Fake H100, compute capability 9.0" in text.stdout and "on cuda:0: " in text.stdout


def test_runs_that_fail_and_the_cpu_that_answers(folder):
    x = digits()[:3]
    models = {"mnist_beginner": ["on_device_error: cpu"], "mnist_conv": ["device: cpu"]}
    with start(folder, models) as server, server.client() as client:
        want = client.softmax("mnist_beginner", x)
        (folder / "fails").write_text(str(LAUNCH_FAILURE))
        np.testing.assert_allclose(client.softmax("mnist_beginner", x), want, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(client.softmax("mnist_beginner", x[:1]), want[:1], rtol=1e-4, atol=1e-6)
        found = place(server, "mnist_beginner")
        assert int(found["answered_by_cpu"]) >= 2 and "lost" in found["error"]
        assert client.check("model/mnist_beginner") == SERVING and client.check() == SERVING
        server.wait_until(lambda: "were computed by the CPU" in server.log())


def test_a_lost_device_fails_its_models_alone(folder):
    x = digits()[:2]
    with start(folder, {"mnist_beginner": [], "mnist_conv": ["device: cpu"]}) as server, server.client() as client:
        assert place(server, "mnist_conv") == {**place(server, "mnist_conv"), "device": "cpu", "why_cpu": "its device is cpu"}
        (folder / "fails").write_text(str(LAUNCH_FAILURE))
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as caught:
                client.softmax("mnist_beginner", x)
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE, caught.value
            assert "cuda:0" in caught.value.details()
        (folder / "fails").write_text("")  # nothing heals it
        server.wait_until(lambda: client.check("model/mnist_beginner") == NOT_SERVING)
        client.softmax("mnist_conv", x)
        assert client.check("model/mnist_conv") == SERVING and client.check() == SERVING
        assert "lost" in place(server, "mnist_beginner")["error"]
        assert "lost" in status(server)["server"]["backend"]["devices"][0]["error"]
        assert server.log().count("it is reported as not serving") == 1


def test_versions_are_swapped_under_load_and_give_their_memory_back(folder):
    x = digits()[:2]

    def used():
        return int(status(server)["server"]["backend"]["devices"][0]["memory_bytes"])

    with start(folder, {"mnist_beginner": []}) as server, server.client() as client:
        stop, failed = threading.Event(), []
        assert used() > 0

        def load():
            with server.client() as mine:
                while not stop.is_set():
                    try:
                        mine.softmax("mnist_beginner", x)
                    except grpc.RpcError as error:
                        failed.append(error)

        threads = [threading.Thread(target=load) for _ in range(2)]
        for thread in threads:
            thread.start()
        for version in ("2", "3"):
            shutil.copytree(folder / "mnist_beginner/1", folder / "mnist_beginner" / ("new" + version))
            (folder / "mnist_beginner" / ("new" + version)).rename(folder / "mnist_beginner" / version)
            server.process.send_signal(signal.SIGHUP)
            server.wait_until(lambda want=version: [v["version"] for v in status(server)["models"][0]["versions"]
                                                    if v["state"] == "AVAILABLE"] == [want])
        stop.set()
        for thread in threads:
            thread.join()
        assert not failed
        config(folder, {"mnist_beginner": ["device: cpu"]}, "backend: cuda")
        server.process.send_signal(signal.SIGHUP)
        server.wait_until(lambda: place(server, "mnist_beginner")["device"] == "cpu")
        server.wait_until(lambda: used() == 0)  # of all three versions
        client.softmax("mnist_beginner", x)


def made(folder):
    """Allocations, streams and graphs so far."""
    return len((folder / "made").read_text().splitlines())


def test_nothing_is_made_on_the_device_after_the_load(folder):
    x = digits()[:7]
    models = {"mnist_beginner": ["batching: {max_batch_size: 7}"], "mnist_conv": ["batching: {allowed_batch_sizes: [2, 4]}"]}
    with start(folder, models) as server, server.client() as client:
        before = made(folder)
        memory = status(server)["server"]["backend"]["devices"][0]["memory_bytes"]
        for rows in (1, 7, 3, 2, 6, 5, 4):
            client.softmax("mnist_beginner", x[:rows])
            client.softmax("mnist_conv", x[:min(rows, 4)])
        assert made(folder) == before
        assert status(server)["server"]["backend"]["devices"][0]["memory_bytes"] == memory


def test_shapes_of_recorded_requests_are_prepared(folder):
    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x")])
        def serve(self, x):
            return {"y": tf.nn.softmax(tf.tanh(x) * tf.tanh(x + 1))}

    module, version = Module(), folder / "open" / "1"
    tf.saved_model.save(module, str(version), module.serve)
    (version / "assets.extra").mkdir()
    with tf.io.TFRecordWriter(str(version / "assets.extra/tf_serving_warmup_requests")) as writer:
        for inner in (6, 9):
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.CopyFrom(predict_request("open", {"x": np.ones((1, inner), np.float32)}))
            writer.write(log.SerializeToString())
    with start(folder, {"open": ["device: cuda", "batching: {max_batch_size: 4}"]}) as server, server.client() as client:
        def check(rows, inner):
            x = np.random.default_rng(rows).random((rows, inner), np.float32)
            np.testing.assert_allclose(tf.make_ndarray(client.predict("open", {"x": x}).outputs["y"]), module.serve(x)["y"], rtol=1e-5)

        before = made(folder)
        for rows in (3, 1, 4, 2):
            check(rows, 6)
            check(rows, 9)
        assert made(folder) == before
        check(2, 5)  # of which no request is recorded
        assert made(folder) > before


def test_libraries_compute_what_they_are_proven_to_compute(folder):
    x = digits()[:5]
    fakes = {"LD_LIBRARY_PATH": os.path.dirname(LIBRARY)}  # of cuBLASLt and cuDNN
    with start(folder, {"mnist_beginner": []}, "gpu_libraries: all", fakes) as server, server.client() as client:
        assert "is computed by cublaslt, algorithm 0" in server.log()
        assert "cuBLASLt 13.0.2, cuDNN 9.19.0" in status(server)["server"]["backend"]["versions"]
        before = made(folder)
        together = client.softmax("mnist_beginner", x)
        np.testing.assert_allclose(together, tensorflows_answer("mnist_beginner", x), rtol=1e-4, atol=1e-6)
        assert np.concatenate([client.softmax("mnist_beginner", row[None]) for row in x]).tobytes() == together.tobytes()
        assert made(folder) == before


def test_batches_are_smaller_where_memory_is_short(folder):
    x = digits()[:3]
    with start(folder, {"mnist_beginner": []}) as server:
        memory = int(status(server)["server"]["backend"]["devices"][0]["memory_bytes"])
        weights = int(place(server, "mnist_beginner")["device_bytes"])
        assert "memory is short" not in server.log()
    limit = weights + (memory - weights) // 3
    with start(folder, {"mnist_beginner": []}, f"gpu_memory_limit: {limit}") as server, server.client() as client:
        assert "because the device's memory is short" in server.log()
        assert weights < int(status(server)["server"]["backend"]["devices"][0]["memory_bytes"]) <= limit
        np.testing.assert_allclose(client.softmax("mnist_beginner", x), tensorflows_answer("mnist_beginner", x), rtol=1e-4, atol=1e-6)


def test_what_does_not_fit_is_named(folder):
    with start(folder, {"mnist_beginner": [], "mnist_conv": ["device: cpu"]}, "gpu_memory_limit: 1000", wait=False) as server:
        server.wait_until(lambda: "gpu_memory_limit" in server.log())
        with server.client() as client:
            server.wait_until(lambda: client.check("model/mnist_conv") == SERVING)
            assert "cuda:0" in status(server)["models"][0]["versions"][0]["error"]["error_message"]


def test_a_device_that_is_not_there(folder):
    models = {"mnist_conv": ["device: cuda:3"], "mnist_beginner": []}
    with start(folder, models, "backend: auto", wait=False) as server:
        server.wait_until(lambda: "there is no device cuda:3" in server.log())
        with server.client() as client:
            server.wait_until(lambda: client.check("model/mnist_beginner") == SERVING)


def test_without_a_library():
    env = {**os.environ, "FLOE_CUDA_LIBRARY": "/nowhere/libfloe_cuda.so"}
    done = subprocess.run([FLOED, "--version"], capture_output=True, text=True, env=env)
    assert done.returncode == 0 and "no CUDA: there is no file /nowhere" in done.stdout
    arguments = [FLOED, "--model_name=m", f"--model_base_path={MNIST}/models/mnist_conv", "--port=0", "--grpc_socket_path=@floe-gpu"]
    done = subprocess.run([*arguments, "--backend=cuda"], capture_output=True, text=True, env=env)
    assert done.returncode == 1 and "backend is cuda, and there is no GPU to use: there is no file /nowhere" in done.stderr


def test_the_tool_runs_on_a_device(folder):
    x = digits()[:3]
    np.savez(folder / "in.npz", input=x)
    env = {**os.environ, "FLOE_CUDA_LIBRARY": LIBRARY}
    model = str(folder / "mnist_beginner/1/frozen.pb")
    answers = {}
    for device in ("cpu", "cuda", "cuda:0"):
        out = folder / "out.npz"
        done = subprocess.run([FLOECTL, "run", model, "--device", device, "-i", folder / "in.npz", "-o", out], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answers[device] = np.load(out)["softmax"]
    assert answers["cuda"].tobytes() == answers["cuda:0"].tobytes()
    np.testing.assert_allclose(answers["cuda"], answers["cpu"], rtol=1e-4, atol=1e-6)
    for command in (["profile", model, "--runs", "2"], ["bench", model, "--seconds", "0.1"]):
        done = subprocess.run([FLOECTL, *command, "--device", "cuda"], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        done = subprocess.run([FLOECTL, *command, "--device", "cuda:9"], env=env, capture_output=True, text=True)
        assert done.returncode != 0 and "there is no device cuda:9" in done.stderr
