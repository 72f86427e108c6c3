"""GetModelMetadata and GetModelStatus, through TensorFlow Serving's own Python client."""
import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from floed import MODELS

Code = grpc.StatusCode


def metadata(client, model, fields=("signature_def",)):
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = model
    request.metadata_field.extend(fields)
    return client.prediction.GetModelMetadata(request, timeout=30)


def status(client, model, version=None):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = model
    if version is not None:
        request.model_spec.version.value = version
    return client.models.GetModelStatus(request, timeout=30)


def signature(client, model):
    reply = metadata(client, model)
    assert reply.model_spec.name == model and reply.model_spec.version.value == 1
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert reply.metadata["signature_def"].Unpack(signatures)
    assert list(signatures.signature_def) == ["serving_default"]
    return signatures.signature_def["serving_default"]


@pytest.mark.parametrize("model", MODELS)
def test_signature(client, model):
    got = signature(client, model)
    assert got.method_name == "tensorflow/serving/predict"
    assert got.inputs["input"].name == "input:0"
    assert got.inputs["input"].dtype == tf.float32.as_datatype_enum
    assert [d.size for d in got.inputs["input"].tensor_shape.dim] == [-1, 784]
    assert list(got.outputs) == ["softmax"]
    assert got.outputs["softmax"].name == "softmax:0"
    assert got.outputs["softmax"].dtype == tf.float32.as_datatype_enum
    assert [d.size for d in got.outputs["softmax"].tensor_shape.dim] == [-1, 10]


def test_optional_input_is_in_the_signature(client):
    got = signature(client, "mnist_conv")
    assert sorted(got.inputs) == ["input", "keras_learning_phase"]
    assert got.inputs["keras_learning_phase"].dtype == tf.bool.as_datatype_enum
    assert not got.inputs["keras_learning_phase"].tensor_shape.dim
    assert list(signature(client, "mnist_beginner").inputs) == ["input"]


@pytest.mark.parametrize("fields", [(), ("assets",), ("signature_def", "assets")])
def test_metadata_of_another_field(client, fields):
    with pytest.raises(grpc.RpcError) as info:
        metadata(client, "mnist_beginner", fields)
    assert info.value.code() == Code.INVALID_ARGUMENT
    assert "signature_def" in info.value.details()


def test_metadata_of_unknown_model(client):
    with pytest.raises(grpc.RpcError) as info:
        metadata(client, "nobody")
    assert info.value.code() == Code.NOT_FOUND
    assert "nobody" in info.value.details()


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize("model", MODELS)
def test_status(client, model, version):
    (got,) = status(client, model, version).model_version_status
    assert got.version == 1
    assert got.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
    assert got.status.error_code == 0 and got.status.error_message == ""


@pytest.mark.parametrize("model,version", [("nobody", None), ("mnist_conv", 2)])
def test_status_of_what_is_not_there(client, model, version):
    with pytest.raises(grpc.RpcError) as info:
        status(client, model, version)
    assert info.value.code() == Code.NOT_FOUND
