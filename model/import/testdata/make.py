#!/usr/bin/env python3
"""Makes the checkpoint of the importers' unit tests: python3 make.py, with TensorFlow installed."""
import os

import tensorflow as tf

v1 = tf.compat.v1
os.chdir(os.path.dirname(os.path.abspath(__file__)))
with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
    with tf.device("/cpu:0"):
        v1.get_variable("part", [3, 4], partitioner=v1.fixed_size_partitioner(2),
                        initializer=lambda shape, dtype=None, partition_info=None: tf.reshape(tf.range(
                            4.0 * partition_info.var_offset[0], 4.0 * partition_info.var_offset[0] + shape[0] * shape[1]), shape))
        v1.get_variable("half", initializer=tf.constant([1, -2.5], tf.float16))
    with tf.device("/cpu:1"):
        v1.get_variable("words", initializer=tf.constant([["alpha", ""], ["gamma\0\xff", "d" * 300]]))
        v1.get_variable("flags", initializer=tf.constant([True, False, True]))
        v1.get_variable("scalar", initializer=tf.constant(7, tf.int64))
        v1.get_variable("empty", initializer=tf.zeros([0, 3]))
    session.run(v1.global_variables_initializer())
    v1.train.Saver(sharded=True, save_relative_paths=True).save(session, "bundle", write_meta_graph=False, write_state=False)

with tf.Graph().as_default(), v1.Session() as session:
    v1.get_variable("v", [2])
    session.run(v1.global_variables_initializer())
    saver = v1.train.Saver(write_version=v1.train.SaverDef.V1)
    saver.save(session, "./version_1.ckpt", write_meta_graph=False, write_state=False)
