"""Control flow: what is not taken refuses nothing, what is taken keeps its effects, predicates of any type."""

import numpy as np
import tensorflow as tf
from control import in_both_forms
from tensorflow.python.framework import function

from harness import Feed, v1


def untaken(c):
    """Branches and bodies that could not run, and do not."""
    image = c.data("float32", 4, 5, 3)
    for name, value in (("image", image), ("images", image[None])):

        def transposed(enter, value=value):
            return tf.identity(tf.image.transpose(enter("x", Feed(value, None))), name="out")

        in_both_forms(c, f"untaken_rank_{name}", transposed)

        def rotated(enter, value=value):
            x, k = enter("x", Feed(value, None)), enter("k", Feed(np.int32(3), []))
            return tf.identity(tf.image.rot90(x, k), name="out")

        (v1.disable_control_flow_v2 if name == "image" else v1.enable_control_flow_v2)()
        c.graph(f"untaken_rotation_{name}", rotated)

    for taken in (True, False):

        def folded(enter, taken=taken):
            p, n = enter("p", Feed(np.bool_(taken), [])), enter("n", Feed(np.int32(3), []))
            broken = lambda: tf.constant(7) // tf.constant(0)
            return tf.identity(v1.cond(p, lambda: n, broken), name="out")

        in_both_forms(c, f"untaken_constants_{taken}".lower(), folded, fails=None if taken else "zero")

        def misfit(enter, taken=taken):
            p, x = enter("p", Feed(np.bool_(taken), [])), enter("x", c.feed("float32", 4, 3))
            w = tf.constant(c.data("float32", 2, 3))
            times = lambda: tf.raw_ops.MatMul(a=x, b=tf.reshape(w, tf.shape(x)[:1] * 0 + [2, 3]))
            return tf.identity(v1.cond(p, lambda: x, times), name="out")

        in_both_forms(c, f"untaken_product_{taken}".lower(), misfit, fails=None if taken else "inner dims")

    for times in (0, 1):

        def body(enter, times=times):
            x, n = enter("x", c.feed("float32", 4, 3)), enter("n", Feed(np.int32(times), []))
            w = tf.constant(c.data("float32", 2, 3))
            step = lambda i, s: (i + 1, tf.matmul(s, tf.reshape(w, tf.shape(s)[:1] * 0 + [2, 3])))
            shapes = [tf.TensorShape([]), tf.TensorShape(None)]
            out = v1.while_loop(lambda i, _: i < n, step, [0, x], shape_invariants=shapes)
            return tf.identity(out[1], name="out")

        in_both_forms(c, f"untaken_body_{times}", body, fails="inner dims" if times else None)

    def unread(enter):
        p, n = enter("p", Feed(np.bool_(True), [])), enter("n", Feed(np.int32(0), []))
        results = v1.cond(p, lambda: (7 // n, n + 1), lambda: (n, n))
        return tf.identity(results[1], name="out")

    in_both_forms(c, "unread_result", unread)

    def in_loop(enter):
        images = enter("x", Feed(image[None], None))
        turned = tf.map_fn(tf.image.transpose, images)
        return tf.identity(tf.reduce_sum(turned, [2]), name="out")

    in_both_forms(c, "untaken_in_loop", in_loop)

    def nested(enter):
        p, x = enter("p", Feed(np.bool_(True), [])), enter("x", c.feed("float32", 4, 3))
        q = tf.reduce_sum(x) > -1e9
        wrong = lambda: tf.constant(7) // tf.constant(0)
        inner = lambda: v1.cond(q, lambda: tf.size(x), wrong)
        return tf.identity(v1.cond(p, inner, lambda: wrong() + 1), name="out")

    in_both_forms(c, "untaken_nested", nested)


def effects(c):
    """Assertions in branches and functions, with and without a value that waits for them."""
    for holds in (True, False):
        fails = None if holds else "too large"

        def waited(enter, holds=holds):
            p, x = enter("p", Feed(np.bool_(False), [])), enter("x", Feed(np.float32([1, 1]), [2]))

            def checked():
                check = tf.raw_ops.Assert(condition=tf.reduce_all(x < (2.0 if holds else 0.5)), data=["too large"])
                with tf.control_dependencies([check]):
                    return x + 1.0

            return tf.identity(v1.cond(p, lambda: x, checked), name="out")

        in_both_forms(c, f"assert_waited_for_{holds}".lower(), waited, fails=fails)

        def grouped(enter, holds=holds):
            p, x = enter("p", Feed(np.bool_(False), [])), enter("x", Feed(np.float32([1, 1]), [2]))

            def checked():
                check = tf.raw_ops.Assert(condition=tf.reduce_all(x < (2.0 if holds else 0.5)), data=["too large"])
                with tf.control_dependencies([tf.group(check)]):
                    return tf.constant(True)

            done = v1.cond(p, lambda: tf.constant(True), checked)
            with tf.control_dependencies([done]):
                return tf.identity(x, name="out")

        in_both_forms(c, f"assert_control_only_{holds}".lower(), grouped, fails=fails)

        def in_loop(enter, holds=holds):
            x = enter("x", Feed(np.float32([1, 1]), [2]))

            def step(i, s):
                check = tf.raw_ops.Assert(condition=tf.reduce_all(s < (9.0 if holds else 2.5)), data=["too large"])
                with tf.control_dependencies([check]):
                    return i + 1, s + 1.0

            return tf.identity(v1.while_loop(lambda i, _: i < 3, step, [0, x])[1], name="out")

        in_both_forms(c, f"assert_in_loop_{holds}".lower(), in_loop, fails=fails)

        def unwaited(enter, holds=holds, op="If"):
            @function.Defun(tf.float32, func_name="checked")
            def checked(x):
                tf.raw_ops.Assert(condition=tf.reduce_all(x < (2.0 if holds else 0.5)), data=["too large"])
                return x + 1.0

            @function.Defun(tf.float32, func_name="plain")
            def plain(x):
                return x

            x = enter("x", Feed(np.float32([1, 1]), [2]))
            if op == "StatefulPartitionedCall":
                return tf.raw_ops.StatefulPartitionedCall(args=[x], Tout=[tf.float32], f=checked, name="out")
            p = enter("p", Feed(np.bool_(True), []))
            return tf.raw_ops.If(
                cond=p, input=[x], Tout=[tf.float32], then_branch=checked, else_branch=plain, name="out"
            )

        c.graph(f"assert_in_function_{holds}".lower(), unwaited, fails=fails)
        call = lambda enter, holds=holds: unwaited(enter, holds, "StatefulPartitionedCall")
        c.graph(f"assert_nobody_waits_for_{holds}".lower(), call)

        def traced(enter, holds=holds):
            @tf.function(autograph=False)
            def checked(x):
                tf.raw_ops.Assert(condition=tf.reduce_all(x < (2.0 if holds else 0.5)), data=["too large"])
                return x + 1.0

            return tf.identity(checked(enter("x", Feed(np.float32([1, 1]), [2]))), name="out")

        c.graph(f"assert_in_call_{holds}".lower(), traced, fails=fails)


def predicates(c):
    """What counts as true."""
    values = {
        "float": np.float32(0.5),
        "negative_zero": np.float32(-0.0),
        "nan": np.float64(np.nan),
        "int8": np.int8(2),
        "int16": np.int16(0),
        "uint8": np.uint8(7),
        "int64": np.int64(-1),
        "empty_string": np.array(b"", object),
        "string": np.array(b"0", object),
        "one_false": np.array([False]),
        "no_element": np.zeros([0, 3], bool),
        "zeros": np.zeros([2], np.int32),
        "half": np.zeros([1], np.float16),
    }
    for name, value in values.items():

        def chosen(enter, value=value):
            @function.Defun(tf.float32, func_name="more")
            def more(x):
                return x + 1.0

            @function.Defun(tf.float32, func_name="less")
            def less(x):
                return x - 1.0

            p, x = enter("p", Feed(value, list(value.shape))), enter("x", c.feed("float32", 2))
            return tf.raw_ops.If(cond=p, input=[x], Tout=[tf.float32], then_branch=more, else_branch=less, name="out")

        c.graph(f"predicate_{name}", chosen)

    def drained(enter):
        @function.Defun(tf.float32, tf.int32, func_name="rest")
        def rest(x, n):
            return x

        @function.Defun(tf.float32, tf.int32, func_name="without_first")
        def without_first(x, n):
            return x[1:], n + 1

        x, n = enter("x", c.feed("float32", 4)), enter("n", Feed(np.int32(0), []))
        return tf.raw_ops.While(input=[x, n], cond=rest, body=without_first, name="out")

    c.graph("predicate_while_elements", drained)

    def countdown(enter):
        @function.Defun(tf.float64, func_name="left")
        def left(x):
            return x

        @function.Defun(tf.float64, func_name="down")
        def down(x):
            return x - 0.5

        return tf.raw_ops.While(input=[enter("x", Feed(np.float64(3), []))], cond=left, body=down, name="out")

    c.graph("predicate_while_number", countdown)


def rotations(c):
    """Loops whose variables change places."""
    for count in (18,):

        def rotated(enter, count=count):
            first = enter("x", c.feed("float32", 4, 3))
            values = [tf.constant(np.float32(k)) for k in range(count - 1)]
            step = lambda i, *v: (i + 1, *v[1:], v[0])
            shapes = [tf.TensorShape([])] + [tf.TensorShape(None)] * count
            out = v1.while_loop(lambda i, *_: i < 5, step, [0, *values, first], shape_invariants=shapes)
            return tf.identity(out[count - 4], name="moved"), tf.identity(out[1], name="constant")

        in_both_forms(c, f"rotated_{count}", rotated)

        def worked(enter, count=count):
            first = enter("x", c.feed("float32", 4, 3))
            values = [tf.constant(np.float32([[k, 1, 2]])) for k in range(count - 1)]
            step = lambda i, *v: (i + 1, *(tf.nn.relu(a) + 1.0 for a in v[1:]), v[0])
            shapes = [tf.TensorShape([])] + [tf.TensorShape(None)] * count
            out = v1.while_loop(lambda i, *_: i < 5, step, [0, *values, first], shape_invariants=shapes)
            return tf.identity(out[count - 4], name="moved"), tf.identity(out[2], name="constant")

        c.graph(f"rotated_and_changed_{count}", worked)


def lists(c):
    """A list that a branch gives out twice."""
    raw = tf.raw_ops

    def build(enter):
        @function.Defun(tf.float32, func_name="twice")
        def twice(x):
            made = raw.TensorListFromTensor(tensor=x * 2.0, element_shape=np.array([3], np.int32))
            return made, made

        @function.Defun(tf.float32, func_name="two")
        def two(x):
            make = lambda t: raw.TensorListFromTensor(tensor=t, element_shape=np.array([3], np.int32))
            return make(x), make(-x)

        p, x = enter("p", Feed(np.bool_(True), [])), enter("x", c.feed("float32", 4, 3))
        given = raw.If(cond=p, input=[x], Tout=[tf.variant] * 2, then_branch=twice, else_branch=two)
        shape = np.array([3], np.int32)
        changed = raw.TensorListSetItem(input_handle=given[0], index=np.int32(1), item=x[0])
        stack = lambda made, name: raw.TensorListStack(
            input_handle=made, element_shape=shape, element_dtype=tf.float32, name=name
        )
        return stack(changed, "changed"), stack(given[1], "kept")

    c.graph("list_given_twice", build)


def indexes(c):
    """Switches with a side for each value of an index, as TensorFlow lowers Case."""
    for index in (0, 2, 5, -1):

        def build(enter, index=index):
            x, i = enter("x", c.feed("float32", 4, 3)), enter("i", Feed(np.int32(index), []))
            graph = tf.compat.v1.get_default_graph()
            sides = lambda data, name: graph.create_op(
                "_SwitchN",
                [data, i],
                [data.dtype] * 3,
                name=name,
                attrs={"num_outs": tf.compat.v1.AttrValue(i=3), "T": tf.compat.v1.AttrValue(type=data.dtype.as_datatype_enum)},
            ).outputs
            first, second, third = sides(x, "data")
            with tf.control_dependencies([tf.identity(sides(i, "index")[2])]):
                check = tf.raw_ops.Assert(condition=tf.reduce_all(third < 99.0), data=["too large"])
            with tf.control_dependencies([check]):
                third = tf.identity(third)
            merged, which = tf.raw_ops.Merge(inputs=[first * 2.0, third, -second])
            return tf.identity(merged, name="out"), tf.identity(which, name="index_out")

        c.graph(f"switch_n_{index}".replace("-1", "negative"), build)

    def constant(enter):
        x = enter("x", c.feed("float32", 4, 3))
        graph = tf.compat.v1.get_default_graph()
        attrs = {"num_outs": tf.compat.v1.AttrValue(i=2), "T": tf.compat.v1.AttrValue(type=1)}
        op = graph.create_op("_SwitchN", [x, tf.constant(7)], [tf.float32] * 2, name="data", attrs=attrs)
        merged, _ = tf.raw_ops.Merge(inputs=[op.outputs[0] * 2.0, -op.outputs[1]])
        return tf.identity(merged, name="out")

    c.graph("switch_n_of_a_constant", constant)


def cases(c):
    """All of the family."""
    indexes(c)
    lists(c)
    untaken(c)
    effects(c)
    predicates(c)
    rotations(c)
