"""Graphs as layers write them, which passes rewrite or whose rows take a proof."""

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from harness import v1


def dilations(c):
    """Dilated convolutions made of blocks."""
    for rate in (2, 3):
        filters = c.data("float32", 3, 3, 2, 4)

        def image(enter, rate=rate, filters=filters):
            x = enter("x", c.feed("float32", 3, 9, 8, 2))
            out = tf.nn.atrous_conv2d(x, tf.constant(filters), rate, "SAME")
            return tf.nn.relu(tf.nn.bias_add(out, tf.constant(c.data("float32", 4))), name="out")

        c.graph(f"dilated_image_{rate}", image, batchable=True)

        if rate > 2:
            continue

        def sized(enter, rate=rate, filters=filters):
            x = enter("x", c.feed("float32", 3, 9, 8, 2, declared=[None, None, None, 2]))
            return tf.identity(tf.nn.atrous_conv2d(x, tf.constant(filters), rate, "SAME"), name="out")

        c.graph(f"dilated_image_of_any_size_{rate}", sized, batchable=True)

        def valid(enter, rate=rate, filters=filters):
            x = enter("x", c.feed("float32", 3, 9, 8, 2))
            return tf.identity(tf.nn.atrous_conv2d(x, tf.constant(filters), rate, "VALID"), name="out")

        c.graph(f"dilated_valid_{rate}", valid, batchable=True)

        def sequence(enter, rate=rate):
            x = tf.pad(enter("x", c.feed("float32", 3, 10, 2)), [[0, 0], [2 * rate, 0], [0, 0]])
            out = tf.nn.convolution(x, tf.constant(c.data("float32", 3, 2, 4)), padding="VALID", dilations=rate)
            return tf.identity(out, name="out")

        c.graph(f"dilated_sequence_{rate}", sequence, batchable=True)

        def depthwise(enter, rate=rate):
            x = enter("x", c.feed("float32", 3, 9, 8, 2))
            blocks, ones = [rate, rate], c.data("float32", 3, 3, 2, 2)
            pads = [[rate, rate + (-(9 + 2 * rate)) % rate], [rate, rate + (-(8 + 2 * rate)) % rate]]
            apart = tf.space_to_batch(x, blocks, pads)
            out = tf.nn.depthwise_conv2d(apart, tf.constant(ones), [1, 1, 1, 1], "VALID")
            return tf.batch_to_space(out, blocks, [[0, 0], [1, 0]], name="out")

        c.graph(f"dilated_depthwise_{rate}", depthwise, batchable=True)


def normalisation(c):
    """Layer normalisation by the batch normalisation of a batch of one."""
    for name, declared in (("", "rows"), ("_of_any_length", [None, None, 8])):

        def build(enter, declared=declared):
            x = enter("x", c.feed("float32", 4, 5, 8, declared=declared))
            shape = tf.shape(x)
            rows = 1 * shape[0] * shape[1]
            flat = tf.reshape(x, [1, rows, 1 * shape[2], 1])
            normal, _, _ = v1.nn.fused_batch_norm(
                flat, tf.ones([rows]), tf.zeros([rows]), epsilon=1e-3, data_format="NCHW"
            )
            scale, shift = tf.constant(c.data("float32", 8)), tf.constant(c.data("float32", 8))
            return tf.add(tf.reshape(normal, shape) * scale, shift, name="out")

        c.graph(f"layer_norm{name}", build, batchable=True)


def steps(c):
    """A layer for every step of a sequence, as TimeDistributed has it."""

    def build(enter):
        x = tf.transpose(enter("x", c.feed("float32", 4, 5, 3)), [1, 0, 2])
        w = tf.constant(c.data("float32", 3, 2))
        out = tf.stack([tf.nn.relu(tf.matmul(x[i], w)) for i in range(5)])
        return tf.transpose(out, [1, 0, 2], name="out")

    c.graph("steps_stacked", build, batchable=True)

    def taken_apart(enter):
        x = tf.transpose(enter("x", c.feed("float32", 4, 3, 2)), [1, 0, 2])
        return tf.add_n([part * float(i) for i, part in enumerate(tf.unstack(x))], name="out")

    c.graph("steps_unstacked", taken_apart, batchable=True)


def layer_case(c, name, layer, *shape, declared="rows"):
    """A case of a Keras layer, whose weights are constants of the case."""

    c.values.calls = 0
    layer(tf.zeros([1, *shape[1:]]))
    layer.set_weights([c.data("float32", *w.shape) for w in layer.weights])
    wanted = [None, *shape[1:]] if declared == "rows" else declared
    call = tf.function(lambda x: layer(x, training=False))
    frozen = convert_variables_to_constants_v2(call.get_concrete_function(tf.TensorSpec(wanted, tf.float32)))

    def build(enter):
        x = enter("x", c.feed("float32", *shape, declared=declared))
        names = {frozen.inputs[0].op.name: x}
        graph = frozen.graph.as_graph_def()
        for node in [n for n in graph.node if n.op == "Placeholder"]:
            graph.node.remove(node)
        return tf.import_graph_def(graph, names, [frozen.outputs[0].name], name="")

    c.graph(name, build, batchable=True)


def keras(c):
    """Layers as Keras itself writes them."""
    layers = tf_keras.layers
    layer_case(c, "keras_layer_norm", layers.LayerNormalization(), 4, 5, 8)
    layer_case(c, "keras_layer_norm_of_any_length", layers.LayerNormalization(), 4, 5, 8, declared=[None, None, 8])
    layer_case(c, "keras_layer_norm_of_rows", layers.LayerNormalization(), 4, 6)
    layer_case(c, "keras_layer_norm_of_image", layers.LayerNormalization(axis=[1, 2]), 3, 4, 5, 2)
    dense = layers.TimeDistributed(layers.Dense(3, activation="relu"))
    layer_case(c, "time_distributed_dense", dense, 4, 5, 3)
    conv = layers.TimeDistributed(layers.Conv2D(2, 3, padding="same"))
    layer_case(c, "time_distributed_conv", conv, 2, 3, 5, 4, 2)
    layer_case(c, "center_crop", layers.CenterCrop(4, 3), 3, 7, 6, 2)
    layer_case(c, "center_crop_enlarges", layers.CenterCrop(8, 9), 2, 5, 4, 2)
    any_size = [None, None, None, 2]
    layer_case(c, "center_crop_of_any_size", layers.CenterCrop(4, 3), 3, 7, 6, 2, declared=any_size)
    layer_case(c, "dilated_keras_conv", layers.Conv2D(3, 3, dilation_rate=2, padding="same"), 2, 7, 6, 2)


def ssd_boxes(c, enter):
    """Boxes and scores of a detector: two feature maps, predictors, and anchors for each image."""
    maps = [enter(f"map{i}", c.feed("float32", 3, size, size, 4)) for i, size in enumerate((4, 2))]
    codes, scores, anchors = [], [], 2
    for features in maps:
        shape = tf.shape(features)
        where = tf.nn.conv2d(features, tf.constant(c.data("float32", 1, 1, 4, anchors * 4)), 1, "SAME")
        what = tf.nn.conv2d(features, tf.constant(c.data("float32", 3, 3, 4, anchors * 3)), 1, "SAME")
        count = shape[1] * shape[2] * anchors
        codes.append(tf.reshape(where, tf.stack([shape[0], count, 1, 4])))
        scores.append(tf.reshape(what, tf.stack([shape[0], count, 3])))
    codes = tf.squeeze(tf.concat(codes, 1) * 0.1, axis=2)
    boxes = tf.constant(np.abs(c.data("float32", 40, 4)))
    batch, count = tf.shape(codes)[0], tf.shape(codes)[1]
    tiled = tf.reshape(tf.tile(tf.expand_dims(boxes, 0), [batch, 1, 1]), [-1, 4])
    ya, xa, ha, wa = tf.unstack(tf.transpose(tiled))
    ty, tx, th, tw = tf.unstack(tf.transpose(tf.reshape(codes, [-1, 4])))
    h, w = tf.exp(th / 5.0) * ha, tf.exp(tw / 5.0) * wa
    y, x = ty / 10.0 * ha + ya, tx / 10.0 * wa + xa
    decoded = tf.transpose(tf.stack([y - h / 2.0, x - w / 2.0, y + h / 2.0, x + w / 2.0]))
    return tf.reshape(decoded, tf.stack([batch, count, 4])), tf.sigmoid(tf.concat(scores, 1) * 0.03)


def ssd(c):
    """The head of a single-shot detector, as TensorFlow's detection models write it."""

    def head(enter):
        boxes, scores = ssd_boxes(c, enter)
        return tf.identity(boxes, name="boxes"), tf.identity(scores, name="scores")

    c.graph("ssd_head", head, batchable=True)

    def chosen(enter):
        boxes, scores = ssd_boxes(c, enter)
        found = tf.image.combined_non_max_suppression(tf.expand_dims(boxes, 2), scores[:, :, 1:], 4, 6)
        return [tf.identity(t, name=n) for t, n in zip(found, ("boxes", "scores", "classes", "count"))]

    c.graph("ssd_head_chosen", chosen, batchable=True)

    def mapped(enter):
        boxes, scores = ssd_boxes(c, enter)

        def best(image):
            kept, count = tf.image.non_max_suppression_padded(
                image[0], tf.reduce_max(image[1], axis=1), 5, pad_to_max_output_size=True
            )
            return tf.gather(image[0], kept), count

        kept, count = tf.map_fn(best, (boxes, scores), fn_output_signature=(tf.float32, tf.int32))
        return tf.identity(kept, name="kept"), tf.identity(count, name="count")

    c.graph("ssd_head_mapped", mapped, batchable=True)

    def filtered(enter):
        boxes, scores = ssd_boxes(c, enter)
        found = []
        for i in range(1, 3):
            of_class = scores[0, :, i]
            likely = tf.reshape(tf.where(of_class > 0.5), [-1])
            near, score = tf.gather(boxes[0], likely), tf.gather(of_class, likely)
            kept = tf.image.non_max_suppression(near, score, 4, 0.3, score_threshold=0.2)
            found.append((tf.gather(near, kept), tf.gather(score, kept)))
        return [tf.identity(tf.concat(t, 0), name=n) for t, n in zip(zip(*found), ("boxes", "scores"))]

    c.graph("ssd_head_filtered", filtered)


def cases(c):
    """All of the family."""
    dilations(c)
    normalisation(c)
    steps(c)
    keras(c)
    ssd(c)
