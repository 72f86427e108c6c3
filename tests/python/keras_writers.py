"""Files of ordinary models as older and newer versions of Keras write them, against those versions' own answers.

    keras_writers.py [--folder DIR] [--keep DIR] [VERSION ...]

Makes an environment for each version in DIR (~/.cache/floe) the first time, half a GB each, runs write_keras.py in it, and compares
what floectl answers. Prints a table and every difference; exit status 1 where anything is wrong or refused but
what KNOWN says. --keep leaves the files there. All versions take about half an hour.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import keras_files

# Name -> what pip installs, which Pythons will do, and what else write_keras.py is told.
VERSIONS = {
    "tf2.9": (["tensorflow-cpu==2.9.3", "numpy<1.24", "protobuf<3.20"], ("3.10", "3.9"), []),
    "tf2.12": (["tensorflow-cpu==2.12.1", "numpy<1.24"], ("3.10", "3.11"), []),
    "tf2.13": (["tensorflow-cpu==2.13.1", "numpy<1.25"], ("3.10", "3.11"), []),
    "tf2.14": (["tensorflow-cpu==2.14.1", "numpy<1.27"], ("3.10", "3.11"), []),
    "tf2.15": (["tensorflow-cpu==2.15.1", "numpy<1.27"], ("3.10", "3.11"), []),
    "keras3.0": (["tensorflow-cpu==2.16.2", "keras==3.0.5", "numpy<1.27"], ("3.10", "3.11"), []),
    "keras3.3": (["tensorflow-cpu==2.16.2", "keras==3.3.3", "optree==0.11.0", "numpy<1.27"], ("3.10", "3.11"), []),
    "keras3.6": (["tensorflow-cpu==2.16.2", "keras==3.6.0", "numpy<1.27"], ("3.10", "3.11"), []),
    "newest": (None, (), []),  # that of the other tests
    "tf_keras": (None, (), ["tf_keras"]),
}
KINDS = ("keras", "h5", "saved", "export")
# FILE -> why it is right that floe refuses it, or gives something else than the model did before it was saved.
ONE_MODEL = "the weights of a model within two others are written once; Keras cannot load the file itself"
NUMBERS = "counts calls that are not in the file; Keras cannot load it itself"
GRAPH = "the graph that Keras writes answers so in TensorFlow too"
KNOWN = {
    **{f"{version} one_model_within_two.keras": ONE_MODEL for version in VERSIONS},
    "keras3.0 model_called_before_elsewhere.keras": NUMBERS,
    "keras3.0 model_called_before_elsewhere.h5": NUMBERS,
    **{f"keras3.{k} discretization.export": GRAPH for k in (0, 3, 6)},
}


def python_of(versions):
    for version in versions:
        found = sorted(pathlib.Path.home().glob(f".pyenv/versions/{version}*/bin/python"))
        if found or shutil.which(f"python{version}"):
            return found[-1] if found else shutil.which(f"python{version}")
    return None


def environment(name, folder):
    """The Python of the version's environment; None where none can be made."""
    packages, versions, _ = VERSIONS[name]
    if packages is None:
        return sys.executable
    place = folder / f"keras-writer-{name}"
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        base = python_of(versions)
        if base is None:
            return None
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([base, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
        (place / "complete").touch()
    return python


def write(name, python, folder):
    quiet = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", PYTHONDONTWRITEBYTECODE="1")
    program = pathlib.Path(__file__).with_name("write_keras.py")
    subprocess.run([python, program, folder, *VERSIONS[name][2]], env=quiet, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(path, answers, work):
    """None, or in what floe's answers differ from the writer's, or why it refuses."""
    arrays = np.load(answers)
    inputs, shapes = [], []
    while f"in{len(inputs)}" in arrays:
        shapes.append(tuple(arrays[f"shape{len(inputs)}"]))
        array = arrays[f"in{len(inputs)}"]
        strings = array.dtype == np.uint8 and array.shape != shapes[-1]
        inputs.append(keras_files.decoded(array, shapes[-1]) if strings else array)
    wanted = [arrays[f"out{k}"] for k in range(sum(n.startswith("out") for n in arrays))]
    got = keras_files.run(path, inputs, work)
    if not isinstance(got, str) and path.suffix in (".saved", ".export"):  # outputs of SavedModels have names of their own
        order = [next((k for k, g in enumerate(got) if not keras_files.difference([w], [g], 1e-4)), None) for w in wanted]
        if None not in order and len(set(order)) == len(got):
            got = [got[k] for k in order]
    return keras_files.difference(wanted, got, 1e-4)


def check(name, folder, work):
    """How many files of each kind there are, and are answered; and whether that is as it should be."""
    counts, good = {}, True
    for answers in sorted(folder.glob("*.npz")):
        for kind in KINDS:
            path = answers.with_suffix("." + kind)
            if not path.exists():
                continue
            why, known = compare(path, answers, work), f"{name} {path.name}" in KNOWN
            right, all_ = counts.get(kind, (0, 0))
            counts[kind] = (right + (why is None), all_ + 1)
            if (why is None) == known:
                good = False
                print(f"{name} {path.name}: {why or 'is right now; take it off KNOWN'}", flush=True)
    return counts, good and bool(counts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "floe")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("versions", nargs="*", default=list(VERSIONS))
    arguments = parser.parse_args()
    failed, lines = False, []
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        for name in arguments.versions:
            files = (arguments.keep or work) / name
            if not (files / "version").exists():
                python = environment(name, arguments.folder)
                if python is None:
                    print(f"{name}: left out, none of Python {', '.join(VERSIONS[name][1])} is here")
                    continue
                write(name, python, files)
            counts, good = check(name, files, work)
            lines.append(f"{name:9}" + "".join(f"  {kind} {right}/{all_}" for kind, (right, all_) in counts.items()))
            failed = failed or not good
            if not arguments.keep:
                shutil.rmtree(files)
    print("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
