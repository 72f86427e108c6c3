#!/usr/bin/env python3
"""Writes the seeds of the graph fuzzer: small graphs, each op and each form of control flow in at least one.

    make_seeds.py FOLDER        needs TensorFlow; the seeds in corpus/graph were made with 2.21

A seed is a binary GraphDef of a few nodes with tiny tensors: the fuzzer changes files in place, so what is not in a file
only slows it down.
"""
import pathlib
import sys

import numpy as np
import tensorflow as tf

raw = tf.raw_ops
v1 = tf.compat.v1
F32, I32, I64, U8, BOOL, STR = tf.float32, tf.int32, tf.int64, tf.uint8, tf.bool, tf.string


def feed(dtype=F32, shape=(None, 2)):
    return v1.placeholder(dtype, shape)


def image(height=4, width=4, channels=2):
    return feed(F32, (None, height, width, channels))


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape), dtype=np.int64).reshape(shape) % 5 - 1).astype(dtype)


def each(values):
    for value in values if isinstance(values, (tuple, list)) else [values]:
        tf.identity(value)


def element_wise():
    x = feed()
    for op in ("Abs", "Neg", "Exp", "Log", "Sqrt", "Rsqrt", "Square", "Tanh", "Sigmoid", "Relu", "Relu6", "Elu", "Selu",
               "Softplus", "Softsign", "Erf", "Floor", "Ceil", "Round", "Rint", "Sign", "Sin", "Cos", "Tan", "Asin", "Acos",
               "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Reciprocal", "OnesLike", "ZerosLike"):
        x = getattr(raw, op)(**({"x": x} if op not in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign")
                                else {"features": x}))
    raw.LeakyRelu(features=x, alpha=.3)


def binaries():
    x, y = feed(F32, (None, 3)), tf.constant([1., 2., 3.])
    for op in ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum", "Pow", "SquaredDifference", "FloorDiv",
               "FloorMod", "Atan2", "DivNoNan"):
        x = getattr(raw, op)(**({"y": x, "x": y} if op == "Atan2" else {"x": x, "y": y}))
    x = raw.AddN(inputs=[x, x])
    both = raw.LogicalAnd(x=raw.Less(x=x, y=y), y=raw.GreaterEqual(x=x, y=y))
    either = raw.LogicalOr(x=raw.Equal(x=x, y=y), y=raw.LogicalNot(x=raw.NotEqual(x=x, y=y)))
    raw.SelectV2(condition=either, t=raw.Select(condition=both, x=x, y=x), e=y)
    raw.Greater(x=raw.Cast(x=raw.IsNan(x=x), DstT=I32), y=raw.Cast(x=raw.IsInf(x=x), DstT=I32))
    raw.LessEqual(x=raw.Cast(x=raw.IsFinite(x=x), DstT=F32), y=x)


def bits():
    x, y = feed(I32, (None, 2)), tf.constant([1, 2])
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"):
        x = getattr(raw, op)(x=x, y=y)
    raw.Invert(x=raw.Cast(x=x, DstT=tf.int8))


def reductions():
    x = feed(F32, (None, 2, 3))
    for op in ("Sum", "Mean", "Max", "Min", "Prod"):
        x = x + getattr(raw, op)(input=x, axis=[1, -1], keep_dims=True)
    raw.All(input=raw.Any(input=x > 0, axis=[2], keep_dims=False), axis=0, keep_dims=False)
    each([raw.ArgMax(input=x, dimension=-1), raw.ArgMin(input=x, dimension=1)])
    each([raw.Cumsum(x=x, axis=1, exclusive=True), raw.Cumprod(x=x, axis=-1, reverse=True)])


def products():
    x = feed(F32, (None, 3))
    y = raw.MatMul(a=x, b=numbers(3, 2)) + numbers(2)
    y = raw.BiasAdd(value=y, bias=numbers(2))
    z = raw.BatchMatMulV2(x=raw.ExpandDims(input=y, axis=1), y=numbers(2, 2), adj_y=True)
    raw.BatchMatMulV3(x=z, y=numbers(1, 2, 3), Tout=F32)
    raw.Einsum(inputs=[x, numbers(3, 4)], equation="bc,cd->bd")


def moves():
    x = feed(F32, (None, 2, 3))
    shape = raw.Shape(input=x)
    y = raw.Reshape(tensor=x, shape=raw.Pack(values=[shape[0], -1]))
    y = raw.Transpose(x=raw.Tile(input=y, multiples=[1, 2]), perm=[1, 0])
    each(raw.Unpack(value=raw.Slice(input=x, begin=[0, 0, 1], size=[-1, 2, 2]), num=2, axis=1))
    each(raw.Split(axis=2, value=x, num_split=3))
    each(raw.SplitV(value=x, size_splits=[1, -1], axis=2, num_split=2))
    z = raw.ConcatV2(values=[x, raw.ReverseV2(tensor=x, axis=[1])], axis=-1)
    z = raw.Pad(input=z, paddings=[[0, 0], [1, 0], [0, 1]])
    z = raw.PadV2(input=z, paddings=[[0, 0], [1, 0], [0, 1]], constant_values=2.)
    z = raw.MirrorPad(input=z, paddings=[[0, 0], [1, 0], [0, 1]], mode="REFLECT")
    z = raw.Roll(input=z, shift=[1], axis=[1])
    raw.Squeeze(input=raw.ReverseSequence(input=z[:, :, :1], seq_lengths=raw.Fill(dims=shape[:1], value=1), seq_dim=1,
                                          batch_dim=0), axis=[2])
    raw.BroadcastTo(input=x[:1], shape=[2, 2, 3])
    each([raw.Rank(input=x), raw.Size(input=x), *raw.IdentityN(input=[x, y])])


def slices():
    x = feed(F32, (None, 4, 3))
    each([x[:, 1:3], x[..., tf.newaxis, ::2], x[:, -1], x[:, ::-1, 0]])
    begin = raw.Shape(input=x)[1] - 2
    tf.identity(x[:, begin:begin + 1])


def gathers():
    x, at = feed(F32, (4, 2)), feed(I32, (None, 1))
    raw.GatherV2(params=x, indices=at, axis=0)
    raw.GatherNd(params=x, indices=at)
    raw.OneHot(indices=at, depth=3, on_value=1., off_value=0.)
    y = raw.TensorScatterUpdate(tensor=x, indices=at, updates=raw.GatherNd(params=x, indices=at))
    for op in ("Add", "Sub", "Min", "Max"):
        y = getattr(raw, "TensorScatter" + op)(tensor=y, indices=at, updates=raw.GatherNd(params=x, indices=at))
    raw.ScatterNd(indices=at, updates=raw.GatherNd(params=x, indices=at), shape=[4, 2])
    raw.InvertPermutation(x=tf.constant([1, 0]))
    each([raw.Range(start=0, limit=feed(I32, ()), delta=2), raw.BatchToSpaceND(
        input=raw.SpaceToBatchND(input=image(), block_shape=[2, 2], paddings=[[0, 0], [0, 0]]), block_shape=[2, 2],
        crops=[[0, 0], [0, 0]])])


def convolutions():
    x = image()
    y = raw.Conv2D(input=x, filter=numbers(3, 3, 2, 2), strides=[1, 2, 1, 1], padding="SAME")
    y = raw.Relu(features=raw.BiasAdd(value=y, bias=numbers(2)))
    y = raw.DepthwiseConv2dNative(input=y, filter=numbers(2, 2, 2, 1), strides=[1, 1, 1, 1], padding="SAME")
    y = raw.Conv2DBackpropInput(input_sizes=[1, 4, 4, 2], filter=numbers(2, 2, 2, 2), out_backprop=y[:1], strides=[1, 2, 1, 1],
                                padding="SAME")
    raw.Conv2D(input=x, filter=numbers(1, 1, 2, 2), strides=[1, 1, 1, 1], padding="EXPLICIT",
               explicit_paddings=[0, 0, 1, 0, 0, 1, 0, 0], dilations=[1, 2, 1, 1])


def pools():
    x = image()
    for op in ("AvgPool", "MaxPool"):
        getattr(raw, op)(**({"value" if op == "AvgPool" else "input": x}), ksize=[1, 2, 2, 1], strides=[1, 2, 1, 1],
                         padding="VALID")
    each(raw.MaxPoolWithArgmax(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"))
    raw.LRN(input=x)
    each(raw.FusedBatchNormV3(x=x, scale=[1., 2.], offset=[0., 1.], mean=[0., 0.], variance=[1., 1.], is_training=False))
    each(raw.FusedBatchNormV3(x=x, scale=[1., 2.], offset=[0., 1.], mean=[], variance=[], is_training=True))
    raw.SpaceToDepth(input=raw.DepthToSpace(input=tf.concat([x, x], 3), block_size=2), block_size=2)
    raw.ExtractImagePatches(images=x, ksizes=[1, 2, 2, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME")


def volumes():
    x = feed(F32, (None, 2, 3, 3, 1))
    y = raw.Conv3D(input=x, filter=numbers(2, 2, 2, 1, 1), strides=[1, 1, 1, 1, 1], padding="SAME")
    y = raw.AvgPool3D(input=y, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    y = raw.MaxPool3D(input=y, ksize=[1, 1, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID")
    raw.Conv3DBackpropInputV2(input_sizes=[1, 2, 3, 3, 1], filter=numbers(1, 2, 2, 1, 1), out_backprop=y[:1],
                              strides=[1, 1, 1, 1, 1], padding="VALID")


def resizes():
    x = image(2, 3, 3)
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"):
        x = getattr(raw, op)(images=x, size=[3, 2])
    raw.CropAndResize(image=x, boxes=[[0., 0., .5, 1.]], box_ind=[0], crop_size=[2, 2])
    raw.AdjustHue(images=raw.AdjustContrastv2(images=x, contrast_factor=2.), delta=.1)
    raw.AdjustSaturation(images=x, scale=.5)


def boxes():
    b, s = feed(F32, (None, 4)), feed(F32, (None,))
    raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=3, iou_threshold=.5)
    raw.NonMaxSuppressionV3(boxes=b, scores=s, max_output_size=3, iou_threshold=.5, score_threshold=.1)
    each(raw.NonMaxSuppressionV4(boxes=b, scores=s, max_output_size=3, iou_threshold=.5, score_threshold=.1,
                                 pad_to_max_output_size=True))
    each(raw.NonMaxSuppressionV5(boxes=b, scores=s, max_output_size=3, iou_threshold=.5, score_threshold=.1,
                                 soft_nms_sigma=.5))
    each(raw.CombinedNonMaxSuppression(boxes=raw.Reshape(tensor=b, shape=[1, -1, 1, 4]),
                                       scores=raw.Reshape(tensor=s, shape=[1, -1, 1]), max_output_size_per_class=2,
                                       max_total_size=3, iou_threshold=.5, score_threshold=.1))


def sorting():
    x = feed(F32, (None, 5))
    each(raw.TopKV2(input=x, k=2))
    each([raw.Softmax(logits=x), raw.LogSoftmax(logits=x)])
    each(raw.SoftmaxCrossEntropyWithLogits(features=x, labels=x))
    each(raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=raw.ArgMax(input=x, dimension=1)))
    flat = raw.Cast(x=raw.Reshape(tensor=x, shape=[-1]), DstT=I32)
    each([raw.Where(condition=x > 1), *raw.Unique(x=flat), *raw.UniqueWithCounts(x=flat), *raw.ListDiff(x=flat, y=[1, 2])])
    raw.DenseBincount(input=raw.Abs(x=flat), size=4, weights=tf.constant([], F32))


def segments():
    x, ids = feed(F32, (4, 2)), tf.constant([0, 0, 2, 2])
    for op in ("Sum", "Mean", "Max", "Min", "Prod"):
        getattr(raw, "Segment" + op)(data=x, segment_ids=ids)
    for op in ("Sum", "Max", "Min", "Prod"):
        getattr(raw, "UnsortedSegment" + op)(data=x, segment_ids=ids, num_segments=3)
    for op in ("Sum", "Mean", "SqrtN"):
        getattr(raw, "SparseSegment" + op)(data=x, indices=[3, 1, 1], segment_ids=[0, 0, 2])
        getattr(raw, f"SparseSegment{op}WithNumSegments")(data=x, indices=[3, 1], segment_ids=[0, 2], num_segments=4)


def partitions():
    x, part = feed(F32, (None,)), feed(I32, (None,))
    each(raw.DynamicPartition(data=x, partitions=part, num_partitions=2))
    raw.DynamicStitch(indices=[tf.constant([2, 0]), tf.constant([1])], data=[numbers(2, 2), numbers(1, 2)])


def sparse():
    at = tf.constant([[0, 1], [2, 0]], I64)
    values = feed(F32, (2,))
    raw.SparseToDense(sparse_indices=at, output_shape=tf.constant([3, 2], I64), sparse_values=values, default_value=0.)
    each(raw.SparseFillEmptyRows(indices=at, values=values, dense_shape=tf.constant([3, 2], I64), default_value=1.))
    each(raw.SparseReshape(input_indices=at, input_shape=tf.constant([3, 2], I64), new_shape=tf.constant([-1, 3], I64)))
    each(raw.DenseToDenseSetOperation(set1=feed(I32, (2, 3)), set2=tf.constant([[1, 2], [0, 1]]), set_operation="a-b"))


def ragged():
    values, splits = feed(F32, (None,)), tf.constant([0, 1, 3], I64)
    raw.RaggedTensorToTensor(shape=tf.constant([-1, -1], I64), values=values, default_value=0.,
                             row_partition_tensors=[splits], row_partition_types=["ROW_SPLITS"])
    each(raw.RaggedTensorToSparse(rt_nested_splits=[splits], rt_dense_values=values))
    each(raw.RaggedRange(starts=feed(I32, (None,)), limits=tf.constant([2, 3]), deltas=tf.constant(1)))
    each(raw.RaggedGather(params_nested_splits=[splits], params_dense_values=values, indices=tf.constant([1, 0]),
                          OUTPUT_RAGGED_RANK=1))
    held = raw.RaggedTensorToVariant(rt_nested_splits=[splits], rt_dense_values=values, batched_input=True)
    each(raw.RaggedTensorFromVariant(encoded_ragged=held, input_ragged_rank=0, output_ragged_rank=1, Tvalues=F32))


def matrices():
    x = feed(F32, (None, 3, 3))
    raw.MatrixBandPart(input=x, num_lower=1, num_upper=0)
    d = raw.MatrixDiagPartV3(input=x, k=[-1, 0], padding_value=0.)
    raw.MatrixDiagV3(diagonal=d, k=[-1, 0], num_rows=3, num_cols=3, padding_value=0.)
    raw.MatrixDiag(diagonal=raw.MatrixDiagPartV2(input=x, k=0, padding_value=0.))
    raw.MatrixDiagV2(diagonal=x, k=[0, 2], num_rows=-1, num_cols=-1, padding_value=0.)
    raw.MatrixSetDiagV3(input=x, diagonal=raw.MatrixDiagPartV3(input=x, k=0, padding_value=0.), k=0)
    each([raw.MatrixInverse(input=x), raw.MatrixDeterminant(input=x)])


def spectra():
    x = feed(F32, (None, 4, 4))
    y = raw.RFFT(input=x, fft_length=[4])
    each([raw.ComplexAbs(x=y), raw.Real(input=y), raw.Imag(input=y)])
    raw.ComplexAbs(x=raw.RFFT2D(input=x, fft_length=[4, 2]))
    raw.ComplexAbs(x=raw.FFT(input=raw.Complex(real=x, imag=x)))


def quantized():
    x = feed()
    y = raw.FakeQuantWithMinMaxArgs(inputs=x, min=-1, max=1)
    y = raw.FakeQuantWithMinMaxVars(inputs=y, min=-1., max=2.)
    raw.QuantizeAndDequantizeV2(input=y, input_min=-1., input_max=1.)


def randoms():
    shape = raw.Shape(input=feed())
    each([raw.RandomUniform(shape=shape, dtype=F32), raw.RandomStandardNormal(shape=shape, dtype=F32),
          raw.RandomUniformInt(shape=shape, minval=0, maxval=5), raw.RandomShuffle(value=feed()),
          raw.Multinomial(logits=feed(), num_samples=2), raw.TruncatedNormal(shape=shape, dtype=F32)])


def strings():
    s = feed(STR, (None,))
    t = raw.StringJoin(inputs=[raw.StringLower(input=s), raw.StringUpper(input=s)], separator="-")
    t = raw.StaticRegexReplace(input=t, pattern="a(b)", rewrite="\\1c")
    each(raw.StringSplitV2(input=t, sep=tf.constant(" ")))
    raw.ReduceJoin(inputs=t, reduction_indices=0, separator=",")
    raw.StringToNumber(string_tensor=tf.constant(["1", "2.5"]))
    raw.AsString(input=feed(), precision=2)
    raw.Equal(x=s, y=tf.constant("a"))


def cells():
    x, h = feed(F32, (1, 2)), feed(F32, (1, 2))
    each(raw.LSTMBlockCell(x=x, cs_prev=h, h_prev=h, w=numbers(4, 8), wci=numbers(2), wcf=numbers(2), wco=numbers(2),
                           b=numbers(8)))
    each(raw.GRUBlockCell(x=x, h_prev=h, w_ru=numbers(4, 4), w_c=numbers(4, 2), b_ru=numbers(4), b_c=numbers(2)))
    each(raw.CTCGreedyDecoder(inputs=feed(F32, (3, 1, 4)), sequence_length=[3]))


def defaults():
    x = v1.placeholder_with_default(tf.constant([[1., 2.]]), (None, 2))
    learning = v1.placeholder(BOOL, (), "keras_learning_phase")
    tf.identity(raw.Select(condition=learning, x=x, y=-x))


def asserts():
    x = feed()
    with tf.control_dependencies([v1.Assert(tf.reduce_all(x > -5), [x], summarize=2)]):
        tf.identity(x * 2)
    with tf.control_dependencies([raw.NoOp()]):
        tf.identity(x)


def tables():
    table = raw.HashTableV2(key_dtype=STR, value_dtype=I64, shared_name="t")
    raw.LookupTableImportV2(table_handle=table, keys=tf.constant(["a", "b"]), values=tf.constant([1, 2], I64))
    raw.InitializeTableFromTextFileV2(table_handle=table, filename=tf.constant("words.txt"), key_index=-2, value_index=-1)
    raw.LookupTableFindV2(table_handle=table, keys=feed(STR, (None,)), default_value=tf.constant(-1, I64))
    raw.LookupTableSizeV2(table_handle=table)


def loop(lowered):
    def make():
        toggle = v1.enable_control_flow_v2 if not lowered else v1.disable_control_flow_v2
        toggle()
        x = feed()
        scale = tf.constant(2.)
        i, y = v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * scale + x), [tf.constant(0), x])
        each([i, y])
    return make


def nested(lowered):
    def make():
        (v1.disable_control_flow_v2 if lowered else v1.enable_control_flow_v2)()
        x = feed()

        def body(i, y):
            _, z = v1.while_loop(lambda k, z: k < i, lambda k, z: (k + 1, z + y), [tf.constant(0), y])
            return i + 1, v1.cond(i > 1, lambda: z * 2., lambda: z - x)
        tf.identity(v1.while_loop(lambda i, y: i < 2, body, [tf.constant(0), x])[1])
    return make


def branch(lowered):
    def make():
        (v1.disable_control_flow_v2 if lowered else v1.enable_control_flow_v2)()
        x, p = feed(), feed(BOOL, ())
        y, z = v1.cond(p, lambda: (x * 2., x + 1.), lambda: (x, v1.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: -x)))
        each([y, z])
    return make


def case():
    v1.enable_control_flow_v2()
    x = feed()
    tf.identity(tf.switch_case(feed(I32, ()), [lambda: x, lambda: x * 2., lambda: -x]))


def arrays(lowered):
    def make():
        (v1.disable_control_flow_v2 if lowered else v1.enable_control_flow_v2)()
        x = feed(F32, (3, 2))
        source = tf.TensorArray(F32, 3).unstack(x)
        result = tf.TensorArray(F32, 3)

        def body(i, state, out):
            state = state + source.read(i)
            return i + 1, state, out.write(i, state)
        _, _, out = v1.while_loop(lambda i, s, o: i < 3, body, [tf.constant(0), tf.zeros([2]), result])
        each([out.stack(), out.concat() if lowered else out.stack()])
        if lowered:
            each([out.size(), out.gather([1, 0])])
            tf.TensorArray(F32, 2).split(x, [1, 2]).read(0)
    return make


def lists():
    shape = tf.constant([2])
    held = raw.TensorListReserve(element_shape=shape, num_elements=2, element_dtype=F32)
    held = raw.TensorListSetItem(input_handle=held, index=0, item=numbers(2))
    held = raw.TensorListPushBack(input_handle=held, tensor=feed(F32, (2,)))
    each([raw.TensorListGetItem(input_handle=held, index=1, element_shape=shape, element_dtype=F32),
          raw.TensorListStack(input_handle=held, element_shape=shape, element_dtype=F32),
          raw.TensorListLength(input_handle=held)])
    held, last = raw.TensorListPopBack(input_handle=held, element_shape=shape, element_dtype=F32)
    tf.identity(last)
    held = raw.TensorListResize(input_handle=held, size=4)
    raw.TensorListGather(input_handle=held, indices=[0, 1], element_shape=shape, element_dtype=F32)
    held = raw.TensorListFromTensor(tensor=feed(F32, (None, 2)), element_shape=shape)
    each(raw.TensorListConcatV2(input_handle=raw.TensorListSplit(tensor=numbers(3, 2), element_shape=tf.constant([-1, 2]),
                                                                 lengths=tf.constant([1, 2], I64)),
                                element_shape=tf.constant([-1, 2]), leading_dims=tf.constant([], I64), element_dtype=F32))
    raw.TensorListElementShape(input_handle=held, shape_type=I32)


def calls():
    @tf.function
    def inner(v):
        return v * 2., v + 1.

    @tf.function
    def outer(v):
        a, b = inner(v)
        return inner(a)[1] + b
    tf.identity(outer(feed()))


def dtypes():
    for dtype in (tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64,
                  tf.complex64):
        x = feed(dtype, (None, 2))
        tf.identity(raw.AddV2(x=x, y=tf.cast(tf.constant([1, 0]), dtype)))


CASES = {
    "element_wise": element_wise, "binaries": binaries, "bits": bits, "reductions": reductions, "products": products,
    "moves": moves, "slices": slices, "gathers": gathers, "convolutions": convolutions, "pools": pools, "volumes": volumes,
    "resizes": resizes, "boxes": boxes, "sorting": sorting, "segments": segments, "partitions": partitions, "sparse": sparse,
    "ragged": ragged, "matrices": matrices, "spectra": spectra, "quantized": quantized, "randoms": randoms,
    "strings": strings, "cells": cells, "defaults": defaults, "asserts": asserts, "tables": tables, "while": loop(False),
    "while_v1": loop(True), "nested": nested(False), "nested_v1": nested(True), "if": branch(False), "if_v1": branch(True),
    "case": case, "arrays": arrays(False), "arrays_v1": arrays(True), "lists": lists, "calls": calls, "dtypes": dtypes,
}

NOISE = ("_output_shapes", "_class", "_num_original_outputs", "_read_only_resource_inputs", "_lower_using_switch_merge",
         "_xla_propagate_compile_time_consts", "_stateful_parallelism", "output_shapes", "parallel_iterations", "config",
         "config_proto", "executor_type", "seed", "seed2", "use_cudnn_on_gpu", "shape_attr")


def small(graph_def):
    """What the importer does not read is left out."""
    graph_def.ClearField("versions")
    nodes = list(graph_def.node)
    for function in graph_def.library.function:
        nodes += function.node_def
        for field in ("attr", "arg_attr", "resource_arg_unique_id", "control_ret"):
            function.ClearField(field)
        function.signature.ClearField("attr")
        for argument in list(function.signature.input_arg) + list(function.signature.output_arg):
            argument.ClearField("handle_data")
            argument.ClearField("experimental_full_type")
    for node in nodes:
        node.ClearField("device")
        node.ClearField("experimental_debug_info")
        node.ClearField("experimental_type")
        for name in NOISE:
            node.attr.pop(name, None)
    return graph_def


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for name, make in CASES.items():
        graph = tf.Graph()
        with graph.as_default():
            make()
        data = small(graph.as_graph_def()).SerializeToString(deterministic=True)
        (folder / f"{name}.pb").write_bytes(data)
        total += len(data)
    print(f"{len(CASES)} seeds, {total} bytes")


if __name__ == "__main__":
    main()
