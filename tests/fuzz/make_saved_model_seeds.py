#!/usr/bin/env python3
"""Makes the seeds of the fuzzers saved_model and bundle, and the checkpoint that the former share. Needs TensorFlow."""
import glob
import os
import shutil
import tempfile

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2, tensor_bundle_pb2

v1 = tf.compat.v1
HERE = os.path.dirname(os.path.abspath(__file__))
VALUES = {"w": tf.reshape(tf.range(9.0), [3, 3]) / 9, "b": tf.constant([0.5, -1, 2]), "n": tf.constant(3)}


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b, self.n = (tf.Variable(VALUES[key], name=key) for key in "wbn")
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def dense(self, x):
        return {"y": tf.nn.relu(tf.matmul(x, self.w) + self.b)}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def flow(self, x):
        y = tf.cond(self.n > 2, lambda: tf.matmul(x, self.w), lambda: x + self.b)
        return {"y": tf.while_loop(lambda i, v: i < self.n, lambda i, v: (i + 1, tf.tanh(tf.matmul(v, self.w))), [0, y])[1]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def lookup(self, words):
        return {"rows": tf.nn.embedding_lookup(self.w, self.table.lookup(words) % 3)}

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, name="x")])
    def assign(self, x):
        return {"y": self.b.assign_add(x)}


def seed(path, name):
    """Without what is large and not read: the objects, notes of the functions."""
    saved = saved_model_pb2.SavedModel.FromString(open(os.path.join(path, "saved_model.pb"), "rb").read())
    for meta in saved.meta_graphs:
        meta.ClearField("object_graph_def")
        meta.meta_info_def.ClearField("stripped_op_list")
        for function in meta.graph_def.library.function:
            function.arg_attr.clear()
        for nodes in [meta.graph_def.node] + [f.node_def for f in meta.graph_def.library.function]:
            for node in nodes:
                node.ClearField("experimental_debug_info")
                for key in [k for k in node.attr if k.startswith("_")]:
                    del node.attr[key]
    with open(os.path.join(HERE, "corpus/saved_model", name + ".pb"), "wb") as f:
        f.write(saved.SerializeToString(deterministic=True))


def v2_seeds(folder):
    module = Module()
    for names in (["dense"], ["flow"], ["lookup"], ["assign", "dense"]):
        path = os.path.join(folder, names[0])
        tf.saved_model.save(module, path, {name: getattr(module, name) for name in names})
        seed(path, names[0])


def v1_seed(folder):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        w, b = (v1.get_variable(key, initializer=VALUES[key].numpy(), use_resource=False) for key in "wb")
        inner = tf.identity(x, name="inner")
        y = v1.cond(tf.reduce_sum(inner) > 0, lambda: tf.matmul(inner, w), lambda: inner + b)
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(os.path.join(folder, "v1"))
        signature = v1.saved_model.predict_signature_def
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature({"x": x}, {"y": y}),
                                                                  "inner": signature({"x": inner}, {"y": y})})
        builder.save()
    seed(os.path.join(folder, "v1"), "v1")


def shared_checkpoint():
    target = os.path.join(HERE, "saved_model/variables")
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    names = [name for key in VALUES for name in (key, key + "/.ATTRIBUTES/VARIABLE_VALUE")]
    tf.raw_ops.SaveV2(prefix=os.path.join(target, "variables"), tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=[value for value in VALUES.values() for _ in range(2)])


def bundle_seeds():
    folder = os.path.join(HERE, "corpus/bundle")
    testdata = os.path.join(HERE, "../../model/import/testdata/bundle.index")
    with open(os.path.join(folder, "index"), "wb") as f:
        f.write(b"i" + open(testdata, "rb").read())
    entry = tensor_bundle_pb2.BundleEntryProto

    def made(kind, pairs, shard):
        out = kind
        for key, value in pairs:
            text = value.SerializeToString()
            out += bytes([len(key)]) + key + bytes([len(text)]) + text
        return out + b"\0\0" + shard

    def of(dtype, dims, offset, size, slices=()):
        e = entry(dtype=dtype, offset=offset, size=size)
        for dim in dims:
            e.shape.dim.add(size=dim)
        for ranges in slices:
            part = e.slices.add()
            for start, length in ranges:
                extent = part.extent.add(start=start)
                if length >= 0:
                    extent.length = length
        return e

    floats = of(1, [2, 3], 0, 24)
    with open(os.path.join(folder, "numbers"), "wb") as f:
        f.write(made(b"m", [(b"a", floats), (b"b", of(9, [2], 8, 16)), (b"c", of(10, [4], 0, 4))], bytes(range(24))))
    with open(os.path.join(folder, "compressed"), "wb") as f:
        f.write(made(b"c", [(b"a" * 40, floats), (b"a" * 40 + b"b", floats)], bytes(24)))
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1).SerializeToString()
    block = bytes([0, 0, len(header)]) + header
    for shared, rest in ((0, b"alpha"), (2, b"to"), (4, b"")):
        value = floats.SerializeToString()
        block += bytes([shared, len(rest), len(value)]) + rest + value
    with open(os.path.join(folder, "block"), "wb") as f:
        f.write(b"b" + block)
    whole = of(1, [3, 4], 0, 0, [[(0, 2), (0, -1)], [(2, 1), (0, -1)]])
    key = b"\0p\0\1\1\2"  # the encoded name and rank
    first, second = b"\x80\x82\x80\x7f", b"\x82\x81\x80\x7f"
    with open(os.path.join(folder, "slices"), "wb") as f:
        f.write(made(b"m", [(key + first, of(1, [2, 4], 0, 32)), (key + second, of(1, [1, 4], 32, 16)), (b"p", whole)], bytes(48)))


os.makedirs(os.path.join(HERE, "corpus/saved_model"), exist_ok=True)
os.makedirs(os.path.join(HERE, "corpus/bundle"), exist_ok=True)
with tempfile.TemporaryDirectory() as scratch:
    v2_seeds(scratch)
    v1_seed(scratch)
shared_checkpoint()
bundle_seeds()
print(sum(os.path.getsize(f) for f in glob.glob(os.path.join(HERE, "corpus/saved_model/*"))), "bytes of SavedModels")
