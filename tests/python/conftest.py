import pytest


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
