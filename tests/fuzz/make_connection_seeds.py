#!/usr/bin/env python3
"""Writes the seeds of the connection fuzzer: make_connection_seeds.py FOLDER."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python"))
import http2  # noqa: E402
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame  # noqa: E402


def call(stream, path, *messages, end=True, more=()):
    frames = frame(HEADERS, END_HEADERS, stream, http2.call_headers(path, more=more))
    for i, payload in enumerate(messages, 1):
        frames += frame(DATA, END_STREAM if end and i == len(messages) else 0, stream, http2.message(payload))
    return frames


def plain(stream, method, path, body=b""):
    head = b"".join(http2.literal(name, value) for name, value in (
        (":method", method), (":scheme", "http"), (":path", path), (":authority", "a")))
    frames = frame(HEADERS, END_HEADERS | (0 if body else END_STREAM), stream, head)
    return frames + (frame(DATA, END_STREAM, stream, body) if body else b"")


START = http2.PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0)
SEEDS = {
    "unary": START + call(1, "/t/Echo", b"hello"),
    "two": START + call(1, "/t/Echo", b"one") + call(3, "/t/Echo", b"two"),
    "stream": START + call(1, "/t/Chat", b"a", b"b", b"c"),
    "open": START + call(1, "/t/Chat", b"a", end=False),
    "unknown": START + call(1, "/t/None", b"x"),
    "deadline": START + call(1, "/t/Echo", b"x", more=(("grpc-timeout", "1n"),)),
    "gzip": START + call(1, "/t/Echo", b"x", more=(("grpc-encoding", "gzip"),)),
    "reset": START + call(1, "/t/Chat", b"a", end=False) + frame(RST_STREAM, 0, 1, b"\0\0\0\x08"),
    "ping": START + frame(PING, 0, 0, b"12345678") + frame(WINDOW_UPDATE, 0, 0, b"\0\0\1\0"),
    "get": START + plain(1, "GET", "/hello?a=b"),
    "post": START + plain(1, "POST", "/echo/name", b"body"),
    "h1": b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo/b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "tls": bytes.fromhex("1603010200010001fc0303"),
}

os.makedirs(sys.argv[1], exist_ok=True)
for name, data in SEEDS.items():
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(data)
