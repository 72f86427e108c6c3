"""Ragged tensors: dense values under nested row splits."""

import numpy as np
import tensorflow as tf

from harness import Feed


def ranges(c):
    """Rows of numbers."""
    for dtype in ("int32", "int64", "float32", "float64"):
        starts, limits = np.array([0, 5, 8]).astype(dtype), np.array([3, 5, 0]).astype(dtype)
        deltas = np.array([1, 1, -3]).astype(dtype)
        c.op("RaggedRange", Feed(starts), Feed(limits), Feed(deltas), Tsplits=tf.int64)
    c.op("RaggedRange", np.float32(0), Feed(np.float32(1)), np.float32(0.3), Tsplits=tf.int32, case="scalars")
    c.op("RaggedRange", Feed(np.int32(0)), np.int32(3), np.int32(0), case="endless", fails="delta")


def gathers(c):
    """Rows at indices."""
    outer, inner = np.array([0, 2, 2, 3]), np.array([0, 2, 2, 5])
    for dtype in ("float32", "string", "int16"):
        for splits in ("int32", "int64"):
            c.op(
                "RaggedGather",
                [Feed(outer.astype(splits)), Feed(inner.astype(splits))],
                c.feed(dtype, 5, 2),
                Feed(np.array([[2, 0], [0, 1]], np.int32)),
                OUTPUT_RAGGED_RANK=3,
                case=f"{splits}_splits",
            )
    c.op(
        "RaggedGather",
        [outer],
        c.feed("float32", 3),
        Feed(np.array([3], np.int64)),
        OUTPUT_RAGGED_RANK=1,
        case="outside",
        fails="not in",
    )


def dense(c):
    """Padded and cut to one shape."""
    splits = np.array([0, 2, 2, 5], np.int64)
    for dtype in ("float32", "string", "bool"):
        c.op(
            "RaggedTensorToTensor",
            np.array([-1, -1], np.int64),
            c.feed(dtype, 5),
            c.data(dtype, 1)[0],
            [Feed(splits)],
            row_partition_types=["ROW_SPLITS"],
            case=dtype,
        )
    for shape in ([-1, 1], [2, -1], [5, 4]):
        c.op(
            "RaggedTensorToTensor",
            np.array(shape, np.int32),
            c.feed("float32", 5),
            np.float32(-1),
            [np.int64(4), Feed(np.array([0, 0, 2, 2, 3], np.int64))],
            row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
            case="rowids_" + "_".join(str(d).replace("-", "m") for d in shape),
        )
    c.op(
        "RaggedTensorToTensor",
        np.array([-1, -1, -1, 2], np.int64),
        c.feed("float32", 5, 2),
        c.data("float32", 2),
        [np.array([0, 2, 2, 3], np.int64), Feed(splits)],
        row_partition_types=["ROW_SPLITS", "ROW_SPLITS"],
        case="nested",
    )


def variants(c):
    """Through handles and back."""

    def through(batched, levels, rank):
        def build(enter):
            splits = [enter(f"splits{k}", Feed(np.array(s, np.int64))) for k, s in enumerate(levels)]
            values = enter("values", c.feed("float32", 5, 2))
            handle = tf.raw_ops.RaggedTensorToVariant(
                rt_nested_splits=splits, rt_dense_values=values, batched_input=batched
            )
            back = tf.raw_ops.RaggedTensorFromVariant(
                encoded_ragged=handle,
                input_ragged_rank=rank,
                output_ragged_rank=len(levels),
                Tvalues=tf.float32,
                Tsplits=tf.int64,
            )
            return [*back.output_nested_splits, back.output_dense_values]

        return build

    levels = [[0, 2, 2, 3], [0, 2, 2, 5]]
    c.graph("variant_whole", through(False, levels, 2))
    c.graph("variant_rows", through(True, levels, 1))
    c.graph("variant_inferred", through(True, levels[1:], -1))


def sparse(c):
    """As indices, values and a shape."""
    for dtype in ("float32", "string"):
        c.op(
            "RaggedTensorToSparse",
            [Feed(np.array([0, 2, 2, 3], np.int64)), Feed(np.array([0, 2, 2, 5], np.int64))],
            c.feed(dtype, 5, 2),
            case="nested",
        )


def cases(c):
    """The family."""
    for part in (ranges, gathers, dense, variants, sparse):
        part(c)
