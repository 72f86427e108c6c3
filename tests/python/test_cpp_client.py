"""The C++ client of clients/cpp against a live server: docs/clients.md's command in a folder of its own, and TLS."""
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

import conformance
from floed import BUILD, CONFIG, MNIST, ROOT, Floed
from pages import blocks


@pytest.fixture(scope="module")
def commands():
    """The lines of the page's block: how to compile, and how to ask."""
    (block,) = [b for b in blocks(pathlib.Path(ROOT) / "docs/clients.md") if b.value == "tests/python/test_cpp_client.py"]
    return block.text.splitlines()


@pytest.fixture(scope="module")
def program(commands, tmp_path_factory):
    """As users have it: the header beside their program, and nothing of the repository."""
    folder = tmp_path_factory.mktemp("cpp")
    paths = {"clients/cpp": ".", "examples/client/predict.cc": "predict.cc", "-O2": "-O0 -Wall -Wextra -Werror"}
    line = commands[0]
    for path, here in paths.items():
        assert path in line
        line = line.replace(path, here)
    for file in ("clients/cpp/floe_client.h", "examples/client/predict.cc"):
        shutil.copy(os.path.join(ROOT, file), folder)
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "predict"


def test_documented_command(server, program, commands):
    words = shlex.split(commands[1])
    assert words[:2] == ["./predict", "127.0.0.1:8500"]
    done = subprocess.run([program, server.target, words[2], os.path.join(ROOT, words[3])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list("72104149")


def test_errors(server, program):
    digits = os.path.join(MNIST, "data/digits.npy")
    for target, model, said in ((server.target, "mnist_begginer", "mnist_beginner"), ("127.0.0.1:1", "mnist_beginner", "connect")):
        done = subprocess.run([program, target, model, digits], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and said in done.stderr, done


def test_many_calls_over_tls(tmp_path):
    """By examples/mnist/client.cc, which uses the header."""
    certificate, key, ca = conformance.make_certificates(str(tmp_path))
    tls = [f"--tls_certificate={certificate}", f"--tls_key={key}", f"--tls_client_ca={ca}", "--tls_client=required"]
    with contextlib.closing(Floed("--config", CONFIG, *tls, wait=False)) as floed:
        floed.wait_until(lambda: "ready: " in floed.log())

        def run(*args):
            return subprocess.run([os.path.join(BUILD, "mnist_client"), "--target", floed.target, "--model", "mnist_beginner", "--images",
                                   MNIST + "/data/t10k-images-idx3-ubyte.gz", "--labels", MNIST + "/data/t10k-labels-idx1-ubyte.gz",
                                   "--expect", MNIST + "/expected_classes/mnist_beginner.u8", "--timeout", "30", *args],
                                  capture_output=True, text=True, check=False)
        done = run("--tls-ca", ca, "--tls-cert", certificate, "--tls-key", key)
        assert done.returncode == 0 and re.search(r"failed calls +0\n", done.stdout) and "disagreements 0" in done.stdout, done
        done = run("--tls-ca", ca)
        assert done.returncode == 1 and "first failure" in done.stderr
