"""Models of Keras 3 and Keras 2, saved by them as .keras and .h5, give Keras' answers."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import tarfile
import zipfile

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from floed import Floed

import keras_cases
import keras_files
import keras_nested_cases  # these add to keras_cases
import keras_new_cases
import keras_writers
from keras_files import ROOT

# "CASE FORMAT" -> why floe's answer differs or is refused. The aim of 97 % counts these as failures.
KNOWN = {
    # Keras writes the weights of the shared model once, and cannot load the file itself.
    "keras3": {"one model within two keras": "the weights file has 0 arrays"},
    "keras2": {"one model within two keras": "the weights file has 0 arrays"},
}
CASES = {"keras3": (keras, {**keras_cases.BOTH, **keras_cases.KERAS3}),
         "keras2": (tf_keras, {**keras_cases.BOTH, **keras_cases.KERAS2})}
# Each case in both forms of file, or, as a rule, in one of them by each version of Keras.
BOTH_FORMS = os.environ.get("FLOE_SWEEP_EVERY") == "1"
# Answers of several sums in a row, or of 16-bit numbers.
TOLERANCE = {"lambda of float16": 2e-2}


def make(package, build):
    package.utils.set_random_seed(7)
    made = build(package, package.layers)
    model, inputs = made if isinstance(made, tuple) else (made, None)
    rng = np.random.default_rng(11)
    keras_files.randomise(model, rng)
    return model, inputs or keras_files.made_up_inputs(model, rng)


@pytest.mark.parametrize("version", CASES)
def test_layers(version, tmp_path):
    package, cases = CASES[version]
    failures, made = {}, []
    for number, (name, build) in enumerate(cases.items()):
        try:
            model, inputs = make(package, build)
        except (ValueError, TypeError, AttributeError, NotImplementedError) as e:
            print(f"{version} has no '{name}': {str(e).splitlines()[0]}")  # not in this version
            continue
        wanted = keras_files.answers_of(model, inputs)
        for form, suffix in enumerate(("keras", "h5")):
            if not BOTH_FORMS and (number + form) % 2 != list(CASES).index(version):
                continue
            path = tmp_path / f"model.{suffix}"
            if suffix == "h5" and name in ("string lookup adapted", "text vectorization adapted"):
                continue  # vocabularies are no part of it
            try:
                model.save(path)
            except Exception as e:
                print(f"{version} cannot save '{name}' as {suffix}: {str(e).splitlines()[0]}")
                continue
            made.append(f"{name} {suffix}")
            tolerance = TOLERANCE.get(name, 1e-5)
            why = keras_files.difference(wanted, keras_files.run(path, inputs, tmp_path), tolerance)
            if why:
                failures[f"{name} {suffix}"] = why
    for name, why in failures.items():
        print(f"{version} {name}: {why}")
    print(f"{version}: {len(made) - len(failures)} of {len(made)} agree")
    assert len(made) > 200
    assert len(failures) <= .03 * len(made)
    assert set(failures) == set(KNOWN[version]) & set(made), "KNOWN lists exactly what fails"


def test_the_page_knows_every_layer():
    page = (ROOT / "docs" / "keras.md").read_text()
    known = set(re.findall(r"`(\w+)`", page))
    names = {}  # of one class; it has more than one
    for name in dir(keras.layers):
        layer = getattr(keras.layers, name)
        if isinstance(layer, type) and issubclass(layer, keras.layers.Layer):
            names.setdefault(layer, []).append(name)
    assert [n for n in names.values() if not known & set(n)] == []


def test_weights_beside_a_configuration(tmp_path):
    model = keras.Sequential([keras.layers.Input((5,)), keras.layers.Dense(4), keras.layers.BatchNormalization()])
    keras_files.randomise(model, np.random.default_rng(1))
    inputs = keras_files.made_up_inputs(model, np.random.default_rng(2))
    model.save_weights(tmp_path / "small.weights.h5")
    assert "small.json" in keras_files.run(tmp_path / "small.weights.h5", inputs, tmp_path)
    (tmp_path / "small.json").write_text(model.to_json())
    got = keras_files.run(tmp_path / "small.weights.h5", inputs, tmp_path)
    assert keras_files.difference(keras_files.answers_of(model, inputs), got, 1e-5) is None


def test_no_vocabulary_is_read_from_outside_of_the_model(tmp_path):
    lookup = keras.layers.StringLookup(name="words")
    lookup.adapt(["red", "green"])
    model = keras.Sequential([keras.layers.Input((1,), dtype="string"), lookup])
    model.save(tmp_path / "m.keras")
    folder = tmp_path / "m"
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        archive.extractall(folder)
    inputs = [np.array([["green"], ["blue"]], object)]
    got = keras_files.run(folder, inputs, tmp_path)
    assert keras_files.difference(keras_files.answers_of(model, inputs), got, 0) is None
    vocabulary, = folder.glob("assets/**/vocabulary.txt")
    vocabulary.rename(tmp_path / "outside.txt")
    vocabulary.symlink_to(tmp_path / "outside.txt")
    assert "no vocabulary" in keras_files.run(folder, inputs, tmp_path)


@pytest.mark.parametrize("package", [keras, tf_keras])
@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_python_code_is_refused_by_name(package, suffix, tmp_path):
    model = package.Sequential([package.layers.Input((5,)), package.layers.Lambda(lambda x: x + 1, name="plus_one")])
    model.save(tmp_path / f"m.{suffix}")
    error = keras_files.run(tmp_path / f"m.{suffix}", [np.zeros((1, 5), np.float32)], tmp_path)
    assert "'plus_one' (Lambda)" in error and "model.export()" in error


def test_a_custom_layer_is_refused_by_name(tmp_path):
    @keras.saving.register_keras_serializable("house")
    class Twice(keras.layers.Layer):
        def call(self, x):
            return 2 * x
    model = keras.Sequential([keras.layers.Input((5,)), Twice(name="twice")])
    model.save(tmp_path / "m.keras")
    error = keras_files.run(tmp_path / "m.keras", [np.zeros((1, 5), np.float32)], tmp_path)
    assert "'twice' (Twice)" in error and "model.export()" in error


def contradict(model, change):
    """Changes what the configuration of the first Dense layer of a model says."""
    for layer in model["config"]["layers"]:
        if "layers" in layer["config"]:
            return contradict(layer, change)
        if layer["class_name"] == "Dense":
            layer["config"].update(change)
            return


@pytest.mark.parametrize("suffix", ["keras", "h5"])
@pytest.mark.parametrize("package", [keras, tf_keras])
@pytest.mark.parametrize("change, words", [
    ({"units": 7}, r"'inner_dense' \(Dense\).*its shape in the weights file is \[4, 3\], by the configuration it is \[\?, 7\]"),
    ({"use_bias": False}, r"'inner_dense' \(Dense\).*the weights file has \d arrays? in .*, by its configuration the layer has \d")])
def test_sizes_that_contradict_the_weights_are_refused(package, suffix, change, words, tmp_path):
    L = package.layers
    inner = package.Sequential([L.Input((4,)), L.Dense(3, name="inner_dense"), L.BatchNormalization()], name="inner")
    model = package.Sequential([L.Input((4,)), inner, L.Activation("relu")])
    model.save(tmp_path / f"m.{suffix}")
    if suffix == "h5":
        with h5py.File(tmp_path / "m.h5", "r+") as file:
            config = json.loads(file.attrs["model_config"])
            contradict(config, change)
            file.attrs["model_config"] = json.dumps(config)
    else:
        with zipfile.ZipFile(tmp_path / "m.keras") as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        config = json.loads(parts["config.json"])
        contradict(config, change)
        parts["config.json"] = json.dumps(config)
        with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
    error = keras_files.run(tmp_path / f"m.{suffix}", [np.zeros((1, 4), np.float32)], tmp_path)
    assert isinstance(error, str) and re.search(words, error), error


def test_a_name_twice_in_an_old_file_is_refused(tmp_path):
    L = keras.layers
    inner = keras.Sequential([L.Input((4,)), L.Dense(4), L.Dense(4)], name="inner")
    keras.Sequential([L.Input((4,)), inner]).save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5", "r+") as file:
        names = file["model_weights/inner"].attrs["weight_names"]
        file["model_weights/inner"].attrs["weight_names"] = [names[0], names[1], names[0], names[1]]
    assert "have the same name" in keras_files.run(tmp_path / "m.h5", [np.zeros((1, 4), np.float32)], tmp_path)


def test_files_of_other_versions(tmp_path):
    """Two of the models of write_keras.py, by versions that are not here, and those versions' answers."""
    with tarfile.open(pathlib.Path(__file__).with_name("keras_written.tar.xz")) as archive:
        archive.extractall(tmp_path / "written")
    files = [f for f in sorted(tmp_path.glob("written/*/*")) if f.suffix != ".npz"]
    wrong = {str(f): why for f in files if (why := keras_writers.compare(f, f.with_suffix(".npz"), tmp_path))}
    assert not wrong
    assert len(files) > 20 and len({f.parent for f in files}) == 8


RECURRENT = {  # layers of cases: loops over time that must run as one step each
    "GRU {'activation': 'relu'}": 1, "LSTM open length": 1, "LSTM hard sigmoid": 1, "GRU reset before no bias": 1,
    "SimpleRNN {'return_sequences': True, 'go_backwards': True}": 1, "bidirectional sequences concat": 2,
    "encoder and decoder": 2, "masked two layers": 2, "masked bidirectional GRU": 2}


@pytest.mark.parametrize("case", RECURRENT)
@pytest.mark.parametrize("version", CASES)
def test_a_recurrent_layer_is_one_step(version, case, tmp_path):
    package, cases = CASES[version]
    model, inputs = make(package, cases[case])
    wanted = keras_files.answers_of(model, inputs)
    model.save(tmp_path / "model.keras")
    tf.saved_model.save(model, str(tmp_path / "saved")) if package is tf_keras else model.export(tmp_path / "saved", verbose=False)
    for path in (tmp_path / "model.keras", tmp_path / "saved"):
        steps = subprocess.run([keras_files.FLOECTL, "inspect", "--plan", path], capture_output=True, text=True, check=True).stdout
        layers = re.findall(r"^  \d+ .* (FusedRecurrent|RecurrentPair) ", steps, re.M)
        assert len(layers) + layers.count("RecurrentPair") == RECURRENT[case], steps
        assert not re.search(r"^  \d+ .* While ", steps, re.M), steps
    assert not keras_files.difference(wanted, keras_files.run(tmp_path / "model.keras", inputs, tmp_path), 1e-5)


@pytest.mark.parametrize("suffix", ("keras", "h5"))
@pytest.mark.parametrize("package", (keras, tf_keras), ids=("keras3", "keras2"))
def test_floed_serves_the_file(package, suffix, tmp_path):
    x = package.Input((3,), name="x")
    model = package.Model(x, package.layers.Dense(2, activation="tanh", name="y")(x))
    (tmp_path / "m" / "3").mkdir(parents=True)
    model.save(tmp_path / "m" / "3" / f"model.{suffix}")
    rows = np.array([[1, 2, 3], [-1, 0, .5]], np.float32)
    with contextlib.closing(Floed(f"--model_base_path={tmp_path}/m", "--model_name=m")) as server, server.client() as client:
        reply = client.predict("m", {"x": rows})
        assert reply.model_spec.version.value == 3
        (answer,) = reply.outputs.values()
        np.testing.assert_allclose(tf.make_ndarray(answer), model(rows).numpy(), rtol=1e-5, atol=1e-6)
