"""Random numbers from a given seed: TensorFlow's bits."""

import numpy as np
import tensorflow as tf

from harness import FLOATS, Feed

SHAPE = np.array([3, 7], np.int32)
SEED = np.array([12345, -678], np.int64)
KEY, COUNTER, ALG = np.array([987654321012345], np.uint64), np.array([5, 2**63 + 9], np.uint64), np.int32(1)


def cases(c):
    """All of the family."""
    seed = Feed(SEED, [2])
    for dtype in FLOATS:
        kind = {"dtype": tf.as_dtype(dtype)}
        for op in ("RandomUniform", "RandomNormal", "TruncatedNormal"):
            # The logarithm and the sine of other libraries differ in the last bit.
            exact = {"rtol": 0, "atol": 0} if op == "RandomUniform" else {}
            c.op(f"Stateless{op}", SHAPE, seed, case=dtype, **kind, **exact)
            c.op(f"Stateless{op}V2", SHAPE, KEY, Feed(COUNTER, [2]), ALG, case=dtype, **kind, **exact)
    c.op("StatelessRandomUniform", SHAPE, np.array([1, 2], np.int32), dtype=tf.float32, case="int32_seed")
    c.op("StatelessRandomUniform", np.array([], np.int32), seed, dtype=tf.float32, case="scalar")
    c.op("StatelessRandomUniform", np.array([0, 3], np.int64), seed, dtype=tf.float32, case="empty")
    c.op("StatelessTruncatedNormal", np.array([1001], np.int32), seed, dtype=tf.float32, case="many")
    c.op("StatelessRandomUniform", Feed(SHAPE, [None]), seed, dtype=tf.float32, case="shape_fed")
    wrap = np.array([2**64 - 2, 7], np.uint64)
    c.op("StatelessRandomUniformV2", SHAPE, KEY, wrap, ALG, dtype=tf.float32, case="wraps", rtol=0, atol=0)
    auto = np.int32(3)
    c.op("StatelessRandomUniformV2", SHAPE, KEY, COUNTER, auto, dtype=tf.float32, case="auto", rtol=0, atol=0)
    for dtype in ("int32", "int64"):
        low, high = np.array(-9, dtype), np.array(100, dtype)
        c.op("StatelessRandomUniformInt", SHAPE, seed, low, high, case=dtype)
        c.op("StatelessRandomUniformIntV2", SHAPE, KEY, COUNTER, ALG, low, high, case=dtype)
        limits = np.iinfo(dtype)
        low, high = np.array(limits.min, dtype), np.array(limits.max, dtype)
        c.op("StatelessRandomUniformInt", SHAPE, seed, low, high, case=f"{dtype}_all")
        c.op("StatelessRandomUniformInt", SHAPE, seed, high, low, case=f"{dtype}_crossed", fails="minval")
    for dtype in ("int32", "int64", "uint32", "uint64"):
        kind = {"dtype": tf.as_dtype(dtype)}
        c.op("StatelessRandomUniformFullInt", SHAPE, seed, case=dtype, **kind)
        c.op("StatelessRandomUniformFullIntV2", SHAPE, KEY, COUNTER, ALG, case=dtype, **kind)
    c.op("StatelessRandomGetKeyCounter", seed)
    c.op("StatelessRandomGetKeyCounter", np.array([3, -4], np.int32), case="int32")
    c.op("StatelessRandomGetKeyCounterAlg", seed)
    c.op("StatelessRandomGetAlg")
