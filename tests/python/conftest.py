import os

import pytest

# TensorFlow turns oneDNN on by the CPU's name, and computes NCHW convolutions on a CPU only with it.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


@pytest.fixture(scope="module")
def server():
    """floed with the example configuration; SIGTERM must end it with status 0."""
    from floed import CONFIG, Floed
    floed = Floed("--config", CONFIG, "--enable_reflection")
    yield floed
    floed.close()


@pytest.fixture
def client(server):
    with server.client() as c:
        yield c
