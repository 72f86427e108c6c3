"""/metrics: both formats, read by Prometheus' own tools, against what clients asked; health of models by HTTP.

docs/metrics.md, deploy/prometheus and deploy/grafana must name what a live server shows, and nothing else.
"""
import json
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import grpc
import numpy as np
import pytest
import yaml
from tritonclient.grpc import service_pb2, service_pb2_grpc

from floed import CONFIG, START_SECONDS, Floed, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
TFSERVING = "/monitoring/prometheus/metrics"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
DIGIT = np.zeros((1, 784), np.float32)


def tool(name):
    return pytest.mark.skipif(not shutil.which(name), reason="needs Debian's package prometheus")


@pytest.fixture(scope="module")
def floed(tmp_path_factory):
    config = yaml.safe_load(pathlib.Path(CONFIG).read_text(encoding="utf-8"))
    config["server"]["metrics_names"] = ["tfserving", "triton", "kserve"]
    for model in config["models"]:
        model["base_path"] = str((pathlib.Path(CONFIG).parent / model["base_path"]).resolve())
    path = tmp_path_factory.mktemp("metrics") / "floe.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    server = Floed("--config", path)
    with server.client() as client:
        client.softmax("mnist_conv", DIGIT)  # families of requests have samples
    yield server
    server.close()


def get(floed, path, accept="", method="GET"):
    """Status, headers and text."""
    request = urllib.request.Request(f"http://{floed.target}{path}", headers={"Accept": accept} if accept else {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.headers, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def samples(text):
    """{(name, ((label, value), ...)): number}"""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, number = SAMPLE.fullmatch(line).groups()
            key = (name, tuple(sorted(LABEL.findall(labels or ""))))
            assert key not in found, line
            found[key] = float(number)
    return found


def total(floed, name, path="/metrics", **labels):
    """The sum of the samples that have these labels; None: there is none."""
    found = [number for (at, has), number in samples(get(floed, path)[2]).items() if at == name and labels.items() <= dict(has).items()]
    return sum(found) if found else None


def families(text):
    """{name: (type, the names of its labels)}"""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    labels = {name: set() for name in types}
    for name, has in samples(text):
        family = name if name in types else re.sub("_(bucket|sum|count)$", "", name)
        labels[family] |= {label for label, _ in has} - {"le"}
    return {name: (types[name], labels[name]) for name in types}


def test_both_formats_are_served(floed):
    status, headers, text = get(floed, "/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "# TYPE floe_requests_total counter\n" in text
    status, headers, text = get(floed, "/metrics", OPENMETRICS)
    assert (status, headers["content-type"]) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert "# TYPE floe_requests counter\n" in text and text.endswith("# EOF\n")
    assert get(floed, "/metrics", method="HEAD")[0] == 200
    assert get(floed, "/metrics", method="POST")[0] == 405


@tool("promtool")
def test_promtool_finds_nothing_wrong(floed):
    own = "\n".join(line for line in get(floed, "/metrics")[2].splitlines() if re.match(r"(# \w+ )?(floe|process)_", line)) + "\n"
    done = subprocess.run(["promtool", "check", "metrics"], input=own, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    # Names of others break its rules for names; nothing else may be wrong with them.
    done = subprocess.run(["promtool", "check", "metrics"], input=get(floed, TFSERVING)[2], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    assert "error while linting" not in done.stderr
    done = subprocess.run(["promtool", "check", "metrics"], input="floe_x{a=b} 1\n", capture_output=True, text=True, check=False)
    assert done.returncode == 1, "mistakes are noticed"


def test_requests_are_counted(floed):
    def count(**labels):
        return total(floed, "floe_requests_total", model="mnist_beginner", version="1", method="Predict", protocol="grpc", **labels) or 0

    def of_ok(name):
        return total(floed, name, model="mnist_beginner") or 0

    before, bad, odd = count(code="OK"), count(code="INVALID_ARGUMENT"), count(code="FAILED_PRECONDITION")
    took, timed = of_ok("floe_request_seconds_sum"), of_ok("floe_request_seconds_count")
    waits, rows = of_ok("floe_queue_wait_seconds_count"), of_ok("floe_batch_rows_sum")
    with floed.client() as client:
        start = time.monotonic()
        for _ in range(20):
            client.predict("mnist_beginner", {"input": np.repeat(DIGIT, 3, 0)})
        elapsed = time.monotonic() - start
        for model, inputs, signature in (("mnist_beginner", {"input": np.zeros((1, 3), np.float32)}, ""),
                                         ("mnist_beginner", {"input": DIGIT}, "no_such_signature"),
                                         ("no_such_model", {"input": DIGIT}, "")):
            with pytest.raises(grpc.RpcError):
                client.predict(model, inputs, signature)
    assert count(code="OK", signature="serving_default") == before + 20
    assert count(code="INVALID_ARGUMENT", signature="serving_default") == bad + 1
    assert count(code="FAILED_PRECONDITION", signature="") == odd + 1
    floed.wait_until(lambda: of_ok("floe_request_seconds_count") == timed + 20)  # counted after they are answered
    assert 0 < of_ok("floe_request_seconds_sum") - took < elapsed
    assert of_ok("floe_queue_wait_seconds_count") == waits + 20
    assert of_ok("floe_batch_rows_sum") == rows + 60
    text = get(floed, "/metrics")[2]
    assert "no_such" not in text, "callers make no labels"


def test_each_door_has_counts_of_its_own(floed):
    def counts():
        return {(method, protocol): total(floed, "floe_requests_total", model="mnist_beginner", method=method, protocol=protocol, code="OK") or 0
                for method in ("Predict", "ModelInfer", "ModelStreamInfer") for protocol in ("grpc", "http")}

    def post(path, body):
        request = urllib.request.Request(f"http://{floed.target}{path}", json.dumps(body).encode(), method="POST")
        urllib.request.urlopen(request, timeout=30).close()

    expected = counts()
    zeros = [0.0] * 784
    post("/v1/models/mnist_beginner:predict", {"instances": [zeros]})
    expected["Predict", "http"] += 1
    post("/v2/models/mnist_beginner/infer", {"inputs": [{"name": "input", "shape": [1, 784], "datatype": "FP32", "data": zeros}]})
    expected["ModelInfer", "http"] += 1
    request = service_pb2.ModelInferRequest(model_name="mnist_beginner", raw_input_contents=[DIGIT.tobytes()])
    request.inputs.add(name="input", datatype="FP32", shape=[1, 784])
    with floed.client() as client:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(client.channel)
        stub.ModelInfer(request, timeout=30)
        expected["ModelInfer", "grpc"] += 1
        (reply,) = stub.ModelStreamInfer(iter([request]), timeout=30)
        assert not reply.error_message
        expected["ModelStreamInfer", "grpc"] += 1
    assert counts() == expected


def test_names_of_other_servers_have_the_same_numbers(floed):
    ok = total(floed, "floe_requests_total", model="mnist_conv", code="OK")
    assert ok >= 1
    for name, labels in ((":tensorflow:serving:request_count", {"model_name": "mnist_conv", "status": "OK"}),
                         (":tensorflow:serving:request_latency_count", {"model_name": "mnist_conv", "API": "Predict", "entrypoint": "GRPC"}),
                         (":tensorflow:serving:runtime_latency_count", {"model_name": "mnist_conv", "API": "Predict"}),
                         ("nv_inference_request_success", {"model": "mnist_conv", "version": "1"}),
                         ("nv_inference_count", {"model": "mnist_conv"}),
                         ("request_predict_seconds_count", {"model_name": "mnist_conv"})):
        assert total(floed, name, **labels) == ok, name
        assert total(floed, name, TFSERVING, **labels) == ok, name


def test_histograms_hold_together(floed):
    buckets = {}
    found = samples(get(floed, "/metrics")[2])
    for (name, labels), number in found.items():
        if name.endswith("_bucket"):
            bound = float(dict(labels)["le"].replace("+Inf", "inf"))
            buckets.setdefault((name, tuple(label for label in labels if label[0] != "le")), []).append((bound, number))
    assert len(buckets) >= 8
    for (name, labels), of_one in buckets.items():
        assert of_one == sorted(of_one) and of_one[-1][0] == float("inf"), name
        counts = [count for _, count in of_one]
        assert counts == sorted(counts), name
        assert counts[-1] == found[name.replace("_bucket", "_count"), labels], name


# ---- health

def test_health_of_models(floed):
    for path, status in {"/v2/models/mnist_conv/ready": 200, "/v2/models/mnist_conv/versions/1/ready": 200,
                         "/v2/models/mnist_conv/versions/7/ready": 404, "/v2/models/nobody/ready": 404,
                         "/v2/models/nobody/versions/1/ready": 404}.items():
        assert get(floed, path)[0] == status, path
    assert json.loads(get(floed, "/v2/models/mnist_conv/ready")[2]) == {"ready": True}


# ---- what is written about them

def documented():
    """{name: (type, labels, meaning)} of docs/metrics.md"""
    rows = re.findall(r"^\| `([^`]+)` \| (counter|gauge|histogram) \|([^|]*)\| (.*) \|$",
                      (ROOT / "docs/metrics.md").read_text(encoding="utf-8"), re.M)
    return {name: (kind, {label for label in labels.replace(" ", "").split(",") if label}, meaning) for name, kind, labels, meaning in rows}


def test_the_page_has_every_family_and_no_other(floed):
    with floed.client() as client:
        client.check()
    live, page = families(get(floed, "/metrics")[2]), documented()
    assert len(page) > 50
    for name, (kind, labels) in live.items():
        assert page[name][:2] == (kind, labels), name
    for name in set(page) - set(live):
        assert page[name][2].startswith(("With TLS:", "With GPUs:", "While it loads:")), name


def names_in(expression):
    """The metrics that a PromQL expression reads."""
    bare = re.sub(r'"[^"]*"|\[[^]]*\]|\b(by|without|on|ignoring)\s*\([^)]*\)', "", expression)
    return set(re.findall(r"\b(?:floe|process|nv|request)_\w+", bare))


def assert_known(expressions):
    names = set().union(*map(names_in, expressions))
    assert len(names) > 8
    known = {name + suffix for name, (kind, _, _) in documented().items()
             for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))}
    assert names <= known, names - known


def alerts():
    rules = yaml.safe_load((ROOT / "deploy/prometheus/floe_alerts.yml").read_text(encoding="utf-8"))
    return {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}


def dashboard():
    """The expressions of the dashboard, with values for its variables."""
    board = json.loads((ROOT / "deploy/grafana/floe.json").read_text(encoding="utf-8"))
    values = {"$job": "floe", "$instance": ".*", "$model": ".*", "$__rate_interval": "1m"}
    for target in [target for panel in board["panels"] for target in panel["targets"]]:
        expression = target["expr"]
        for name, value in values.items():
            expression = expression.replace(name, value)
        assert "$" not in expression, expression
        yield expression


def test_alerts_and_dashboard_name_what_there_is():
    assert_known(alerts().values())
    assert_known(dashboard())


@tool("promtool")
def test_each_alert_fires():
    for command in (["check", "rules", "floe_alerts.yml"], ["test", "rules", "floe_alerts_test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=ROOT / "deploy/prometheus", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    tested = (ROOT / "deploy/prometheus/floe_alerts_test.yml").read_text(encoding="utf-8")
    assert set(re.findall(r'alertname="(\w+)"', tested)) == set(alerts())


class Prometheus:
    """A Prometheus that scrapes floed twice a second."""

    def __init__(self, target, folder):
        config = {"global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
                  "rule_files": [str(ROOT / "deploy/prometheus/floe_alerts.yml")],
                  "scrape_configs": [{"job_name": "floe", "static_configs": [{"targets": [target]}]}]}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        self.port = free_port()
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}", "--web.enable-lifecycle"], stdout=self.log, stderr=self.log)

    def ask(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it starts
                raise
            raise AssertionError(f"{query}: {error.read().decode()}") from None

    def query(self, expression):
        """The value of each series."""
        return [float(series["value"][1]) for series in self.ask("query", query=expression)["result"]]

    def up(self):
        try:
            return self.query('up{job="floe"}') == [1]
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        self.process.wait(START_SECONDS)
        self.log.close()


@tool("prometheus")
def test_a_real_prometheus_reads_it(floed, tmp_path):
    prometheus = Prometheus(floed.target, tmp_path)
    try:
        floed.wait_until(prometheus.up)
        (target,) = prometheus.ask("targets")["activeTargets"]
        assert target["lastError"] == ""
        ok = total(floed, "floe_requests_total", model="mnist_conv", code="OK")
        floed.wait_until(lambda: prometheus.query('sum(floe_requests_total{model="mnist_conv",code="OK"})') == [ok])
        metadata = prometheus.ask("metadata")
        assert metadata["floe_request_seconds"][0]["type"] == "histogram"
        for expression in [*alerts().values(), *dashboard()]:
            prometheus.query(expression)  # it is one
        # What needs no change over time has a value at once.
        for expression in dashboard():
            if "rate(" not in expression:
                assert prometheus.query(expression), expression
    finally:
        prometheus.close()
