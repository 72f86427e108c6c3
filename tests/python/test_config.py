"""Configuration in TensorFlow Serving's forms: files, flags and HandleReloadConfigRequest with its own client library."""
import os
import shutil
import subprocess

import grpc
import pytest
from google.protobuf import text_format
from tensorflow_serving.apis import get_model_status_pb2, model_management_pb2
from tensorflow_serving.config import model_server_config_pb2

from floed import CONFIG, FLOECTL, FLOED, MNIST, SERVING, Floed, digits

BEGINNER = os.path.join(MNIST, "models/mnist_beginner")
AVAILABLE = get_model_status_pb2.ModelVersionStatus.AVAILABLE


@pytest.fixture
def store(tmp_path):
    """A model directory with versions 1, 2 and 3."""
    for version in ("1", "2", "3"):
        shutil.copytree(BEGINNER + "/1", tmp_path / "store" / version)
    return str(tmp_path / "store")


def config_of(*models):
    config = model_server_config_pb2.ModelServerConfig()
    for model in models:
        config.model_config_list.config.add(**model)
    return config


def write(path, text):
    path.write_text(text)
    return str(path)


def reload(client, config, timeout=60, metrics=()):
    request = model_management_pb2.ReloadConfigRequest(metric_names=metrics)
    request.config.CopyFrom(config)
    return client.models.HandleReloadConfigRequest(request, timeout=timeout)


def available(client, model):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = model
    return sorted(v.version for v in client.models.GetModelStatus(request, timeout=30).model_version_status
                  if v.state == AVAILABLE)


def floectl(*args):
    return subprocess.run([FLOECTL, *args], capture_output=True, text=True, timeout=120, check=False)


def test_model_config_file_as_the_client_library_writes_it(tmp_path, store):
    config = config_of({"name": "digits", "base_path": store, "model_platform": "tensorflow"})
    model = config.model_config_list.config[0]
    model.model_version_policy.specific.versions.extend([1, 3])
    model.version_labels["stable"] = 1
    path = write(tmp_path / "models.config", text_format.MessageToString(config))
    batching = write(tmp_path / "batching.config", "max_batch_size { value: 16 }\nnum_batch_threads { value: 2 }\n")
    floed = Floed(f"--model_config_file={path}", "--enable_batching", f"--batching_parameters_file={batching}",
                  "--rest_api_num_threads=8", "--flush_filesystem_caches", "--tensorflow_session_parallelism=0")
    with floed.client() as client:
        assert client.check("model/digits") == SERVING
        floed.wait_until(lambda: available(client, "digits") == [1, 3])  # it serves from its first version on
    assert "--rest_api_num_threads=8 has no effect here" in floed.log()
    assert floed.log().count("--flush_filesystem_caches=true has no effect here") == 1
    floed.close()


def test_reload_replaces_the_list(store):
    floed = Floed("--model_name=old", f"--model_base_path={store}")
    with floed.client() as client:
        reply = reload(client, config_of({"name": "new", "base_path": store}), metrics=["floe_config_generation"])
        assert reply.status.error_code == 0, reply
        assert [(m.name, m.int64_value_increase) for m in reply.metric] == [("floe_config_generation", 1)]
        assert client.softmax("new", digits()[:2]).shape == (2, 10)
        with pytest.raises(grpc.RpcError) as error:
            client.softmax("old", digits()[:2])
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
    floed.close()


def test_a_reload_that_fails_changes_nothing(store, tmp_path):
    floed = Floed("--model_name=old", f"--model_base_path={store}")
    with floed.client() as client:
        for config, words in [
                (config_of({"name": "new", "base_path": str(tmp_path / "none")}, {"name": "old", "base_path": store}), "new"),
                (config_of({"name": "new", "base_path": store, "model_platform": "caffe"}), "model_platform"),
                (config_of({"name": "a", "base_path": store}, {"name": "a", "base_path": store}), "'a' is taken"),
                (model_server_config_pb2.ModelServerConfig(), "model_config_list")]:
            with pytest.raises(grpc.RpcError) as error:
                reload(client, config, timeout=20)
            assert words in error.value.details()
        assert client.softmax("old", digits()[:2]).shape == (2, 10)
        shown = floectl("config", "show", "--target", floed.target)
        assert shown.stdout.startswith("# generation 1\n"), shown
    floed.close()


def test_floectl_check_show_and_apply(store, tmp_path):
    assert floectl("config", "check", CONFIG).returncode == 0
    bad = write(tmp_path / "bad.config", "model_config_list { config { nam: 'a' } }")
    checked = floectl("config", "check", bad)
    assert checked.returncode == 1 and f"{bad}:1: unknown field 'nam'" in checked.stderr
    models = write(tmp_path / "models.yaml", "models: [{name: y, base_path: store, cpu_shares: 3}]\n")
    floed = Floed("--model_name=old", f"--model_base_path={store}")
    applied = floectl("config", "apply", models, "--target", floed.target, "--if-generation", "1")
    assert applied.returncode == 0, applied
    shown = floectl("config", "show", "--target", floed.target)
    assert shown.stdout.startswith("# generation 2\n")
    assert "cpu_shares: 3" in shown.stdout
    late = floectl("config", "apply", models, "--target", floed.target, "--if-generation", "1")
    assert late.returncode == 1 and "ABORTED" in late.stderr
    with floed.client() as client:
        assert client.softmax("y", digits()[:2]).shape == (2, 10)
    floed.close()


def test_config_rpcs_can_be_switched_off(store, tmp_path):
    path = write(tmp_path / "f.yaml", f"server: {{enable_config_rpcs: false}}\nmodels: [{{name: a, base_path: {store}}}]\n")
    floed = Floed("--config", path)
    with floed.client() as client, pytest.raises(grpc.RpcError) as error:
        reload(client, config_of({"name": "new", "base_path": store}))
    assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED
    floed.close()


def test_batching_parameters_need_enable_batching(store, tmp_path):
    batching = write(tmp_path / "batching.config", "max_batch_size { value: 16 }\n")
    done = subprocess.run([FLOED, f"--model_base_path={store}", f"--batching_parameters_file={batching}"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "--enable_batching" in done.stderr
