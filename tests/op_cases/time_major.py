"""Sequences turned so that time comes first and rows second, as recurrent nets have them."""

import tensorflow as tf


def turned(x):
    """[rows, time, ...] to [time, rows, ...] and back."""
    return tf.transpose(x, [1, 0] + list(range(2, x.shape.rank)))


def cases(c):
    """All of the family."""
    each_time, each_row = c.data("float32", 3, 1, 2), c.data("float32", 3, 4, 2)
    steps = {
        "relu": tf.nn.relu,
        "add_constant": lambda x: x + c.data("float32", 2),
        "add_time": lambda x: x + each_time,
        "add_rows": lambda x: x + each_row,
        "add_itself": lambda x: x + x,
        "select": lambda x: tf.where(x > 0.0, x, tf.zeros_like(x)),
        "cast": lambda x: tf.cast(x, tf.int32),
        "reverse_time": lambda x: tf.reverse(x, [0]),
        "reverse_rows": lambda x: tf.reverse(x, [1]),
        "reverse_features": lambda x: tf.reverse(x, [2]),
        "skip_time": lambda x: x[1:, :, :],
        "some_rows": lambda x: x[:, ::-1, :],
        "some_features": lambda x: x[:, :, 1:],
        "concat_features": lambda x: tf.concat([x, -x], 2),
        "concat_time": lambda x: tf.concat([x, x[:1]], 0),
        "concat_rows": lambda x: tf.concat([x, x], 1),
        "turned_features": lambda x: tf.transpose(x, [2, 1, 0]),
        "sum_time": lambda x: x - tf.reduce_sum(x, 0, keepdims=True),
        "sum_rows": lambda x: x - tf.reduce_sum(x, 1, keepdims=True),
        "softmax": tf.nn.softmax,
    }
    for name, step in steps.items():

        def build(enter, step=step):
            return tf.identity(turned(step(turned(enter("x", c.feed("float32", 4, 3, 2))))), name="out")

        c.graph(name, build)

    def last_step(enter):
        return tf.identity(turned(enter("x", c.feed("float32", 4, 3, 2)))[-1], name="out")

    c.graph("last_step", last_step)

    def two_rows(enter):
        x, y = enter("x", c.feed("float32", 4, 3, 2)), enter("y", c.feed("float32", 4, 2))
        return tf.identity(turned(turned(x) * y), name="out")

    c.graph("rows_on_dim_1_and_0", two_rows)

    def masked(enter):
        x, lengths = enter("x", c.feed("float32", 4, 3, 2)), enter("n", c.feed("int32", 4, low=0, high=3))
        mask = tf.transpose(tf.sequence_mask(lengths, 3))
        return tf.identity(
            turned(tf.where(mask[:, :, None], turned(x), tf.zeros([], tf.float32))), name="out"
        )

    c.graph("masked", masked)
    c.graph("arange_time", lambda enter: counted(enter("x", c.feed("float32", 4, 3, 2))))


def counted(x):
    """Adds the number of the step."""
    steps = tf.cast(tf.range(3), tf.float32)[:, None, None]
    return tf.identity(turned(turned(x) + steps), name="out")
