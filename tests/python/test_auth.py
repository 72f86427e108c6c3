"""Who may call what: tokens, client certificates and users, with the clients people use, over TLS and unix sockets."""
import http.client
import json
import os
import pwd
import signal
import ssl
import subprocess

import grpc
import numpy as np
import pytest
from tensorflow_serving.apis import get_model_status_pb2, model_service_pb2_grpc, prediction_service_pb2_grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

import conformance
from floed import FLOECTL, MNIST, Floed, predict_request

UNAUTHENTICATED, DENIED = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED
TOKENS = {"all": ["--role", "infer,read,admin"], "beginner": ["--role", "infer,read", "--models", "*_beginner"],
          "reader": ["--role", "read"], "short": ["--role", "infer,read", "--expires", "365d"]}


def client_certificate(folder, name, subject, alternative=""):
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
            "-subj", subject)
    (folder / f"{name}.names").write_text(f"subjectAltName={alternative}\n" if alternative else "")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-out", f"{name}.pem", "-extfile", f"{name}.names")


def new_token(tokens, name, *more):
    done = subprocess.run([FLOECTL, "token", "new", "--name", name, "--file", tokens, *more], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def floectl(*args, env=None):
    """Its exit status, and what it printed."""
    done = subprocess.run([FLOECTL, *map(str, args)], capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout + done.stderr


class Server:
    """A floed with tokens, certificates and users."""

    def __init__(self, folder):
        self.folder, self.tokens_file = folder, folder / "tokens"
        tls = conformance.make_certificates(str(folder))
        client_certificate(folder, "web", "/CN=web")
        client_certificate(folder, "batch", "/O=x", "DNS:batch.example")
        client_certificate(folder, "stranger", "/CN=stranger")
        self.tokens = {name: new_token(self.tokens_file, name, *more) for name, more in TOKENS.items()}
        lines = [line.replace(line.split("expires=")[1].split()[0], "2020-01-01T00:00:00Z") if "expires=" in line else line
                 for line in self.tokens_file.read_text().splitlines()]
        self.tokens_file.write_text("\n".join(lines) + "\n")
        config = folder / "floe.yaml"
        user = pwd.getpwuid(os.getuid()).pw_name
        config.write_text(f"""
server:
  grpc_socket_path: {folder}/grpc.sock
  admin_socket_path: {folder}/admin.sock
  tls: {{certificate: {tls[0]}, key: {tls[1]}, client_ca: {tls[2]}, client: optional}}
  auth:
    tokens_file: tokens
    principals:
      - {{certificate: web, roles: [infer]}}
      - {{certificate: "DNS:batch.example", roles: [read]}}
      - {{uid: {user}, roles: [read]}}
models:
  - {{name: mnist_beginner, base_path: {MNIST}/models/mnist_beginner}}
  - {{name: mnist_conv, base_path: {MNIST}/models/mnist_conv}}
""")
        self.floed = Floed("--config", config, wait=False)
        self.ca = (folder / "ca.pem").read_bytes()
        with self.channel() as channel:
            watch = channel.unary_stream(conformance.WATCH)(b"", timeout=120, wait_for_ready=True)
            next(reply for reply in watch if reply == b"\x08\x01")
            watch.cancel()

    def channel(self, certificate="", socket=""):
        if socket:
            return grpc.insecure_channel(f"unix:{self.folder}/{socket}.sock", conformance.OPTIONS)
        own = {} if not certificate else {"private_key": (self.folder / f"{certificate}.key").read_bytes(),
                                          "certificate_chain": (self.folder / f"{certificate}.pem").read_bytes()}
        return grpc.secure_channel(f"localhost:{self.floed.port}", grpc.ssl_channel_credentials(self.ca, **own), conformance.OPTIONS)

    def http(self, method, path, token="", body=None, certificate="", headers=None):
        context = ssl.create_default_context(cafile=self.folder / "ca.pem")
        if certificate:
            context.load_cert_chain(self.folder / f"{certificate}.pem", self.folder / f"{certificate}.key")
        connection = http.client.HTTPSConnection("localhost", self.floed.port, context=context, timeout=30)
        sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        connection.request(method, path, body, sent)
        reply = connection.getresponse()
        return reply.status, reply.read().decode(), reply.headers


@pytest.fixture(scope="module", name="server")
def make_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("auth"))
    yield server
    server.floed.close()


def bearer(token):
    return (("authorization", f"Bearer {token}"),) if token else ()


def code_of(call, *args, metadata=(), **kwargs):
    try:
        call(*args, metadata=metadata, timeout=60, **kwargs)
        return grpc.StatusCode.OK
    except grpc.RpcError as error:
        code_of.details = error.details()
        return error.code()


IMAGES = np.zeros([1, 784], np.float32)


def predict(channel, token="", model="mnist_beginner"):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    return code_of(stub.Predict, predict_request(model, {"input": IMAGES}), metadata=bearer(token))


def status(channel, token="", model="mnist_beginner"):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = model
    return code_of(model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus, request, metadata=bearer(token))


def admin(channel, token=""):
    return code_of(channel.unary_unary("/floe.Admin/GetStats"), b"", metadata=bearer(token))


OK = grpc.StatusCode.OK


def test_tokens_over_grpc(server):
    tokens = server.tokens
    with server.channel() as channel:
        assert predict(channel) == UNAUTHENTICATED and "Bearer TOKEN" in code_of.details
        assert predict(channel, tokens["beginner"]) == OK
        assert predict(channel, tokens["beginner"], "mnist_conv") == DENIED and "token 'beginner'" in code_of.details
        assert predict(channel, tokens["reader"]) == DENIED and "role infer" in code_of.details
        assert predict(channel, tokens["short"]) == UNAUTHENTICATED and "expired at 2020-01-01" in code_of.details
        wrong = tokens["all"][:-1] + ("0" if tokens["all"][-1] != "0" else "1")
        assert predict(channel, wrong) == UNAUTHENTICATED and wrong not in code_of.details
        assert status(channel, tokens["reader"]) == OK and status(channel) == UNAUTHENTICATED
        assert status(channel, tokens["beginner"], "mnist_conv") == DENIED
        assert admin(channel, tokens["all"]) == DENIED and "admin_socket_path" in code_of.details
        channel.unary_unary(conformance.CHECK)(b"", timeout=30)  # whoever asks


def test_credentials_that_a_library_adds(server):
    """grpc's own call credentials, which are sent with every call of a channel with TLS."""
    credentials = grpc.composite_channel_credentials(grpc.ssl_channel_credentials(server.ca),
                                                     grpc.access_token_call_credentials(server.tokens["all"]))
    with grpc.secure_channel(f"localhost:{server.floed.port}", credentials, conformance.OPTIONS) as channel:
        assert predict(channel) == OK


def test_every_message_of_a_stream_may_use_its_models_alone(server):
    def infer(model):
        request = service_pb2.ModelInferRequest(model_name=model)
        request.inputs.add(name="input", datatype="FP32", shape=[1, 784])
        request.raw_input_contents.append(IMAGES.tobytes())
        return request
    with server.channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        sent = [infer(model) for model in ("mnist_beginner", "mnist_conv", "mnist_beginner")]
        replies = list(stub.ModelStreamInfer(iter(sent), metadata=bearer(server.tokens["beginner"]), timeout=60))
        assert ["may not use" in reply.error_message for reply in replies] == [False, True, False]
        index = stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(), metadata=bearer(server.tokens["beginner"]), timeout=60)
        assert [model.name for model in index.models] == ["mnist_beginner"]


def test_tokens_over_http(server):
    tokens, body = server.tokens, json.dumps({"instances": IMAGES.tolist()})
    path = "/v1/models/mnist_beginner:predict"
    code, text, headers = server.http("POST", path, body=body)
    assert (code, headers["WWW-Authenticate"]) == (401, 'Bearer realm="floe"') and "role infer" in json.loads(text)["error"]
    assert server.http("POST", path, tokens["beginner"], body)[0] == 200
    assert server.http("POST", path, tokens["reader"], body)[0] == 403
    assert server.http("POST", path, tokens["short"], body)[0] == 401
    assert server.http("POST", path, tokens["all"] + "0", body)[0] == 401
    assert server.http("POST", "/v1/models/mnist_conv:predict", tokens["beginner"], body)[0] == 403
    assert server.http("GET", "/metrics")[0] == 401
    code, text, _ = server.http("GET", "/metrics", tokens["reader"])
    assert code == 200 and 'floe_auth_refused_total{cause="role"}' in text and tokens["reader"] not in text
    models = json.loads(server.http("GET", "/v1/models", tokens["beginner"])[1])["models"]
    assert [model["name"] for model in models] == ["mnist_beginner"]
    for probe in ("/healthz", "/readyz", "/v2/health/live", "/v2/models/mnist_conv/ready"):
        assert server.http("GET", probe)[0] == 200


def test_a_refusal_is_read_before_the_body_is_sent(server):
    code, _, _ = server.http("POST", "/v1/models/mnist_beginner:predict", body=b"x" * (8 << 20))
    assert code == 401


def test_curl(server):
    def curl(*args):
        done = subprocess.run(["curl", "-s", "--cacert", "ca.pem", "-o", "/dev/null", "-w", "%{http_code} %{http_version}", *args,
                               f"https://localhost:{server.floed.port}/v1/models"], cwd=server.folder, capture_output=True, text=True, check=True)
        return done.stdout
    assert curl("--http2") == "401 2"
    assert curl("--http1.1", "--oauth2-bearer", server.tokens["reader"]) == "200 1.1"
    assert curl("--http2", "--oauth2-bearer", server.tokens["reader"]) == "200 2"
    assert curl("--cert", "batch.pem", "--key", "batch.key") == "200 2"
    assert curl("-u", "user:password") == "401 2"


def test_certificates_name_principals(server):
    for name, may_infer, may_read in (("web", OK, DENIED), ("batch", DENIED, OK), ("stranger", UNAUTHENTICATED, UNAUTHENTICATED)):
        with server.channel(name) as channel:
            assert (predict(channel), status(channel)) == (may_infer, may_read), name
    assert server.http("GET", "/v1/models", certificate="batch")[0] == 200
    assert server.http("GET", "/v1/models", certificate="web")[0] == 403
    with server.channel("web") as channel:
        assert status(channel, server.tokens["reader"]) == OK  # a token says more than the connection


def test_users_of_unix_sockets(server):
    with server.channel(socket="grpc") as channel:
        assert (predict(channel), status(channel), admin(channel)) == (DENIED, OK, DENIED)
    with server.channel(socket="admin") as channel:
        # The test runs as floed's user, but the configuration says what that may do.
        assert (predict(channel), status(channel), admin(channel)) == (DENIED, OK, DENIED)
        assert admin(channel, server.tokens["all"]) == OK
        assert admin(channel, server.tokens["beginner"]) == DENIED


def test_floectl_sends_the_token(server):
    own = server.folder / "all.token"
    own.write_text(server.tokens["all"] + "\n")
    at = ("--target", f"unix:{server.folder}/admin.sock")
    code, out = floectl("status", *at, "--token-file", own)
    assert code == 0 and "mnist_conv" in out
    code, out = floectl("log-level", "info", *at)
    assert code == 1 and "does not have the role admin" in out
    assert floectl("log-level", "info", *at, "--token-file", own)[0] == 0
    assert floectl("log-level", *at, env={"FLOE_TOKEN_FILE": str(own)}) == (0, "info\n")
    # By number: c-ares, which gRPC asks for names, leaks one where a sanitizer looks.
    tls = ("--target", f"127.0.0.1:{server.floed.port}", "--tls-name", "localhost", "--tls-ca", server.folder / "ca.pem")
    image = f"input={IMAGES.tolist()}"
    assert floectl("predict", "mnist_beginner", image, *tls, "--token-file", own)[0] == 0
    code, out = floectl("predict", "mnist_beginner", image, "--http", *tls, "--token-file", own)
    assert code == 0 and len(json.loads(out)["outputs"][0]) == 10
    code, out = floectl("predict", "mnist_beginner", image, "--http", *at, "--token-file", own)
    assert code == 0 and len(json.loads(out)["outputs"][0]) == 10
    code, out = floectl("predict", "mnist_beginner", image, "--http", *tls)
    assert code == 1 and "UNAUTHENTICATED: this call needs the role infer" in out and "(HTTP 401)" in out
    code, out = floectl("predict", "no model", image, "--http", *tls, "--token-file", own)
    assert code == 1 and "NOT_FOUND" in out
    wrong_ca = ("--target", f"127.0.0.1:{server.floed.port}", "--tls-name", "localhost", "--tls-ca", server.folder / "web.pem", "--token-file", own)
    assert "--tls-ca says whom to trust" in floectl("predict", "mnist_beginner", image, "--http", *wrong_ca)[1]
    assert "expected HOST:PORT" in floectl("predict", "mnist_beginner", image, "--http", "--target", "dns:///x")[1]
    assert "no server answers" in floectl("predict", "mnist_beginner", image, "--http", "--target", f"unix:{server.folder}/none")[1]
    assert floectl("unload", "mnist_conv", *at, "--token-file", own) == (0, "mnist_conv: unloaded\n")
    assert floectl("load", "mnist_conv", *at, "--token-file", own) == (0, "mnist_conv: loaded\n")
    code, out = floectl("reload", *at, "--token-file", own)
    assert code == 0 and out.startswith("generation ")
    code, out = floectl("load", "nothing", *at, "--token-file", own)
    assert code == 1 and "has no model 'nothing'" in out
    empty = server.folder / "empty"
    empty.write_text("\n")
    assert "holds no token" in floectl("status", *at, "--token-file", empty)[1]
    log = server.floed.log()
    assert "audit: /floe.Admin/SetLogLevel by token 'all' from unix: OK" in log
    assert "was refused: PERMISSION_DENIED" in log
    assert not any(token in log for token in server.tokens.values())


@pytest.mark.parametrize("how", ["SIGHUP", "poll"])
def test_new_tokens_are_read(server, how):
    token = new_token(server.tokens_file, f"later.{how}", "--role", "read")
    if how == "SIGHUP":
        server.floed.process.send_signal(signal.SIGHUP)
    server.floed.wait_until(lambda: server.http("GET", "/v1/models", token)[0] == 200)


def test_a_bad_file_keeps_the_tokens(server):
    good = server.tokens_file.read_text()
    server.tokens_file.write_text("nonsense\n")
    server.floed.process.send_signal(signal.SIGHUP)
    server.floed.wait_until(lambda: "auth: " in server.http("GET", "/readyz")[1])
    assert server.http("GET", "/v1/models", server.tokens["reader"])[0] == 200
    assert "tokens:1: 'nonsense' is no field" in server.floed.log()
    own = server.folder / "all.token"
    own.write_text(server.tokens["all"])
    assert "'nonsense' is no field" in floectl("status", "--target", f"unix:{server.folder}/admin.sock", "--token-file", own)[1]
    server.tokens_file.write_text(good)
    server.floed.process.send_signal(signal.SIGHUP)
    server.floed.wait_until(lambda: server.http("GET", "/readyz")[1] == "ok\n")


def test_the_servers_own_user_has_all_roles_at_the_admin_socket(tmp_path):
    config = tmp_path / "floe.yaml"
    config.write_text(f"server: {{admin_socket_path: {tmp_path}/admin.sock, auth: {{tokens_file: tokens}}}}\nmodels: []\n")
    (tmp_path / "tokens").write_text("")
    floed = Floed("--config", config)
    assert floectl("log-level", "--target", f"unix:{tmp_path}/admin.sock")[0] == 0
    code, out = floectl("log-level", "--target", floed.target)
    assert code == 1 and "not offered here" in out

    def reload(*where):
        return subprocess.run(["curl", "-s", "-X", "POST", *where], capture_output=True, text=True, check=True).stdout
    path = "/v1/config/reload"
    assert json.loads(reload("--unix-socket", f"{tmp_path}/admin.sock", f"http://localhost{path}")) == {"generation": 2}
    config.write_text(config.read_text().replace("models: []", "models: [{name: a}]"))
    assert "base_path" in reload("--unix-socket", f"{tmp_path}/admin.sock", f"http://localhost{path}")
    assert "not offered here" in reload(f"http://{floed.target}{path}")
    assert "tokens come to" in floed.log()
    floed.close()


def test_mistakes_are_told_at_the_start(tmp_path):
    from floed import FLOED  # pylint: disable=import-outside-toplevel
    config = tmp_path / "floe.yaml"
    config.write_text("server: {auth: {tokens_file: tokens}}\nmodels: []\n")

    def check():
        done = subprocess.run([FLOED, "--config", config, "--check-config"], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr
    code, text = check()
    assert code == 1 and "tokens" in text
    (tmp_path / "tokens").write_text("name=a\n")
    code, text = check()
    assert code == 1 and "tokens:1: has no id=" in text
    (tmp_path / "tokens").write_text("# none yet\n")
    assert check()[0] == 0
