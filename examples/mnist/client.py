#!/usr/bin/env python3
"""Asks a served MNIST model about test digits, with TensorFlow Serving's own Python client.

    python client.py --target 127.0.0.1:8500 --model mnist_beginner --count 8

Needs numpy, grpcio, tensorflow-cpu and tensorflow-serving-api (install the last with --no-deps).
"""
import argparse
import gzip
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


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
    parser.add_argument("--target", default="127.0.0.1:8500")
    for name, meaning in (("ca", "PEM file: who signs the server's certificate"), ("cert", "PEM file with this client's certificate"),
                          ("key", "PEM file with its private key"), ("name", "the server's name in its certificate")):
        parser.add_argument("--tls-" + name, default="", help=meaning)
    parser.add_argument("--model", default="mnist_beginner")
    parser.add_argument("--count", type=int, default=8)
    args = parser.parse_args()

    pixels = gzip.open(os.path.join(DATA, "t10k-images-idx3-ubyte.gz")).read()[16:16 + 784 * args.count]
    labels = gzip.open(os.path.join(DATA, "t10k-labels-idx1-ubyte.gz")).read()[8:8 + args.count]
    digits = np.frombuffer(pixels, np.uint8).reshape(-1, 784).astype(np.float32) / 255

    request = predict_pb2.PredictRequest()
    request.model_spec.name = args.model
    request.inputs["input"].CopyFrom(tf.make_tensor_proto(digits))
    with channel_of(args) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        reply = stub.Predict(request, timeout=10)

    softmax = np.array(reply.outputs["softmax"].float_val).reshape(len(digits), 10)
    print(f"{reply.model_spec.name}, version {reply.model_spec.version.value}")
    for label, row in zip(labels, softmax):
        print(f"a {label}: answered {row.argmax()} with probability {row.max():.3f}")


if __name__ == "__main__":
    sys.exit(main())
