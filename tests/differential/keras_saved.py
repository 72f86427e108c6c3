#!/usr/bin/env python3
"""Random Keras models, saved as Keras' users save them, through floe and Keras; prints every difference as a program.

    keras_saved.py [--minutes N] [--models N] [--seed S] [--number K] [--package keras|tf_keras] [--format F] [--keep DIR]

Model K of a package is made from the seed "S PACKAGE K" alone. A model that differs is made again with fewer values, down to
the first value that shows it. Exit status 1: an answer is wrong, floectl ended by a signal, or fewer than 97 % of the models
that have documented layers alone are answered.
"""
import argparse
import collections
import contextlib
import io
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "python")]

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import keras_files
import keras_programs

PACKAGES = {"keras": keras, "tf_keras": tf_keras}
FORMATS = ["keras", "h5", "keras", "h5", "saved", "export"]
TOLERANCE = {"float16": 3e-2, "float32": 1e-3, "float64": 1e-3}
ROWS = 3


class Unbuilt(Exception):
    """Keras cannot save, load or run it."""


def values_for(shape, dtype, rng):
    shape = tuple(ROWS if d is None else d for d in shape)
    if np.issubdtype(np.dtype(dtype), np.floating):
        return rng.uniform(-1.5, 1.5, shape).astype(dtype)
    return rng.randint(0, 9 if dtype == "int32" else 256, shape).astype(dtype)


class Case:
    """A program, its outputs, and how it is saved."""

    def __init__(self, package, seed, number, form):
        self.package, self.form = package, form
        self.seed = zlib.crc32(f"{seed} {package.__name__} {number}".encode())
        self.program, self.outputs = self.programmed()

    def programmed(self):
        fresh(self.package)
        return keras_programs.random_program(self.package, np.random.RandomState(self.seed))

    def model(self, outputs):
        """(model, arrays), made anew from the lines that the outputs need."""
        fresh(self.package)
        space = keras_programs.namespace(self.package)
        for _, text in keras_programs.needed(self.program, outputs):
            exec(text, space)  # pylint: disable=exec-used
        inputs = [space[n] for n in self.program.inputs]
        model = self.package.Model(inputs, [space[n] for n in outputs] if len(outputs) > 1 else space[outputs[0]])
        keras_files.randomise(model, np.random.default_rng(self.seed))
        rng = np.random.RandomState(self.seed)
        return model, [values_for(t.shape, keras_programs.Program.dtype(self.program, n), rng) for n, t in zip(self.program.inputs, inputs)]

    def written(self, outputs, folder):
        """(path, arrays, Keras' answers)"""
        try:
            model, arrays = self.model(outputs)
            wanted = keras_files.answers_of(model, arrays)
            path = folder / ("model." + self.form if self.form in ("keras", "h5") else "model")
            if self.form == "saved":
                tf.saved_model.save(model, str(path))
            elif self.form == "export":
                with contextlib.redirect_stdout(io.StringIO()):  # it describes what it writes
                    model.export(path)
            else:
                model.save(path)
        except Exception as error:
            raise Unbuilt(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}") from error
        return path, arrays, wanted

    def loaded_answers(self, path, arrays):
        try:
            if self.form in ("keras", "h5"):
                return keras_files.answers_of(self.package.models.load_model(path, compile=False), arrays, graph=True)
            run = tf.saved_model.load(str(path)).signatures.get("serving_default")
            if run is None:  # a call alone
                return None
            names = sorted(run.structured_input_signature[1])
            made = run(**{name: tf.constant(array) for name, array in zip(names, arrays)})
            return [made[name].numpy() for name in sorted(made)]
        except Exception as error:
            raise Unbuilt(f"loading: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}") from error

    def text(self, outputs):
        lines = [text for _, text in keras_programs.needed(self.program, outputs)]
        return "\n".join([*lines, f"model = K.Model([{', '.join(self.program.inputs)}], [{', '.join(outputs)}])"])


def fresh(package):
    package.utils.set_random_seed(7)
    if package is keras:
        keras.backend.clear_session(free_memory=False)
    else:
        tf_keras.backend.reset_uids()


def one_difference(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{b.dtype} {b.shape}, wanted {a.dtype} {a.shape}"
    if not np.issubdtype(a.dtype, np.floating):
        return None if (a == b).all() else f"{b.flatten()[:4]}, wanted {a.flatten()[:4]}"
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a64)
    if not np.array_equal(np.where(finite, 0, a64), np.where(np.isfinite(b64), 0, b64), equal_nan=True):
        return f"not finite elsewhere: {b.flatten()[:4]}, wanted {a.flatten()[:4]}"
    a64, b64 = np.where(finite, a64, 0), np.where(finite, b64, 0)
    off = np.abs(a64 - b64).max(initial=0) / max(1, np.abs(a64).max(initial=0))
    return f"differs by {off:.3g}: {b.flatten()[:4]}, wanted {a.flatten()[:4]}" if off > TOLERANCE.get(str(a.dtype), 1e-2) else None


def difference(wanted, got, ordered):
    """None, or in what they differ; outputs of a SavedModel are in the order of their names, and matched by their values."""
    if len(wanted) != len(got):
        return f"{len(got)} outputs, wanted {len(wanted)}"
    if ordered:
        found = [f"output {k}: {why}" for k, (a, b) in enumerate(zip(wanted, got)) if (why := one_difference(a, b))]
        return found[0] if found else None
    got = list(got)
    for a in wanted:
        same = [k for k, b in enumerate(got) if one_difference(a, b) is None]
        if not same:
            return "; ".join(one_difference(a, b) for b in got)[:400]
        del got[same[0]]
    return None


def disturbed(arrays, rng):
    """The same but for rounding."""
    return [a * (1 + 4 * np.finfo(a.dtype).eps * rng.choice([-1, 1], a.shape)).astype(a.dtype) if np.issubdtype(a.dtype, np.floating) else a
            for a in arrays]


def unstable(case, path, arrays, wanted):
    """Whether Keras itself answers something else for inputs that differ by rounding: then its answer is made of rounding errors."""
    rng = np.random.RandomState(case.seed)
    return any(difference(wanted, case.loaded_answers(path, disturbed(arrays, rng)), True) for _ in range(4))


def verdict(case, path, arrays, wanted, got):
    """(right | refused | WRONG | unstable | crash | unbuilt, why)"""
    if isinstance(got, str):
        outcome, why = ("crash", got) if got.startswith("ended by") or "INTERNAL" in got else ("refused", got)
    else:
        why = difference(wanted, got, case.form in ("keras", "h5"))
        outcome = "WRONG" if why else "right"
    if outcome == "right":
        return outcome, ""
    try:
        again = case.loaded_answers(path, arrays)
    except Unbuilt as error:
        return ("unbuilt", str(error)) if outcome != "crash" else (outcome, why)
    if outcome == "WRONG" and again is not None:
        why = difference(again, got, case.form in ("keras", "h5"))
        if why and case.form in ("keras", "h5") and unstable(case, path, arrays, again):
            return "unstable", why
        return ("WRONG", why) if why else ("right", "")
    return outcome, why


def tried(case, outputs):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            path, arrays, wanted = case.written(outputs, folder)
        except Unbuilt as error:
            return "unbuilt", str(error)
        return verdict(case, path, arrays, wanted, keras_files.run(path, arrays, folder))


def minimised(case, outcome):
    """The first value that has the outcome alone, or all of them."""
    for name in case.program.values:
        if name not in case.program.inputs and tried(case, [name])[0] == outcome:
            return [name]
    return case.outputs


def cause(message):
    message = re.sub(r"/\S*/model\S*:? ?", "", " ".join(message.split()))
    return re.sub(r"'[a-z_0-9]+'", "'...'", re.sub(r"\d+", "N", message))[:150]


class Count:
    """What came of the models."""

    def __init__(self, args):
        self.args, self.outcomes, self.layers_alone, self.causes = args, collections.Counter(), collections.Counter(), collections.Counter()
        self.first = {}

    def take(self, label, case, path, arrays, wanted, got):
        outcome, why = verdict(case, path, arrays, wanted, got)
        self.outcomes[outcome] += 1
        if keras_programs.only_layers(case.program, case.outputs):
            self.layers_alone[outcome] += 1
        if outcome == "refused":
            self.causes[cause(why)] += 1
            if self.causes[cause(why)] > 1:
                return
        if outcome in ("WRONG", "crash", "refused"):
            few = outcome != "refused" and self.outcomes["WRONG"] + self.outcomes["crash"] <= self.args.most  # a refusal names its layer
            outputs = minimised(case, outcome) if few else case.outputs
            text = f"# {outcome} {label}: {why[:500]}\n{case.text(outputs)}\n"
            print(text, flush=True)
            if self.args.keep and outcome != "refused":
                os.makedirs(self.args.keep, exist_ok=True)
                (pathlib.Path(self.args.keep) / (label.replace(" ", "_") + ".txt")).write_text(text)

    def report(self, seed):
        print(f"models of seed {seed}: {dict(self.outcomes)}; of layers alone: {dict(self.layers_alone)}")
        for why, count in self.causes.most_common():
            print(f"  {count} refused: {why}")
        alone = self.layers_alone
        of = alone["right"] + alone["refused"] + alone["WRONG"] + alone["crash"]
        return 1 if self.outcomes["WRONG"] or self.outcomes["crash"] or alone["right"] < .97 * of or not self.outcomes["right"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--models", type=int, default=0, help="how many at most; 0: any number")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--number", type=int, help="this model alone")
    parser.add_argument("--package", choices=sorted(PACKAGES), action="append")
    parser.add_argument("--format", choices=sorted(set(FORMATS)))
    parser.add_argument("--keep", help="a folder for the programs of what failed")
    parser.add_argument("--most", type=int, default=40, help="failures to make smaller")
    args = parser.parse_args()
    end, number, count = time.monotonic() + 60 * args.minutes, args.number or 0, Count(args)
    with tempfile.TemporaryDirectory() as root:
        waiting = collections.deque()
        while time.monotonic() < end and (not args.models or number < args.models):
            for name in args.package or sorted(PACKAGES):
                folder = pathlib.Path(tempfile.mkdtemp(dir=root))
                case = Case(PACKAGES[name], args.seed, number, args.format or FORMATS[number % len(FORMATS)])
                try:
                    if not case.outputs:
                        raise Unbuilt("nothing came of it")
                    path, arrays, wanted = case.written(case.outputs, folder)
                except Unbuilt as error:
                    count.outcomes["unbuilt"] += 1
                    if os.environ.get("FLOE_DIFFERENTIAL_VERBOSE"):
                        print(f"{name} {number} {case.form}: {error}")
                    continue
                waiting.append((f"{name} {number} {case.form}", case, path, arrays, wanted, keras_files.Running(path, arrays, folder)))
                while len(waiting) > 3:
                    settle(count, waiting.popleft())
            if args.number is not None:
                break
            number += 1
        while waiting:
            settle(count, waiting.popleft())
    return count.report(args.seed)


def settle(count, job):
    label, case, path, arrays, wanted, running = job
    count.take(label, case, path, arrays, wanted, running.result())
    shutil.rmtree(path.parent)


if __name__ == "__main__":
    sys.exit(main())
