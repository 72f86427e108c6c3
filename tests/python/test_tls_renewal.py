"""A running floed takes new certificates, and keeps the old one when the new files are wrong."""
import http.client
import os
import shutil
import signal
import ssl

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


@pytest.mark.parametrize("how", ["SIGHUP", "poll"])
def test_a_certificate_is_renewed_without_losing_a_connection(tmp_path, how):
    for folder in ("server", "newer"):
        (tmp_path / folder).mkdir()
    tls, newer = (conformance.make_certificates(str(tmp_path / folder)) for folder in ("server", "newer"))
    before = certificate(tls[0])
    with conformance.serve_floed(str(tmp_path), tls=tls) as (target, floed), target.channel() as old:
        assert served(target).strip() == before
        old.unary_unary(conformance.CHECK)(b"", timeout=30)
        replace(newer[:2], tls)
        if how == "SIGHUP":
            floed.process.send_signal(signal.SIGHUP)
        floed.wait_until(lambda: served(target).strip() == certificate(newer[0]))
        assert old.unary_unary(conformance.CHECK)(b"", timeout=30) == b"\x08\x01"
        assert ready(target)[0] == 200 and "renewed" not in ready(target)[1]


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
