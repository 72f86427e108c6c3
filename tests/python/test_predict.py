"""Predict, through TensorFlow Serving's own Python client."""
import concurrent.futures
import contextlib
import re

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from floed import MODELS, Floed, digits, expected_classes, predict_request

Code = grpc.StatusCode


@pytest.fixture(scope="module")
def x():
    return digits()


def fails(code, call):
    """The message of a call that must fail with `code`."""
    with pytest.raises(grpc.RpcError) as info:
        call()
    assert info.value.code() == code, info.value.details()
    return info.value.details()


# ---- answers

@pytest.mark.parametrize("model", MODELS)
def test_every_digit_gets_tensorflows_class(client, x, model):
    # 500 rows are more than one batch holds: they are split, and must come back in order.
    got = np.concatenate([client.softmax(model, x[k:k + 500]).argmax(1) for k in range(0, len(x), 500)])
    expected = expected_classes(model)
    different = np.flatnonzero(got != expected)
    assert different.size == 0, [(int(i), int(got[i]), int(expected[i])) for i in different[:20]]


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_sum_to_one(client, x, model):
    np.testing.assert_allclose(client.softmax(model, x[:100]).sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_bits_do_not_depend_on_the_batch(client, x, model):
    together = client.softmax(model, x[:130])
    alone = np.concatenate([client.softmax(model, x[k:k + 1]) for k in range(130)])
    assert together.tobytes() == alone.tobytes()


@pytest.mark.parametrize("model", MODELS)
def test_bits_do_not_depend_on_the_company(client, x, model):
    alone = [client.softmax(model, x[k:k + 1 + k % 3]) for k in range(60)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        crowded = list(pool.map(lambda k: client.softmax(model, x[k:k + 1 + k % 3]), range(60)))
    for one, other in zip(alone, crowded):
        assert one.tobytes() == other.tobytes()


def test_learning_phase_is_false_unless_fed(client, x):
    unfed = client.predict("mnist_conv", {"input": x[:8]})
    fed = client.predict("mnist_conv", {"input": x[:8], "keras_learning_phase": np.bool_(False)})
    assert fed.outputs["softmax"] == unfed.outputs["softmax"]


def test_learning_phase_true_turns_dropout_on(client, x):
    calm = client.softmax("mnist_conv", x[:500])
    request = {"input": x[:500], "keras_learning_phase": np.bool_(True)}
    out = client.predict("mnist_conv", request).outputs["softmax"]
    learning = np.array(out.float_val, np.float32).reshape(500, 10)
    np.testing.assert_allclose(learning.sum(1), 1, rtol=1e-5)
    assert (learning != calm).any(axis=1).mean() > 0.9
    assert (learning.argmax(1) == calm.argmax(1)).mean() > 0.9


SUM_GRAPH = """
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
node { name: "twenty" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 20 } } } }
node { name: "a" op: "PlaceholderWithDefault" input: "one" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { } } } }
node { name: "b" op: "PlaceholderWithDefault" input: "twenty" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { } } } }
node { name: "y" op: "AddV2" input: "a" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
"""


def test_unfed_inputs_are_their_defaults_and_no_other_callers_values(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "graph.pbtxt").write_text(SUM_GRAPH)
    with contextlib.closing(Floed(f"--model_base_path={tmp_path}", "--model_name=sum")) as server, \
            server.client() as one, server.client() as other:
        def ask(client, **inputs):
            fed = {key: np.float32(value) for key, value in inputs.items()}
            return client.predict("sum", fed).outputs["y"].float_val[0]
        for _ in range(20):
            assert ask(one, a=0, b=31337.5) == 31337.5
            assert ask(other, a=0) == 20
            assert ask(other, b=2) == 3
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            secrets = [pool.submit(ask, one, b=31337.5) for _ in range(200)]
            others = [pool.submit(ask, other, a=0) for _ in range(200)]
            assert {call.result() for call in secrets} == {31338.5}
            assert {call.result() for call in others} == {20}


# ---- requests

def typed(array):
    """The array in the typed field, as clients without tensor_content send it."""
    proto = tf.make_tensor_proto(0.0, shape=array.shape)
    del proto.float_val[:]
    proto.float_val.extend(array.ravel().tolist())
    return proto


def test_typed_values_equal_content(client, x):
    content = client.predict("mnist_beginner", {"input": x[:3]})
    by_type = client.predict("mnist_beginner", {"input": typed(x[:3])})
    assert by_type.outputs["softmax"] == content.outputs["softmax"]


@pytest.mark.parametrize("given", [1, 5, 784])
def test_last_typed_value_fills_the_rest(client, given):
    short = np.linspace(0, 1, given, dtype=np.float32)
    full = np.concatenate([short, np.full(2 * 784 - given, short[-1], np.float32)]).reshape(2, 784)
    proto = typed(full)
    del proto.float_val[given:]
    np.testing.assert_array_equal(client.softmax("mnist_beginner", proto), client.softmax("mnist_beginner", full))


def test_no_rows(client):
    out = client.predict("mnist_beginner", {"input": np.zeros([0, 784], np.float32)}).outputs["softmax"]
    assert [d.size for d in out.tensor_shape.dim] == [0, 10]
    assert not out.float_val and not out.tensor_content


def test_output_filter(client, x):
    reply = client.predict("mnist_beginner", {"input": x[:1]}, outputs=["softmax"])
    assert list(reply.outputs) == ["softmax"]


def test_named_version_and_signature(client, x):
    reply = client.predict("mnist_beginner", {"input": x[:1]}, signature="serving_default", version=1)
    assert reply.model_spec.name == "mnist_beginner"
    assert reply.model_spec.version.value == 1
    assert reply.model_spec.signature_name == "serving_default"


# ---- replies

def test_reply_is_typed(client, x):
    reply = client.predict("mnist_beginner", {"input": x[:2]})
    out = reply.outputs["softmax"]
    assert out.dtype == tf.float32.as_datatype_enum
    assert [d.size for d in out.tensor_shape.dim] == [2, 10]
    assert len(out.float_val) == 20
    assert not out.tensor_content
    assert reply.model_spec.name == "mnist_beginner"
    assert reply.model_spec.version.value == 1
    assert reply.model_spec.signature_name == "serving_default"


def test_reply_as_content_on_request(client, x):
    by_type = client.softmax("mnist_beginner", x[:2])
    out = client.predict("mnist_beginner", {"input": x[:2]}, metadata=[("floe-reply", "content")]).outputs["softmax"]
    assert not out.float_val
    assert out.tensor_content == by_type.tobytes()
    np.testing.assert_array_equal(tf.make_ndarray(out), by_type)


# ---- errors

def test_unknown_model(client, x):
    message = fails(Code.NOT_FOUND, lambda: client.predict("mnist_beginer", {"input": x[:1]}))
    assert "mnist_beginer" in message and "mnist_beginner" in message


def test_unknown_version(client, x):
    message = fails(Code.NOT_FOUND, lambda: client.predict("mnist_beginner", {"input": x[:1]}, version=7))
    assert "7" in message


def test_unknown_signature(client, x):
    message = fails(Code.FAILED_PRECONDITION, lambda: client.predict("mnist_beginner", {"input": x[:1]}, signature="nope"))
    assert "nope" in message and "serving_default" in message


def test_unknown_output(client, x):
    message = fails(Code.INVALID_ARGUMENT, lambda: client.predict("mnist_beginner", {"input": x[:1]}, outputs=["sofmax"]))
    assert "sofmax" in message and "softmax" in message


def test_output_twice(client, x):
    message = fails(Code.INVALID_ARGUMENT,
                    lambda: client.predict("mnist_beginner", {"input": x[:1]}, outputs=["softmax", "softmax"]))
    assert "softmax" in message


def test_missing_and_extra_inputs_are_listed(client, x):
    message = fails(Code.INVALID_ARGUMENT, lambda: client.predict("mnist_beginner", {"inptu": x[:1], "mask": x[:1]}))
    for name in ("input", "inptu", "mask"):
        assert re.search(rf"\b{name}\b", message), message


def test_no_inputs(client):
    message = fails(Code.INVALID_ARGUMENT, lambda: client.predict("mnist_beginner", {}))
    assert "input" in message


def test_wrong_dtype(client, x):
    message = fails(Code.INVALID_ARGUMENT, lambda: client.predict("mnist_beginner", {"input": x[:1].astype(np.float64)}))
    assert "input" in message and "float" in message.lower()


@pytest.mark.parametrize("shape", [(1, 783), (784,), (1, 28, 28), ()])
def test_wrong_shape(client, shape):
    message = fails(Code.INVALID_ARGUMENT, lambda: client.predict("mnist_beginner", {"input": np.zeros(shape, np.float32)}))
    assert "input" in message and "784" in message


def damaged(shape, content=b"", values=()):
    proto = tf.make_tensor_proto(np.zeros([1], np.float32))
    proto.Clear()
    proto.dtype = tf.float32.as_datatype_enum
    for size in shape:
        proto.tensor_shape.dim.add().size = size
    proto.tensor_content = content
    proto.float_val.extend(values)
    return proto


@pytest.mark.parametrize("tensor", [
    damaged((1, 784), b"\0" * (784 * 4 - 1)),
    damaged((1, 784), b"\0" * (784 * 4 + 4)),
    damaged((1, 784), values=[0.0] * 785),
    damaged((-1, 784), b"\0" * (784 * 4)),
    damaged((2**40, 784), values=[0.0]),
    damaged((2**62, 784), values=[0.0]),
], ids=["short", "long", "too many values", "negative dim", "huge", "overflowing"])
def test_damaged_tensor(client, x, tensor):
    with pytest.raises(grpc.RpcError) as info:
        client.predict("mnist_beginner", {"input": tensor})
    assert info.value.code() in (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED), info.value.details()
    client.softmax("mnist_beginner", x[:1])  # and the server lives


def test_bytes_that_are_no_request(client):
    call = client.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    fails(Code.INVALID_ARGUMENT, lambda: call(b"\x0a\xff\xff\xff\xff\xff", timeout=30))


def test_unknown_method(client):
    call = client.channel.unary_unary("/tensorflow.serving.PredictionService/Guess")
    fails(Code.UNIMPLEMENTED, lambda: call(b"", timeout=30))


# ---- deadlines and cancellation

def test_deadline_passes_in_the_queue(client, x):
    long_request = predict_request("mnist_conv", {"input": x})
    busy = client.prediction.Predict.future(long_request, timeout=600)
    message = fails(Code.DEADLINE_EXCEEDED, lambda: client.predict("mnist_conv", {"input": x}, timeout=0.05))
    assert message
    assert len(busy.result().outputs["softmax"].float_val) == 100000
    assert client.softmax("mnist_conv", x[:1]).shape == (1, 10)


def test_cancelled_call_leaves_the_server_well(client, x):
    """Few rows: all six must be admitted by a server under a sanitizer too, which expects each to take long."""
    calls = [client.prediction.Predict.future(predict_request("mnist_conv", {"input": x[:100]}), timeout=120) for _ in range(6)]
    for call in calls[1:]:
        call.cancel()
    assert len(calls[0].result().outputs["softmax"].float_val) == 1000
    assert client.softmax("mnist_conv", x[:1]).shape == (1, 10)


def test_request_written_field_by_field_in_another_order(client, x):
    """Fields in any order, split over several occurrences, with unknown ones between: all of it is valid protobuf."""
    whole = predict_request("mnist_beginner", {"input": x[:1]}, outputs=["softmax"])
    only_inputs, only_spec, only_filter = (predict_pb2.PredictRequest() for _ in range(3))
    only_inputs.inputs["input"].CopyFrom(whole.inputs["input"])
    only_spec.model_spec.CopyFrom(whole.model_spec)
    only_filter.output_filter.extend(whole.output_filter)
    unknown = b"\xba\x3e\x05hello"  # field 999, five bytes
    data = b"".join([only_filter.SerializeToString(), unknown, only_inputs.SerializeToString(), only_spec.SerializeToString()])
    call = client.channel.unary_unary("/tensorflow.serving.PredictionService/Predict",
                                      response_deserializer=predict_pb2.PredictResponse.FromString)
    assert call(data, timeout=30).outputs["softmax"] == client.prediction.Predict(whole, timeout=30).outputs["softmax"]
