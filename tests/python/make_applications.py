#!/usr/bin/env python3
"""Makes ten Keras applications with random weights and a BiLSTM text model, in .keras, .h5 and SavedModel form, by Keras 3 and
Keras 2, and compares what floectl gives for each file with Keras' answers.

    $(scripts/pyenv.sh) tests/python/make_applications.py OUT [--only NAME] [--formats keras,h5,export]

Needs build/release/floectl. Exit status 1 where an answer differs by more than 1e-4 of the largest, or a file is refused.
"""
import argparse
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import keras
import numpy as np
import tf_keras

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import keras_files

# Small images where the architecture allows: it is the layers that matter.
SIZES = {"MobileNetV2": 64, "MobileNetV3Small": 64, "EfficientNetB0": 64, "ResNet50V2": 64, "DenseNet121": 64,
         "NASNetMobile": 64, "InceptionV3": 96, "Xception": 96, "ConvNeXtTiny": 64, "VGG16": 48}
TOLERANCE = 1e-4


def application(K, name):
    size = SIZES[name]
    return getattr(K.applications, name)(weights=None, input_shape=(size, size, 3), classes=10), None


def text(K, _):
    L = K.layers
    words = [f"word{n}" for n in range(40)]
    i = L.Input((1,), dtype="string")
    x = L.TextVectorization(vocabulary=words, output_sequence_length=12)(i)
    x = L.Embedding(50, 16, mask_zero=True)(x)
    x = L.Bidirectional(L.LSTM(8, return_sequences=True))(x)
    x = L.Bidirectional(L.LSTM(6))(x)
    rng = np.random.default_rng(4)
    texts = [[" ".join(rng.choice(words + ["strange", "Word3!"], rng.integers(1, 15)))] for _ in range(4)]
    return K.Model(i, L.Dense(3, activation="softmax")(x)), [np.array(texts, dtype=object)]


MODELS = {**{name: application for name in SIZES}, "BiLSTM": text}


def settle(model, rng):
    """Random weights as initialisers draw them, and statistics that are not 0 and 1."""
    values = []
    for variable, value in zip(model.weights, model.get_weights()):
        name = getattr(variable, "path", variable.name)
        if "moving_mean" in name or "beta" in name or "bias" in name:
            value = rng.normal(0, .05, value.shape).astype(value.dtype)
        elif "moving_variance" in name or "gamma" in name:
            value = rng.uniform(.8, 1.2, value.shape).astype(value.dtype)
        values.append(value)
    model.set_weights(values)


def save(model, package, path, form):
    if form == "export":
        if package is tf_keras:
            model.save(path, save_format="tf")
        else:
            model.export(path, verbose=False)
    else:
        model.save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("--formats", default="keras,h5,export")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    bad = 0
    for name, build in MODELS.items():
        if options.only and name not in options.only:
            continue
        for label, package in (("keras3", keras), ("keras2", tf_keras)):
            package.backend.clear_session()
            package.utils.set_random_seed(3)
            model, inputs = build(package, name)
            rng = np.random.default_rng(9)
            settle(model, rng)
            if inputs is None:
                inputs = [rng.uniform(0, 255 if "EfficientNet" in name else 1, (2,) + model.input_shape[1:]).astype(np.float32)]
            wanted = keras_files.answers_of(model, inputs)
            for form in options.formats.split(","):
                path = options.out / (f"{name}_{label}" + ("" if form == "export" else f".{form}"))
                try:
                    save(model, package, path, form)
                except Exception as e:
                    print(f"{name} {label} {form}: Keras cannot save it: {str(e).splitlines()[0]}", flush=True)
                    continue
                start = time.time()
                got = keras_files.run(path, inputs, options.out)
                why = keras_files.difference(wanted, got, TOLERANCE)
                bad += why is not None
                print(f"{name} {label} {form}: {why or 'agrees'} ({time.time() - start:.1f} s)", flush=True)
                if path.is_file():
                    path.unlink()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
