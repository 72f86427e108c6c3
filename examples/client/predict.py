#!/usr/bin/env python3
"""Sends one Predict call to a model server with grpcio, protobuf and numpy: no TensorFlow.

    PYTHONPATH=gen python predict.py mnist_beginner input=digits.npy --target 127.0.0.1:8500

`gen` has the code that protoc makes of the folder proto/; docs/clients.md has that command.
"""
import argparse
import sys

import grpc
import numpy as np
from tensorflow.core.framework import types_pb2 as types
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

# The type of a message -> numpy's, and the field with the values of messages without tensor_content.
TYPES = {types.DT_FLOAT: ("float32", "float_val"), types.DT_DOUBLE: ("float64", "double_val"), types.DT_BOOL: ("bool", "bool_val"),
         types.DT_INT8: ("int8", "int_val"), types.DT_UINT8: ("uint8", "int_val"), types.DT_INT16: ("int16", "int_val"),
         types.DT_INT32: ("int32", "int_val"), types.DT_INT64: ("int64", "int64_val")}
DTYPES = {name: dtype for dtype, (name, _) in TYPES.items()}


def to_proto(array):
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in array.shape])
    if array.dtype.kind in "OSU":
        texts = [text.encode() if isinstance(text, str) else text for text in array.ravel()]
        return TensorProto(dtype=types.DT_STRING, tensor_shape=shape, string_val=texts)
    return TensorProto(dtype=DTYPES[array.dtype.name], tensor_shape=shape, tensor_content=array.tobytes())


def to_array(proto):
    shape = [dim.size for dim in proto.tensor_shape.dim]
    if proto.dtype == types.DT_STRING:
        return np.array(proto.string_val, object).reshape(shape)
    name, field = TYPES[proto.dtype]
    if proto.tensor_content:
        return np.frombuffer(proto.tensor_content, name).reshape(shape)
    return np.array(getattr(proto, field), name).reshape(shape)


def channel_of(args, options=()):
    """Plain text, unless a flag says TLS."""
    def read(path):
        if not path:
            return None
        with open(path, "rb") as file:
            return file.read()
    if not (args.tls_ca or args.tls_cert or args.tls_name):
        return grpc.insecure_channel(args.target, options=options)
    if args.tls_name:
        options = [*options, ("grpc.ssl_target_name_override", args.tls_name)]
    credentials = grpc.ssl_channel_credentials(read(args.tls_ca), read(args.tls_key), read(args.tls_cert))
    return grpc.secure_channel(args.target, credentials, options=options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("inputs", nargs="+", metavar="NAME=FILE.npy")
    parser.add_argument("--target", default="127.0.0.1:8500")
    for name, meaning in (("ca", "PEM file: who signs the server's certificate"), ("cert", "PEM file with this client's certificate"),
                          ("key", "PEM file with its private key"), ("name", "the server's name in its certificate")):
        parser.add_argument("--tls-" + name, default="", help=meaning)
    parser.add_argument("--out", metavar="FILE.npz", help="write the outputs")
    args = parser.parse_args()

    request = PredictRequest()
    request.model_spec.name = args.model
    for text in args.inputs:
        name, file = text.split("=", 1)
        request.inputs[name].CopyFrom(to_proto(np.load(file)))
    # gRPC's clients refuse replies of more than 4 MiB unless told to take them; -1: any size.
    with channel_of(args, [("grpc.max_receive_message_length", -1)]) as channel:
        # Replies as tensor_content cost both sides less; servers other than floe ignore this metadata.
        reply = PredictionServiceStub(channel).Predict(request, timeout=10, metadata=[("floe-reply", "content")])

    outputs = {name: to_array(proto) for name, proto in sorted(reply.outputs.items())}
    print(f"{reply.model_spec.name}, version {reply.model_spec.version.value}")
    for name, array in outputs.items():
        print(f"{name} {array.dtype}{list(array.shape)}\n{array}")
    if args.out:
        np.savez(args.out, **outputs)


if __name__ == "__main__":
    sys.exit(main())
