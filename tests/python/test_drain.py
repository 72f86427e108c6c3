"""SIGTERM under load: what was accepted is answered, and floed exits with 0."""
import shutil
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import get_model_status_pb2, model_management_pb2

from floed import CONFIG, MNIST, NOT_SERVING, SERVING, Floed, digits, predict_request


@pytest.fixture(scope="module")
def x():
    return digits()


def config(tmp_path, lame_duck):
    path = tmp_path / "floe.yaml"
    path.write_text(f"""
server: {{drain_lame_duck_seconds: {lame_duck}, drain_timeout_seconds: 60}}
models:
  - {{name: mnist_beginner, base_path: {MNIST}/models/mnist_beginner}}
  - {{name: mnist_conv, base_path: {MNIST}/models/mnist_conv, batching: {{max_enqueued_micros: 0}}}}
""")
    return str(path)


def test_queued_calls_are_answered(x, tmp_path):
    floed = Floed("--config", config(tmp_path, 0))
    request = predict_request("mnist_conv", {"input": np.concatenate([x, x])})
    with floed.client() as client:
        calls = [client.prediction.Predict.future(request, timeout=120) for _ in range(4)]
        answered = threading.Semaphore(0)
        for call in calls:
            call.add_done_callback(lambda _: answered.release())
        assert answered.acquire(timeout=120)  # one is done, so the others have long been there
        floed.terminate()
        for call in calls:
            assert len(call.result().outputs["softmax"].float_val) == 200000
    assert floed.wait() == 0
    floed.close()


def test_no_call_fails_when_clients_watch_the_health(x, tmp_path):
    floed = Floed("--config", config(tmp_path, 2))
    leaving = threading.Event()
    failures, done = [], []

    def caller(model, start):
        with floed.client() as client:
            k = start
            while not leaving.is_set():
                try:
                    client.predict(model, {"input": x[k:k + 3]}, timeout=30)
                    done.append(k)
                except grpc.RpcError as error:
                    failures.append(f"{error.code()}: {error.details()}")
                k = (k + 7) % 9000

    threads = [threading.Thread(target=caller, args=(model, 100 * n), daemon=True) for n, model in
               enumerate(["mnist_beginner", "mnist_conv"] * 4)]
    with floed.client() as watcher:
        states = watcher.watch("", timeout=120)
        assert next(states).status == SERVING
        for thread in threads:
            thread.start()
        while len(done) < 200 and not failures:
            leaving.wait(0.01)
        floed.terminate()
        assert next(states).status == NOT_SERVING
        leaving.set()
        for thread in threads:
            thread.join()
    assert not failures, failures[:5]
    assert floed.wait() == 0
    floed.close()


def test_a_reload_does_not_hold_up_the_end(tmp_path):
    floed = Floed("--config", config(tmp_path, 0))
    shutil.copytree(f"{MNIST}/models/mnist_beginner/1", tmp_path / "copied/1")
    request = model_management_pb2.ReloadConfigRequest()
    request.config.model_config_list.config.add(name="copied", base_path=str(tmp_path / "copied"))
    leaving = threading.Event()

    def copy():  # never gets done
        while not leaving.wait(0.02):
            for file in (tmp_path / "copied/1").iterdir():
                file.touch()

    copying = threading.Thread(target=copy, daemon=True)
    copying.start()
    with floed.client() as client:
        reload = client.models.HandleReloadConfigRequest.future(request, timeout=120)
        assert client.check() == SERVING  # sent after the reload on the same connection
        floed.terminate()
        assert floed.wait(timeout=30) == 0, "drain_timeout_seconds are 60"
        assert reload.code() == grpc.StatusCode.UNAVAILABLE
    leaving.set()
    copying.join()
    floed.close()


def endless(place):
    """A model whose warm-up, with zeros, never ends."""
    loop = tf.function(lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 1, lambda y: (y * 2,), (x,))[0],
                       input_signature=[tf.TensorSpec([None, 1], tf.float32)])
    graph = loop.get_concrete_function().graph.as_graph_def()
    (place / "1").mkdir(parents=True)
    (place / "1/frozen.pb").write_bytes(graph.SerializeToString())
    return f"{{name: endless, base_path: {place}}}"


def state(client, model):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = model
    try:
        (version,) = client.models.GetModelStatus(request, timeout=30).model_version_status
        return version.State.Name(version.state)
    except grpc.RpcError as error:
        return error.code()


@pytest.mark.parametrize("trial", ("always", "never"))
def test_a_load_does_not_hold_up_the_end(tmp_path, trial):
    path = tmp_path / "floe.yaml"
    path.write_text("server: {drain_lame_duck_seconds: 0, drain_timeout_seconds: 60}\n"
                    f"lifecycle: {{trial_load: {trial}}}\nmodels: [{endless(tmp_path / 'm')}]\n")
    floed = Floed("--config", str(path), wait=False)
    with floed.client() as client:
        floed.wait_until(lambda: state(client, "endless") == "LOADING")
        floed.terminate()
        assert floed.wait(timeout=30) == 0, "drain_timeout_seconds are 60"
    floed.close()


def test_a_load_does_not_hold_up_an_exit_on_error(tmp_path):
    path = tmp_path / "floe.yaml"
    path.write_text(f"lifecycle: {{exit_on_error: true}}\nmodels: [{endless(tmp_path / 'm')}, {{name: gone, base_path: {tmp_path}/gone}}]\n")
    floed = Floed("--config", str(path), wait=False)
    assert floed.wait(timeout=60) == 1
    assert "'gone'" in floed.log()
    shutil.rmtree(floed.folder)


def test_second_sigterm_ends_it_now(x):
    floed = Floed("--config", CONFIG)
    request = predict_request("mnist_conv", {"input": x})
    with floed.client() as client:
        states = client.watch("", timeout=120)
        assert next(states).status == SERVING
        calls = [client.prediction.Predict.future(request, timeout=120) for _ in range(12)]
        answered = threading.Event()
        calls[0].add_done_callback(lambda _: answered.set())
        assert answered.wait(120)
        floed.terminate()
        assert next(states).status == NOT_SERVING  # it has heard the first
        floed.terminate()
        assert floed.wait(timeout=20) == 1
        for call in calls:
            call.cancel()
    shutil.rmtree(floed.folder)
