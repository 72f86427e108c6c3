"""HTTP/2 by hand: what a client can do that keeps to no rule. Plain sockets, headers without compression."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 4, 5
PREDICT = "/tensorflow.serving.PredictionService/Predict"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def integer(value, prefix_bits, first=0):
    """HPACK's integers (RFC 7541, 5.1)."""
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = bytearray([first | most]), value - most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    out.append(value)
    return bytes(out)


def literal(name, value):
    """A header that enters no table."""
    name, value = (text.encode() if isinstance(text, str) else text for text in (name, value))
    return b"\x00" + integer(len(name), 7) + name + integer(len(value), 7) + value


def call_headers(path=PREDICT, more=()):
    return b"".join(literal(name, value) for name, value in (
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
        ("te", "trailers"), ("content-type", "application/grpc"), *more))


def message(payload, compressed=False):
    """gRPC's frame around a message."""
    return struct.pack(">BI", compressed, len(payload)) + payload


class Connection:
    """One connection. It reads nothing unless asked to, and grants the server `window` bytes a stream."""

    def __init__(self, target, settings=((INITIAL_WINDOW_SIZE, 65535),), acknowledge=True, timeout=20, receive_buffer=0,
                 source=None):
        host, port = target.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind(source)
        self.socket.settimeout(timeout)
        self.socket.connect((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.next = 1
        # What the server lets us send: of the connection, of a new stream, of those that have been sent to.
        self.window, self.first_window, self.windows = 65535, 65535, {}
        self.waiting = []  # frames that came while data() waited for a window
        payload = b"".join(struct.pack(">HI", key, value) for key, value in settings)
        self.acknowledge = acknowledge
        self.send(PREFACE + frame(SETTINGS, 0, 0, payload))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def stream(self):
        """The number of a stream of the client's that was not used yet."""
        number, self.next = self.next, self.next + 2
        return number

    def open(self, headers=None, end=False):
        """A call whose message is still to come."""
        stream = self.stream()
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, headers or call_headers()))
        return stream

    def grant(self, stream, window):
        self.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", window)))

    def data(self, stream, payload, end=False):
        """In frames of the size that every server takes; reads what comes while the server's windows are closed."""
        payload = memoryview(payload)
        while True:
            room = min(len(payload), self.window, self.windows.setdefault(stream, self.first_window))
            last = room == len(payload)
            if room > 0 or last:
                starts = range(0, room, 16384) or (0,)
                self.send(b"".join(frame(DATA, END_STREAM if end and last and at == starts[-1] else 0, stream,
                                         bytes(payload[at:min(room, at + 16384)])) for at in starts))
                self.window -= room
                self.windows[stream] -= room
                payload = payload[room:]
            if last:
                return
            if min(self.window, self.windows[stream]) <= 0:
                came = self._read()
                if came is None:
                    raise ConnectionError("the server closed the connection")
                self.waiting.append(came)
                if came[0] == RST_STREAM and came[2] == stream:
                    return  # it was answered without the rest

    def receive(self):
        """The next frame as (kind, flags, stream, payload); None at the end of the connection."""
        return self.waiting.pop(0) if self.waiting else self._read()

    def _note(self, kind, flags, stream, payload):
        if kind == WINDOW_UPDATE and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == WINDOW_UPDATE:
            self.windows[stream] = self.windows.get(stream, self.first_window) + int.from_bytes(payload, "big")
        elif kind == SETTINGS and not flags & ACK:
            for key, value in struct.iter_unpack(">HI", payload):
                if key == INITIAL_WINDOW_SIZE:
                    self.windows = {s: w + value - self.first_window for s, w in self.windows.items()}
                    self.first_window = value
            if self.acknowledge:
                self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))

    def _read(self):
        head = self._exactly(9)
        if head is None:
            return None
        size, (kind, flags, stream) = int.from_bytes(head[:3], "big"), struct.unpack(">BBI", head[3:])
        payload = self._exactly(size)
        if payload is None:
            return None
        self._note(kind, flags, stream, payload)
        return kind, flags, stream, payload

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(min(size - len(data), 1 << 20))
            if not part:
                return None
            data += part
        return data
