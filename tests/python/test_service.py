"""floed as a process: flags, configuration errors, listeners, and what it tells the service manager."""
import os
import resource
import shutil
import signal
import socket
import subprocess

import grpc
import numpy as np
import pytest

from floed import CONFIG, FLOED, MNIST, NOT_SERVING, SERVING, START_SECONDS, Client, Floed, Manager, digits, free_port

BEGINNER = os.path.join(MNIST, "models/mnist_beginner")


def run(*args):
    return subprocess.run([FLOED, *args], capture_output=True, text=True, timeout=60, check=False)


# ---- flags

@pytest.mark.parametrize("path", [BEGINNER, BEGINNER + "/1", BEGINNER + "/1/frozen.pb"], ids=["versions", "folder", "file"])
def test_single_model_flags(path):
    floed = Floed("--model_name=digits", f"--model_base_path={path}")
    with floed.client() as client:
        assert client.softmax("digits", digits()[:2]).shape == (2, 10)
        assert client.check("model/digits") == SERVING
    floed.close()


def test_newest_version_is_served(tmp_path):
    for version in ("1", "3", "10"):
        shutil.copytree(BEGINNER + "/1", tmp_path / version)
    floed = Floed("--model_name=digits", f"--model_base_path={tmp_path}")
    with floed.client() as client:
        assert client.predict("digits", {"input": digits()[:1]}).model_spec.version.value == 10
    floed.close()


def test_help_and_version():
    help_text = run("--help")
    assert help_text.returncode == 0
    for flag in ("--config", "--check-config", "--port", "--model_name", "--model_base_path"):
        assert flag in help_text.stdout
    assert run("--version").returncode == 0


def test_unknown_flag():
    done = run("--no-such-flag")
    assert done.returncode != 0 and "no-such-flag" in done.stderr


# ---- configuration

def test_example_configuration_is_right():
    done = run("--check-config", "--config", CONFIG)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text,line,words", [
    ("server:\n  prt: 8500\n", 2, ["prt", "port"]),
    ("server:\n  port: high\n", 2, ["port", "high"]),
    ("models:\n  - name: a\n    base_path: /nonexistent/model\n", 3, ["/nonexistent/model"]),
    ("models:\n  - name: a\n    base_path: [1\n", None, []),
])
def test_check_config_names_line_and_key(tmp_path, text, line, words):
    path = tmp_path / "floe.yaml"
    path.write_text(text)
    done = run("--check-config", "--config", str(path))
    assert done.returncode != 0
    if line is not None:
        assert f"floe.yaml:{line}" in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_check_config_says_what_start_would(tmp_path):
    path = tmp_path / "floe.yaml"
    path.write_text(f"models:\n  - {{name: m, base_path: {BEGINNER}, workers: 1024}}\n")
    done = run("--check-config", "--config", str(path), "--mixed_precision=bfloat16")
    assert done.returncode == 0 and done.stdout == "OK\n", done.stderr
    assert "--mixed_precision=bfloat16 has no effect here" in done.stderr
    assert "warning: model 'm': 1024 workers" in done.stderr


def test_missing_config_file():
    done = run("--config", "/nonexistent/floe.yaml")
    assert done.returncode != 0 and "/nonexistent/floe.yaml" in done.stderr


def test_public_address_needs_consent():
    done = run("--config", CONFIG, "--bind_address=0.0.0.0")
    assert done.returncode != 0 and "insecure_public" in done.stderr


def test_as_many_files_are_opened_as_the_system_allows():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        floed = Floed("--model_name=digits", f"--model_base_path={BEGINNER}")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with open(f"/proc/{floed.process.pid}/limits", encoding="utf-8") as f:
        files = next(line for line in f if line.startswith("Max open files")).split()
    floed.close()
    assert files[3] == files[4] == str(hard), files


def test_no_file_or_connection_takes_the_number_of_a_closed_standard_stream():
    port = free_port()
    argv = [FLOED, "--model_name=digits", f"--model_base_path={BEGINNER}", f"--port={port}"]
    floed = subprocess.Popen(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", *argv])
    with Client(f"127.0.0.1:{port}") as client:
        assert any(reply.status == SERVING for reply in client.watch())
    streams = [os.readlink(f"/proc/{floed.pid}/fd/{fd}") for fd in range(3)]
    floed.terminate()
    assert floed.wait(START_SECONDS) == 0
    assert streams == ["/dev/null"] * 3


def test_port_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("--config", CONFIG, f"--port={port}")
    assert done.returncode != 0 and str(port) in done.stderr


# ---- listeners

def test_unix_socket(tmp_path):
    path = str(tmp_path / "floe.sock")
    floed = Floed("--config", CONFIG, f"--grpc_socket_path={path}")
    with Client("unix:" + path) as client:
        assert client.softmax("mnist_beginner", digits()[:2]).shape == (2, 10)
    assert f"127.0.0.1:{floed.port}" in floed.log() and path in floed.log()
    floed.close()


def test_reflection_can_be_off(tmp_path):
    path = tmp_path / "floe.yaml"
    path.write_text(f"server: {{enable_reflection: false}}\nmodels: [{{name: digits, base_path: {BEGINNER}}}]\n")
    floed = Floed("--config", str(path))
    with floed.client() as client:
        call = client.channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        with pytest.raises(grpc.RpcError) as info:
            list(call(iter([b""]), timeout=30))
        assert info.value.code() == grpc.StatusCode.UNIMPLEMENTED
    floed.close()


def test_oversized_message(tmp_path):
    path = tmp_path / "floe.yaml"
    path.write_text(f"server: {{max_message_bytes: 100000}}\nmodels: [{{name: digits, base_path: {BEGINNER}}}]\n")
    floed = Floed("--config", str(path))
    with floed.client() as client:
        assert client.softmax("digits", digits()[:16]).shape == (16, 10)
        with pytest.raises(grpc.RpcError) as info:
            client.softmax("digits", digits()[:64])
        assert info.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert client.softmax("digits", digits()[:16]).shape == (16, 10)
    floed.close()


# ---- the service manager

def test_ready_watchdog_and_stopping(tmp_path):
    manager = Manager(str(tmp_path))
    floed = Floed("--config", CONFIG, wait=False,
                  env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "200000"})
    manager.wait_for("READY=1")
    with floed.client() as client:
        # READY means that the models answer: no waiting here.
        assert client.softmax("mnist_conv", np.zeros([1, 784], np.float32)).shape == (1, 10)
        for _ in range(5):
            manager.wait_for("WATCHDOG=1")
    floed.process.send_signal(signal.SIGTERM)
    manager.wait_for("STOPPING=1")
    assert floed.wait() == 0
    floed.close()


def test_a_server_without_a_model_goes_on_until_there_is_one(tmp_path):
    """The place is empty at first; then a broken version comes, and then a good one."""
    manager = Manager(str(tmp_path))
    place = tmp_path / "models"
    place.mkdir()
    floed = Floed("--model_name=digits", f"--model_base_path={place}", wait=False,
                  env={"NOTIFY_SOCKET": manager.path})
    words = next(words for words in manager.messages() if "READY=1" in words)
    assert "STATUS=Serving 0 of 1 models" in words
    with floed.client() as client:
        assert client.check() == client.check("model/digits") == NOT_SERVING
        with pytest.raises(grpc.RpcError) as info:
            client.softmax("digits", digits()[:1])
        assert info.value.code() == grpc.StatusCode.UNAVAILABLE
        (place / "1").mkdir()
        (place / "1/frozen.pb").write_bytes(b"this is no graph")
        floed.wait_until(lambda: "version 1 is not served" in floed.log())
        assert client.check() == NOT_SERVING
        shutil.copytree(BEGINNER + "/1", place / "2")
        floed.wait_serving()
        assert client.softmax("digits", digits()[:1]).shape == (1, 10)
    manager.wait_for("STATUS=Serving 1 of 1 models")
    floed.close()


@pytest.mark.parametrize("make", [lambda place: None, lambda place: (place / "1/frozen.pb").write_bytes(b"this is no graph")],
                         ids=["nothing", "no model"])
def test_exit_on_error(tmp_path, make):
    place = tmp_path / "models"
    (place / "1").mkdir(parents=True)
    make(place)
    manager = Manager(str(tmp_path))
    floed = Floed("--model_name=broken", f"--model_base_path={place}", "--exit_on_error", wait=False,
                  env={"NOTIFY_SOCKET": manager.path})
    assert floed.wait(START_SECONDS) == 1
    assert "exit_on_error" in floed.log() and "'broken'" in floed.log() and str(place) in floed.log()
    manager.socket.settimeout(0)
    with pytest.raises(BlockingIOError):
        manager.wait_for("READY=1")
    shutil.rmtree(floed.folder)
