"""SavedModels of every kind that TensorFlow has written, made by TensorFlow itself, and its own answers."""
import os

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


class Case:
    """A SavedModel with inputs for its signatures: {signature: {key: array}}."""

    def __init__(self, name, make, left_out=(), tags=("serve",)):
        self.name, self.make, self.left_out, self.tags = name, make, left_out, tags

    def __repr__(self):
        return self.name


def answers(path, feeds, tags=("serve",)):
    """What TensorFlow says: {signature: {key: array}}."""
    with v1.Session(graph=tf.Graph()) as session:
        meta = v1.saved_model.load(session, list(tags), path)
        out = {}
        for name, inputs in feeds.items():
            signature = meta.signature_def[name]
            feed = {signature.inputs[key].name: value for key, value in inputs.items()}
            out[name] = session.run({key: info.name for key, info in signature.outputs.items()}, feed)
        return out


def rows(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def save_v1(path, session, signatures, assets=None, init=None, saver=None, text=False, tags=("serve",)):
    builder = v1.saved_model.Builder(path)
    builder.add_meta_graph_and_variables(session, list(tags), signature_def_map=signatures, assets_collection=assets,
                                         main_op=init, saver=saver)
    builder.save(as_text=text)


def predict_v1(inputs, outputs):
    info = v1.saved_model.build_tensor_info
    return v1.saved_model.build_signature_def({k: info(t) for k, t in inputs.items()}, {k: info(t) for k, t in outputs.items()},
                                              "tensorflow/serving/predict")


# TensorFlow Serving's half_plus_two: y = a * x + b with signatures of all three methods; x is inside the graph.
def half_plus_two(path, resource=False, text=False):
    info = v1.saved_model.build_tensor_info
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=0.5, use_resource=resource)
        b = v1.get_variable("b", initializer=2.0, use_resource=resource)
        c = v1.get_variable("c", initializer=3.0, use_resource=resource)
        examples = v1.placeholder(tf.string, name="tf_example")
        parsed = v1.io.parse_example(examples, {"x": tf.io.FixedLenFeature([1], tf.float32),
                                                "x2": tf.io.FixedLenFeature([1], tf.float32, [0.0])})
        x = tf.identity(parsed["x"], name="x")
        y = tf.add(tf.multiply(a, x), b, name="y")
        y2 = tf.add(tf.multiply(a, x), c, name="y2")
        y3 = tf.add(tf.multiply(a, parsed["x2"]), c, name="y3")
        foo = os.path.join(os.path.dirname(path), "foo.txt")
        with open(foo, "w") as f:
            f.write("asset-file-contents")
        asset = tf.constant(foo)
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
        filename = v1.Variable("", name="filename_tensor", trainable=False, collections=[])
        init = tf.group(filename.assign(asset))
        session.run(v1.global_variables_initializer())
        names = v1.saved_model.signature_constants
        classify = v1.saved_model.build_signature_def({names.CLASSIFY_INPUTS: info(examples)}, {names.CLASSIFY_OUTPUT_SCORES: info(y)},
                                                      names.CLASSIFY_METHOD_NAME)
        regress = v1.saved_model.build_signature_def({names.REGRESS_INPUTS: info(examples)}, {names.REGRESS_OUTPUTS: info(y2)},
                                                     names.REGRESS_METHOD_NAME)
        inner = v1.saved_model.build_signature_def({"inputs": info(parsed["x2"])}, {"outputs": info(y3)}, names.REGRESS_METHOD_NAME)
        save_v1(path, session, {"serving_default": predict_v1({"x": x}, {"y": y}), "classify_x_to_y": classify, "regress_x_to_y2": regress,
                                "regress_x2_to_y3": inner},
                assets=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS), init=init, text=text)
    sent = np.array([tf.train.Example(features=tf.train.Features(feature={
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[value]))})).SerializeToString() for value in (1, -2.5, 30)], object)
    return {"serving_default": {"x": rows(4, 1)}, "regress_x2_to_y3": {"inputs": rows(3, 1)},
            "classify_x_to_y": {"inputs": sent}, "regress_x_to_y2": {"inputs": sent}}


def half_plus_two_tf2(path):
    class HalfPlusTwo(tf.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = tf.Variable(0.5), tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def __call__(self, x):
            return {"y": self.a * x + self.b}

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x"), tf.TensorSpec([None], tf.int64, name="n")])
        def more(self, x, n):
            return {"sum": self.a * x + tf.cast(n, tf.float32), "n": n + 1}

    module = HalfPlusTwo()
    tf.saved_model.save(module, path, {"serving_default": module.__call__, "more": module.more})
    return {"serving_default": {"x": rows(5)}, "more": {"x": np.float32(3), "n": np.arange(4)}}


def dtypes(path):
    kinds = [tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64, tf.uint32, tf.uint64]

    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.numbers = [tf.Variable(tf.cast(tf.range(1, 8), kind)) for kind in kinds]
            self.flags = tf.Variable([True, False, True])
            self.complex = tf.Variable(tf.complex([1.0, -2.0], [0.5, 3.0]))
            self.words = tf.Variable([["alpha", ""], ["gamma\0\xff", "d" * 300]])
            self.empty = tf.Variable(tf.zeros([0, 3]))

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
        def __call__(self, x):
            out = {f"v{i}": tf.cast(v, tf.float64) * tf.cast(x, tf.float64) for i, v in enumerate(self.numbers)}
            return dict(out, flags=tf.logical_and(self.flags, x > 0), real=tf.math.real(self.complex) * x,
                        words=tf.strings.join([self.words, tf.strings.as_string(tf.cast(x, tf.int32))]), empty=self.empty * x)

    module = Module()
    tf.saved_model.save(module, path, module.__call__)
    return {"serving_default": {"x": np.float32(2)}}


def partitioned(path, resource=True, text=False):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 6], name="x")
        wide = v1.get_variable("wide", [6, 8], partitioner=v1.fixed_size_partitioner(3, axis=1), use_resource=resource,
                               initializer=v1.random_normal_initializer(seed=1))
        tall = v1.get_variable("scope/tall", [8, 2], partitioner=v1.fixed_size_partitioner(4), use_resource=resource,
                               initializer=v1.random_normal_initializer(seed=2))
        table = v1.get_variable("table", [11, 3], partitioner=v1.fixed_size_partitioner(2), use_resource=resource,
                                initializer=v1.random_normal_initializer(seed=3))
        ids = v1.placeholder(tf.int64, [None], name="ids")
        y = tf.matmul(tf.matmul(x, tf.convert_to_tensor(wide)), tf.convert_to_tensor(tall), name="y")
        z = v1.nn.embedding_lookup(table, ids, partition_strategy="div", name="z")
        session.run(v1.global_variables_initializer())
        save_v1(path, session, {"serving_default": predict_v1({"x": x}, {"y": y}), "lookup": predict_v1({"ids": ids}, {"z": z})}, text=text)
    return {"serving_default": {"x": rows(3, 6)}, "lookup": {"ids": np.array([0, 10, 5, 6])}}


def sharded(path):
    config = v1.ConfigProto(device_count={"CPU": 3})
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        y = x
        for i in range(3):
            with tf.device(f"/cpu:{i}"):
                y = tf.matmul(y, v1.get_variable(f"w{i}", [4, 4], initializer=v1.random_normal_initializer(seed=i)))
        session.run(v1.global_variables_initializer())
        save_v1(path, session, {"serving_default": predict_v1({"x": x}, {"y": tf.identity(y)})}, saver=v1.train.Saver(sharded=True))
    assert len([f for f in os.listdir(os.path.join(path, "variables")) if ".data-" in f]) == 3
    return {"serving_default": {"x": rows(2, 4)}}


def conditionals_v1(path, resource=False):
    """Switch, Merge and while frames over variables."""
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 3], name="x")
            flag = v1.placeholder(tf.bool, [], name="flag")
            w = v1.get_variable("w", [3, 3], use_resource=resource, initializer=v1.random_normal_initializer(seed=1))
            b = v1.get_variable("b", [3], use_resource=resource, initializer=v1.random_normal_initializer(seed=2))
            y = v1.cond(flag, lambda: tf.matmul(x, w), lambda: x + b)
            z = v1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(tf.matmul(v, w) + b)), [0, x])[1]
            session.run(v1.global_variables_initializer())
            save_v1(path, session, {"serving_default": predict_v1({"x": x, "flag": flag}, {"y": y, "z": z})})
    finally:
        v1.enable_control_flow_v2()
    return {"serving_default": {"x": rows(2, 3), "flag": np.array(False)}}


def conditionals(path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = tf.Variable(rows(3, 3)), tf.Variable(rows(3, seed=2))
            self.choices = [tf.Variable(rows(3, seed=i)) for i in range(3)]

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="n")])
        def __call__(self, x, n):
            y = tf.cond(n > 2, lambda: tf.matmul(x, self.w), lambda: x + self.b)
            z = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.tanh(tf.matmul(v, self.w) + self.b)), [0, x])[1]
            q = tf.switch_case(n, [lambda c=c: x * c for c in self.choices])
            return {"y": y, "z": z, "q": q, "shape": tf.shape(self.w)}

    module = Module()
    tf.saved_model.save(module, path, module.__call__)
    return {"serving_default": {"x": rows(2, 3), "n": np.int32(3)}}


def embedding(path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.Variable(rows(50, 4))

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64, name="ids")])
        def __call__(self, ids):
            return {"e": tf.nn.embedding_lookup(self.table, ids), "nd": tf.gather_nd(self.table, ids[:, :1]),
                    "b": tf.gather(self.table, ids[0])}

    module = Module()
    tf.saved_model.save(module, path, module.__call__)
    return {"serving_default": {"ids": np.array([[1, 2, 3], [49, 0, 7]])}}


def vocabulary(path):
    """Tables from an asset and from constants."""
    words = os.path.join(os.path.dirname(path), "vocabulary.txt")
    with open(words, "w") as f:
        f.write("alpha\nbeta\ngamma\n")

    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            text = tf.lookup.TextFileInitializer(words, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                                 tf.lookup.TextFileIndex.LINE_NUMBER)
            self.ids = tf.lookup.StaticVocabularyTable(text, 2)
            self.names = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
                tf.constant([0, 1, 2], tf.int64), tf.constant(["A", "B", "C"])), "?")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word")])
        def __call__(self, word):
            ids = self.ids.lookup(word)
            return {"id": ids, "name": self.names.lookup(ids)}

    module = Module()
    tf.saved_model.save(module, path, module.__call__)
    os.remove(words)
    return {"serving_default": {"word": np.array([b"beta", b"gamma", b"omega", b"alpha"])}}


def vocabulary_v1(path):
    words = os.path.join(os.path.dirname(path), "vocabulary_v1.txt")
    with open(words, "w") as f:
        f.write("alpha\nbeta\ngamma\n")
    with tf.Graph().as_default(), v1.Session() as session:
        word = v1.placeholder(tf.string, [None], name="word")
        asset = tf.constant(words, name="asset")
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
        text = tf.lookup.TextFileInitializer(asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                             tf.lookup.TextFileIndex.LINE_NUMBER)
        table = tf.lookup.StaticHashTable(text, -1)
        w = v1.get_variable("w", [4], initializer=v1.random_normal_initializer(seed=1))
        y = tf.gather(w, table.lookup(word) + 1)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        save_v1(path, session, {"serving_default": predict_v1({"word": word}, {"y": y})}, assets=[asset], init=v1.tables_initializer())
    os.remove(words)
    return {"serving_default": {"word": np.array([b"beta", b"gamma", b"omega", b"alpha"])}}


def mutable_table(path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1.0)
            self.table.insert(tf.constant(["a", "b"]), tf.constant([1.5, 2.5]))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word")])
        def __call__(self, word):
            return {"value": self.table.lookup(word)}

    module = Module()
    tf.saved_model.save(module, path, module.__call__)
    return {"serving_default": {"word": np.array([b"b", b"c", b"a"])}}


def keras_dense(path):
    import keras
    keras.utils.set_random_seed(1)
    inputs = keras.Input((6,), name="features")
    x = keras.layers.Dense(8, activation="relu")(inputs)
    x = keras.layers.Dropout(0.5)(keras.layers.BatchNormalization()(x))
    keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x)).export(path, verbose=False)
    return {"serving_default": {"features": rows(4, 6)}, "serve": {"features": rows(4, 6)}}


def keras_text(path):
    import keras
    keras.utils.set_random_seed(1)
    words = keras.layers.TextVectorization(output_sequence_length=5, vocabulary=["alpha", "beta", "gamma"])
    colours = keras.layers.StringLookup(vocabulary=["red", "green"])
    text = keras.Input((1,), dtype="string", name="text")
    colour = keras.Input((1,), dtype="string", name="colour")
    x = keras.layers.Bidirectional(keras.layers.LSTM(4))(keras.layers.Embedding(7, 4, mask_zero=True)(words(text)))
    c = keras.layers.Flatten()(keras.layers.Embedding(4, 2)(colours(colour)))
    keras.Model([text, colour], keras.layers.Dense(2)(keras.layers.Concatenate()([x, c]))).export(path, verbose=False)
    return {"serving_default": {"text": np.array([[b"alpha beta"], [b"Gamma, omega!"]]), "colour": np.array([[b"green"], [b"blue"]])}}


def estimator_style(path):
    """Raw features in placeholders, some with defaults; a global step; a scalar signature."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.get_or_create_global_step()
        age = v1.placeholder(tf.float32, [None], name="age")
        city = v1.placeholder_with_default(tf.constant([b"rome"]), [None], name="city")
        buckets = tf.strings.to_hash_bucket_fast(city, 7)
        table = v1.get_variable("linear/table", [7, 1], initializer=v1.random_normal_initializer(seed=1))
        weight = v1.get_variable("linear/weight", [1], initializer=v1.random_normal_initializer(seed=2))
        logits = age * weight + tf.squeeze(tf.nn.embedding_lookup(table, buckets), 1)
        session.run(v1.global_variables_initializer())
        save_v1(path, session, {"serving_default": predict_v1({"age": age, "city": city}, {"logits": logits, "p": tf.sigmoid(logits)})})
    return {"serving_default": {"age": rows(3), "city": np.array([b"rome", b"paris", b"oslo"])}}


CASES = [
    Case("half_plus_two", half_plus_two),
    Case("half_plus_two_resource", lambda path: half_plus_two(path, resource=True)),
    Case("half_plus_two_text", lambda path: half_plus_two(path, text=True)),
    Case("half_plus_two_tf2", half_plus_two_tf2),
    Case("dtypes", dtypes),
    Case("partitioned", partitioned),
    Case("partitioned_references", lambda path: partitioned(path, resource=False)),
    Case("sharded", sharded),
    Case("conditionals", conditionals),
    Case("conditionals_v1", conditionals_v1),
    Case("conditionals_v1_resource", lambda path: conditionals_v1(path, resource=True)),
    Case("embedding", embedding),
    Case("vocabulary", vocabulary),
    Case("vocabulary_v1", vocabulary_v1),
    Case("mutable_table", mutable_table),
    Case("keras_dense", keras_dense),
    Case("keras_text", keras_text),
    Case("estimator_style", estimator_style),
]
