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
    # Of unsigned numbers between bounds TensorFlow's CPUs have no kernel.
    draws(c, seed)
    c.op("StatelessRandomGetKeyCounter", seed)
    c.op("StatelessRandomGetKeyCounter", np.array([3, -4], np.int32), case="int32")
    c.op("StatelessRandomGetKeyCounterAlg", seed)
    c.op("StatelessRandomGetAlg")


def of(dtype, values):
    """Numbers of a type of TensorFlow."""
    return np.array(values).astype(tf.as_dtype(dtype).as_numpy_dtype)


def draws(c, seed):
    """Distributions with parameters. Counts are exact; other numbers are functions of logarithms."""
    shape = np.array([5, 2, 4], np.int32)
    for dtype in ("float16", "float32", "float64"):
        alpha = of(dtype, [[0.3, 1, 2.5, 40]])
        c.op("StatelessRandomGammaV2", np.array([5, 1, 4], np.int32), seed, Feed(alpha), case=dtype)
        c.op("StatelessRandomGammaV3", np.array([5, 1, 4], np.int32), KEY, COUNTER, ALG, Feed(alpha), case=dtype)
    c.op("StatelessRandomGammaV2", np.array([300], np.int64), seed, np.float32(0.9), case="scalar")
    c.op("StatelessRandomGammaV2", np.array([0, 2], np.int32), seed, np.float32([1, 2]), case="empty")
    c.op("StatelessRandomGammaV2", np.array([2, 3], np.int32), seed, np.float32([1, 2]), case="other", fails="shape")
    odd = np.float32([-1, 0, np.inf, np.nan])
    c.op("StatelessRandomGammaV2", np.array([2, 4], np.int32), seed, odd, case="odd")
    for dtype in ("float16", "float32", "float64", "int32", "int64"):
        kind = {"dtype": tf.as_dtype(dtype)}
        rates = [0, 1, 3, 9, 10, 11, 60, 500]
        c.op("StatelessRandomPoisson", np.array([20, 8], np.int32), seed, of(dtype, rates), case=dtype, **kind)
        kind = {"dtype": tf.as_dtype(dtype)}
        c.op("StatelessRandomPoisson", SHAPE, seed, np.float32(0.5), case=f"scalar_{dtype}", **kind)
        counts, chances = np.float32([[-1], [3], [60], [1000]]), np.float32([0, 0.1, 0.4, 0.5, 0.75, 1])
        draw = np.array([6, 4, 6], np.int32)
        c.op("StatelessRandomBinomial", draw, seed, Feed(counts), chances, case=dtype, **kind)
    c.op("StatelessRandomPoisson", np.array([3, 3], np.int32), seed, np.float32([-1, 1e30, np.inf]), dtype=tf.float32)
    for dtype in ("float16", "float64"):
        counts, chances = of(dtype, [[3], [60], [999]]), of(dtype, [0.1, 0.4, 0.76])
        c.op("StatelessRandomBinomial", np.array([6, 3, 3], np.int64), seed, counts, chances, case=f"of_{dtype}")
    c.op("StatelessRandomBinomial", SHAPE, seed, np.float32(5), np.float32([0.5, 0.5]), case="other", fails="shape")
    for dtype in FLOATS:
        logits = of(dtype, [[0.1, 2, -1, 0], [-np.inf, 3, 3, -np.inf], [np.nan, 1, np.inf, 1]])
        for index in (tf.int32, tf.int64):
            case = f"{dtype}_{index.name}"
            c.op("StatelessMultinomial", Feed(logits), np.int32(33), seed, output_dtype=index, case=case)
    c.op("StatelessMultinomial", Feed(np.float32([[1, 2]])), np.int32(0), seed, case="none")
    for dtype in ("float32", "float64"):
        bounds = [(-2, 2), (-np.inf, -1), (0.5, np.inf), (2, 2.5), (-4, -3), (-0.3, 0.3), (1, 8), (-1, 9)]
        low, high = of(dtype, [b[0] for b in bounds]), of(dtype, [b[1] for b in bounds])
        of_bounds = (of(dtype, [[0], [0.25]]), of(dtype, 1.5), low, high)
        c.op("StatelessParameterizedTruncatedNormal", np.array([9, 2, 8], np.int32), seed, *of_bounds, case=dtype)
        wrong = (of(dtype, 0), of(dtype, -1), of(dtype, 0), of(dtype, 1))
        c.op("StatelessParameterizedTruncatedNormal", shape, seed, *wrong, case=f"{dtype}_wrong", fails="deviation")
        thin = (of(dtype, 0), of(dtype, 1), of(dtype, -1e-30), of(dtype, 1e30))
        c.op("StatelessParameterizedTruncatedNormal", shape, seed, *thin, case=f"{dtype}_wide")
