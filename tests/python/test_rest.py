"""TensorFlow Serving's REST API of a running floed, called as its clients do, with TensorFlow's answers for the example models."""
import base64
import concurrent.futures
import gzip
import http.client
import json
import socket
import zlib

import numpy as np
import pytest
import requests
import tensorflow as tf

from floed import MNIST, MODELS, Floed, digits, expected_classes, free_port


@pytest.fixture(scope="module")
def x():
    return digits()


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    """A floed whose models answer what they were sent: one for each dtype, and one with several inputs."""
    folder = tmp_path_factory.mktemp("echo")
    models = ""
    for name, dtype in ECHOES.items():
        class Echo(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([None], dtype, name="x")])
            def serve(self, x):
                return {"y": tf.identity(x)}
        module = Echo()
        tf.saved_model.save(module, str(folder / name / "1"), signatures=module.serve)
        models += f"  - {{name: {name}, base_path: {folder / name}}}\n"

    class Several(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="tag"), tf.TensorSpec([None, 2], tf.float32, name="signal")])
        def serve(self, tag, signal):
            return {"tag_bytes": tf.identity(tag), "tag": tf.identity(tag), "sum": tf.reduce_sum(signal, 1), "n": tf.size(tag)}

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="signal")])
        def double(self, signal):
            return {"twice": 2 * signal}
    module = Several()
    tf.saved_model.save(module, str(folder / "several" / "1"), signatures={"serving_default": module.serve, "double": module.double})
    models += f"  - {{name: several, base_path: {folder / 'several'}}}\n"
    config = folder / "floe.yaml"
    config.write_text("server: {http_max_body_bytes: 8MiB, enable_compression: true}\nmodels:\n" + models)
    floed = Floed("--config", str(config))
    yield floed
    floed.close()


ECHOES = {"float": tf.float32, "double": tf.float64, "half": tf.float16, "int64": tf.int64, "uint64": tf.uint64, "int8": tf.int8,
          "bool": tf.bool, "text": tf.string}


def url(floed, path):
    return f"http://127.0.0.1:{floed.port}{path}"


def post(floed, path, body, **kwargs):
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return requests.post(url(floed, path), data=data, timeout=60, **kwargs)


def ask(floed, model, body, field="predictions"):
    reply = post(floed, f"/v1/models/{model}:predict", body)
    assert reply.status_code == 200, reply.text
    assert reply.headers["Content-Type"] == "application/json"
    return reply.json()[field]


# ---- answers

@pytest.mark.parametrize("model", MODELS)
def test_digits_get_tensorflows_classes_and_grpcs_bits(server, client, x, model):
    rows = x[:64]
    by_rows = np.array(ask(server, model, {"instances": rows.tolist()}), np.float32)
    by_names = np.array(ask(server, model, {"instances": [{"input": row} for row in rows.tolist()]}), np.float32)
    by_columns = np.array(ask(server, model, {"inputs": rows.tolist()}, "outputs"), np.float32)
    np.testing.assert_array_equal(by_rows.argmax(1), expected_classes(model)[:64])
    expected = client.softmax(model, rows).tobytes()
    for got in (by_rows, by_names, by_columns):
        assert got.tobytes() == expected


def test_versions_labels_and_signatures(server, echo, x):
    row = {"instances": x[:1].tolist()}
    for path in ("/v1/models/mnist_conv:predict", "/v1/models/mnist_conv/versions/1:predict"):
        assert len(post(server, path, row).json()["predictions"][0]) == 10
    assert post(server, "/v1/models/mnist_conv/versions/77:predict", row).status_code == 404
    body = {"instances": [[1, 2]], "signature_name": "double"}
    assert ask(echo, "several", body) == [[2.0, 4.0]]
    assert ask(echo, "several", '{"inputs": [[1, 2]], "signature_name": "double"}', "outputs") == [[2.0, 4.0]]
    reply = post(echo, "/v1/models/several:predict", {"instances": [1], "signature_name": "none"})
    assert (reply.status_code, "has no signature 'none'" in reply.json()["error"]) == (400, True)


def test_several_inputs_and_outputs(echo):
    columns = {"tag": ["a", {"b64": base64.b64encode(b"\xff\0").decode()}], "signal": [[1, 2], [3, 4.5]]}
    assert ask(echo, "several", {"inputs": columns}, "outputs") == {
        "tag_bytes": [{"b64": "YQ=="}, {"b64": "/wA="}], "tag": ["a", {"b64": "/wA="}], "sum": [3.0, 7.5], "n": 2}
    reply = post(echo, "/v1/models/several:predict", {"instances": [{"tag": "a", "signal": [1, 2]}]})
    assert reply.status_code == 400 and "'n'" in reply.json()["error"] and "no rows" in reply.json()["error"]


# ---- numbers

def float_bits(name, count=20000):
    size = ECHOES[name].size
    return np.random.default_rng(7).integers(0, 256, (count, size), np.uint8).view(ECHOES[name].as_numpy_dtype).ravel()


@pytest.mark.parametrize("name", ["float", "double", "half"])
def test_every_float_comes_back_as_it_was(echo, name):
    values = np.concatenate([float_bits(name), np.array([0, -0.0, np.nan, np.inf, -np.inf, 0.1, 1e-7, 6e4], ECHOES[name].as_numpy_dtype)])
    text = ",".join("NaN" if np.isnan(v) else "Infinity" if v == np.inf else "-Infinity" if v == -np.inf else repr(v.item()) for v in values)
    reply = post(echo, f"/v1/models/{name}:predict", '{"instances": [' + text + "]}")
    assert reply.status_code == 200, reply.text
    got = np.array(reply.json()["predictions"]).astype(values.dtype)  # Python's reader takes NaN and Infinity, too
    bits = values.dtype.str.replace("f", "u")
    number = ~np.isnan(values)
    assert (got.view(bits)[number] == values.view(bits)[number]).all()
    assert np.isnan(got[~number]).all()


def test_floats_have_a_point(echo):
    assert post(echo, "/v1/models/float:predict", '{"instances":[1,0.1,1e-7,16777217,1e30]}').text == \
        '{"predictions":[1.0,0.1,1e-07,16777216.0,1e+30]}\n'


def test_integers_are_exact(echo):
    values = [2**63 - 1, -2**63, 2**53 + 1, 0]
    assert ask(echo, "int64", {"instances": values}) == values
    assert ask(echo, "uint64", {"instances": [2**64 - 1, 2**53 + 1]}) == [2**64 - 1, 2**53 + 1]
    assert ask(echo, "bool", {"instances": [True, False]}) == [True, False]
    text = ["", "ä\n\"\\", "\u2028", "😀"]
    assert ask(echo, "text", {"instances": text}) == text


@pytest.mark.parametrize("model, body, path, says", [
    ("float", '{"instances": [1, 2, "3"]}', "instances[2]", "the string '3' where a float32"),
    ("float", '{"inputs": {"x": [1, null]}}', "inputs.x[1]", "null where a float32"),
    ("float", '{"instances": [{"x": 1}, {"x": 1e39}]}', "instances[1].x", "out of the range of float32"),
    ("int8", '{"instances": [1, 200]}', "instances[1]", "out of the range of int8"),
    ("int64", '{"instances": [9223372036854775808]}', "instances[0]", "out of the range of int64"),
    ("int64", '{"instances": [1.5]}', "instances[0]", "where an int64"),
    ("text", '{"instances": [1]}', "instances[0]", "where a string"),
    ("several", '{"instances": [{"tag": "a", "signal": [1, "2"]}]}', "instances[0].signal[1]", "the string '2'"),
    ("several", '{"instances": [{"tag": "a", "signal": [1, 2]}, {"tag": "a", "signal": [1]}]}', "instances[1].signal", "a list of 1"),
    ("several", '{"instances": [{"tag": "a", "sigal": [1, 2]}]}', "instances[0]", "nearest: 'signal'"),
])
def test_refusals_name_the_path(echo, model, body, path, says):
    reply = post(echo, f"/v1/models/{model}:predict", body)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert path + ":" in error and says in error


@pytest.mark.parametrize("body", ["", "x", "[1]", "{", '{"instances": [1]', '{"instances": [1]}]', '{"instances": [1,]}', '{"instances": [1]} {}',
                                  '{"instances": ' + "[" * 100000 + "]" * 100000 + "}", b'{"instances": ["\xff"]}'])
def test_what_is_no_json_is_refused(echo, body):
    reply = post(echo, "/v1/models/float:predict", body)
    assert reply.status_code == 400 and reply.json()["error"]


# ---- status, metadata, list

def test_status_as_tensorflow_serving(server):
    expected = {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]}
    for path in ("/v1/models/mnist_conv", "/v1/models/mnist_conv/versions/1"):
        assert requests.get(url(server, path), timeout=60).json() == expected
    assert requests.head(url(server, "/v1/models/mnist_conv"), timeout=60).status_code == 200
    unknown = requests.get(url(server, "/v1/models/mnist_con"), timeout=60)
    assert unknown.status_code == 404 and "mnist_conv" in unknown.json()["error"]


def test_metadata_as_tensorflow_serving(server):
    reply = requests.get(url(server, "/v1/models/mnist_conv/metadata"), timeout=60).json()
    assert reply["model_spec"] == {"name": "mnist_conv", "signature_name": "", "version": "1"}
    signature = reply["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    assert signature["inputs"]["input"]["dtype"] == "DT_FLOAT"
    assert [dim["size"] for dim in signature["inputs"]["input"]["tensor_shape"]["dim"]][-1] == "784"
    assert "softmax" in signature["outputs"]


def test_list_of_models(server):
    models = requests.get(url(server, "/v1/models"), timeout=60).json()["models"]
    assert sorted(model["name"] for model in models) == sorted(MODELS)
    assert all(model["model_version_status"][0]["state"] == "AVAILABLE" for model in models)



# ---- HTTP

def test_replies_are_packed_where_that_is_asked(echo):
    body = {"instances": [0.25] * 4000}
    packed = post(echo, "/v1/models/float:predict", body, headers={"Accept-Encoding": "br;q=1.0, gzip;q=0.8"})
    assert packed.headers["Content-Encoding"] == "gzip" and packed.headers["Vary"] == "Accept-Encoding"
    assert int(packed.headers["Content-Length"]) < 1000 and packed.json() == {"predictions": body["instances"]}
    for accept in ("identity", "gzip;q=0", "deflate"):
        plain = post(echo, "/v1/models/float:predict", body, headers={"Accept-Encoding": accept})
        assert "Content-Encoding" not in plain.headers and plain.content.strip() == packed.content.strip()
    small = post(echo, "/v1/models/float:predict", {"instances": [0.25]})
    assert "Content-Encoding" not in small.headers
    assert "Content-Encoding" not in requests.get(url(echo, "/page/page.css"), timeout=60).headers  # its ETag names its bytes


@pytest.mark.parametrize("encoding, pack", [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_packed_bodies(echo, encoding, pack):
    body = json.dumps({"instances": list(range(5000))}).encode()
    reply = post(echo, "/v1/models/float:predict", pack(body), headers={"Content-Encoding": encoding})
    assert reply.json()["predictions"] == list(range(5000))


def rss(floed):
    with open(f"/proc/{floed.process.pid}/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM"))


def test_a_small_body_does_not_become_a_large_one(echo):
    before = rss(echo)
    bomb = gzip.compress(b" " * (100 << 20))
    reply = post(echo, "/v1/models/float:predict", bomb, headers={"Content-Encoding": "gzip"})
    assert reply.status_code == 413 and "unpacks to more than" in reply.json()["error"]
    assert "Retry-After" not in reply.headers
    assert rss(echo) - before < 64 << 20
    broken = post(echo, "/v1/models/float:predict", bomb[:1000], headers={"Content-Encoding": "gzip"})
    assert broken.status_code == 400


def test_a_refusal_can_be_read_while_the_body_is_sent(echo):
    """Nothing is left unread when the connection closes, which would take the answer from the client."""
    body = b" " * (32 << 20)
    for headers in ({}, {"Expect": "100-continue"}):
        reply = post(echo, "/v1/models/float:predict", body, headers=headers)
        assert reply.status_code == 413 and "8388608" in reply.json()["error"]

    def chunks():
        for _ in range(32):
            yield b" " * (1 << 20)
    reply = requests.post(url(echo, "/v1/models/float:predict"), data=chunks(), timeout=60)
    assert reply.status_code == 413
    assert ask(echo, "float", {"instances": [1]}) == [1.0]


def test_tiny_chunks_are_one_body(echo):
    body = b'{"instances": [1.5, 2]}'
    with socket.create_connection(("127.0.0.1", echo.port)) as s:
        s.sendall(b"POST /v1/models/float:predict HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" +
                  b"".join(b"1\r\n%c\r\n" % c for c in body) + b"0\r\n\r\n")
        said = b""
        while part := s.recv(65536):
            said += part
    assert said.startswith(b"HTTP/1.1 200 OK\r\n") and said.endswith(b'{"predictions":[1.5,2.0]}\n')


def test_connections_are_kept_and_shared(echo):
    connection = http.client.HTTPConnection("127.0.0.1", echo.port, timeout=60)
    for k in range(20):
        connection.request("POST", "/v1/models/int64:predict", json.dumps({"instances": [k]}))
        assert json.load(connection.getresponse())["predictions"] == [k]
        connection.request("POST", "/v1/models/none:predict", b" " * 1000)
        assert connection.getresponse().read().startswith(b'{"error":"')
    sock = connection.sock
    connection.request("GET", "/v1/models")
    assert connection.getresponse().status == 200 and connection.sock is sock, "the connection was closed"
    connection.close()

    def many(k):
        with requests.Session() as session:
            return [session.post(url(echo, "/v1/models/int64:predict"), json={"instances": [k, n]}, timeout=60).json()["predictions"]
                    for n in range(20)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for k, got in enumerate(pool.map(many, range(8))):
            assert got == [[k, n] for n in range(20)]


def test_refusals_have_the_callers_id(echo):
    reply = post(echo, "/v1/models/float:predict", "x", headers={"X-Request-Id": "mine-7"})
    assert reply.headers["x-request-id"] == "mine-7" and "mine-7" in reply.json()["error"]


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_drain_answers_what_has_begun():
    """A server that ends answers the requests that it has, whole bodies or not, and takes no more."""
    floed = Floed("--model_name=m", f"--model_base_path={MNIST}/models/mnist_conv", f"--rest_api_port={free_port()}")
    body = json.dumps({"instances": digits()[:2].tolist()}).encode()
    with socket.create_connection(("127.0.0.1", floed.port)) as s:
        s.sendall(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:100])
        floed.wait_until(lambda: requests.get(url(floed, "/readyz"), timeout=60).status_code == 200)
        floed.terminate()
        floed.wait_until(lambda: requests.get(url(floed, "/readyz"), timeout=60).status_code == 503)
        floed.wait_until(lambda: refuses(floed.port))
        s.sendall(body[100:])
        reply = http.client.HTTPResponse(s)
        reply.begin()
        assert reply.status == 200 and len(json.load(reply)["predictions"]) == 2
    assert floed.wait() == 0
    floed.close()


def test_another_port_for_rest():
    port = free_port()
    floed = Floed("--model_name=m", f"--model_base_path={MNIST}/models/mnist_conv", f"--rest_api_port={port}")
    assert requests.get(f"http://127.0.0.1:{port}/v1/models/m", timeout=60).status_code == 200
    floed.close()
