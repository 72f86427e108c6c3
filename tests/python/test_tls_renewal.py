"""A running floed takes new certificates, and keeps the old one when the new files are wrong."""
import contextlib
import http.client
import os
import shutil
import signal
import ssl
import threading

import pytest

import conformance


def served(target):
    """The certificate that a new connection gets."""
    host, port = target.address.split(":")
    return ssl.get_server_certificate((host, int(port)), timeout=10)


def ready(target):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(target.address, context=context, timeout=10)
    connection.request("GET", "/readyz")
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


def certificate(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


def replace(new, tls):
    """Each file in one step, as programs that renew certificates do."""
    for source, target in zip(new, tls):
        shutil.copy(source, target + ".new")
        os.rename(target + ".new", target)


@contextlib.contextmanager
def changing(source, target):
    """Meanwhile the file is never the same in two polls, which use only what is: empty lines come behind the certificate."""
    over = threading.Event()

    def run():
        text, lines = certificate(source), 0
        while not over.wait(0.1):
            lines += 1
            with open(target + ".next", "w", encoding="ascii") as f:
                f.write(text + "\n" * (1 + lines))
            os.rename(target + ".next", target)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("how", ["SIGHUP", "poll"])
def test_a_certificate_is_renewed_without_losing_a_connection(tmp_path, how):
    for folder in ("server", "newer"):
        (tmp_path / folder).mkdir()
    tls, newer = (conformance.make_certificates(str(tmp_path / folder)) for folder in ("server", "newer"))
    before = certificate(tls[0])
    with conformance.serve_floed(str(tmp_path), tls=tls) as (target, floed), target.channel() as old:
        assert served(target).strip() == before
        old.unary_unary(conformance.CHECK)(b"", timeout=30)
        with changing(newer[0], tls[0]) if how == "SIGHUP" else contextlib.nullcontext():
            replace(newer[:2], tls)
            if how == "SIGHUP":
                floed.process.send_signal(signal.SIGHUP)
            floed.wait_until(lambda: served(target).strip() == certificate(newer[0]))
        assert old.unary_unary(conformance.CHECK)(b"", timeout=30) == b"\x08\x01"
        assert ready(target)[0] == 200 and "renewed" not in ready(target)[1]


def test_metrics_are_scraped_over_tls(tmp_path):
    tls = conformance.make_certificates(str(tmp_path))
    with conformance.serve_floed(str(tmp_path), tls=tls) as (target, _), target.channel() as calls:
        calls.unary_unary(conformance.CHECK)(b"", timeout=30)
        context = ssl.create_default_context(cafile=tls[2])
        for path in ("/metrics", "/monitoring/prometheus/metrics"):
            scraper = http.client.HTTPSConnection("localhost", int(target.address.rsplit(":", 1)[1]), context=context, timeout=10)
            with contextlib.closing(scraper):
                scraper.request("GET", path)
                reply = scraper.getresponse()
                assert reply.status == 200 and reply.headers["content-type"].startswith("text/plain")
                assert b"# TYPE " in reply.read()
        plain = http.client.HTTPConnection(target.address, timeout=10)
        with contextlib.closing(plain), pytest.raises((http.client.HTTPException, OSError)):
            plain.request("GET", "/metrics")
            plain.getresponse()


def test_wrong_files_keep_the_old_certificate(tmp_path):
    for folder in ("server", "other"):
        (tmp_path / folder).mkdir()
    tls, other = (conformance.make_certificates(str(tmp_path / folder)) for folder in ("server", "other"))
    before = certificate(tls[0])
    with conformance.serve_floed(str(tmp_path), tls=tls) as (target, floed):
        replace(other[1:2], tls[1:2])  # a key of another certificate
        floed.process.send_signal(signal.SIGHUP)
        floed.wait_until(lambda: "not renewed" in ready(target)[1])
        assert ready(target)[0] == 200
        assert served(target).strip() == before
        assert tls[1] in floed.log()
