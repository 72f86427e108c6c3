"""Control flow in both forms, functions, lists, arrays, assertions."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function

from harness import Feed, v1


def in_both_forms(c, name, build, **more):
    """A case with functional control flow and one with switches and frames."""
    v1.enable_control_flow_v2()
    c.graph(name, build, **more)
    v1.disable_control_flow_v2()
    c.graph(f"{name}_v1", build, **more)


def branches(c):
    """If and Case."""
    x = c.feed("float32", 4, 3)
    for value in (False, True):
        chosen = Feed(np.bool_(value), [])

        def build(enter):
            data = enter("x", x)
            out = v1.cond(enter("p", chosen), lambda: data * 2.0, lambda: tf.nn.relu(data))
            return tf.identity(out, name="out")

        in_both_forms(c, f"cond_{value}".lower(), build)
    for value in (False, True):
        pair = [Feed(np.bool_(value), []), Feed(np.int32(4), [])]

        def nested(enter):
            p, n, data = enter("p", pair[0]), enter("n", pair[1]), enter("x", x)
            inner = lambda: v1.cond(n > 3, lambda: data + 1.0, lambda: data - 1.0)
            return tf.identity(v1.cond(p, inner, lambda: data), name="out")

        in_both_forms(c, f"cond_nested_{value}".lower(), nested)
    v1.enable_control_flow_v2()
    for index in (0, 2, 9):
        which = Feed(np.int32(index), [])

        def switch(enter):
            data = enter("x", x)
            parts = [lambda: data, lambda: -data, lambda: tf.square(data)]
            return tf.identity(tf.switch_case(enter("i", which), parts), name="out")

        c.graph(f"switch_case_{index}", switch)


def stateful_and_not(c):
    """The nodes themselves, with functions of our own."""

    def functions():
        @function.Defun(tf.float32, func_name="double")
        def double(x):
            return x + x

        @function.Defun(tf.float32, func_name="negate")
        def negate(x):
            return -x

        @function.Defun(tf.float32, func_name="small")
        def small(x):
            return tf.reduce_sum(x) < 100.0

        @function.Defun(tf.float32, tf.float32, func_name="split_sum")
        def split_sum(x, y):
            a, b = tf.split(x, 2, axis=1)
            values, order = tf.math.top_k(y, 2)
            return a + b, values, order

        return double, negate, small, split_sum

    def build(op):
        def body(enter):
            double, negate, small, split_sum = functions()
            x = enter("x", c.feed("float32", 4, 2, low=1))
            raw = getattr(tf.raw_ops, op)
            if op.endswith("While"):
                return raw(input=[x], cond=small, body=double, name="out")
            if op.endswith("Call"):
                y = enter("y", c.feed("float32", 4, 3))
                return raw(args=[x, y], Tout=[tf.float32, tf.float32, tf.int32], f=split_sum, name="out")
            more = {"Tout": [tf.float32], "name": "out"}
            if op.endswith("Case"):
                index = enter("i", Feed(np.int32(1), []))
                return raw(branch_index=index, input=[x], branches=[double, negate], **more)
            p = enter("p", Feed(np.bool_(False), []))
            return raw(cond=p, input=[x], then_branch=double, else_branch=negate, **more)

        return body

    for (
        op
    ) in "If StatelessIf While StatelessWhile Case StatelessCase PartitionedCall StatefulPartitionedCall".split():
        c.graph(op, build(op))

    def named(enter):
        split_sum = functions()[3]
        first, values, _ = split_sum(enter("x", c.feed("float32", 4, 2)), enter("y", c.feed("float32", 4, 3)))
        return tf.identity(first, name="first"), tf.identity(values, name="values")

    c.graph("call_by_name", named)


def loops(c):
    """While."""
    x = c.feed("float32", 4, 3)
    for times in (0, 5):
        count = Feed(np.int32(times), [])

        def build(enter):
            n, data = enter("n", count), enter("x", x)
            step = lambda i, state: (i + 1, state * 0.5 + data)
            return tf.identity(v1.while_loop(lambda i, _: i < n, step, [0, data])[1], name="out")

        in_both_forms(c, f"while_{times}", build)

    def nested(enter):
        data = enter("x", x)
        inner = lambda state: v1.while_loop(lambda j, _: j < 2, lambda j, s: (j + 1, s + 1.0), [0, state])[1]
        out = v1.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, inner(s) * data), [0, data])
        return tf.identity(out[1], name="out")

    in_both_forms(c, "while_nested", nested)

    def inside(enter):
        data = enter("x", x)
        step = lambda i, s: (i + 1, v1.cond(tf.equal(i % 2, 0), lambda: s + 1.0, lambda: s * data))
        return tf.identity(v1.while_loop(lambda i, _: i < 4, step, [0, data])[1], name="out")

    in_both_forms(c, "while_with_cond", inside)

    def growing(enter):
        data = enter("x", x)
        step = lambda i, s: (i + 1, tf.concat([s, data], 1))
        shapes = [tf.TensorShape([]), tf.TensorShape([None, None])]
        out = v1.while_loop(lambda i, _: i < 2, step, [0, data], shape_invariants=shapes)
        return tf.identity(out[1], name="out")

    in_both_forms(c, "while_growing", growing)

    def recurrent(enter):
        steps = tf.transpose(enter("x", c.feed("float32", 4, 5, 2)), [1, 0, 2])
        weights = tf.constant(c.data("float32", 4, 2))
        array = tf.TensorArray(tf.float32, 5, element_shape=[None, 2]).unstack(steps)
        outputs = tf.TensorArray(tf.float32, 5, element_shape=[None, 2])

        def step(i, state, outputs):
            state = tf.tanh(tf.matmul(tf.concat([array.read(i), state], 1), weights))
            return i + 1, state, outputs.write(i, state)

        first = tf.zeros_like(steps[0])
        _, last, outputs = v1.while_loop(lambda i, *_: i < 5, step, [0, first, outputs])
        sequence = tf.transpose(outputs.stack(), [1, 0, 2])
        return tf.identity(sequence, name="sequence"), tf.identity(last, name="last")

    in_both_forms(c, "recurrent", recurrent, rtol=1e-4, atol=1e-5)


def lists(c):
    """TensorList ops."""
    raw = tf.raw_ops
    item = np.array([3], np.int32)

    def pushed(enter):
        new = raw.EmptyTensorList(element_shape=item, max_num_elements=np.int32(9), element_dtype=tf.float32)
        for i in range(3):
            new = raw.TensorListPushBack(
                input_handle=new, tensor=enter(f"x{i}", Feed(c.data("float32", 3), [3]))
            )
        return new

    def build_push(enter):
        new, last = raw.TensorListPopBack(
            input_handle=pushed(enter), element_shape=item, element_dtype=tf.float32
        )
        length = raw.TensorListLength(input_handle=new, name="length")
        shape = raw.TensorListElementShape(input_handle=new, shape_type=tf.int32, name="shape")
        stack = raw.TensorListStack(
            input_handle=new, element_shape=item, element_dtype=tf.float32, name="stack"
        )
        return tf.identity(last, name="last"), length, shape, stack

    c.graph("list_push_pop", build_push)

    def build_set(enter):
        new = raw.TensorListReserve(element_shape=item, num_elements=np.int32(3), element_dtype=tf.float32)
        new = raw.TensorListSetItem(
            input_handle=new, index=np.int32(1), item=enter("x", Feed(c.data("float32", 3), [3]))
        )
        got = raw.TensorListGetItem(
            input_handle=new, index=np.int32(1), element_shape=item, element_dtype=tf.float32, name="got"
        )
        zero = raw.TensorListGetItem(
            input_handle=new, index=np.int32(0), element_shape=item, element_dtype=tf.float32, name="zero"
        )
        more = raw.TensorListResize(input_handle=new, size=np.int32(5))
        return got, zero, raw.TensorListLength(input_handle=more, name="length")

    c.graph("list_reserve_set_get", build_set)

    def build_rows(enter):
        new = raw.TensorListFromTensor(tensor=enter("x", c.feed("float32", 4, 3)), element_shape=item)
        some = raw.TensorListGather(
            input_handle=new,
            indices=np.array([3, 0], np.int32),
            element_shape=item,
            element_dtype=tf.float32,
            name="some",
        )
        return some, raw.TensorListStack(
            input_handle=new, element_shape=item, element_dtype=tf.float32, name="stack"
        )

    c.graph("list_from_tensor", build_rows)
    joined_lists(c, raw, item)


def joined_lists(c, raw, item):
    """TensorList ops that join and spread."""
    for op in ("TensorListConcat", "TensorListConcatV2"):

        def build_concat(enter, op=op):
            new = raw.TensorListSplit(
                tensor=enter("x", c.feed("float32", 5, 2)),
                element_shape=np.array([-1, 2], np.int32),
                lengths=np.array([2, 0, 3], np.int64),
            )
            if op.endswith("V2"):
                return raw.TensorListConcatV2(
                    input_handle=new,
                    element_shape=np.array([-1, 2], np.int32),
                    leading_dims=np.array([], np.int64),
                    element_dtype=tf.float32,
                    name="out",
                )
            return raw.TensorListConcat(input_handle=new, element_dtype=tf.float32, name="out")

        c.graph(op, build_concat)

    def build_scatter(enter):
        x = enter("x", c.feed("float32", 2, 3))
        order = np.array([2, 0], np.int32)
        first = raw.TensorListScatter(tensor=x, indices=order, element_shape=item)
        second = raw.TensorListScatterV2(
            tensor=x, indices=order, element_shape=item, num_elements=np.int32(4)
        )
        third = raw.TensorListScatterIntoExistingList(
            input_handle=second, tensor=-x, indices=np.array([3, 2], np.int32)
        )
        stack = lambda handle, name: raw.TensorListStack(
            input_handle=handle, element_shape=item, element_dtype=tf.float32, name=name
        )
        return stack(first, "first"), stack(second, "second"), stack(third, "third")

    c.graph("list_scatter", build_scatter)


def arrays(c):
    """TensorArray ops."""
    raw = tf.raw_ops

    def build(enter):
        handle, flow = raw.TensorArrayV3(size=np.int32(3), dtype=tf.float32, element_shape=[3])
        x = enter("x", c.feed("float32", 2, 3))
        flow = raw.TensorArrayScatterV3(
            handle=handle, indices=np.array([2, 0], np.int32), value=x, flow_in=flow
        )
        flow = raw.TensorArrayWriteV3(
            handle=handle, index=np.int32(1), value=enter("y", Feed(c.data("float32", 3), [3])), flow_in=flow
        )
        size = raw.TensorArraySizeV3(handle=handle, flow_in=flow, name="size")
        read = raw.TensorArrayReadV3(
            handle=handle, index=np.int32(2), flow_in=flow, dtype=tf.float32, name="read"
        )
        with tf.control_dependencies([read, size]):
            some = raw.TensorArrayGatherV3(
                handle=handle, indices=np.array([1, 0], np.int32), flow_in=flow, dtype=tf.float32, name="some"
            )
        with tf.control_dependencies([some]):
            close = raw.TensorArrayCloseV3(handle=handle)
        with tf.control_dependencies([close]):
            return tf.identity(read, name="out"), size, some

    c.graph("array_write_read", build)

    def joined(enter):
        handle, flow = raw.TensorArrayV3(size=np.int32(2), dtype=tf.float32)
        flow = raw.TensorArraySplitV3(
            handle=handle,
            value=enter("x", c.feed("float32", 5, 2)),
            lengths=np.array([4, 1], np.int64),
            flow_in=flow,
        )
        return raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=tf.float32, name="out")

    c.graph("array_split_concat", joined)


def asserts(c):
    """Assert, which must fail when its condition does."""

    def build(condition):
        def body(enter):
            x, holds = enter("x", c.feed("float32", 4)), enter("ok", Feed(np.bool_(condition), []))
            check = tf.raw_ops.Assert(condition=holds, data=["seen", np.int32(7)])
            with tf.control_dependencies([check]):
                return tf.identity(x, name="out")

        return body

    c.graph("assert_holds", build(True))
    c.graph("assert_fails", build(False), fails="seen")


def dead(c):
    """The two ops that v1 conditionals are made of, by themselves."""

    def build(enter):
        x, p = enter("x", c.feed("float32", 4)), enter("p", Feed(np.bool_(True), []))
        off, on = tf.raw_ops.Switch(data=x, pred=p, name="switch")
        merged = tf.raw_ops.Merge(inputs=[tf.negative(off), on * 2.0], name="merge")
        return [tf.identity(merged[0], name="out"), tf.identity(merged[1], name="index")]

    c.graph("switch_merge", build)


def cases(c):
    """All of the family."""
    branches(c)
    stateful_and_not(c)
    loops(c)
    lists(c)
    arrays(c)
    asserts(c)
    dead(c)
