"""Matrix products, convolutions, pooling, normalisation, transforms, recurrent cells."""

import numpy as np
import tensorflow as tf

from harness import FLOATS, Feed


def products(c):
    """MatMul and its kin."""
    for a in (False, True):
        for b in (False, True):
            shape_a, shape_b = ((5, 4) if a else (4, 5)), ((3, 5) if b else (5, 3))
            c.op(
                "MatMul",
                c.feed("float32", *shape_a),
                c.data("float32", *shape_b),
                transpose_a=a,
                transpose_b=b,
                case=f"{a:d}{b:d}",
            )
    for dtype in ("float64", "float16", "bfloat16", "int32", "int64", "complex64"):
        c.op("MatMul", c.feed(dtype, 4, 3), c.data(dtype, 3, 2))
    c.op("MatMul", c.feed("float32", 4, 3), c.feed("float32", 3, 2, declared=[3, 2]), case="two_fed")
    c.op("MatMul", c.feed("float32", 4, 0), c.data("float32", 0, 2), case="empty")
    c.op("MatMul", c.feed("float32", 4, 70), c.data("float32", 70, 33), case="long", rtol=1e-4)
    c.op("BatchMatMul", c.feed("float32", 4, 2, 3), c.feed("float32", 4, 3, 2))
    for op in ("BatchMatMulV2", "BatchMatMulV3"):
        more = {"Tout": tf.float32} if op == "BatchMatMulV3" else {}
        c.op(op, c.feed("float32", 4, 2, 3), c.feed("float32", 4, 3, 2), **more)
        c.op(op, c.feed("float32", 4, 2, 3), c.data("float32", 3, 2), case="shared", **more)
        c.op(
            op,
            c.feed("float32", 2, 1, 2, 3),
            c.data("float32", 4, 2, 3),
            adj_y=True,
            case="broadcast",
            **more,
        )
    c.op("BatchMatMulV2", c.feed("complex64", 4, 3, 2), c.feed("complex64", 4, 3, 2), adj_x=True)
    for dtype in ("float64", "int32", "bfloat16"):
        c.op("BatchMatMulV2", c.feed(dtype, 4, 2, 3), c.data(dtype, 3, 2))
    equations = {
        "ij,jk->ik": ((4, 3), (3, 2)),
        "bij,bjk->bik": ((4, 2, 3), (4, 3, 2)),
        "bi->b": ((4, 3),),
        "bii->bi": ((4, 3, 3),),
        "bhqd,bhkd->bhqk": ((4, 2, 3, 2), (4, 2, 3, 2)),
        "...ij,jk->...ik": ((4, 2, 3), (3, 2)),
        "ij,kj->": ((4, 3), (2, 3)),
        "bi,ci->bc": ((4, 3), (2, 3)),
        "abc,cd->dab": ((4, 2, 3), (3, 2)),
    }
    for i, (equation, inputs) in enumerate(equations.items()):
        c.op(
            "Einsum",
            [c.feed("float32", *inputs[0])] + [c.data("float32", *s) for s in inputs[1:]],
            equation=equation,
            case=str(i),
            atol=1e-5,
        )
    c.op("Einsum", [c.feed("int32", 4, 3), c.feed("int32", 4, 3)], equation="bi,bi->b")
    for dtype in ("float32", "float16", "int64"):
        for equation in ("bi,bj->bij", "bi,bj->bji", "bii,bj->bji"):
            left = (3, 2, 2) if equation.startswith("bii") else (3, 2)
            c.op("Einsum", [c.feed(dtype, *left), c.feed(dtype, 3, 5)], equation=equation, case=f"unsummed_{equation[-3:]}_{len(left)}")
    c.op("MatrixInverse", c.feed("float32", 4, 3, 3), rtol=1e-3)
    c.op("MatrixInverse", c.feed("float64", 3, 3), adjoint=True)
    for dtype in ("float32", "float64"):
        c.op("MatrixDeterminant", c.feed(dtype, 4, 3, 3), rtol=1e-4)


def convolve(c, op, x, w, dtype="float32", strides=(1, 1), **more):
    """A convolution of an input with constant weights."""
    more.setdefault("rtol", 1e-4 if dtype == "float32" else None)
    c.op(op, c.feed(dtype, *x), c.data(dtype, *w), strides=[1, *strides, 1], **more)


def convolutions(c):
    """Convolutions forward."""
    x, w = (4, 6, 5, 2), (3, 2, 2, 3)
    for op in ("Conv2D", "DepthwiseConv2dNative"):
        for padding in ("SAME", "VALID"):
            for stride in (1, 2):
                case = f"{padding}{stride}".lower()
                convolve(c, op, x, w, strides=(stride, stride), padding=padding, case=case)
        convolve(c, op, x, w, dtype="float64", padding="SAME")
        for dtype in ("float16", "bfloat16"):
            convolve(c, op, x, w, dtype=dtype, padding="SAME", atol=0.05)
    convolve(c, "Conv2D", x, w, padding="SAME", dilations=[1, 2, 2, 1], case="dilated")
    pads = [0, 0, 1, 0, 2, 1, 0, 0]
    convolve(c, "Conv2D", x, w, padding="EXPLICIT", explicit_paddings=pads, case="explicit")
    convolve(c, "Conv2D", (4, 5, 5, 4), (3, 3, 2, 6), padding="SAME", case="groups")
    convolve(c, "Conv2D", (4, 5, 5, 3), (1, 1, 3, 20), padding="SAME", case="one")
    for padding in ("SAME", "VALID"):
        case = padding.lower()
        convolve(c, "Conv3D", (2, 4, 3, 3, 2), (2, 2, 2, 2, 3), strides=(2, 1, 1), padding=padding, case=case)
    convolve(
        c, "Conv3D", (2, 3, 3, 3, 1), (2, 2, 2, 1, 2), dtype="float64", strides=(1, 1, 1), padding="SAME"
    )
    transposed_convolutions(c)


def transposed_convolutions(c):
    """Convolutions backward."""
    for padding, stride, out in (("SAME", 2, (4, 4, 4, 2)), ("VALID", 1, (4, 4, 3, 2))):
        c.op(
            "Conv2DBackpropInput",
            np.array(out, np.int32),
            c.data("float32", 3, 2, 2, 3),
            c.feed("float32", 4, 2, 2, 3),
            strides=[1, stride, stride, 1],
            padding=padding,
            case=padding.lower(),
            rtol=1e-4,
        )
    c.op(
        "Conv3DBackpropInputV2",
        np.array((2, 4, 4, 2, 1), np.int32),
        c.data("float32", 2, 3, 2, 1, 2),
        c.feed("float32", 2, 2, 2, 1, 2),
        strides=[1, 2, 2, 2, 1],
        padding="SAME",
        rtol=1e-4,
    )


def pools(c):
    """Pooling and normalisation."""
    for op in ("MaxPool", "AvgPool"):
        for padding in ("SAME", "VALID"):
            c.op(
                op,
                c.feed("float32", 4, 5, 6, 2),
                ksize=[1, 3, 2, 1],
                strides=[1, 2, 1, 1],
                padding=padding,
                case=padding.lower(),
            )
            c.op(
                f"{op}3D",
                c.feed("float32", 2, 3, 4, 3, 2),
                ksize=[1, 2, 2, 3, 1],
                strides=[1, 1, 2, 1, 1],
                padding=padding,
                case=padding.lower(),
            )
        for dtype in ("float64", "float16"):
            c.op(op, c.feed(dtype, 4, 3, 3, 1), ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
    c.op(
        "MaxPool",
        c.feed("float32", 4, 4, 4, 1),
        ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 1, 0, 1, 0, 0],
        case="explicit",
    )
    c.op("MaxPool", c.feed("int32", 4, 3, 3, 1), ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID")
    for batch in (False, True):
        c.op(
            "MaxPoolWithArgmax",
            c.feed("float32", 4, 4, 5, 2),
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="SAME",
            include_batch_in_index=batch,
            case=f"batch{batch:d}",
        )
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        for training in (False, True):
            batch_norm(c, op, training)
    c.op("LRN", c.feed("float32", 4, 2, 2, 7), depth_radius=2, bias=1.5, alpha=0.3, beta=0.6)
    for op in ("SoftmaxCrossEntropyWithLogits",):
        c.op(op, c.feed("float32", 4, 5), c.feed("float32", 4, 5, low=0, high=1))
        c.op(op, c.feed("float64", 4, 5), c.data("float64", 1, 5, low=0, high=1))
    c.op(
        "SparseSoftmaxCrossEntropyWithLogits", c.feed("float32", 4, 5), Feed(np.array([0, 4, 2, 2], np.int32))
    )
    c.op(
        "SparseSoftmaxCrossEntropyWithLogits", c.feed("float64", 4, 5), Feed(np.array([0, 4, 2, 2], np.int64))
    )


def batch_norm(c, op, training):
    """A FusedBatchNorm; its last outputs are for the gradient alone and are not compared."""
    x, scale, offset = c.feed("float32", 4, 2, 2, 3), c.data("float32", 3), c.data("float32", 3)
    mean, variance = c.data("float32", 3), c.data("float32", 3, low=0.5)
    if training:
        mean = variance = np.zeros(0, np.float32)

    def build(enter):
        function = getattr(tf.raw_ops, op)
        statistics = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
        outputs = function(x=enter("x", x), is_training=training, epsilon=0.01, name="out", **statistics)
        return list(outputs)[:3]

    c.graph(f"{op}_training{training:d}", build, rtol=1e-4)


def transforms(c):
    """Fourier transforms."""
    tolerance = {"rtol": 1e-4, "atol": 1e-4}
    for op, rank in (("FFT", 1), ("IFFT", 1), ("FFT2D", 2), ("IFFT2D", 2), ("FFT3D", 3), ("IFFT3D", 3)):
        shape = (5, 4, 3)[:rank]
        c.op(op, c.feed("complex64", 2, *shape), **tolerance)
        c.op(op, c.feed("complex128", 2, *shape), **tolerance)
    for op, rank in (("RFFT", 1), ("RFFT2D", 2), ("RFFT3D", 3)):
        shape = (6, 4, 7)[:rank]
        c.op(op, c.feed("float32", 3, *shape), np.array(shape, np.int32), **tolerance)
        c.op(
            op,
            c.feed("float32", 3, *shape),
            np.array([n - 1 for n in shape], np.int32),
            case="cut",
            **tolerance,
        )
        c.op(op, c.feed("float64", 2, *shape), np.array(shape, np.int32), Tcomplex=tf.complex128, **tolerance)
        # A spectrum that no real numbers have: what must be real has imaginary parts.
        half = (*shape[:-1], 4)
        for last in (1, 2, 5, 6, 7):
            length = np.array((*[n - 1 for n in shape[:-1]], last), np.int32)
            c.op(f"I{op}", c.feed("complex64", 3, *half), length, case=f"last{last}", **tolerance)
        c.op(f"I{op}", c.feed("complex128", 2, *half), np.array((*shape[:-1], 6), np.int32), Treal=tf.float64, rtol=1e-9)


def recurrent(c):
    """Cells of recurrent nets."""
    n, m = 3, 2
    x, h, cs = c.feed("float32", 4, m), c.feed("float32", 4, n), c.feed("float32", 4, n)
    peephole = [c.data("float32", n) for _ in range(3)]
    weights, bias = c.data("float32", m + n, 4 * n), c.data("float32", 4 * n)
    for use in (False, True):
        c.op(
            "LSTMBlockCell",
            x,
            cs,
            h,
            weights,
            *peephole,
            bias,
            forget_bias=0.5,
            cell_clip=1.5,
            use_peephole=use,
            case=f"peephole{use:d}",
            rtol=1e-4,
            atol=1e-5,
        )
    c.op(
        "GRUBlockCell",
        x,
        h,
        c.data("float32", m + n, 2 * n),
        c.data("float32", m + n, n),
        c.data("float32", 2 * n),
        c.data("float32", n),
        rtol=1e-4,
        atol=1e-5,
    )


def quantize(c):
    """Numbers rounded as an integer model would."""
    for narrow in (False, True):
        c.op(
            "FakeQuantWithMinMaxArgs",
            c.feed("float32", 4, 6, low=-9, high=9),
            min=-5.5,
            max=6.25,
            num_bits=4,
            narrow_range=narrow,
            case=f"narrow{narrow:d}",
        )
        c.op(
            "FakeQuantWithMinMaxVars",
            c.feed("float32", 4, 6, low=-9, high=9),
            np.float32(-3.1),
            np.float32(7),
            narrow_range=narrow,
            case=f"narrow{narrow:d}",
        )
        c.op(
            "FakeQuantWithMinMaxVarsPerChannel",
            c.feed("float32", 4, 3, low=-9, high=9),
            np.float32([-1, 0, -4]),
            np.float32([1, 6, 8]),
            narrow_range=narrow,
            case=f"narrow{narrow:d}",
        )
    for signed in (False, True):
        low = -6 if signed else 0
        c.op(
            "QuantizeAndDequantizeV2",
            c.feed("float32", 4, 6, low=low, high=6),
            np.float32(low),
            np.float32(6),
            signed_input=signed,
            range_given=True,
            case=f"given{signed:d}",
        )
        c.op(
            "QuantizeAndDequantizeV2",
            c.feed("float32", 4, 6, low=low, high=6),
            np.float32(0),
            np.float32(0),
            signed_input=signed,
            case=f"found{signed:d}",
        )
        c.op(
            "QuantizeAndDequantizeV3",
            c.feed("float32", 4, 6, low=low, high=6),
            np.float32(low),
            np.float32(6),
            np.int32(5),
            signed_input=signed,
            case=f"given{signed:d}",
        )


def cases(c):
    """All of the family."""
    products(c)
    convolutions(c)
    pools(c)
    transforms(c)
    recurrent(c)
    quantize(c)
