"""floectl beside floed: it takes what the server serves, and tells what callers and operators need."""
import contextlib
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from floed import FLOECTL, MNIST, ROOT, Floed, digits

BEGINNER = os.path.join(MNIST, "models/mnist_beginner/1/frozen.pb")


def floectl(*args, code=0):
    done = subprocess.run([FLOECTL, *map(str, args)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Models whose newest version is 10: a Keras archive, an HDF5 file, a SavedModel. Version 9 is no model."""
    root = tmp_path_factory.mktemp("store")
    model = keras.Sequential([keras.layers.Input((3,), name="x"), keras.layers.Dense(2)])
    for name in ("archive", "hdf5", "saved"):
        (root / name / "9").mkdir(parents=True)
        (root / name / "9" / "frozen.pb").write_text("no model")
        (root / name / "10").mkdir()
    model.save(root / "archive" / "10" / "model.keras")
    model.save(root / "hdf5" / "10" / "model.h5")
    model.export(root / "saved" / "10", verbose=False)
    np.savez(root / "in.npz", x=np.ones((4, 3), np.float32))
    np.save(root / "expected.npy", model.predict(np.ones((4, 3), np.float32), verbose=0))
    return root


@pytest.mark.parametrize("name", ["archive", "hdf5", "saved"])
@pytest.mark.parametrize("version", ["", "10"])
def test_every_command_takes_what_is_served(store, tmp_path, name, version):
    path = store / name / version
    said = floectl("inspect", path).stderr
    assert ("version 10: " in said) == (version == "")
    floectl("run", path, "-i", store / "in.npz", "-o", tmp_path / "out.npz", "--by-position")
    (y,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_allclose(y, np.load(store / "expected.npy"), rtol=1e-5, atol=1e-6)
    assert json.loads(floectl("bench", path, "--seconds", 0.01, "--json").stdout)["calls"] > 0
    floectl("profile", path, "--runs", 2)
    if name == "saved":
        floectl("freeze", path, "-o", tmp_path / "frozen.pb")
        floectl("inspect", tmp_path / "frozen.pb")
    else:
        assert "a Keras file" in floectl("freeze", path, "-o", tmp_path / "frozen.pb", code=1).stderr


def test_two_models_in_a_directory_are_an_error_in_both_programs(store, tmp_path):
    shutil.copytree(store / "archive" / "10", tmp_path / "1")
    shutil.copy(BEGINNER, tmp_path / "1" / "frozen.pb")
    words = "holds several models ('frozen.pb', 'model.keras')"
    assert words in floectl("inspect", tmp_path / "1", code=1).stderr
    with contextlib.closing(Floed("--model_name=m", f"--model_base_path={tmp_path}", wait=False)) as server:
        server.wait_until(lambda: words in server.log())


def test_status_of_a_model_whose_newest_version_failed(tmp_path):
    for version in ("1", "2"):
        (tmp_path / "digits" / version).mkdir(parents=True)
        shutil.copy(BEGINNER, tmp_path / "digits" / version)
    config = tmp_path / "floe.yaml"
    config.write_text(f"models: [{{name: digits, base_path: {tmp_path}/digits, versions: {{latest: 2}},\n"
                      "          version_labels: {stable: 1, canary: 2}}]\n")
    np.save(tmp_path / "x.npy", digits()[:2])
    with contextlib.closing(Floed("--config", str(config))) as server:
        target = ("--target", server.target)
        shown = floectl("status", "--model", "digits", *target).stdout
        assert "float32[?,784]" in shown and "float32[?,10]" in shown
        assert "label canary: version 2\nlabel stable: version 1\n" in shown
        for choice, version in ((("--label", "stable"), 1), (("--version", "2"), 2), ((), 2)):
            said = floectl("predict", "digits", f"input=@{tmp_path}/x.npy", *choice, *target).stdout
            assert said.startswith(f"model digits, version {version}, "), said
        assert "'stable'" in floectl("predict", "digits", f"input=@{tmp_path}/x.npy", "--label", "old", *target, code=1).stderr

        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "frozen.pb").write_text("no model")
        (tmp_path / "new").rename(tmp_path / "digits" / "3")
        server.wait_until(lambda: "version 3 is not served: " in server.log())
        for model in (("--model", "digits"), ()):
            failed = floectl("status", *model, *target, code=1)
            assert "version 3 of model 'digits' failed" in failed.stderr
            floectl("status", "--no-fail", *model, *target)
        assert "version 3 failed: INVALID_ARGUMENT: " in floectl("status", "--model", "digits", *target, code=1).stdout
        assert json.loads(floectl("status", "--no-fail", "--json", *target).stdout)["stats"]["models"][0]["serving"] is True


def test_a_saved_models_directory_is_one_model(tmp_path):
    """Whatever TensorFlow writes beside saved_model.pb."""
    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def __call__(self, x):
            return x + 1
    tf.saved_model.save(Module(), str(tmp_path / "1"))
    for name in ("fingerprint.pb", "keras_metadata.pb"):
        (tmp_path / "1" / name).touch()
    floectl("inspect", tmp_path)


def test_manual_and_completion_have_every_command_and_option(tmp_path):
    """Of `floectl token new`, too; both come from --help (deploy/make_manual.py)."""
    subprocess.run([sys.executable, ROOT + "/deploy/make_manual.py", "--programs", os.path.dirname(FLOECTL), "--version", "1", "--out", tmp_path],
                   check=True)
    manual = gzip.decompress((tmp_path / "man/man1/floectl.1.gz").read_bytes()).decode().replace("\\-", "-")
    script = tmp_path / "bash-completion/completions/floectl"

    def completed(*words):
        line = " ".join(f"'{word}'" for word in ("floectl", *words))
        done = subprocess.run(["bash", "-c", f"source {script}; COMP_WORDS=({line}) COMP_CWORD={len(words)}; _floectl; echo ${{COMPREPLY[*]}}"],
                              capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    commands = [[]]
    for words in commands:
        text = floectl(*words, "--help").stdout
        inner = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
        inner = re.findall(r"^  ([a-z-]+) ", inner.group(1), re.M) if inner else []
        commands += [[*words, word] for word in inner]
        options = set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.M))
        assert options and completed(*words, "") >= options | set(inner), words
        assert not words or f'.SH "FLOECTL {" ".join(words).upper()}"' in manual
        assert all(option in manual for option in options)
    assert ["token", "new"] in commands and ["config", "apply"] in commands
    assert completed("token", "new", "--ro") == {"--role"} and completed("predict", "m", "--htt") == {"--http"}
