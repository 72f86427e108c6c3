"""Writes models in every format that a version of Keras has, with inputs and its answers: write_keras.py FOLDER [tf_keras] [CASE ...]

Runs in the environment of that version, which has TensorFlow and nothing else of ours; keras_writers.py runs it. For each case
NAME.keras, NAME.h5 and the SavedModels NAME.saved (model.save of Keras 2) and NAME.export; with
NAME.npz: in0, in1, ... and out0, ..., strings as floectl has them. Without cases: ORDINARY.
"""
import pathlib
import re
import shutil
import sys

import numpy as np

import keras_cases
import keras_files
import keras_nested_cases

ORDINARY = [
    "dense", "dense no bias", "einsum dense heads", "activation", "embedding", "relu options", "spatial dropout", "dot 1 False", "flatten", "permute",
    "rescaling list", "normalization given", "normalization adapted", "resizing bilinear", "center crop", "discretization", "category encoding multi_hot",
    "string lookup", "string lookup one_hot", "integer lookup int", "text vectorization", "hashing", "sequential", "sequential without input",
    "nested models", "shared layers", "several outputs", "dict outputs", "a layer twice in a row", "untrainable layer in a nested model",
]


def cases():
    both = keras_cases.BOTH
    nested = [name for name, build in both.items() if build.__module__ == keras_nested_cases.__name__]
    missing = [name for name in ORDINARY if name not in both]
    assert not missing, missing
    return ORDINARY + [n for n in nested if n not in ORDINARY]


def save(model, path, kind):
    if kind == "export":
        model.export(f"{path}.export")
    elif kind == "saved":
        model.save(f"{path}.saved", save_format="tf")
    else:
        model.save(f"{path}.{kind}")


def main():
    import tensorflow as tf
    arguments = sys.argv[1:]
    folder = pathlib.Path(arguments.pop(0))
    package = tf.keras
    if arguments[:1] == ["tf_keras"]:
        arguments.pop(0)
        import tf_keras as package
    elif tf.__version__ >= "2.16":
        import keras as package
    version = getattr(package, "__version__", tf.__version__)
    has_keras = not re.match(r"2\.(\d|1[01])\.", version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "version").write_text(version)
    written = 0
    for name in arguments or cases():
        path = folder / re.sub(r"\W+", "_", name).strip("_")
        package.utils.set_random_seed(7)
        rng = np.random.default_rng(11)
        try:
            made = keras_cases.BOTH[name](package, package.layers)
            model, inputs = made if isinstance(made, tuple) else (made, None)
            keras_files.randomise(model, rng)
            inputs = inputs or keras_files.made_up_inputs(model, rng)
            answers = keras_files.answers_of(model, inputs)
        except Exception as e:  # noqa: BLE001: of the version, whatever it is
            print(f"{version} has no '{name}': {str(e).splitlines()[0]}")
            continue
        arrays = {f"in{k}": keras_files.encoded(x) for k, x in enumerate(inputs)}
        arrays.update({f"shape{k}": np.array(x.shape) for k, x in enumerate(inputs)})
        arrays.update({f"out{k}": keras_files.encoded(x) for k, x in enumerate(answers)})
        np.savez(f"{path}.npz", **arrays)
        for kind in ("keras", "h5", "saved", "export"):
            has = {"keras": has_keras, "saved": version < "3", "export": hasattr(model, "export")}
            if not has.get(kind, True):
                continue
            try:
                save(model, path, kind)
                written += 1
            except Exception as e:  # noqa: BLE001: of the version, whatever it is
                print(f"{version} cannot save '{name}' as {kind}: {str(e).splitlines()[0] if str(e) else type(e)}")
                pathlib.Path(f"{path}.{kind}").unlink(missing_ok=True) if kind in ("keras", "h5") else shutil.rmtree(f"{path}.{kind}", ignore_errors=True)
    print(f"{version}: {written} files")


if __name__ == "__main__":
    main()
