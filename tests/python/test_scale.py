"""Three replicas behind HAProxy, nginx, or gRPC's own round robin (deploy/, docs/scale.md): calls while replicas are
restarted one after the other, killed and stopped. The retry policy and channel options are the documented ones.

FLOE_ROUNDS=N sets how often all three are restarted (1).
"""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import grpc
import pytest
from tensorflow_serving.apis import prediction_service_pb2_grpc

from floed import MNIST, ROOT, START_SECONDS, Client, Floed, digits, free_port, predict_request

ROUNDS = int(os.environ.get("FLOE_ROUNDS", "1"))
ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
MODEL = "mnist_beginner"
WAYS = ("haproxy", "nginx", "round_robin")
FILES = {"haproxy": "deploy/haproxy/haproxy.cfg", "nginx": "deploy/nginx/nginx.conf"}
PATH = os.environ["PATH"] + ":/usr/sbin"


def documented():
    """The JSON of docs/scale.md: the service config, the channel options, and what round_robin adds to the config."""
    with open(os.path.join(ROOT, "docs/scale.md"), encoding="utf-8") as f:
        blocks = re.findall(r"```json\n(.*?)```", f.read(), re.S)
    return [json.loads(block) for block in blocks]


class Replicas:
    """Three floed. Each serves the model as a version of its own number, so that answers tell who gave them."""

    def __init__(self, folder):
        self.port = free_port()
        for n in (1, 2, 3):
            shutil.copytree(f"{MNIST}/models/{MODEL}/1", folder / str(n) / str(n))
        self.folder = folder
        self.floed = {n: self.started(n) for n in (1, 2, 3)}

    def started(self, n):
        return Floed(f"--model_name={MODEL}", f"--model_base_path={self.folder / str(n)}",
                     "--grpc_channel_arguments=grpc.http2.min_ping_interval_without_data_ms=500",
                     address=ADDRESSES[n - 1], port=self.port)

    def restart(self, n):
        self.floed[n].close()
        self.floed[n] = self.started(n)

    def close(self):
        for floed in self.floed.values():
            floed.close()


class Balancer:
    """The proxy with its file of deploy/, on free ports; for round_robin, the addresses themselves."""

    def __init__(self, way, port, folder):
        self.process = None
        if way == "round_robin":
            self.target = "ipv4:" + ",".join(f"{address}:{port}" for address in ADDRESSES)
            return
        if not shutil.which(way, path=PATH):
            pytest.fail(f"{way} is not installed: scripts/install_deps.sh all")
        listen = free_port()
        self.target = f"127.0.0.1:{listen}"
        with open(os.path.join(ROOT, FILES[way]), encoding="utf-8") as f:
            text = f.read().replace(":8500", f":{port}").replace(":8600", f":{listen}")
        if way == "nginx":  # its own folders are root's
            kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            text = text.replace("http {", "http {" + "".join(f" {kind}_temp_path {folder}/{kind};" for kind in kinds))
        file = folder / "config"
        file.write_text(text)
        command = {"haproxy": ["haproxy", "-db", "-f", file],
                   "nginx": ["nginx", "-g", f"daemon off; pid {folder}/pid;", "-c", file]}[way]
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PATH": PATH})

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait(30)


class Load:
    """Callers that never pause, each on a channel of its own. The first sends more than a proxy keeps to send again."""

    def __init__(self, way, target, callers=3):
        service_config, options, round_robin = documented()
        if way == "round_robin":
            service_config |= round_robin
        options = list({**options, "grpc.enable_http_proxy": 0, "grpc.use_local_subchannel_pool": 1}.items())
        self.options = [("grpc.service_config", json.dumps(service_config)), *options]
        self.target, self.leaving = target, threading.Event()
        x = digits()
        self.small, self.large = (predict_request(MODEL, {"input": x[:rows]}) for rows in (1, 20))  # 3 and 63 kB
        self.seen = {1: [], 2: [], 3: []}  # the times of answers, by replica
        self.failures, self.longest, self.lock = [], 0.0, threading.Lock()
        self.answers = [0] * callers
        self.threads = [threading.Thread(target=self.call, args=(n,), daemon=True) for n in range(callers)]
        for thread in self.threads:
            thread.start()

    def call(self, caller):
        with grpc.insecure_channel(self.target, options=self.options) as channel:
            request = self.small if caller else self.large
            predict = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
            while not self.leaving.is_set():
                start = time.monotonic()
                try:
                    version = predict(request, timeout=30, wait_for_ready=True).model_spec.version.value
                except grpc.RpcError as error:
                    self.failures.append(f"{error.code()}: {error.details()}")
                    continue
                end = time.monotonic()
                with self.lock:
                    self.seen[version].append(end)
                    self.answers[caller] += 1
                    self.longest = max(self.longest, end - start)

    def wait_for(self, *replicas):
        """Until each of them has answered a call from now on."""
        start = time.monotonic()
        while not all(self.seen[n] and self.seen[n][-1] > start for n in replicas):
            assert time.monotonic() < start + START_SECONDS, f"no answers of {replicas}; failures {self.failures[:3]}"
            self.leaving.wait(.01)

    def wait_without(self, replica, calls):
        """Until each caller has had `calls` answers in a row from others: none waits for that replica any more."""
        end = time.monotonic() + START_SECONDS
        before, mine = list(self.answers), len(self.seen[replica])
        while any(answers < at + calls for answers, at in zip(self.answers, before)):
            assert time.monotonic() < end, f"replica {replica} is still waited for; failures {self.failures[:3]}"
            self.leaving.wait(.01)
            if len(self.seen[replica]) != mine:
                before, mine = list(self.answers), len(self.seen[replica])

    def close(self):
        self.leaving.set()
        for thread in self.threads:
            thread.join()

    def check(self, what):
        calls = sum(len(times) for times in self.seen.values())
        print(f"{what}: {calls} calls, {len(self.failures)} failed, longest {self.longest:.2f} s, "
              f"answered by {[len(times) for times in self.seen.values()]}")
        assert not self.failures, self.failures[:5]


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    replicas = Replicas(tmp_path_factory.mktemp("replicas"))
    yield replicas
    replicas.close()


@pytest.fixture(params=WAYS)
def load(request, replicas, tmp_path):
    balancer = Balancer(request.param, replicas.port, tmp_path)
    load = Load(request.param, balancer.target)
    try:
        load.wait_for(1, 2, 3)
        yield load
    finally:
        load.close()
        balancer.close()


def test_no_call_fails_while_all_are_restarted(request, replicas, load):
    for _ in range(ROUNDS):
        for n in (1, 2, 3):
            replicas.restart(n)
            load.wait_for(1, 2, 3)
    load.close()
    load.check(f"{request.node.name}, {ROUNDS} x 3 restarts")


def test_no_call_fails_when_one_is_killed(request, replicas, load):
    replicas.floed[2].kill()
    shutil.rmtree(replicas.floed[2].folder)
    load.wait_without(2, 300)
    replicas.floed[2] = replicas.started(2)
    load.wait_for(1, 2, 3)
    load.close()
    load.check(request.node.name)


def test_a_stopped_one_is_taken_out(request, replicas, load):
    process = replicas.floed[3].process
    process.send_signal(signal.SIGSTOP)
    try:
        load.wait_without(3, 300)
    finally:
        process.send_signal(signal.SIGCONT)
    load.wait_for(1, 2, 3)
    load.close()
    load.check(request.node.name)


@pytest.mark.parametrize("way", FILES)
def test_a_proxy_without_replicas_answers_with_a_grpc_status(way, tmp_path):
    balancer = Balancer(way, free_port(), tmp_path)
    try:
        with Client(balancer.target) as client, pytest.raises(grpc.RpcError) as info:
            client.prediction.Predict(predict_request(MODEL, {"input": digits()[:1]}), timeout=30, wait_for_ready=True)
        assert info.value.code() == grpc.StatusCode.UNAVAILABLE
        assert info.value.details().startswith("no replica")  # not "Received http2 header with status"
    finally:
        balancer.close()
