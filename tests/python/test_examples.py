"""Classify, Regress and MultiInference of a running floed, with TensorFlow Serving's own clients and TensorFlow's own answers."""
import contextlib
import json

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import (classification_pb2, inference_pb2, prediction_log_pb2, regression_pb2)

from floed import Floed
from saved_models import answers, save_v1

v1 = tf.compat.v1
CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
LABELS = ["cat", "dog", "bird"]


def classifier(path):
    """Three labels in the order of their scores, and some sums, of Examples with x, n and tag."""
    info, build = v1.saved_model.build_tensor_info, v1.saved_model.build_signature_def
    with tf.Graph().as_default(), v1.Session() as session:
        examples = v1.placeholder(tf.string, [None], name="examples")
        features = v1.io.parse_example(examples, {
            "x": tf.io.FixedLenFeature([2], tf.float32), "n": tf.io.FixedLenFeature([], tf.int64, 0),
            "tag": tf.io.FixedLenFeature([], tf.string, "none")})
        shift = tf.cast(features["n"], tf.float32) + tf.cast(tf.strings.length(features["tag"]), tf.float32)
        weights = v1.get_variable("w", initializer=np.array([[0.5, -1, 2], [1, 0.25, -0.5]], np.float32))
        logits = tf.matmul(features["x"] + shift[:, None], weights)
        scores, order = tf.math.top_k(tf.nn.softmax(logits), 3)
        total = tf.reduce_sum(features["x"], 1) + shift
        session.run(v1.global_variables_initializer())

        def signature(method, **outputs):
            return build({"inputs": info(examples)}, {key: info(value) for key, value in outputs.items()}, method)
        save_v1(path, session, {
            "serving_default": signature(CLASSIFY, classes=tf.gather(LABELS, order), scores=scores),
            "scores": signature(CLASSIFY, scores=scores), "labels": signature(CLASSIFY, classes=tf.gather(LABELS, order)),
            "regress": signature(REGRESS, outputs=total[:, None]), "flat": signature(REGRESS, outputs=total),
            "whole": signature(REGRESS, outputs=tf.reduce_sum(total)[None]), "floats": build(
                {"inputs": info(logits)}, {"outputs": info(tf.reduce_sum(logits, 1))}, REGRESS)})


class Native(tf.Module):
    """As TensorFlow 2 saves them: every signature is one of Predict."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="serialized")])
    def classify(self, serialized):
        x = tf.io.parse_example(serialized, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"]
        return {"scores": tf.nn.softmax(x)}


def example(**features):
    out = tf.train.Example()
    for name, values in features.items():
        feature = out.features.feature[name]
        if isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        elif isinstance(values[0], float):
            feature.float_list.value.extend(values)
        else:
            feature.int64_list.value.extend(values)
    return out


EXAMPLES = [example(x=[1.0, 2.0]), example(x=[-3.0, 0.5], n=[2]), example(x=[0.1, 0.2], n=[-1], tag=[b"\xffab"])]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    classifier(str(folder / "m/1"))
    native = Native()
    tf.saved_model.save(native, str(folder / "native/1"), {"serving_default": native.classify})
    extra = folder / "m/1/assets.extra"
    extra.mkdir()
    logs = [prediction_log_pb2.PredictionLog() for _ in range(3)]
    logs[0].classify_log.request.CopyFrom(classify("", EXAMPLES))
    logs[1].regress_log.request.CopyFrom(regress("regress", EXAMPLES))
    logs[2].multi_inference_log.request.CopyFrom(several(EXAMPLES, ("", CLASSIFY), ("flat", REGRESS)))
    with tf.io.TFRecordWriter(str(extra / "tf_serving_warmup_requests")) as writer:
        for log in logs:
            writer.write(log.SerializeToString())
    (folder / "floe.yaml").write_text(f"models:\n  - {{name: m, base_path: {folder}/m}}\n  - {{name: native, base_path: {folder}/native}}\n")
    return folder


@pytest.fixture(scope="module")
def floed(models):
    with contextlib.closing(Floed("--config", str(models / "floe.yaml"))) as floed:
        yield floed


@pytest.fixture(scope="module")
def stubs(floed):
    with floed.client() as client:
        yield client.prediction


def fill(request, signature, examples, context=None, model="m"):
    request.model_spec.name, request.model_spec.signature_name = model, signature
    put(request.input, examples, context)
    return request


def put(field, examples, context=None):
    if context is None:
        field.example_list.examples.extend(examples)
    else:
        field.example_list_with_context.examples.extend(examples)
        field.example_list_with_context.context.CopyFrom(context)


def classify(*args, **kwargs):
    return fill(classification_pb2.ClassificationRequest(), *args, **kwargs)


def regress(*args, **kwargs):
    return fill(regression_pb2.RegressionRequest(), *args, **kwargs)


def several(examples, *tasks):
    request = inference_pb2.MultiInferenceRequest()
    for signature, method in tasks:
        task = request.tasks.add(method_name=method)
        task.model_spec.name, task.model_spec.signature_name = "m", signature
    put(request.input, examples)
    return request


def expected(models, signature, examples, model="m", key="inputs"):
    serialized = np.array([e.SerializeToString() for e in examples], object)
    return answers(str(models / model / "1"), {signature: {key: serialized}})[signature]


def check_classes(result, outputs):
    """Labels are TensorFlow's, scores its own to the last bits."""
    some = next(iter(outputs.values()))
    assert [len(c.classes) for c in result.classifications] == [some.shape[1]] * some.shape[0]
    labels = [[c.label.encode() for c in row.classes] for row in result.classifications]
    scores = [[c.score for c in row.classes] for row in result.classifications]
    assert labels == outputs.get("classes", np.full_like(some, b"", object)).tolist()
    np.testing.assert_allclose(scores, outputs.get("scores", np.zeros(some.shape)), rtol=1e-6)


@pytest.mark.parametrize("signature", ["", "scores", "labels"])
def test_classify(models, stubs, signature):
    reply = stubs.Classify(classify(signature, EXAMPLES), timeout=60)
    assert (reply.model_spec.name, reply.model_spec.version.value) == ("m", 1)
    assert reply.model_spec.signature_name == (signature or "serving_default")
    check_classes(reply.result, expected(models, signature or "serving_default", EXAMPLES))


@pytest.mark.parametrize("signature", ["regress", "flat"])
def test_regress(models, stubs, signature):
    reply = stubs.Regress(regress(signature, EXAMPLES), timeout=60)
    assert reply.model_spec.signature_name == signature
    np.testing.assert_allclose([r.value for r in reply.result.regressions],
                               expected(models, signature, EXAMPLES)["outputs"].ravel(), rtol=1e-6)


def test_a_signature_as_tensorflow_2_saves_it(models, stubs):
    reply = stubs.Classify(classify("", EXAMPLES, model="native"), timeout=60)
    check_classes(reply.result, expected(models, "serving_default", EXAMPLES, "native", "serialized"))


def merged(context, one):
    """As protobuf merges messages, which is what TensorFlow Serving says the context does."""
    out = tf.train.Example()
    out.MergeFrom(context)
    out.MergeFrom(one)
    return out


CONTEXT = example(x=[5.0, 6.0], n=[4])


def test_context(models, stubs):
    sent = [example(n=[1]), example(x=[1.0, 1.0], tag=[b"a"]), tf.train.Example()]
    reply = stubs.Regress(regress("regress", sent, CONTEXT), timeout=60)
    want = expected(models, "regress", [merged(CONTEXT, one) for one in sent])["outputs"].ravel()
    np.testing.assert_allclose([r.value for r in reply.result.regressions], want, rtol=1e-6)
    assert len(set(want.tolist())) == 3


def test_multi_inference(models, stubs):
    reply = stubs.MultiInference(several(EXAMPLES, ("regress", REGRESS), ("", CLASSIFY)), timeout=60)
    assert [r.model_spec.signature_name for r in reply.results] == ["regress", "serving_default"]
    np.testing.assert_allclose([r.value for r in reply.results[0].regression_result.regressions],
                               expected(models, "regress", EXAMPLES)["outputs"].ravel(), rtol=1e-6)
    check_classes(reply.results[1].classification_result, expected(models, "serving_default", EXAMPLES))


def rest(floed, signature, method, body, status=200):
    reply = requests.post(f"http://127.0.0.1:{floed.port}/v1/models/m:{method}", data=json.dumps({"signature_name": signature, **body}),
                          timeout=60)
    assert reply.status_code == status, reply.text
    return reply.json()


def test_rest(models, floed):
    body = {"examples": [{"x": [1.0, 2.0]}, {"x": [-3.0, 0.5], "n": 2}, {"x": [0.1, 0.2], "n": [-1], "tag": {"b64": "/2Fi"}}]}
    want = expected(models, "serving_default", EXAMPLES)
    rows = rest(floed, "", "classify", body)["results"]
    assert [[label.encode() for label, _ in row] for row in rows] == want["classes"].tolist()
    np.testing.assert_allclose([[score for _, score in row] for row in rows], want["scores"], rtol=1e-6)
    np.testing.assert_allclose(rest(floed, "regress", "regress", body)["results"],
                               expected(models, "regress", EXAMPLES)["outputs"].ravel(), rtol=1e-6)
    sent = {"context": {"x": [5.0, 6.0], "n": 4}, "examples": [{"n": 1}, {"x": [1.0, 1.0], "tag": "a"}]}
    want = expected(models, "flat", [merged(CONTEXT, one) for one in (example(n=[1]), example(x=[1.0, 1.0], tag=[b"a"]))])
    np.testing.assert_allclose(rest(floed, "flat", "regress", sent)["results"], want["outputs"], rtol=1e-6)
    for wrong, says in (([{"x": [1, 2.5]}], "examples[0].x[1]"), ([], "the list is empty"), ([{"x": [1, 2]}], "x")):
        assert says in rest(floed, "flat", "regress", {"examples": wrong}, 400)["error"]


def refused(call, request):
    with pytest.raises(grpc.RpcError) as info:
        call(request, timeout=60)
    return info.value.code().name, info.value.details()


def test_errors(stubs):
    invalid = "INVALID_ARGUMENT"
    code, words = refused(stubs.Regress, regress("whole", EXAMPLES))
    assert code == invalid and "Input batch size did not match output batch size: 3 vs. 1" in words
    code, words = refused(stubs.Regress, regress("floats", EXAMPLES))
    assert code == invalid and "takes float32" in words
    code, words = refused(stubs.Classify, classify("regress", EXAMPLES))
    assert code == invalid and "Expected classification signature outputs" in words
    code, words = refused(stubs.Classify, classify("", [example(n=[1])]))
    assert code == invalid and "x" in words, "the graph's own parser says what it misses"
    assert refused(stubs.Classify, classify("", []))[0] == invalid
    code, words = refused(stubs.MultiInference, several(EXAMPLES, ("", CLASSIFY), ("", REGRESS)))
    assert code == invalid and "Duplicate evaluation of signature: 'serving_default'" in words
    code, words = refused(stubs.MultiInference, several(EXAMPLES, ("", CLASSIFY), ("whole", REGRESS)))
    assert code == invalid and "3 vs. 1" in words


def test_sessions_are_refused_with_the_way_out(floed):
    with floed.client() as client:
        run = client.channel.unary_unary("/tensorflow.serving.SessionService/SessionRun")  # the package has no stub for it
        code, words = refused(run, b"")
    assert code == "UNIMPLEMENTED" and "call predict" in words.lower()


def test_method_names_count_where_they_are_checked(models):
    with contextlib.closing(Floed("--config", str(models / "floe.yaml"), "--enable_signature_method_name_check")) as floed:
        assert floed.log().count("3 recorded requests") == 1
        with floed.client() as client:
            stubs = client.prediction
            assert len(stubs.Classify(classify("", EXAMPLES), timeout=60).result.classifications) == 3
            code, words = refused(stubs.Classify, classify("", EXAMPLES, model="native"))
    assert code == "INVALID_ARGUMENT"
    assert "method_name to be tensorflow/serving/classify. Was: tensorflow/serving/predict" in words
