"""SavedModels as TensorFlow writes them: the same answers under the same names."""
import contextlib
import json
import subprocess
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from floed import FLOECTL, Floed, predict_request
from google.protobuf import text_format
from npz_strings import decode, encode
from saved_models import CASES, answers
from saved_objects import OBJECT_CASES, loaded_answers
from tensorflow_serving.apis import get_model_status_pb2, prediction_log_pb2


def run(model, inputs, folder, signature="", expect=0):
    np.savez(folder / "in.npz", **{k: encode(v) for k, v in inputs.items()})
    shapes = [f"--shape={k}={','.join(map(str, np.shape(v)))}" for k, v in inputs.items() if np.asarray(v).dtype.kind in "SUO"]
    done = subprocess.run([FLOECTL, "run", str(model), "-i", folder / "in.npz", "-o", folder / "out.npz", *shapes]
                          + ([f"--signature={signature}"] if signature else []),
                          capture_output=True, text=True)
    assert done.returncode == expect, done.stderr
    return dict(np.load(folder / "out.npz")) if expect == 0 else done.stderr


def check(got, want):
    assert set(got) == set(want)
    for key, array in want.items():
        array = np.asarray(array)
        if array.dtype.kind in "SO":
            assert decode(got[key]) == [bytes(x) for x in array.ravel()], key
        else:
            assert got[key].shape == array.shape, key
            np.testing.assert_allclose(got[key].astype(array.dtype), array, rtol=1e-5, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_answers_are_tensorflows(case, tmp_path):
    path = tmp_path / "model" / "1"
    path.parent.mkdir()
    feeds = case.make(str(path))
    for signature, want in answers(str(path), feeds, case.tags).items():
        check(run(path, feeds[signature], tmp_path, signature), want)


@pytest.mark.parametrize("case", OBJECT_CASES, ids=repr)
def test_answers_are_those_of_the_loader_in_python(case, tmp_path):
    path = tmp_path / "model" / "1"
    path.parent.mkdir()
    feeds = case.make(str(path))
    for signature, want in loaded_answers(str(path), feeds).items():
        check(run(path, feeds[signature], tmp_path, signature), want)


def test_variables_may_lie_beside_the_graph(tmp_path):
    feeds = next(case for case in OBJECT_CASES if case.name == "sequential").make(str(tmp_path / "m"))
    want = loaded_answers(str(tmp_path / "m"), feeds)["serving_default"]
    for file in (tmp_path / "m" / "variables").iterdir():
        file.rename(tmp_path / "m" / file.name)
    (tmp_path / "m" / "variables").rmdir()
    check(run(tmp_path / "m", feeds["serving_default"], tmp_path), want)


def freeze(*args, expect=0):
    done = subprocess.run([FLOECTL, "freeze", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == expect, done.stderr
    return done.stdout if expect == 0 else done.stderr


def run_frozen(path, printed, inputs):
    """What TensorFlow makes of a frozen graph, by the keys and nodes that freeze printed."""
    graph = tf.compat.v1.GraphDef()
    data = path.read_bytes()
    text_format.Parse(data, graph) if path.suffix == ".pbtxt" else graph.ParseFromString(data)
    lines = [line.split(": ", 1) for line in printed.splitlines()]
    init = [rest for what, rest in lines if what.startswith("run before")]

    def tensors(kind):
        names = {what.split(" ", 1)[1]: rest.split(" ")[0] for what, rest in lines if what.startswith(kind)}
        return {key: name if ":" in name else name + ":0" for key, name in names.items()}

    with tf.Graph().as_default() as whole, tf.compat.v1.Session() as session:
        tf.import_graph_def(graph, name="")
        session.run([whole.get_operation_by_name(name) for name in init])
        return session.run(tensors("output "), {tensors("input ")[key]: value for key, value in inputs.items()})


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "keras_text"], ids=repr)
def test_tensorflow_agrees_with_frozen_graphs(case, tmp_path):
    path = tmp_path / "model" / "1"
    path.parent.mkdir()
    feeds = case.make(str(path))
    for number, (signature, want) in enumerate(answers(str(path), feeds, case.tags).items()):
        text = ["--text"] if number % 2 else []
        file = tmp_path / ("frozen.pbtxt" if text else "frozen.pb")
        printed = freeze(path, "--signature", signature, "-o", file, *text)
        got = run_frozen(file, printed, feeds[signature])
        for key, array in want.items():
            if np.asarray(array).dtype.kind in "SO":
                np.testing.assert_array_equal(got[key], array)
            else:
                np.testing.assert_allclose(got[key], array, rtol=1e-6, atol=1e-6)


def save_checkpoint(folder):
    """The classic road: a graph with a saver, a checkpoint, no signatures."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        part = v1.get_variable("part", [4, 6], partitioner=v1.fixed_size_partitioner(3))
        w = v1.get_variable("w", [6, 2], use_resource=False)
        y = tf.matmul(tf.matmul(x, tf.convert_to_tensor(part)), w, name="y")
        step = v1.train.get_or_create_global_step()
        with tf.control_dependencies([v1.assign_add(step, 1)]):
            tf.identity(y, name="training")
        tf.io.write_graph(graph.as_graph_def(), str(folder), "graph.pbtxt")
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=100)
        feed = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
        return feed, session.run(y, {x: feed})


def test_a_graph_and_its_checkpoint_are_frozen(tmp_path):
    feed, want = save_checkpoint(tmp_path)
    checkpoint = tmp_path / "model.ckpt-100"
    for graph in (["--meta", f"{checkpoint}.meta"], ["--graph", tmp_path / "graph.pbtxt"]):
        file = tmp_path / "frozen.pb"
        freeze(*graph, "--checkpoint", checkpoint, "--outputs", "y", "-o", file)
        np.testing.assert_allclose(run(file, {"x": feed}, tmp_path)["y"], want, rtol=1e-5, atol=1e-5)
    meta = ["--meta", f"{checkpoint}.meta", "--checkpoint", checkpoint, "-o", tmp_path / "no.pb"]
    assert "(AssignAddVariableOp) assigns" in freeze(*meta, "--outputs", "training", expect=1)
    assert "nearest: 'y'" in freeze(*meta, "--outputs", "yy", expect=1)
    missing = ["--meta", f"{checkpoint}.meta", "--checkpoint", tmp_path / "other", "--outputs", "y", "-o", tmp_path / "no.pb"]
    assert "other.index does not exist" in freeze(*missing, expect=1)
    assert not (tmp_path / "no.pb").exists()


def save_counter(path):
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.calls = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
        def count(self, x):
            return {"calls": self.calls.assign_add(x)}

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
        def read(self, x):
            return {"sum": self.calls + x}

    module = Counter()
    tf.saved_model.save(module, str(path), {"serving_default": module.count, "read": module.read})


def test_signatures_that_assign_are_left_out(tmp_path):
    save_counter(tmp_path / "m")
    assert "assigns to a variable" in run(tmp_path / "m", {"x": np.float32(1)}, tmp_path, expect=1)
    assert run(tmp_path / "m", {"x": np.float32(1)}, tmp_path, "read")["sum"] == 1
    assert "(AssignAddVariableOp) assigns" in freeze(tmp_path / "m", "-o", tmp_path / "f.pb", expect=1)
    assert "'read', 'serving_default'" in freeze(tmp_path / "m", "--signature", "write", "-o", tmp_path / "f.pb", expect=1)


def inspect(path, expect=0):
    done = subprocess.run([FLOECTL, "inspect", str(path), "--json"], capture_output=True, text=True)
    assert done.returncode == expect, done.stderr
    return json.loads(done.stdout) if expect == 0 else done.stderr


def test_functions_are_offered_where_there_are_no_signatures(tmp_path):
    case = {case.name: case for case in OBJECT_CASES}
    case["functions"].make(str(tmp_path / "f"))
    report = inspect(tmp_path / "f")
    assert [s["name"] for s in report["signatures"]] == ["__call__", "serving_default", "split", "two", "words"]
    assert "assigns to a variable" in report["left_out"]["learn"]
    case["traces"].make(str(tmp_path / "t"))
    assert {s["name"] for s in inspect(tmp_path / "t")["signatures"]} == {"call", "call_2", "serving_default"}
    case["inner_functions"].make(str(tmp_path / "i"))
    assert {s["name"] for s in inspect(tmp_path / "i")["signatures"]} == {"encoder.encode", "model"}
    case["functions_with_signatures"].make(str(tmp_path / "s"))
    assert {s["name"] for s in inspect(tmp_path / "s")["signatures"]} == {"serving_default", "split", "words"}
    freeze(tmp_path / "f", "--signature", "two", "-o", tmp_path / "two.pb")
    got = run(tmp_path / "two.pb", {"function/two_left": np.float32([1, 2]), "function/two_right": np.arange(2)}, tmp_path)
    assert [list(v) for v in got.values()].count([1, 3]) == 1


def test_inspect_shows_what_a_saved_model_is(tmp_path):
    save_counter(tmp_path / "m")
    report = inspect(tmp_path / "m")
    assert report["format"] == "SavedModel (binary)"
    assert report["facts"]["tags"] == "serve"
    assert report["facts"]["written by TensorFlow"] == tf.__version__
    assert report["facts"]["fingerprint"].split(",")[0].isdigit()
    assert [s["name"] for s in report["signatures"]] == ["read"]
    assert "assigns" in report["left_out"]["serving_default"]
    assert inspect(tmp_path / "m" / "saved_model.pb")["signatures"] == report["signatures"]


def test_other_files_are_named(tmp_path):
    def error(name, content):
        (tmp_path / name).write_bytes(content)
        return inspect(tmp_path / name, expect=1)

    assert "an ONNX model" in error("a", b"\x08\x07\x12\x07pytorch\x1a\x032.0")
    assert "a TensorFlow Lite model" in error("b", b"\x1c\0\0\0TFL3" + bytes(100))
    with zipfile.ZipFile(tmp_path / "c", "w") as archive:
        archive.writestr("model/data.pkl", b"x")
    assert "an archive of PyTorch" in inspect(tmp_path / "c", expect=1)
    tf.train.Checkpoint(v=tf.Variable(1.0)).write(str(tmp_path / "k"))
    assert "a part of a checkpoint" in inspect(tmp_path / "k.index", expect=1)
    (tmp_path / "empty").mkdir()
    assert "a directory without a model" in inspect(tmp_path / "empty", expect=1)


def test_floed_serves_versions_that_are_saved_models(tmp_path):
    half = next(c for c in CASES if c.name == "half_plus_two")
    (tmp_path / "m").mkdir()
    half.make(str(tmp_path / "m" / "7"))
    extra = tmp_path / "m" / "7" / "assets.extra"
    extra.mkdir()
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.CopyFrom(predict_request("m", {"x": np.ones((1, 1), np.float32)}))
    with tf.io.TFRecordWriter(str(extra / "tf_serving_warmup_requests")) as writer:
        writer.write(log.SerializeToString())
    with contextlib.closing(Floed(f"--model_base_path={tmp_path}/m", "--model_name=m")) as server, server.client() as client:
        reply = client.predict("m", {"x": np.array([[1.0], [4.0]], np.float32)})
        assert reply.model_spec.version.value == 7
        np.testing.assert_allclose(tf.make_ndarray(reply.outputs["y"]), [[2.5], [4.0]])
        reply = client.predict("m", {"inputs": np.array([[4.0]], np.float32)}, signature="regress_x2_to_y3")
        np.testing.assert_allclose(tf.make_ndarray(reply.outputs["outputs"]), [[5.0]])
        assert "1 recorded requests" in server.log()


def versions_of(server, model):
    with server.client() as client:
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = model
        states = client.models.GetModelStatus(request, timeout=30).model_version_status
        return {s.version: get_model_status_pb2.ModelVersionStatus.State.Name(s.state) for s in states}


@pytest.mark.parametrize("late", ["variables.data-00000-of-00001", "variables.index", "half a shard"])
def test_a_version_waits_for_the_files_of_its_checkpoint(late, tmp_path):
    """Another signature of the version needs no variable; that one alone would be no good."""
    class Module(tf.Module):
        def __init__(self, value):
            super().__init__()
            self.v = tf.Variable([value])

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def scale(self, x):
            return {"y": x * self.v}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def same(self, x):
            return {"y": x + 0}

    def save(value, path):
        module = Module(value)
        tf.saved_model.save(module, str(path), {"serving_default": module.scale, "same": module.same})

    def answer(client):
        reply = client.predict("m", {"x": np.float32([3])})
        return reply.model_spec.version.value, tf.make_ndarray(reply.outputs["y"]).tolist()

    (tmp_path / "m").mkdir()
    save(2.0, tmp_path / "m" / "1")
    with contextlib.closing(Floed(f"--model_base_path={tmp_path}/m", "--model_name=m", "--file_system_poll_wait_seconds=1",
                                  "--load_retry_interval_micros=100000", "--max_num_load_retries=1000")) as server, \
            server.client() as client:
        assert answer(client) == (1, [6.0])
        save(5.0, tmp_path / "new")
        file = tmp_path / "new" / "variables" / (late if "." in late else "variables.data-00000-of-00001")
        whole = file.read_bytes()
        if late == "half a shard":
            file.write_bytes(whole[:3])
        else:
            file.unlink()
        (tmp_path / "new").rename(tmp_path / "m" / "2")
        file = tmp_path / "m" / "2" / "variables" / file.name
        server.wait_until(lambda: "version 2 is not served yet: /" in server.log())
        assert versions_of(server, "m")[1] == "AVAILABLE"
        assert answer(client) == (1, [6.0])
        file.write_bytes(whole)
        server.wait_until(lambda: versions_of(server, "m").get(2) == "AVAILABLE")
        server.wait_until(lambda: answer(client) == (2, [15.0]))
        assert "signature '" not in server.log()


def test_a_variable_that_the_checkpoint_lacks_is_not_waited_for(tmp_path):
    next(case for case in OBJECT_CASES if case.name == "sequential").make(str(tmp_path / "m"))
    other = tf.train.Checkpoint(other=tf.Variable(1.0))
    for file in (tmp_path / "m" / "variables").iterdir():
        file.unlink()
    other.write(str(tmp_path / "m" / "variables" / "variables"))
    error = run(tmp_path / "m", {"inputs": np.zeros((1, 4), np.float32)}, tmp_path, expect=1)
    assert "has no tensor" in error and "nearest: " in error
    with contextlib.closing(Floed(f"--model_base_path={tmp_path}/m", "--model_name=m", wait=False)) as server:
        server.wait_until(lambda: "is not served: " in server.log())
        assert "has no tensor" in server.log() and "not served yet: /" not in server.log()
