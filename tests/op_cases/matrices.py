"""Linear algebra. Decompositions are put together again, or their signs taken away, where they are not unique."""

import numpy as np
import tensorflow as tf

from harness import Feed

REALS = ("float32", "float64")
ALL = REALS + ("complex64", "complex128")
ROUGH = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-4, "complex64": 2e-4}


def tolerance(dtype):
    """What solutions are compared with."""
    limit = ROUGH.get(dtype, 1e-8)
    return {"rtol": limit, "atol": limit}


def regular(c, dtype, *shape):
    """Matrices far from singular ones."""
    data = c.data(dtype, *shape)
    return (data + 5 * np.eye(*shape[-2:])).astype(data.dtype)


def definite(c, dtype, *shape):
    """Symmetric matrices with positive eigenvalues; the upper triangles are of others, since none is read."""
    data = c.data(dtype, *shape)
    product = data @ np.swapaxes(data, -1, -2) + 2 * np.eye(shape[-1])
    return (np.tril(product) + np.triu(np.ones(shape), 1)).astype(data.dtype)


def solving(c):
    """Linear equations."""
    for dtype in REALS:
        more = tolerance(dtype)
        c.op("Cholesky", Feed(definite(c, dtype, 3, 4, 4)), **more)
        c.op("LogMatrixDeterminant", Feed(regular(c, dtype, 3, 4, 4)), **more)
        c.op("Lu", Feed(regular(c, dtype, 3, 4, 4)[:, ::-1].copy()), **more)
        for adjoint in (False, True):
            more["case"] = f"adjoint{adjoint:d}"
            c.op("MatrixInverse", Feed(regular(c, dtype, 3, 4, 4)), adjoint=adjoint, **more)
            c.op("MatrixSolve", Feed(regular(c, dtype, 3, 4, 4)), c.feed(dtype, 3, 4, 2), adjoint=adjoint, **more)
            for lower in (False, True):
                more["case"] = f"adjoint{adjoint:d}_lower{lower:d}"
                matrix = Feed(regular(c, dtype, 3, 4, 4))
                c.op("MatrixTriangularSolve", matrix, c.feed(dtype, 3, 4, 2), adjoint=adjoint, lower=lower, **more)
    c.op("MatrixInverse", Feed(regular(c, "float16", 2, 3, 3)), **tolerance("float16"))
    c.op("Cholesky", Feed(definite(c, "float64", 5, 5)), case="alone")
    c.op("Cholesky", Feed(definite(c, "float32", 2, 20, 20)), case="large", rtol=1e-3, atol=1e-3)
    bad = np.stack([definite(c, "float32", 2, 2), np.float32([[1, 2], [2, 1]]), np.float32([[np.nan, 2], [2, 1]])])
    # What TensorFlow leaves above the diagonal of a matrix without a decomposition is not defined.
    lower = lambda enter: tf.linalg.band_part(tf.raw_ops.Cholesky(input=enter("x", Feed(bad))), -1, 0)
    c.graph("Cholesky_indefinite", lower, **tolerance("float32"))
    c.op("Lu", Feed(regular(c, "float64", 5, 5)), output_idx_type=tf.int64, case="long")
    special = np.float32([[[0, 0], [0, 0]], [[0, 2], [3, 0]], [[-1, 2], [3, 5]], [[np.nan, 1], [2, 1]]])
    c.op("LogMatrixDeterminant", Feed(special), case="special")
    c.op("MatrixDeterminant", Feed(special), case="special")
    weights = regular(c, "float32", 4, 4)
    c.op("MatrixTriangularSolve", weights, c.feed("float32", 3, 4, 2), case="one_matrix", **tolerance("float32"))
    many = Feed(regular(c, "float32", 3, 1, 4, 4))
    c.op("MatrixTriangularSolve", many, c.feed("float32", 2, 4, 2, declared=[2, 4, 2]), case="broadcast", **tolerance("float32"))
    c.op("MatrixTriangularSolve", Feed(np.zeros((2, 2, 2), "float32")), c.feed("float32", 2, 2, 1), case="singular")
    ones = Feed(np.ones((2, 2, 2), "float32"))
    c.op("MatrixSolve", ones, c.feed("float32", 2, 2, 1), case="singular", fails="not invertible")
    c.op("MatrixInverse", ones, case="singular", fails="not invertible")
    c.op("Lu", ones, case="singular", fails="not invertible")
    c.op("MatrixInverse", Feed(np.full((2, 2, 2), np.nan, "float32")), case="nan", fails="not invertible")


def least_squares(c):
    """More equations than unknowns, and fewer."""
    for dtype in REALS:
        for rows, cols in ((5, 3), (3, 5), (4, 4)):
            for fast in (False, True):
                matrix, right = Feed(regular(c, dtype, 2, rows, cols)), c.feed(dtype, 2, rows, 2)
                more = {"fast": fast, "case": f"{rows}x{cols}_{fast:d}", **tolerance(dtype)}
                c.op("MatrixSolveLs", matrix, right, np.float64(0.5 if fast else 0), **more)
    ones, right = Feed(np.ones((1, 3, 2), "float32")), c.feed("float32", 1, 3, 1)
    c.op("MatrixSolveLs", ones, right, np.float64(0), case="deficient", fails="rank deficient")
    c.op("MatrixSolveLs", ones, right, np.float64(0), case="deficient_slow", fast=False, **tolerance("float32"))
    c.op("MatrixSolveLs", ones, right, np.float64(-1), case="negative", fails="l2_regularizer")
    # Columns that float32 alone makes equal.
    near = Feed(np.float32([[[1, 1 + 1e-7], [2, 2 - 2e-7], [3, 3]]]))
    c.op("MatrixSolveLs", near, right, np.float64(0), case="nearly_deficient", fast=False, rtol=1e-3, atol=1e-3)


def adjoint(x):
    """The conjugate transpose."""
    return tf.linalg.adjoint(x)


def decompositions(c):
    """Qr is unique but for signs, which the same algorithm gives; the others are put together again."""
    for dtype in REALS:
        more = tolerance(dtype)
        for rows, cols in ((5, 3), (3, 5), (4, 4)):
            shape = f"{rows}x{cols}"
            for full in (False, True):
                x = c.feed(dtype, 2, rows, cols)
                c.op("Qr", x, full_matrices=full, case=f"{shape}_{full:d}", **more)

                def put_together(enter, x=x, full=full, k=min(rows, cols)):
                    s, u, v = tf.raw_ops.Svd(input=enter("x", x), full_matrices=full)
                    middle = tf.expand_dims(s, -2)
                    whole = tf.matmul(u[..., :k] * middle, v[..., :k], adjoint_b=True)
                    return [s, whole, tf.matmul(adjoint(u), u), tf.matmul(adjoint(v), v)]

                c.graph(f"Svd_{dtype}_{shape}_{full:d}", put_together, **more)
            values = lambda enter, x=x: tf.raw_ops.Svd(input=enter("x", x), compute_uv=False)[0]
            c.graph(f"Svd_{dtype}_{shape}_values", values, **more)
        x = Feed(definite(c, dtype, 3, 4, 4))

        def eigen(enter, x=x):
            e, v = tf.raw_ops.SelfAdjointEigV2(input=enter("x", x))
            whole = tf.matmul(v * tf.expand_dims(e, -2), v, adjoint_b=True)
            return [e, whole, tf.matmul(adjoint(v), v), tf.abs(v)]

        c.graph(f"SelfAdjointEigV2_{dtype}", eigen, **more)
        values = lambda enter, x=x: tf.raw_ops.SelfAdjointEigV2(input=enter("x", x), compute_v=False)[0]
        c.graph(f"SelfAdjointEigV2_{dtype}_values", values, **more)
    c.op("Qr", c.feed("float16", 2, 3, 3), **tolerance("float16"))
    c.op("Svd", Feed(np.float32([[[1, 2], [np.nan, 4]], [[np.inf, 2], [3, 4]]])), case="nan")
    c.op("Svd", Feed(np.float32([[[1, 2], [np.nan, 4]]])), full_matrices=True, case="nan_full")
    invalid = Feed(np.full((2, 2, 2), np.nan, "float32"))
    c.op("SelfAdjointEigV2", invalid, case="nan", fails="not successful")
    x = c.feed("float64", 2, 20, 18)
    c.graph("Svd_float64_large", lambda enter: tf.raw_ops.Svd(input=enter("x", x), compute_uv=False)[0])


def tridiagonal(c):
    """Systems of three diagonals, and cross products."""
    for dtype in REALS:
        for size in (1, 2, 3, 6):
            for pivots in (False, True):
                data = c.data(dtype, 2, 3, size)
                data[:, 1] += 0 if pivots else 8
                more = {"partial_pivoting": pivots, "case": f"{size}_{pivots:d}", **tolerance(dtype)}
                c.op("TridiagonalSolve", Feed(data), c.feed(dtype, 2, size, 3), **more)
    flat = Feed(np.zeros((1, 3, 3), "float32"))
    right = c.feed("float32", 1, 3, 1)
    for size in (1, 2, 4):
        zeros, side = Feed(np.zeros((1, 3, size), "float32")), c.feed("float32", 1, size, 2)
        for pivots in (False, True):
            c.op("TridiagonalSolve", zeros, side, partial_pivoting=pivots, case=f"singular_{size}_{pivots:d}")
    c.op("TridiagonalSolve", flat, right, perturb_singular=True, case="perturbed")
    late = np.float64([[[1, 0, 0], [1, 1, 0], [0, 1, 0]]])
    c.op("TridiagonalSolve", Feed(late), c.feed("float64", 1, 3, 2), perturb_singular=True, case="perturbed_late", rtol=1e-6)
    c.op("TridiagonalSolve", Feed(late), c.feed("float64", 1, 3, 2), case="singular_late")
    for dtype in ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint32", "uint64"):
        c.op("Cross", c.feed(dtype, 4, 2, 3), c.feed(dtype, 4, 2, 3))
    c.op("Cross", c.feed("int8", 9, 3, low=-128, high=127), c.feed("int8", 9, 3, low=-128, high=127), case="wraps")
    c.op("Cross", c.feed("float64", 3, declared=[3]), c.feed("float64", 3, declared=[3]), case="vector")
    c.op("Cross", c.feed("float32", 0, 3), c.feed("float32", 0, 3), case="empty")


def empty(c):
    """No matrices, and matrices without elements."""
    for shape in ((0, 3, 3), (2, 0, 0)):
        x, side = c.feed("float32", *shape), c.feed("float32", *shape[:2], 2)
        name = {"case": "empty" + "x".join(map(str, shape))}
        for op in ("Cholesky", "MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant", "Lu", "Qr", "Svd", "SelfAdjointEigV2"):
            c.op(op, x, **name)
        c.op("MatrixSolve", x, side, **name)
        c.op("MatrixTriangularSolve", x, side, **name)
        c.op("MatrixSolveLs", x, side, np.float64(1), **name)
        c.op("TridiagonalSolve", c.feed("float32", shape[0], 3, shape[2]), side, **name)
    for shape in ((2, 0, 3), (2, 3, 0)):
        for full in (False, True):
            name = {"case": f"empty{shape[1]}x{shape[2]}_{full:d}"}
            c.op("Qr", c.feed("float32", *shape), full_matrices=full, **name)
            c.op("Svd", c.feed("float32", *shape), full_matrices=full, **name)


def products(c):
    """Matrices of three diagonals."""
    for dtype in ("float32", "float64", "complex64", "complex128"):
        diagonals = [c.feed(dtype, 2, 1, 4) for _ in range(3)]
        c.op("TridiagonalMatMul", *diagonals, c.feed(dtype, 2, 4, 3))
    c.op("TridiagonalMatMul", *[c.feed("float32", 1, 1)] * 3, c.feed("float32", 1, 3), case="one")
    c.op("TridiagonalMatMul", *[c.feed("float32", 1, 0)] * 3, c.feed("float32", 0, 3), case="empty")


def eigen(c):
    """Values in the order of their size; vectors put together again."""
    for dtype in REALS:
        wide = tf.complex64 if dtype == "float32" else tf.complex128
        more = tolerance(dtype)
        x = Feed(c.data(dtype, 3, 4, 4))

        def together(enter, x=x, wide=wide):
            a = enter("x", x)
            e, v = tf.raw_ops.Eig(input=a, Tout=wide)
            return [tf.matmul(tf.cast(a, wide), v) - v * tf.expand_dims(e, -2), tf.reduce_sum(e, -1), tf.reduce_prod(e, -1), tf.norm(v, axis=-2)]

        c.graph(f"Eig_{dtype}", together, **more)
        spread = (regular(c, dtype, 2, 4, 4) * np.arange(1, 5)).astype(dtype)
        values = lambda enter, s=spread, wide=wide: tf.sort(tf.abs(tf.raw_ops.Eig(input=enter("x", Feed(s)), Tout=wide, compute_v=False)[0]))
        c.graph(f"Eig_{dtype}_values", values, **more)
    diagonal = Feed(np.float64([[[3, 1, 0], [0, -1, 2], [0, 0, 2]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]]))
    c.op("Eig", diagonal, Tout=tf.complex128, case="triangle")
    c.op("Eig", c.feed("float32", 0, 3, 3), Tout=tf.complex64, case="empty")


def banded(c):
    """Triangles of few diagonals."""
    for dtype in REALS:
        for lower in (False, True):
            for adjoint in (False, True):
                for bands in (1, 3, 5):
                    matrix = c.data(dtype, 2, bands, 5)
                    matrix[:, 0 if lower else bands - 1] += 4
                    options = {"lower": lower, "adjoint": adjoint, "case": f"{bands}_lower{lower:d}_adjoint{adjoint:d}"}
                    c.op("BandedTriangularSolve", Feed(matrix), c.feed(dtype, 2, 5, 3), **options, **tolerance(dtype))
    matrix = c.data("float64", 1, 2, 4) + 4
    c.op("BandedTriangularSolve", matrix, c.feed("float64", 3, 4, 2), case="one_matrix", **tolerance("float64"))
    c.op("BandedTriangularSolve", c.feed("float64", 3, 2, 4, low=2, high=5), c.data("float64", 1, 4, 2), case="one_side")
    zero = np.float32([[1, 0, 1], [1, 1, 1]])
    c.op("BandedTriangularSolve", Feed(zero), np.ones((3, 1), np.float32), case="singular", fails="not invertible")


def transposed(c):
    """Complex matrices, which have no decompositions here, can be transposed and conjugated at once."""
    for dtype in ALL:
        c.op("ConjugateTranspose", c.feed(dtype, 2, 3, 4), np.array([0, 2, 1], np.int32))


def cases(c):
    """All of the family."""
    transposed(c)
    solving(c)
    least_squares(c)
    decompositions(c)
    tridiagonal(c)
    empty(c)
    products(c)
    eigen(c)
    banded(c)
