"""Values that follow from the number of rows, and values whose shape the run settles.

The number of rows and what is reckoned from it are known before a run and differ from batch to
batch: kernels read them, and what they decide must never count as the same for every request.
"""

import numpy as np
import tensorflow as tf

raw = tf.raw_ops


def rows(x):
    """The number of rows of x as a scalar that is affine in it."""
    return tf.shape(x)[0]


def cases(c):
    """All cases."""
    read_by_kernels(c)
    decide_for_all(c)
    lists(c)
    runtime_aliases(c)
    rows_elsewhere(c)
    shared_outputs(c)


def case(c, name, build, feed=None, **options):
    """A case over x [3,4], of which `build` gets the tensor and the number of its rows."""
    x = feed or c.feed("float32", 3, 4)

    def graph(enter):
        entered = enter("x", x)
        return tf.identity(build(entered, rows(entered)), name="out")

    c.graph(name, graph, **options)


def read_by_kernels(c):
    """Kernels that read such a value."""
    zero = lambda n: tf.zeros_like(n)
    case(c, "pad_columns", lambda x, n: raw.Pad(input=x, paddings=[[0, 0], [n, 1]]))
    case(c, "pad_rows", lambda x, n: raw.Pad(input=x, paddings=[[n, n + 1], [0, 0]]))
    case(c, "pad_value", lambda x, n: raw.PadV2(input=x, paddings=[[0, 0], [0, n]], constant_values=2.0))
    case(c, "mirror_pad", lambda x, n: raw.MirrorPad(input=x, paddings=[[0, 0], [n - 1, 0]], mode="REFLECT"))
    case(c, "roll_columns", lambda x, n: raw.Roll(input=x, shift=n, axis=1))
    case(c, "roll_rows", lambda x, n: raw.Roll(input=x, shift=n - 1, axis=0))
    case(c, "slice_columns", lambda x, n: raw.Slice(input=x, begin=[0, n - 2], size=[-1, 2]))
    case(c, "slice_rows", lambda x, n: raw.Slice(input=x, begin=[n - 1, 0], size=[1, -1]))
    case(c, "slice_sizes", lambda x, n: raw.Slice(input=x, begin=[0, 1], size=[n, n]))
    case(c, "strided_slice_column", lambda x, n: x[:, n - 1])
    case(c, "strided_slice_row", lambda x, n: x[n - 1])
    case(c, "strided_slice_end", lambda x, n: x[:, : n - 1])
    case(c, "strided_slice_step", lambda x, n: x[:, :: n - 1])
    case(c, "split_sizes", lambda x, n: raw.SplitV(value=x, size_splits=[n, 4 - n], axis=1, num_split=2)[0])
    case(c, "top_k", lambda x, n: raw.TopKV2(input=x, k=n - 1).values)
    case(c, "one_hot", lambda x, n: raw.OneHot(indices=tf.cast(x, tf.int32), depth=n, on_value=1.0, off_value=0.0))
    columns = lambda n: [tf.reshape(tf.stack([n, n * 2]), [2, 1]), tf.reshape(tf.stack([n * 0, n]), [2, 1])]
    times = lambda x, table: tf.cast(table, tf.float32) * tf.reduce_sum(x)
    case(c, "joined_columns", lambda x, n: times(x, raw.ConcatV2(values=columns(n), axis=1)))
    case(c, "joined_columns_v1", lambda x, n: times(x, raw.Concat(values=columns(n), concat_dim=1)))
    case(c, "tile_columns", lambda x, n: raw.Tile(input=x, multiples=[1, n]))
    case(c, "fill_like", lambda x, n: raw.Fill(dims=[n, n + 1], value=2.0))
    case(c, "range_to", lambda x, n: raw.Range(start=0, limit=n, delta=1))
    case(c, "range_from", lambda x, n: raw.Range(start=n, limit=2 * n, delta=1))
    case(c, "gather_row", lambda x, n: raw.GatherV2(params=x, indices=[n - 1], axis=0))
    case(c, "broadcast_rows", lambda x, n: raw.BroadcastTo(input=tf.constant([[1.0, 2.0]]), shape=[n, 2]))
    case(c, "itself", lambda x, n: raw.Pack(values=[n, 2 * n, zero(n)], axis=0))
    image = lambda: c.feed("float32", 2, 3, 3, 1)
    case(c, "resize", lambda x, n: raw.ResizeBilinear(images=x, size=[n, n + 1]), image())
    case(c, "space_to_batch", lambda x, n: raw.SpaceToBatchND(input=x, block_shape=[1, 2], paddings=[[0, 0], [n - 2, 1]]), image())
    case(c, "crop", lambda x, n: x[:, n - 2 : 3, 3 - n :], image())


def decide_for_all(c):
    """The number of rows decides what a row gets: right alone, and never batched."""
    table = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]], np.float32)
    case(c, "row_of_a_table", lambda x, n: x * tf.constant(table)[n - 1])
    case(c, "rows_of_a_table", lambda x, n: x * tf.constant(table)[n - 1 : n])
    case(c, "slice_of_a_table", lambda x, n: x + raw.Slice(input=table, begin=[n, 0], size=[1, 4]))
    case(c, "roll_of_a_table", lambda x, n: x + raw.Roll(input=table, shift=n, axis=0)[:1])
    case(c, "pad_of_a_table", lambda x, n: x + raw.Pad(input=table, paddings=[[n, 4 - n], [0, 0]])[3:4])
    case(c, "gather_of_a_table", lambda x, n: x * raw.GatherV2(params=table, indices=n - 1, axis=0))
    case(c, "scaled", lambda x, n: x / tf.cast(n, tf.float32))
    case(c, "shifted", lambda x, n: x + tf.cast(2 * n - 1, tf.float32))
    case(c, "branch", lambda x, n: tf.cond(n > 2, lambda: x + 1, lambda: x - 1))
    case(c, "loop", lambda x, n: tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2), (0, x), shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 4])))[1])


def lists(c):
    """Indices, lengths and sizes of lists and arrays."""
    elements = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]], np.float32)
    shape = np.array([4], np.int32)

    def whole():
        return raw.TensorListFromTensor(tensor=elements, element_shape=shape)

    def item(handle, i):
        return raw.TensorListGetItem(input_handle=handle, index=i, element_shape=shape, element_dtype=tf.float32)

    def stacked(handle):
        return raw.TensorListStack(input_handle=handle, element_shape=shape, element_dtype=tf.float32)

    case(c, "list_item", lambda x, n: x + item(whole(), n - 1))
    case(c, "list_set_item", lambda x, n: x + item(raw.TensorListSetItem(input_handle=whole(), index=n, item=elements[0]), 1))
    case(c, "list_length", lambda x, n: x * tf.cast(raw.TensorListLength(input_handle=raw.TensorListReserve(element_shape=shape, num_elements=n, element_dtype=tf.float32)), tf.float32))
    case(c, "list_resized", lambda x, n: x * tf.cast(raw.TensorListLength(input_handle=raw.TensorListResize(input_handle=whole(), size=n + 1)), tf.float32))
    case(c, "list_gather", lambda x, n: x + raw.TensorListGather(input_handle=whole(), indices=[n - 1], element_shape=shape, element_dtype=tf.float32))
    case(c, "list_scattered", lambda x, n: x + item(raw.TensorListScatterV2(tensor=elements[:2], indices=[n - 1, 0], element_shape=shape, num_elements=6), 1))
    case(c, "list_of_rows", lambda x, n: stacked(raw.TensorListSetItem(input_handle=raw.TensorListReserve(element_shape=shape, num_elements=n, element_dtype=tf.float32), index=n - 1, item=elements[0])))
    case(c, "list_push_rows", lambda x, n: item_of_rows(x, n))

    def array(size):
        made = raw.TensorArrayV3(size=size, dtype=tf.float32, clear_after_read=False)
        flow = raw.TensorArrayScatterV3(handle=made.handle, indices=[0, 1, 2, 3], value=elements, flow_in=made.flow)
        return made.handle, flow

    def read(x, n):
        handle, flow = array(4)
        return x + raw.TensorArrayReadV3(handle=handle, index=n - 1, flow_in=flow, dtype=tf.float32)

    def gather(x, n):
        handle, flow = array(4)
        return x + raw.TensorArrayGatherV3(handle=handle, indices=[n - 1], flow_in=flow, dtype=tf.float32)

    def size(x, n):
        made = raw.TensorArrayV3(size=2 * n, dtype=tf.float32)
        return x * tf.cast(raw.TensorArraySizeV3(handle=made.handle, flow_in=made.flow), tf.float32)

    def write(x, n):
        handle, flow = array(4 + n)
        flow = raw.TensorArrayWriteV3(handle=handle, index=n + 2, value=elements[0] + 1, flow_in=flow)
        return x + raw.TensorArrayReadV3(handle=handle, index=5, flow_in=flow, dtype=tf.float32)

    case(c, "array_read", read)
    case(c, "array_gather", gather)
    case(c, "array_size", size)
    case(c, "array_write", write)


def item_of_rows(x, n):
    """Elements shaped by the number of rows are rows still."""
    shape = tf.stack([n, 4])
    handle = raw.TensorListReserve(element_shape=shape, num_elements=2, element_dtype=tf.float32)
    handle = raw.TensorListSetItem(input_handle=handle, index=1, item=x + 1)
    one = raw.TensorListGetItem(input_handle=handle, index=1, element_shape=shape, element_dtype=tf.float32)
    none = raw.TensorListGetItem(input_handle=handle, index=0, element_shape=shape, element_dtype=tf.float32)
    return one * 2 + none


def runtime_aliases(c):
    """What is made of a value under a shape that the run settles."""
    six = lambda: c.feed("float32", 2, 3)
    two = lambda shape: c.feed("int32", len(shape), low=0, high=0) if shape is None else shape_feed(shape)

    def alias(name, build, shape=(3, 2)):
        def graph(enter):
            reshaped = raw.Reshape(tensor=enter("x", six()), shape=enter("s", two(shape)))
            return tf.identity(build(reshaped), name="out")

        c.graph("alias_" + name, graph)

    alias("shape", lambda y: tf.shape(y))
    alias("size", lambda y: tf.size(y))
    alias("relu", lambda y: tf.nn.relu(y))
    alias("sum", lambda y: tf.reduce_sum(y))
    alias("sum_rows", lambda y: tf.reduce_sum(y, axis=1))
    alias("squeeze", lambda y: tf.squeeze(y), (1, 6))
    alias("back", lambda y: tf.nn.relu(tf.reshape(y, [2, 3])))
    alias("twice", lambda y: tf.reshape(tf.reshape(y, [6]), [1, 6]) + 1)
    alias("matmul", lambda y: tf.matmul(y, np.ones((2, 2), np.float32)))
    alias("select", lambda y: tf.where(tf.reduce_sum(y) > 0, 1.0, 2.0))
    alias("gather_nd", lambda y: tf.gather_nd(y, [[2, 1], [0, 0]]))
    alias("concat", lambda y: tf.concat([y, y + 1], 1))
    alias("shape_sum", lambda y: tf.reduce_sum(tf.shape(y)) * tf.rank(y))

    def of_a_constant(enter):
        shape = enter("s", shape_feed((3, 2)))
        reshaped = raw.Reshape(tensor=np.arange(6, dtype=np.float32), shape=shape)
        return tf.identity(tf.nn.relu(tf.reshape(reshaped, [2, 3]) - 2), name="out")

    c.graph("alias_of_a_constant", of_a_constant)

    def of_a_made_value(enter):
        x = enter("x", six())
        kept = tf.boolean_mask(tf.reshape(x, [-1]), tf.reshape(x, [-1]) > -9)
        return tf.identity(tf.nn.relu(tf.reshape(tf.reshape(kept, enter("s", shape_feed((3, 2)))), [2, 3])), name="out")

    c.graph("alias_of_a_made_value", of_a_made_value)

    def padded_by_its_shape(enter):
        y = raw.Reshape(tensor=enter("x", six()), shape=enter("s", shape_feed((3, 2))))
        shape = tf.shape(y)
        missing = tf.expand_dims(5 - shape[0], 0)
        zeros = tf.zeros(tf.cond(tf.rank(y) > 1, lambda: tf.concat([missing, shape[1:]], 0), lambda: missing))
        whole = tf.concat([y, zeros], 0)
        return tf.identity(whole, name="out"), tf.shape(whole)

    c.graph("alias_padded_by_its_shape", padded_by_its_shape)


def shape_feed(shape):
    """A shape to feed."""
    from harness import Feed

    return Feed(np.array(shape, np.int32), shape=[len(shape)])


def rows_elsewhere(c):
    """The open dimension becomes another than the first: channels, columns, taps."""

    def fed(name, build, *shape, **options):
        def graph(enter):
            return tf.identity(build(enter("x", c.feed("float32", *shape)), enter), name="out")

        c.graph(name, graph, **options)

    turned = lambda x: tf.transpose(x, [1, 2, 0])[None]  # [1, ., ., rows]
    weights = lambda enter, *shape: enter("w", c.feed("float32", *shape))
    fed("rows_as_channels", lambda x, e: tf.nn.conv2d(turned(x), weights(e, 3, 3, 3, 5), 1, "SAME"), 3, 4, 5)
    fed("rows_as_groups", lambda x, e: tf.nn.depthwise_conv2d(turned(x), weights(e, 2, 2, 3, 2), [1, 1, 1, 1], "SAME"), 3, 4, 5)
    fed("rows_as_taps", lambda x, e: tf.nn.conv2d(np.ones((1, 5, 5, 2), np.float32), x[:, :, None, None] * np.ones((1, 1, 2, 3), np.float32), 1, "VALID"), 3, 2)
    fed("rows_as_columns", lambda x, e: tf.matmul(weights(e, 5, 4), x, transpose_b=True), 3, 4)
    fed("rows_summed", lambda x, e: tf.matmul(weights(e, 5, 3), x), 3, 4)
    fed("rows_as_height", lambda x, e: tf.nn.max_pool2d(x[None, :, :, None], 2, 1, "SAME"), 3, 4)
    fed("rows_as_image", lambda x, e: tf.nn.conv2d(x[None, :, :, None], weights(e, 3, 3, 1, 2), 1, "SAME"), 3, 4)
    fed("rows_in_einsum", lambda x, e: tf.einsum("bi,bj->ij", x, x), 3, 4)
    fed("rows_as_features", lambda x, e: tf.nn.softmax(tf.transpose(x)), 3, 4)


def shared_outputs(c):
    """A branch that returns one value as several outputs."""
    shape = np.array([2], np.int32)

    def graph(enter):
        x = enter("x", c.feed("float32", 2, 2))

        def both(y):
            made = raw.TensorListFromTensor(tensor=y, element_shape=shape)
            return made, made

        first, second = tf.cond(enter("p", c.feed("bool")), lambda: both(x), lambda: both(x + 1))
        stack = lambda handle: raw.TensorListStack(input_handle=handle, element_shape=shape, element_dtype=tf.float32)
        return tf.identity(stack(first) * 2 + stack(second), name="out")

    c.graph("a_list_returned_twice", graph)

    def passed_on(enter):
        x = enter("x", c.feed("float32", 2, 2))
        made = raw.TensorListFromTensor(tensor=x, element_shape=shape)
        first, second = tf.cond(enter("p", c.feed("bool")), lambda: (made, made), lambda: (made, made))
        stack = lambda handle: raw.TensorListStack(input_handle=handle, element_shape=shape, element_dtype=tf.float32)
        return tf.identity(stack(first) * 2 + stack(second), name="out")

    c.graph("a_list_passed_on_twice", passed_on)
