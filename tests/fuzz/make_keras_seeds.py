#!/usr/bin/env python3
"""Writes the seeds of the fuzzer `keras`: small .keras files, compressed, without what changes from day to day.

    $(scripts/pyenv.sh) tests/fuzz/make_keras_seeds.py
"""
import io
import os
import pathlib
import sys
import zipfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import keras
import tf_keras

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import keras_cases

SEEDS = ["dense", "Conv2D {'padding': 'same'}", "batch normalization", "LSTM {}", "bidirectional concat", "masked GRU", "attention",
         "multi head attention", "shared layers", "nested models", "reshape", "string lookup", "text vectorization length",
         "operators", "resizing bilinear", "Conv1DTranspose {'padding': 'valid'}", "RNN cells", "ConvLSTM1D"]


def compressed(path):
    out = io.BytesIO()
    with zipfile.ZipFile(path) as made, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("config.json", "model.weights.h5"):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), made.read(name), zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def main():
    folder = HERE / "corpus" / "keras"
    folder.mkdir(parents=True, exist_ok=True)
    for label, package in (("3", keras), ("2", tf_keras)):
        for number, name in enumerate(SEEDS):
            build = {**keras_cases.BOTH, **keras_cases.KERAS3}[name]
            package.backend.clear_session()
            made = build(package, package.layers)
            model = made[0] if isinstance(made, tuple) else made
            model.save("/tmp/seed.keras")
            seed = compressed("/tmp/seed.keras")
            if len(seed) <= 8000:
                (folder / f"{number:02}_keras{label}.keras").write_bytes(seed)


if __name__ == "__main__":
    main()
