"""Ops that make, move, join and cut tensors."""

import numpy as np
import tensorflow as tf

from harness import COMPLEX, FLOATS, INTS, Feed

EVERY = FLOATS + INTS + COMPLEX + ("bool", "string")


def ints(*values, dtype=np.int32):
    """A constant vector."""
    return np.array(values, dtype)


def shapes(c):
    """Ops that change or tell shapes."""
    for dtype in EVERY:
        c.op("Reshape", c.feed(dtype, 4, 6), ints(-1, 3, 2))
    c.op("Reshape", c.feed("float32", 4, 6), ints(-1), case="flat")
    c.op("Reshape", c.feed("float32", 4, 6), ints(2, 12, dtype=np.int64), case="fixed")
    c.op("Reshape", c.feed("float32", 4, 6), ints(24, -1), case="column")
    c.op("Reshape", c.feed("float32", 1), ints(), case="scalar")
    c.op("Reshape", c.feed("float32", 0, 6), ints(-1, 2), case="empty")
    c.op("Reshape", c.feed("float32", 4, 6), Feed(ints(3, 8), [2]), case="fed_shape")
    c.op("Squeeze", c.feed("float32", 4, 1, 3, 1))
    c.op("Squeeze", c.feed("int64", 4, 1, 3, 1), axis=[-1], case="last")
    c.op("Squeeze", c.feed("string", 4, 1, 3, 1), axis=[1, 3], case="both")
    for axis in (0, 1, -1):
        c.op("ExpandDims", c.feed("float32", 4, 3), np.int32(axis), case=f"axis{axis}")
    c.op("ExpandDims", c.feed("bool", 4), np.int64(1))
    for kind in (tf.int32, tf.int64):
        c.op("Shape", c.feed("float32", 4, 3), out_type=kind, case=kind.name)
        c.op("Size", c.feed("string", 4, 3), out_type=kind, case=kind.name)
        c.op("ShapeN", [c.feed("float32", 4, 3), c.feed("float32", 2)], out_type=kind, case=kind.name)
    c.op("Rank", c.feed("float32", 4, 3, 1))
    c.op("BroadcastTo", c.feed("float32", 4, 1), ints(4, 3))
    c.op("BroadcastTo", c.feed("int64", 3), ints(2, 4, 3), case="outer")
    c.op("BroadcastTo", c.feed("string", 4, 1), ints(2, 4, 2, dtype=np.int64))
    c.op("Transpose", c.feed("float32", 4, 2, 3), ints(0, 2, 1))
    c.op("Transpose", c.feed("float32", 4, 2, 3), ints(2, 0, 1), case="outer")
    for dtype in ("int8", "float16", "complex128", "bool", "string", "int64"):
        c.op("Transpose", c.feed(dtype, 4, 3), ints(1, 0))
    c.op("Transpose", c.feed("float32", 4, 2, 3, 2, 1), ints(0, 4, 2, 1, 3, dtype=np.int64), case="five")
    for op in ("Identity", "StopGradient", "PreventGradient", "Snapshot"):
        c.op(op, c.feed("float32", 4, 3))
    c.op("IdentityN", [c.feed("float32", 4, 3), c.feed("string", 4)])
    c.op("PlaceholderWithDefault", c.data("float32", 2, 3), shape=[None, 3])
    c.graph("NoOp", lambda enter: after_nothing(enter("x", c.feed("float32", 4))))


def after_nothing(x):
    """A value behind a control edge."""
    with tf.control_dependencies([tf.raw_ops.NoOp()]):
        return tf.identity(x, name="out")


def make(c):
    """Ops that fill and count."""
    for dtype in EVERY:
        c.op("Fill", ints(2, 3), c.data(dtype), case=dtype)
    c.op("Fill", Feed(ints(3, 2), [2]), c.data("float32"), case="fed")
    c.op("Fill", ints(0, 3), c.data("float32"), case="empty")
    for op in ("ZerosLike", "OnesLike"):
        for dtype in ("float32", "int64", "bool", "complex64", "float16", "uint8"):
            c.op(op, c.feed(dtype, 4, 3))
    c.op("ZerosLike", c.feed("string", 4))
    c.op("Range", np.int32(2), np.int32(11), np.int32(3))
    c.op("Range", np.int64(5), np.int64(-4), np.int64(-2), case="down")
    c.op("Range", np.float32(0.5), np.float32(2.1), np.float32(0.3))
    c.op("Range", np.float64(0), np.float64(1), np.float64(0.25))
    c.op("Range", Feed(np.int32(1), []), Feed(np.int32(6), []), Feed(np.int32(2), []), case="fed")
    c.op("Range", np.int32(3), np.int32(3), np.int32(1), case="empty")


def join(c):
    """Ops that join and cut."""
    for dtype in EVERY:
        c.op("ConcatV2", [c.feed(dtype, 4, 2), c.feed(dtype, 4, 1)], np.int32(1), case=dtype)
    c.op("ConcatV2", [c.feed("float32", 4, 2), c.feed("float32", 3, 2)], np.int32(0), case="rows")
    c.op("ConcatV2", [c.feed("float32", 4, 2, 3), c.data("float32", 4, 2, 1)], np.int64(-1), case="last")
    c.op("ConcatV2", [c.feed("float32", 4, 0), c.feed("float32", 4, 3)], np.int32(1), case="empty")
    for axis in (0, 1, -1):
        c.op("Pack", [c.feed("float32", 4, 3), c.feed("float32", 4, 3)], axis=axis, case=f"axis{axis}")
        c.op(
            "Unpack",
            c.feed("float32", 2, 3, 2, declared=[2, 3, 2]),
            num=3 if axis == 1 else 2,
            axis=axis,
            case=f"axis{axis}",
        )
    c.op("Unpack", c.feed("float32", 4, 3), num=3, axis=1, case="columns")
    c.op("Pack", [c.feed("string", 4), c.feed("string", 4)], axis=1)
    c.op("Pack", [c.feed("int32", declared=[]), np.int32(7)], axis=0, case="scalars")
    c.op("Split", np.int32(1), c.feed("float32", 4, 6), num_split=3)
    c.op("Split", np.int32(0), c.feed("float32", 4, 6), num_split=2, case="rows")
    c.op("Split", np.int32(-1), c.feed("string", 4, 2), num_split=2, case="strings")
    c.op("SplitV", c.feed("float32", 4, 6), ints(1, 3, 2), np.int32(1), num_split=3)
    c.op("SplitV", c.feed("int64", 4, 6), ints(2, -1, dtype=np.int64), np.int32(-1), num_split=2)
    c.op("SplitV", c.feed("int32", 4, 6), ints(1, 3), np.int32(0), num_split=2, case="rows")
    for dtype in ("float32", "int8", "complex64", "string", "bool"):
        c.op("Tile", c.feed(dtype, 4, 3), ints(1, 2))
    c.op("Tile", c.feed("float32", 4, 3), ints(2, 1), case="rows")
    c.op("Tile", c.feed("float32", 4, 3), ints(1, 0), case="none")
    for dtype in ("float32", "int32", "bool", "complex64", "float16", "uint8"):
        c.op("Pad", c.feed(dtype, 4, 3), np.array([[0, 0], [1, 2]], np.int32))
    c.op("Pad", c.feed("float32", 4, 3), np.array([[1, 0], [0, 0]], np.int64), case="rows")
    c.op("PadV2", c.feed("float32", 4, 3), np.array([[0, 0], [2, 1]], np.int32), np.float32(9))
    c.op("PadV2", c.feed("int64", 4, 3), np.array([[0, 1], [2, 1]], np.int32), np.int64(-1), case="rows")
    for mode in ("REFLECT", "SYMMETRIC"):
        c.op(
            "MirrorPad",
            c.feed("float32", 4, 3, 3),
            np.array([[0, 0], [2, 1], [1, 2]], np.int32),
            mode=mode,
            case=mode.lower(),
        )
        c.op(
            "MirrorPad",
            c.feed("int32", 4, 3),
            np.array([[1, 2], [0, 0]], np.int32),
            mode=mode,
            case=mode.lower(),
        )


def cut(c):
    """Slices, gathers, scatters."""
    c.op("Slice", c.feed("float32", 4, 5), ints(0, 1), ints(-1, 3))
    c.op(
        "Slice", c.feed("string", 4, 5), ints(1, 0, dtype=np.int64), ints(2, -1, dtype=np.int64), case="rows"
    )
    c.op("Slice", c.feed("int8", 4, 5), Feed(ints(0, 2), [2]), ints(-1, 2), case="fed")
    slices = {
        "columns": (ints(0, 1), ints(0, 4), ints(1, 2), {"begin_mask": 1, "end_mask": 1}),
        "first": (ints(0), ints(1), ints(1), {"shrink_axis_mask": 1}),
        "last_column": (
            ints(0, -1),
            ints(0, 0),
            ints(1, 1),
            {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2},
        ),
        "backwards": (ints(0, -1), ints(0, -7), ints(1, -1), {"begin_mask": 1, "end_mask": 1}),
        "new_axis": (
            ints(0, 0),
            ints(0, 0),
            ints(1, 1),
            {"new_axis_mask": 2, "begin_mask": 1, "end_mask": 1},
        ),
        "ellipsis": (ints(0, 1), ints(0, 3), ints(1, 1), {"ellipsis_mask": 1}),
        "rows_backwards": (ints(-1), ints(-9), ints(-1), {}),
    }
    for name, (begin, end, strides, masks) in slices.items():
        c.op("StridedSlice", c.feed("float32", 4, 6), begin, end, strides, case=name, **masks)
        c.op("StridedSlice", c.feed("string", 4, 6), begin, end, strides, case=name, **masks)
    c.op("StridedSlice", c.feed("int64", 4, 6), Feed(ints(1, 2), [2]), ints(3, 5), ints(1, 1), case="fed")
    for op, more in (("Gather", ()), ("GatherV2", (np.int32(0),))):
        c.op(op, c.data("float32", 5, 3), Feed(ints(0, 4, 2, 4)), *more, case="table")
        c.op(op, c.feed("float32", 4, 3), ints(1, 0), *more, case="rows")
    c.op("GatherV2", c.feed("float32", 4, 3, 2), ints(2, 0, 0), np.int32(1))
    c.op("GatherV2", c.feed("string", 4, 3), np.int64(1), np.int32(-1), case="scalar")
    c.op(
        "GatherV2",
        c.feed("float32", 4, 5),
        Feed(np.array([[0, 1], [4, 4], [2, 3], [1, 0]], np.int64)),
        np.int32(1),
        batch_dims=1,
        case="batch",
    )
    c.op("GatherV2", c.data("int8", 5), Feed(ints(4, 4, 0, 1)), np.int32(0))
    c.op("GatherNd", c.data("float32", 3, 4, 2), Feed(np.array([[0, 1], [2, 3], [1, 1], [0, 0]], np.int32)))
    c.op("GatherNd", c.data("string", 3, 4), Feed(np.array([[0, 1], [2, 3]], np.int64)))
    c.op("GatherNd", c.feed("float32", 4, 3), np.array([[0], [2]], np.int32), case="rows")
    reorder(c)
    scatters(c)


def reorder(c):
    """Ops that mark, reverse and permute."""
    c.op("OneHot", Feed(ints(0, 2, -1, 5)), np.int32(4), np.float32(1), np.float32(0))
    c.op(
        "OneHot",
        Feed(np.array([[0, 2], [1, 9]], np.int64)),
        np.int32(3),
        np.int32(7),
        np.int32(-7),
        axis=1,
        case="inner",
    )
    c.op(
        "OneHot",
        Feed(np.array([0, 2, 1, 1], np.uint8)),
        np.int32(3),
        np.bool_(True),
        np.bool_(False),
        axis=0,
        case="outer",
    )
    c.op("ReverseV2", c.feed("float32", 4, 3, 2), ints(1, -1))
    c.op("ReverseV2", c.feed("string", 4, 3), ints(0), case="rows")
    c.op("ReverseV2", c.feed("bool", 4, 3), ints(1, dtype=np.int64))
    c.op("Roll", c.feed("float32", 4, 5), ints(2, -1), ints(1, 1))
    c.op("Roll", c.feed("int64", 4, 5), np.int32(-3), np.int32(0), case="rows")
    c.op("ReverseSequence", c.feed("float32", 4, 5, 2), Feed(ints(0, 5, 2, 1)), seq_dim=1, batch_dim=0)
    c.op(
        "ReverseSequence",
        c.feed("int32", 5, 4, declared=[5, None]),
        Feed(np.array([1, 5, 2, 3], np.int64)),
        seq_dim=0,
        batch_dim=1,
        case="time_major",
    )
    c.op("InvertPermutation", Feed(ints(2, 0, 3, 1)))
    c.op("InvertPermutation", Feed(ints(2, 0, 1, dtype=np.int64)))


def scatters(c):
    """Scatters and stitches."""
    index = np.array([[1], [3], [1]], np.int32)
    for (
        op
    ) in "TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMin TensorScatterMax".split():
        unique = np.array([[1], [3], [0]], np.int32) if op.endswith("Update") else index
        for dtype in ("float32", "int64"):
            c.op(op, c.feed(dtype, 4, 2), unique, c.feed(dtype, 3, 2))
    c.op("TensorScatterUpdate", c.feed("string", 4), np.array([[2]], np.int64), c.data("string", 1))
    c.op(
        "TensorScatterAdd",
        c.feed("float32", 4, 3),
        np.array([[0, 1], [2, 2]], np.int32),
        c.data("float32", 2),
        case="elements",
    )
    for dtype in ("float32", "int32", "complex64"):
        c.op("ScatterNd", index, c.feed(dtype, 3, 2), ints(5, 2), case=dtype)
    c.op(
        "ScatterNd",
        Feed(np.array([[0, 1], [2, 0]], np.int64)),
        c.feed("float64", 2),
        ints(3, 2, dtype=np.int64),
        case="elements",
    )
    c.op("SparseToDense", Feed(ints(0, 3)), ints(5), c.feed("float32", 2), np.float32(-1))
    c.op(
        "SparseToDense",
        np.array([[0, 1], [2, 0]], np.int64),
        ints(3, 2, dtype=np.int64),
        np.int64(6),
        np.int64(0),
        case="scalar",
    )
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        c.op(op, [ints(0, 4), ints(2, 1, 3)], [c.feed("float32", 2, 3), c.feed("float32", 3, 3)])
    c.op("DynamicStitch", [np.int32(1), ints(0, 2)], [c.feed("string"), c.feed("string", 2)], case="strings")


def space(c):
    """Between space, batch and depth; diagonals."""
    none = np.zeros((2, 2), np.int32)
    c.op("SpaceToBatchND", c.feed("float32", 2, 4, 6, 1), ints(2, 3), none)
    c.op("SpaceToBatchND", c.feed("int32", 2, 5, 2), ints(3), np.array([[0, 1]], np.int64), case="padded")
    c.op("BatchToSpaceND", c.feed("float32", 12, 2, 2, 1), ints(2, 3), none)
    c.op("BatchToSpaceND", c.feed("int32", 6, 2, 2), ints(3), np.array([[1, 2]], np.int32), case="cropped")
    for op, shape in (("SpaceToDepth", (2, 4, 2, 3)), ("DepthToSpace", (2, 2, 1, 8))):
        for dtype in ("float32", "int64", "uint8"):
            c.op(op, c.feed(dtype, *shape), block_size=2)
    c.op(
        "ExtractImagePatches",
        c.feed("float32", 2, 5, 5, 2),
        ksizes=[1, 3, 2, 1],
        strides=[1, 2, 1, 1],
        rates=[1, 1, 2, 1],
        padding="SAME",
    )
    c.op(
        "ExtractImagePatches",
        c.feed("int32", 2, 5, 5, 1),
        ksizes=[1, 2, 2, 1],
        strides=[1, 1, 1, 1],
        rates=[1, 2, 1, 1],
        padding="VALID",
    )
    for dtype in ("float32", "int32", "complex64", "bool"):
        c.op("MatrixBandPart", c.feed(dtype, 4, 3, 5), np.int64(1), np.int64(2))
        c.op("MatrixDiag", c.feed(dtype, 4, 3))
        c.op("MatrixDiagPart", c.feed(dtype, 4, 3, 5))
        c.op("MatrixSetDiag", c.feed(dtype, 4, 3, 5), c.feed(dtype, 4, 3))
    c.op("MatrixBandPart", c.feed("float32", 4, 4), np.int32(-1), np.int32(0), case="lower")
    for version in ("V2", "V3"):
        more = {} if version == "V2" else {"align": "LEFT_RIGHT"}
        c.op(
            f"MatrixDiag{version}",
            c.feed("float32", 4, 3, 3),
            ints(-1, 1),
            np.int32(-1),
            np.int32(-1),
            np.float32(7),
            **more,
        )
        c.op(
            f"MatrixDiag{version}",
            c.feed("int32", 4, 3),
            np.int32(1),
            np.int32(3),
            np.int32(5),
            np.int32(0),
            **more,
        )
        c.op(f"MatrixDiagPart{version}", c.feed("float32", 4, 3, 5), ints(-2, 1), np.float32(9), **more)
        c.op(f"MatrixDiagPart{version}", c.feed("int64", 4, 5, 3), np.int32(-1), np.int64(9), **more)
        c.op(
            f"MatrixSetDiag{version}",
            c.feed("float32", 2, 3, 4, declared=[2, 3, 4]),
            c.feed("float32", 2, 2, 3),
            ints(0, 1),
            **more,
        )
        c.op(f"MatrixSetDiag{version}", c.feed("float64", 4, 3), c.feed("float64", 3), np.int32(0), **more)


def more_shapes(c):
    """EnsureShape, Concat of version 1, LinSpace."""
    for dtype in ("float32", "string", "bool"):
        c.op("EnsureShape", c.feed(dtype, 4, 3), shape=[None, 3])
    c.op("EnsureShape", c.feed("float32", 4, 3, declared=None), shape=[None, 3], case="unknown")
    c.op("EnsureShape", c.feed("float32", 4, 3, declared=[None, None]), shape=[4, 3], case="fixed")
    for dtype in ("float32", "int64", "string", "bool"):
        parts = [c.feed(dtype, 4, 3), c.feed(dtype, 4, 1)]
        c.op("Concat", np.int32(1), parts, case=dtype)
        c.op("Concat", np.int32(-1), parts, case=f"{dtype}_last")
        c.op("Concat", np.int32(0), [parts[0], c.feed(dtype, 2, 3)], case=f"{dtype}_outer")
    c.op("Concat", Feed(np.int32(1), []), [c.feed("float32", 4, 3), c.feed("float32", 4, 0)], case="axis_fed")
    c.graph("Concat_of_shapes", reshaped_by_concat)
    for dtype in ("float32", "float64"):
        kind = tf.as_dtype(dtype).as_numpy_dtype
        for count in (1, 2, 7):
            c.op("LinSpace", np.array(-1.5, kind), np.array(4, kind), np.int32(count), case=str(count))
        c.op("LinSpace", Feed(np.array(4, kind), []), np.array(-1, kind), np.int64(5), case="fed")
    c.op("LinSpace", np.float32(0), np.float32(1), Feed(np.int32(4), []), case="count_fed")
    c.op("LinSpace", np.float32(0), np.float32(1), Feed(np.int32(0), []), case="none", fails="num is 0")


def reshaped_by_concat(enter):
    """A shape put together as graphs of 2016 do it."""
    x = enter("x", Feed(np.arange(24, dtype=np.float32).reshape(4, 6)))
    rows = tf.raw_ops.StridedSlice(
        input=tf.raw_ops.Shape(input=x), begin=[0], end=[1], strides=[1], begin_mask=0, end_mask=0
    )
    return tf.reshape(x, tf.raw_ops.Concat(concat_dim=0, values=[rows, [2, 3]]), name="out")


def cases(c):
    """All of the family."""
    shapes(c)
    make(c)
    join(c)
    cut(c)
    space(c)
    more_shapes(c)
