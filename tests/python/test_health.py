"""grpc.health.v1 and reflection, through grpcio's own clients."""
import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from floed import CONFIG, NOT_SERVING, SERVING, Floed

Code = grpc.StatusCode
NAMES = ["", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService", "PredictionService",
         "ModelService", "model/mnist_beginner", "model/mnist_conv"]
SERVICES = {"tensorflow.serving.PredictionService", "tensorflow.serving.ModelService", "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection"}


@pytest.mark.parametrize("name", NAMES)
def test_check(client, name):
    assert client.check(name) == SERVING


def test_check_unknown(client):
    with pytest.raises(grpc.RpcError) as info:
        client.check("model/nobody")
    assert info.value.code() == Code.NOT_FOUND


@pytest.mark.parametrize("name", NAMES)
def test_watch_says_the_present_state_first(client, name):
    call = client.watch(name, timeout=30)
    assert next(call).status == SERVING
    call.cancel()


def test_watch_unknown(client):
    call = client.watch("model/nobody", timeout=30)
    assert next(call).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    call.cancel()


def test_watch_hears_of_the_end():
    floed = Floed("--config", CONFIG)
    with floed.client() as client:
        calls = [client.watch(name, timeout=60) for name in NAMES]
        assert [next(call).status for call in calls] == [SERVING] * len(NAMES)
        floed.terminate()
        assert [next(call).status for call in calls] == [NOT_SERVING] * len(NAMES)
        assert floed.wait() == 0
    floed.close()


# ---- reflection

def ask(client, *requests):
    stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)
    return list(stub.ServerReflectionInfo(iter(requests), timeout=30))


def test_services_are_listed(client):
    (reply,) = ask(client, reflection_pb2.ServerReflectionRequest(list_services=""))
    assert SERVICES <= {s.name for s in reply.list_services_response.service}


@pytest.mark.parametrize("symbol", ["tensorflow.serving.PredictionService", "tensorflow.serving.PredictRequest",
                                    "tensorflow.serving.PredictionService.Predict", "grpc.health.v1.Health"])
def test_file_of_a_symbol(client, symbol):
    (reply,) = ask(client, reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol))
    files = [descriptor_pb2.FileDescriptorProto.FromString(b) for b in reply.file_descriptor_response.file_descriptor_proto]
    names = {f"{file.package}.{item.name}" for file in files for item in (*file.service, *file.message_type)}
    assert symbol in names or symbol.rsplit(".", 1)[0] in names


def test_several_questions_on_one_stream(client):
    replies = ask(client, reflection_pb2.ServerReflectionRequest(list_services=""),
                  reflection_pb2.ServerReflectionRequest(file_containing_symbol="no.such.thing"),
                  reflection_pb2.ServerReflectionRequest(file_by_filename="tensorflow_serving/apis/predict.proto"))
    assert [r.WhichOneof("message_response") for r in replies] == [
        "list_services_response", "error_response", "file_descriptor_response"]
    assert replies[1].error_response.error_code == Code.NOT_FOUND.value[0]
