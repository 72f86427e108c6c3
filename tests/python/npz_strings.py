"""Arrays in the .npz files of floectl: strings are one uint8 array, each a little-endian u32 length and its bytes."""
import struct

import numpy as np


def encode(array):
    array = np.asarray(array)
    if array.dtype.kind not in "SUO":
        return array
    parts = [x.encode() if isinstance(x, str) else bytes(x) for x in array.ravel()]
    return np.frombuffer(b"".join(struct.pack("<I", len(p)) + p for p in parts), np.uint8)


def decode(array):
    data, out = array.tobytes(), []
    while data:
        size, = struct.unpack_from("<I", data)
        out.append(data[4:4 + size])
        data = data[4 + size:]
    return out
