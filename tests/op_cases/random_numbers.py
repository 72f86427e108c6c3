"""Random ops: shape and dtype exactly, values by their bounds, mean and deviation."""

import numpy as np
import tensorflow as tf

COUNT = np.array([50, 40], np.int32)
UNIFORM = (0, 1, 0.5, 12**-0.5)
NORMAL = (-7, 7, 0, 1)
TRUNCATED = (-2, 2, 0, 0.8796)


def cases(c):
    """All of the family."""
    for dtype in (tf.float32, tf.float64, tf.float16):
        c.op("RandomUniform", COUNT, dtype=dtype, bounds=UNIFORM, case=dtype.name)
        c.op("RandomStandardNormal", COUNT, dtype=dtype, bounds=NORMAL, case=dtype.name)
        c.op("TruncatedNormal", COUNT, dtype=dtype, bounds=TRUNCATED, case=dtype.name)
    deviation = lambda n: ((n * n - 1) / 12) ** 0.5
    for kind in (np.int32, np.int64):
        c.op(
            "RandomUniformInt", COUNT, kind(-3), kind(8), bounds=(-3, 7, 2, deviation(11)), case=kind.__name__
        )
    c.op("RandomShuffle", np.arange(2000, dtype=np.float32).reshape(2000) * 0 + 3, bounds=(3, 3, 3, 0))
    c.op(
        "RandomShuffle", np.arange(200, dtype=np.int32), bounds=(0, 199, 99.5, deviation(200)), case="counted"
    )
    logits = np.log(np.array([[1, 2, 1]], np.float32))
    c.op("Multinomial", logits, np.int32(2000), bounds=(0, 2, 1, 0.5**0.5))
    c.op(
        "Multinomial",
        logits.astype(np.float64),
        np.int32(2000),
        output_dtype=tf.int32,
        bounds=(0, 2, 1, 0.5**0.5),
    )
    distorted(c)


def distorted(c):
    """Boxes to crop by: only ranges and shapes are known of these."""
    size, box = np.array([40, 60, 3], np.int32), np.array([[[0.1, 0.2, 0.8, 0.9]]], np.float32)
    for op, more in (
        ("SampleDistortedBoundingBox", ()),
        ("SampleDistortedBoundingBoxV2", (np.float32(0.1),)),
    ):
        options = {"aspect_ratio_range": [1, 1], "area_range": [1, 1]}
        if not more:
            options["min_object_covered"] = 0.1
        c.op(op, size, box, *more, bounds=(-1, 60, 0, 1e9), **options)
