"""Text classifiers of Keras 3 and Keras 2 are batched, and each caller gets Keras' answer for its own texts."""
import concurrent.futures
import contextlib
import json
import subprocess

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from floed import FLOECTL, Floed

WORDS = ["the", "cat", "sat", "on", "mat", "日本", "häß", "dog", "ran", "far"]
INT = {"output_sequence_length": 6}
LAYERS = {
    "int": INT,
    "int of n-grams": {**INT, "ngrams": 2},
    "multi_hot": {"output_mode": "multi_hot"},
    "count of n-grams": {"output_mode": "count", "ngrams": 2},
    "tf_idf": {"output_mode": "tf_idf"},
    "letters": {**INT, "split": "character"},
}
PACKAGES = {"keras3": keras, "keras2": tf_keras}


def texts(rng, rows):
    """Some empty, of spaces alone, long, in any case, with words that no vocabulary has."""
    kinds = [lambda: " ".join(rng.choice(WORDS, rng.integers(1, 12))), lambda: "", lambda: "  \t ", lambda: "The, cat! 日本 xyzzy",
             lambda: " ".join(rng.choice(WORDS, 400)), lambda: "ÄÖ \u00a0 \U0001f600 häß", lambda: rng.choice(WORDS)]
    return np.array([kinds[rng.integers(len(kinds))]() for _ in range(rows)], object)


def classifier(package, options):
    """Of one text a row: its words looked up, embedded or counted, and judged."""
    layers = package.layers
    package.utils.set_random_seed(3)
    words = layers.TextVectorization(max_tokens=40, **options)
    words.adapt(tf.constant([" ".join(WORDS), "the cat ran far", "the dog sat"]))
    text = package.Input((), dtype="string", name="text")
    x = words(text)
    if options.get("output_mode", "int") == "int":
        x = layers.GlobalAveragePooling1D()(layers.Embedding(60, 5)(x))
    return package.Model(text, layers.Dense(3, activation="softmax")(x))


def inspect(path):
    done = subprocess.run([FLOECTL, "inspect", str(path), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def saved(folder, package, options):
    """A folder for each format that holds the model, and the model."""
    model = classifier(package, options)
    (folder / "exported").mkdir()
    model.export(str(folder / "exported" / "1"))
    (folder / "file" / "1").mkdir(parents=True)
    model.save(folder / "file" / "1" / "model.keras")
    return model, ["exported", "file"]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("version", PACKAGES)
def test_crowds_get_keras_answers(version, layer, tmp_path):
    model, formats = saved(tmp_path, PACKAGES[version], LAYERS[layer])
    rng = np.random.default_rng(5)
    requests = [texts(rng, int(rng.integers(1, 4))) for _ in range(128)] + [texts(rng, 100), texts(rng, 0)]
    for kind in formats:
        report = inspect(next((tmp_path / kind / "1").glob("*.keras"), tmp_path / kind / "1"))
        assert report["batchable"], report["why_not_batchable"]
        with contextlib.closing(Floed(f"--model_base_path={tmp_path / kind}", "--model_name=m")) as server, server.client() as client:
            (key,) = report["planned_inputs"]

            def ask(rows):
                (answer,) = client.predict("m", {key: rows}).outputs.values()
                return tf.make_ndarray(answer)

            alone = [ask(rows) for rows in requests]
            with concurrent.futures.ThreadPoolExecutor(64) as pool:
                crowded = list(pool.map(ask, requests))
        for rows, one, other in zip(requests, alone, crowded):
            assert one.tobytes() == other.tobytes(), rows
            if len(rows):
                np.testing.assert_allclose(one, model(tf.constant(rows)).numpy(), rtol=1e-5, atol=1e-6, err_msg=str(rows))


@pytest.mark.parametrize("version", PACKAGES)
def test_padding_to_the_longest_text_is_not_batched(version, tmp_path):
    model = classifier(PACKAGES[version], {})
    model.export(str(tmp_path / "m"))
    report = inspect(tmp_path / "m")
    assert not report["batchable"]
    assert "(RaggedTensorToTensor)" in report["why_not_batchable"]
