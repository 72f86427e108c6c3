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


def empty_rows(c):
    """Ragged rows without values get the default."""
    rows = Feed(np.array([0, 0, 3, 4]), [None])
    for dtype in ("float32", "int64", "string", "bool"):
        default = c.data(dtype, 1).reshape(())
        c.op("RaggedFillEmptyRows", rows, c.feed(dtype, 4), Feed(np.int64(6), []), default, case=dtype)
    c.op("RaggedFillEmptyRows", Feed(np.array([0, 1]), [None]), c.feed("float32", 2), np.int64(2), np.float32(9), case="full")
    c.op("RaggedFillEmptyRows", Feed(np.zeros(0, np.int64), [None]), c.feed("float32", 0), np.int64(2), np.float32(9), case="none")
    c.op("RaggedFillEmptyRows", rows, c.feed("float32", 4), np.int64(4), np.float32(9), case="outside", fails="4")


def crosses(c):
    """Crossed features: ragged, sparse and dense in any order, as text and hashed."""
    texts, splits = Feed(np.array(["a", "b", "", "häß"], object), [None]), Feed(np.array([0, 2, 2, 4]), [None])
    numbers, short = Feed(np.array([7, -8, 9]), [None]), Feed(np.array([0, 1, 1, 3]), [None])
    indices = Feed(np.array([[0, 0], [0, 1], [2, 0]]), [None, 2])
    words, shape = Feed(np.array(["x", "y", "z"], object), [None]), np.array([3, 2])
    dense = Feed(np.array([[1, 2], [3, 4], [5, 6]]))
    given = {
        "ragged": ([texts, numbers], [splits, short], [], [], [], [], "RR"),
        "mixed": ([texts], [splits], [indices], [words], [shape], [dense], "DRS"),
        "other": ([texts, numbers], [splits, short], [indices], [words], [shape], [dense], "RSDR"),
        "dense": ([], [], [], [], [], [dense, dense], "DD"),
        "one": ([numbers], [short], [], [], [], [], "R"),
    }
    for name, (*inputs, order) in given.items():
        more = {"input_order": order, "hash_key": 956888297470, "num_buckets": 0}
        text = {"hashed_output": False, "out_values_type": tf.string, "out_row_splits_type": tf.int64}
        c.op("RaggedCross", *inputs, **more, **text, case=name)
        for buckets in (0, 100):
            hashed = {**more, "num_buckets": buckets, "hashed_output": True, "out_values_type": tf.int64, "out_row_splits_type": tf.int64}
            c.op("RaggedCross", *inputs, **hashed, case=f"{name}_{buckets}")
        # TensorFlow ends where the splits differ in type.
        values, all_splits, *rest = inputs
        narrow = [Feed(s.value.astype(np.int32), [None]) for s in all_splits]
        c.op("RaggedCross", values, narrow, *rest, **{**more, **text, "out_row_splits_type": tf.int32}, case=f"{name}_narrow")
    more = {"input_order": "RD", "hash_key": 1, "num_buckets": 0, **text}
    few = Feed(np.array([[1]]))
    c.op("RaggedCross", [texts], [splits], [], [], [], [few], **more, case="rows", fails="rows")
    wrong = Feed(np.array([0, 2, 5]), [None])
    c.op("RaggedCross", [texts], [wrong], [], [], [], [dense], **more, case="splits", fails="splits")


def cases(c):
    """The family."""
    for part in (ranges, gathers, dense, variants, sparse, empty_rows, crosses):
        part(c)
