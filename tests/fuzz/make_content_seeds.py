#!/usr/bin/env python3
"""Writes the seeds of the content fuzzer: small images, Examples, CSV, tensors and packed text, behind the number of the op that reads them.

    make_content_seeds.py FOLDER        needs TensorFlow; the seeds in corpus/content were made with 2.21
"""
import gzip
import pathlib
import sys
import zlib

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "op_cases"))
from examples import FIXED, LISTS, ODD
from image_files import GIFS, PNGS, bmp, jpeg, picture
from sequences import WHOLE

# The places of the ops in content_fuzzer.cc.
JPEG, IMAGE, IMAGE4, PNG16, CROP, BMP, SIZE, SPARSE, DENSE, RAGGED, CSV, GIF, TENSOR, WORDS, ZLIB, GZIP, SEQUENCE = range(17)


def seeds():
    """Names and bytes."""
    colour, small = jpeg(9, 8, 3), jpeg(9, 8, 3, progressive=True)
    for name, op in (("jpeg", JPEG), ("image", IMAGE), ("crop", CROP), ("size", SIZE)):
        yield f"{name}_colour", op, colour
        yield f"{name}_progressive", op, small
        yield f"{name}_grey", op, jpeg(8, 8, 1)
    for name, data in PNGS.items():
        yield f"png_{name}", PNG16, data
        yield f"png4_{name}", IMAGE4, data
    yield "png_filtered", IMAGE, tf.io.encode_png(picture(5, 6, 3)).numpy()
    for bits, rows in ((8, b"\1\2\3\4"), (24, b"\1\2\3\0"), (32, b"\1\2\3\4")):
        yield f"bmp_{bits}", BMP, bmp(1, 1, bits, rows)
    for name, values in (("floats", [[1.5, 2.0]]), ("none", np.zeros((0, 3), np.float32))):
        yield f"tensor_{name}", TENSOR, tf.io.serialize_tensor(tf.constant(values)).numpy()
    listed = tf.make_tensor_proto([1.5, 2.0], shape=[3])
    listed.ClearField("tensor_content")
    listed.float_val.extend([1.5, 2.0])
    yield "tensor_listed", TENSOR, listed.SerializeToString()
    yield "words", WORDS, tf.io.serialize_tensor(tf.constant(["a", "", "words"])).numpy()
    for name, data in GIFS.items():
        yield f"gif_{name}", GIF, data
    for name, op in (("sparse", SPARSE), ("dense", DENSE), ("ragged", RAGGED)):
        for i, data in enumerate(FIXED + LISTS + ODD):
            yield f"{name}_{i}", op, data
    for i, data in enumerate(WHOLE):
        yield f"sequence_{i}", SEQUENCE, data
    text = b"a text that is packed " * 20
    yield "zlib", ZLIB, zlib.compress(text)
    yield "gzip", GZIP, gzip.compress(text, mtime=0)
    yield "csv", CSV, b'12,"a,""b"""\n'
    yield "csv_default", CSV, b","


def main():
    """Writes a file for each."""
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, op, data in seeds():
        (folder / name).write_bytes(bytes([op]) + data)


if __name__ == "__main__":
    main()
