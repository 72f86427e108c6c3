"""floectl bench against a server: its figures are the server's own, and what the echo server says is what floed said."""
import contextlib
import json
import os
import pathlib
import pty
import re
import shlex
import signal
import subprocess
import time

import numpy as np
import pytest

from floed import BUILD, FLOECTL, MNIST, ROOT, Floed, digits, free_port

MODEL = "mnist_conv"
STOPPED_SECONDS = 0.5  # of a server


@pytest.fixture
def own():
    """A floed whose counters nobody else moves."""
    with contextlib.closing(Floed(f"--model_name={MODEL}", f"--model_base_path={MNIST}/models/{MODEL}")) as floed:
        yield floed


def bench(target, *args, code=0, model=MODEL):
    done = subprocess.run([FLOECTL, "bench", model, *map(str, args), "--target", target, "--json"], capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return (json.loads(done.stdout) if done.stdout else None), done.stderr


def counts(floed):
    """By code: all calls that floed has counted."""
    done = subprocess.run([FLOECTL, "status", "--json", "--target", floed.target], capture_output=True, text=True, timeout=60, check=True)
    (model,) = json.loads(done.stdout)["stats"]["models"]
    return {c["code"]: int(c["count"]) for c in model["versions"][0]["requests"] if int(c["count"])}


def test_closed_loop_counts_what_the_server_counts(own):
    found, said = bench(own.target, "--seconds", 0.5, "--concurrency", 8, "--connections", 2)
    assert said == ""  # no progress where standard error is no terminal
    assert found["succeeded"] == found["calls"] > 8 and found["failed"] == found["unsent"] == 0
    assert counts(own) == {"OK": found["calls"] + found["warmup_calls"]}
    latency = found["latency_us"]
    assert 0 < latency["min"] <= latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p99.9"] <= latency["max"]
    # Little's law: calls waiting = calls a second * latency, but for what the client does between two calls.
    assert 0.5 * 8 < found["calls_per_second"] * latency["mean"] / 1e6 < 8.1
    assert found["request_bytes"] > 784 * 4 and found["reply_bytes"] > 40


def test_open_loop_keeps_its_rate(own):
    found, _ = bench(own.target, "--seconds", 1, "--warmup", 0, "--rate", 200, "--arrivals", "constant")
    assert found["calls"] == 200 and found["unsent"] == 0 and found["warmup_calls"] == 1
    assert counts(own) == {"OK": 201}
    assert found["seconds"] >= 1 and found["lag_us"]["p50"] <= found["latency_us"]["p50"]
    random, _ = bench(own.target, "--seconds", 1, "--warmup", 0, "--rate", 200)
    assert 120 < random["calls"] < 280 and random["calls"] != 200


def test_a_server_that_stops_delays_all_calls_that_were_due(own):
    """From when they were due, latencies show the time for which no call could leave; those of a closed loop do not."""
    late = {}
    for name, loop in {"open": ("--rate", 100, "--arrivals", "constant", "--concurrency", 1), "closed": ("--concurrency", 1)}.items():
        before = counts(own).get("OK", 0)
        with subprocess.Popen([FLOECTL, "bench", MODEL, "--target", own.target, "--json", "--seconds", "3", "--warmup", "0",
                               *map(str, loop)], stdout=subprocess.PIPE, text=True) as process:
            own.wait_until(lambda: counts(own).get("OK", 0) > before + 20)
            own.process.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED_SECONDS)
            own.process.send_signal(signal.SIGCONT)
            late[name] = json.loads(process.communicate(timeout=60)[0])["latency_us"]
    for found in late.values():
        assert found["max"] > 1e6 * 0.9 * STOPPED_SECONDS, late  # the next call was due up to 10 ms later
    # A sixth of the calls of the open loop were due meanwhile, and one of the closed loop.
    assert late["open"]["p90"] > 50_000 and late["closed"]["p90"] < late["open"]["p90"] / 2, late


def test_own_inputs_and_failures(own, tmp_path):
    np.save(tmp_path / "x.npy", digits()[:3])
    found, _ = bench(own.target, f"input=@{tmp_path}/x.npy", "--seconds", 0.2, "--version", 1)
    assert found["batch"] == 3 and found["version"] == 1
    assert found["rows_per_second"] == pytest.approx(3 * found["calls_per_second"], rel=1e-3, abs=0.2)  # one decimal each
    # More than floed can answer within the deadline.
    slow, said = bench(own.target, "--batch", 50, "--seconds", 1, "--concurrency", 1000, "--timeout", 1, code=1)
    assert slow["failed"] == sum(e["count"] for e in slow["errors"].values()) > 0
    assert all(e["first_message"] for e in slow["errors"].values()) and "calls failed" in said


def test_what_is_not_there_is_named(own):
    nothing, said = bench(own.target, model="nobody", code=1)
    assert nothing is None and "NOT_FOUND" in said and "nobody" in said
    _, said = bench(f"127.0.0.1:{free_port()}", code=1)
    assert "no server answers at 127.0.0.1:" in said
    _, said = bench(own.target, "--version", 7, code=1)
    assert "NOT_FOUND" in said and "7" in said
    _, said = bench(own.target, "input=[[1, 2]]", code=1)
    assert "INVALID_ARGUMENT" in said and "made-up" not in said


def test_progress_is_for_terminals(own):
    controller, terminal = pty.openpty()
    done = subprocess.run([FLOECTL, "bench", MODEL, "--target", own.target, "--seconds", "1"], stdout=subprocess.PIPE,
                          stderr=terminal, timeout=60, check=True)
    os.close(terminal)
    shown = os.read(controller, 1 << 16).decode()
    os.close(controller)
    assert "of 1 s, " in shown and " calls, 0 failed" in shown and shown.endswith("\r\x1b[K")
    assert b"\x1b" not in done.stdout and b"p99.9 us" in done.stdout


def test_the_echo_server_answers_as_many_bytes(own):
    target = f"127.0.0.1:{free_port()}"
    page = pathlib.Path(ROOT, "docs/performance.md").read_text()
    line = re.search(r"^    build/release/echo_server (.*)$", page, re.M)[1]
    words = shlex.split(line.replace("127.0.0.1:8600", target).replace("127.0.0.1:8500", own.target))
    assert target in words and own.target in words
    echo = subprocess.Popen([os.path.join(BUILD, "echo_server"), *words])
    try:
        status = [FLOECTL, "predict", MODEL, "input=" + json.dumps([[0.0] * 784]), "--json"]

        def answer(of):
            return subprocess.run([*status, "--target", of], capture_output=True, text=True, check=False).stdout
        own.wait_until(lambda: answer(target) != "")
        assert answer(target) == answer(own.target)
        before = counts(own)["OK"]
        real, echoed = (bench(t, "--seconds", 0.2, "--batch", "1")[0] for t in (own.target, target))
        for key in ("request_bytes", "reply_bytes", "version"):
            assert real[key] == echoed[key], key
        # Of all calls to the echo server, floed saw those whose size was new to it.
        assert before + real["calls"] + real["warmup_calls"] <= counts(own)["OK"] <= before + real["calls"] + real["warmup_calls"] + 1
        assert echoed["calls"] > 50
    finally:
        echo.terminate()
        assert echo.wait(timeout=60) == 0


def test_served_py_compares_with_the_echo_server(tmp_path):
    subprocess.run([ROOT + "/bench/served.py", "--build", BUILD, "--seconds", "0.2", "--rounds", "1", "--concurrency", "4", "--json",
                    tmp_path / "out.json"], capture_output=True, timeout=120, check=True)
    ratio = json.loads((tmp_path / "out.json").read_text())["by_concurrency"]["4"]["ratio"]
    assert all(value > 0 for value in ratio.values()) and {"p50_us", "p99_us", "throughput_rps", "server_cpu_us"} < set(ratio)


def test_figures_of_the_doors():
    done = subprocess.run([ROOT + "/bench/doors.py", "--build", BUILD, "--rounds", "1", "--calls", "20", "--seconds", "0.1"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    doors = re.findall(r"^  (\S.*?) +[\d.]+ +[\d.]+ +([\d.]+) +[\d.]+$", done.stdout, re.M)
    assert [name for name, _ in doors] == [*2 * ["Predict", "ModelInfer", "REST v2, binary", "REST v1, JSON"],
                                           "Predict", "with id and trace", "with times", "with a token"]
    assert all(float(ratio) > 0 for _, ratio in doors)
    assert "/metrics with 50 models" in done.stdout and "page open" in done.stdout
