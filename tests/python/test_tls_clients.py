"""floectl against a server with TLS, and the messages where the two do not fit."""
import concurrent.futures
import subprocess

import grpc
import pytest

import conformance
from floed import FLOECTL


class Level(grpc.GenericRpcHandler):
    """floe.Admin/SetLogLevel as floed answers it."""

    def service(self, _details):
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"\x0a\x05debug")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tls")
    conformance.make_certificates(str(path))
    return path


@pytest.fixture(scope="module", params=["none", "required"])
def server(request, folder):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[Level()])
    pair = ((folder / "server.key").read_bytes(), (folder / "server.pem").read_bytes())
    asked = request.param == "required"
    credentials = grpc.ssl_server_credentials([pair], (folder / "ca.pem").read_bytes() if asked else None, asked)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    yield f"localhost:{port}", asked
    server.stop(0)


def log_level(target, *args):
    done = subprocess.run([FLOECTL, "log-level", "--timeout", "10", "--target", target, *map(str, args)], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else done.stderr


def test_floectl_speaks_tls(server, folder):
    target, asked = server
    own = ["--tls-cert", folder / "server.pem", "--tls-key", folder / "server.key"]
    assert log_level(target, "--tls-ca", folder / "ca.pem", *own) == "debug"
    by_address = target.replace("localhost", "127.0.0.1")
    assert log_level(by_address, "--tls-ca", folder / "ca.pem", "--tls-name", "localhost", *own) == "debug"
    bare = log_level(target, "--tls-ca", folder / "ca.pem")
    assert ("no server answers" in bare) if asked else (bare == "debug")


def test_floectl_says_what_does_not_fit(server, folder, tmp_path):
    target, asked = server
    conformance.make_certificates(str(tmp_path))
    if not asked:
        assert "not signed by one in --tls-ca" in log_level(target, "--tls-ca", tmp_path / "ca.pem")
        assert "--tls-name" in log_level(target, "--tls-ca", folder / "ca.pem", "--tls-name", "other")
    assert "--tls-ca" in log_level(target)


def test_floectl_wants_the_pair(folder):
    assert "--tls-key" in log_level("localhost:1", "--tls-cert", folder / "server.pem")
    assert "does not exist" in log_level("localhost:1", "--tls-ca", folder / "nothing")
