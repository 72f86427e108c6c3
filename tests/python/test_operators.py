"""What operators see: live numbers, log lines."""
import json
import os
import re
import signal
import subprocess

import grpc
import numpy as np
import pytest

from floed import CONFIG, FLOECTL, Floed, MNIST, MODELS, digits, expected_classes

IMAGE = np.zeros((1, 784), np.float32)


def floectl(server, *args):
    done = subprocess.run([FLOECTL, *args, "--target", server.target], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stats(server):
    return json.loads(floectl(server, "status", "--json"))["stats"]


def test_status_lists_all_models(server, client):
    for _ in range(5):
        client.predict("mnist_conv", {"input": IMAGE})
    text = floectl(server, "status")
    for model in MODELS:
        assert re.search(rf"{model} +1 +AVAILABLE", text), text
    assert re.search(r"floed \S+, up .*; \d+ CPUs, \d+ workers; memory .* connections; .* open files", text), text
    detail = floectl(server, "status", "--model", "mnist_conv")
    assert "serving_default [?,784]" in detail or "serving_default" in detail, detail
    version = next(m for m in stats(server)["models"] if m["name"] == "mnist_conv")["versions"][0]
    assert sum(int(c["count"]) for c in version["requests"] if c["code"] == "OK") >= 5
    assert version["run"]["p50_ms"] > 0 and version["run"]["p99_ms"] >= version["run"]["p50_ms"]
    assert any(s["why_not_batchable"] == "" and int(s["max_batch_rows"]) > 0 for s in version["signatures"])
    assert any(s["run_by_estimate"] > 0 for s in version["signatures"]), version


def test_bf16_weights_change_little_and_take_less_memory(tmp_path):
    path = f"{MNIST}/models/mnist_conv"
    config = tmp_path / "bf16.yaml"
    same = f"base_path: {path}, placeholder_defaults: {{keras_learning_phase: false}}, batching: {{max_batch_size: 8}}, inline_below_us: 0"
    config.write_text(f"models:\n  - {{name: exact, {same}}}\n  - {{name: bf16, {same}, precision: bf16}}\n")
    floed = Floed("--config", config)
    with floed.client() as client:
        exact, rounded = (client.softmax(name, digits()[:500]) for name in ("exact", "bf16"))
    assert (rounded.argmax(1) == expected_classes("mnist_conv")[:500]).mean() > 0.99
    assert 0 < abs(rounded - exact).max() < 0.02
    versions = {m["name"]: m["versions"][0] for m in stats(floed)["models"]}
    assert int(versions["bf16"]["memory_bytes"]) < int(versions["exact"]["memory_bytes"])
    floed.close()


def test_a_model_is_profiled_as_it_is_configured(tmp_path):
    config = tmp_path / "routes.yaml"
    config.write_text(f"models: [{{name: m, base_path: {MNIST}/models/mnist_conv, placeholder_defaults: {{keras_learning_phase: false}},\n"
                      "          precision: bf16, routes: {Relu_1: gemm}, intra_op_threads: 2}]\n")
    server = Floed("--config", config)
    profile = json.loads(floectl(server, "profile", "m", "--runs", "3", "--json"))
    routes = {step["name"]: step["route"] for step in profile["steps"]}
    assert "GEMM" in routes["Relu_1"] and "bf16" in routes["Relu_2"] and profile["threads"] == 2, profile
    assert "bf16" not in floectl(server, "profile", "m", "--runs", "3", "--precision", "float32")
    server.close()


def test_profile_of_a_served_model(server):
    profile = json.loads(floectl(server, "profile", "mnist_conv", "--runs", "3", "--json"))
    assert profile["file"].endswith("/mnist_conv/1/frozen.pb")
    assert profile["threads"] == 1 and any(step["op"] == "Conv2D" for step in profile["steps"])
    done = subprocess.run([FLOECTL, "profile", "nobody", "--target", server.target], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "there is no file 'nobody'" in done.stderr and "no model" in done.stderr, done.stderr


def test_watch_shows_rates(server):
    assert floectl(server, "status", "--watch", "0.2", "--count", "2").count("/s") == len(MODELS)


def test_refused_requests_count_and_name_themselves(server, client):
    def invalid():
        version = next(m for m in stats(server)["models"] if m["name"] == "mnist_beginner")["versions"][0]
        return sum(int(c["count"]) for c in version["requests"] if c["code"] == "INVALID_ARGUMENT")
    before = invalid()
    with pytest.raises(grpc.RpcError) as error:
        client.predict("mnist_beginner", {"input": IMAGE[:, :5]}, metadata=[("x-request-id", "order 66")])
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert error.value.details().endswith("[request 'order 66']")
    assert ("x-request-id", "order 66") in [tuple(t) for t in error.value.trailing_metadata()]
    assert invalid() == before + 1


def test_capacity_is_logged(server):
    assert re.search(r"capacity: \d+ CPUs, \d+ workers, \d+ MiB of memory.*, \d+ open files, at most \d+ connections", server.log())


def test_log_level_by_signal_and_rpc():
    server = Floed("--config", CONFIG)
    assert floectl(server, "log-level") == "info\n"
    server.process.send_signal(signal.SIGUSR2)
    server.wait_until(lambda: floectl(server, "log-level") == "debug\n")
    server.process.send_signal(signal.SIGUSR2)
    server.wait_until(lambda: floectl(server, "log-level") == "info\n")
    assert floectl(server, "log-level", "warn") == "warn\n"
    server.close()


def test_slow_requests_are_logged_with_their_id(tmp_path):
    config = tmp_path / "floe.yaml"
    with open(CONFIG, encoding="utf-8") as f:
        config.write_text(f.read().replace("slow_request_ms: 0", "slow_request_ms: 1").replace("../", f"{os.path.dirname(CONFIG)}/../"))
    server = Floed("--config", str(config))
    with server.client() as client:
        client.predict("mnist_conv", {"input": np.zeros((256, 784), np.float32)}, metadata=[("x-request-id", "slow-1")])
    server.wait_until(lambda: "slow request 'slow-1'" in server.log())
    line = next(line for line in server.log().splitlines() if "slow request" in line)
    assert re.search(r"model 'mnist_conv' version 1.* ms: waited [\d.]+ ms, ran [\d.]+ ms in a batch of \d+ rows", line), line
    server.close()
