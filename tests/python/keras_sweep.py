#!/usr/bin/env python3
"""Every function of keras.ops and tf.*, and every layer, with each argument off its default, through Keras and floe.

    keras_sweep.py [--only TEXT]... [--set ops|layers|layers2|tf] [--format keras|h5] [--every N] [--keep DIR] [--write] [--verbose] [--list]

A case is an expression that makes its inputs, such as "ops.clip(f(4), -0.5, 0.5)"; its model is saved, answered by Keras
and run by floectl ($FLOECTL, or that of FLOE_BUILD_DIR). Its outcome is right, refused, WRONG or crash; or unbuilt, where
Keras cannot make, run, save or load the model. keras_sweep.txt has the outcomes that are not right, and why; --write
writes it. Exit status 1: an outcome differs from that file, or something has no case.
"""
import argparse
import collections
import inspect
import os
import pathlib
import re
import sys
import tempfile
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import keras_files
import keras_sweep_layers
import keras_sweep_ops
import keras_sweep_tf

TABLE = pathlib.Path(__file__).with_suffix(".txt")
ROWS = 3  # of inputs with an open batch dimension

KINDS = {  # letter: dtype, values of a shape
    "f": ("float32", lambda rng, s: rng.normal(0, 2, s)),
    "p": ("float32", lambda rng, s: rng.uniform(.1, 2, s)),
    "r": ("float32", lambda rng, s: rng.uniform(0, 1, s)),
    "w": ("float32", lambda rng, s: rng.uniform(-.95, .95, s)),
    "k": ("float32", lambda rng, s: rng.normal(0, 100, s)),
    "z": ("float32", lambda rng, s: rng.choice([np.nan, np.inf, -np.inf, 0., -0., 1.5, -2.5, .5], s)),
    "h": ("float16", lambda rng, s: rng.normal(0, 2, s)),
    "d": ("float64", lambda rng, s: rng.normal(0, 2, s)),
    "i": ("int32", lambda rng, s: rng.integers(-5, 6, s)),
    "l": ("int64", lambda rng, s: rng.integers(-5, 6, s)),
    "n": ("int32", lambda rng, s: rng.integers(0, 5, s)),
    "m": ("int32", lambda rng, s: rng.integers(-5, 5, s)),
    "u": ("uint8", lambda rng, s: rng.integers(0, 256, s)),
    "j": ("int8", lambda rng, s: rng.integers(-50, 51, s)),
    "b": ("bool", lambda rng, s: rng.integers(0, 2, s)),
    "s": ("string", lambda rng, s: rng.choice([b"red", b"green", b"blue", b"Red, green!"], s).astype(object)),
}
# What several sums in a row may lose. Layers of float64 may have parts of float32.
TOLERANCE = {"float16": 1e-2, "float32": 2e-5, "float64": 2e-7}


class Inputs:
    """What an expression asks for: the inputs of its model, with their values."""

    def __init__(self, package, seed):
        self.package, self.rng = package, np.random.default_rng(seed)
        self.tensors, self.arrays = [], []

    def make(self, dtype, shape, values, **how):
        tensor = self.package.layers.Input(batch_shape=shape, dtype=dtype, name=f"in{len(self.tensors)}", **how)
        self.tensors.append(tensor)
        self.arrays.append(values(self.rng, tuple(ROWS if d is None else d for d in shape)))
        if dtype != "string":
            self.arrays[-1] = np.asarray(self.arrays[-1]).astype(dtype)
        return tensor

    def positive_definite(self, n):
        def values(rng, shape):
            a = rng.normal(size=shape)
            return a @ a.swapaxes(-1, -2) + np.eye(n)
        return self.make("float32", (None, n, n), values)

    def names(self):
        """What an expression may use."""
        names = {}
        for letter, (dtype, values) in KINDS.items():
            names[letter] = lambda *s, dtype=dtype, values=values: self.make(dtype, (None, *s), values)
            names[letter.upper()] = lambda *s, dtype=dtype, values=values: self.make(dtype, s, values)
        names["Z"] = lambda: self.make("int32", (), lambda rng, s: np.int32(5))
        names["K"] = lambda *s: self.rng.normal(0, .5, s).astype(np.float32)
        names.update({"A": lambda v, dtype="float32": np.array(v, dtype), "L": self.package.layers, "np": np, "tf": tf,
                      "spd": self.positive_definite})
        if self.package is keras:
            names["ops"] = keras.ops
        return names


class Unbuilt(Exception):
    """Keras itself cannot make, run, save or load the model."""


def first_line(error):
    told = re.search(r"calling .*?\x1b\[1m(.*?)\x1b\[0m", str(error), re.S)  # what Keras wraps
    if told:
        return told[1].strip().splitlines()[0]
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def tensors_of(tree):
    return [t for t in tf.nest.flatten(tree) if hasattr(t, "dtype") and hasattr(t, "shape") and not isinstance(t, np.ndarray)]


def build(package, expression):
    """(model, arrays) of an expression."""
    seed = zlib.crc32(expression.encode())
    package.utils.set_random_seed(7)
    if package is keras:  # names begin anew; the whole of clear_session() takes longer than a case
        keras.backend.clear_session(free_memory=False)
    else:
        tf_keras.backend.reset_uids()
    inputs = Inputs(package, seed)
    try:
        outputs = tensors_of(eval(expression, inputs.names()))  # pylint: disable=eval-used
        if not outputs:
            raise Unbuilt("no tensor comes of it")
        model = package.Model(inputs.tensors, outputs if len(outputs) > 1 else outputs[0])
        keras_files.randomise(model, np.random.default_rng(seed))
    except Unbuilt:
        raise
    except Exception as error:
        raise Unbuilt(f"cannot be built: {first_line(error)}") from error
    return model, inputs.arrays


def answers(model, arrays, graph=False):
    try:
        found = keras_files.answers_of(model, arrays, graph)
    except Exception as error:
        raise Unbuilt(f"cannot be run: {first_line(error)}") from error
    if any(a.dtype == object and not isinstance(next(iter(a.flat), b""), (bytes, str)) for a in found):
        raise Unbuilt("its answer is sparse or ragged")
    return found


def written(package, expression, path):
    """(arrays, Keras' answers) of the model, which is saved to the path."""
    model, arrays = build(package, expression)
    wanted = answers(model, arrays)
    try:
        model.save(path)
    except Exception as error:
        raise Unbuilt(f"cannot be saved: {first_line(error)}") from error
    return arrays, wanted


def loaded_answers(package, path, arrays):
    """The answers of what Keras itself makes of the file, traced: eager TensorFlow adds the bias of channels_first wrongly."""
    try:
        model = package.models.load_model(path, compile=False)
    except Exception as error:
        raise Unbuilt(f"cannot be loaded: {first_line(error)}") from error
    return answers(model, arrays, graph=True)


def difference(wanted, got):
    if isinstance(got, str) or len(wanted) != len(got):
        return keras_files.difference(wanted, got, 0)
    for k, (a, b) in enumerate(zip(wanted, got)):
        if str(a.dtype) == "bfloat16" and b.dtype.kind == "V":  # .npz files have no name for it
            a, b = a.astype(np.float32), b.view(a.dtype).astype(np.float32)
            why = keras_files.difference([a], [b], 3e-2)
            if why:
                return why
            continue
        if a.dtype != b.dtype and object not in (a.dtype, b.dtype):
            return f"output {k} is {b.dtype}, wanted {a.dtype}"
        floating = np.issubdtype(a.dtype, np.floating)
        if floating and a.shape == b.shape and not np.array_equal(np.where(np.isfinite(a), 0, a), np.where(np.isfinite(b), 0, b), equal_nan=True):
            return f"output {k} has other values that are not finite: {b.flatten()[:6]}, wanted {a.flatten()[:6]}"
        if floating:
            a, b = (np.where(np.isfinite(v), v, 0) for v in (a, b))
        why = keras_files.difference([a], [b], TOLERANCE.get(str(a.dtype), 1e-2) if floating else 0)
        if why:
            return f"{why.replace('output 0', f'output {k}')}: {str(b.flatten()[:4])}, wanted {str(a.flatten()[:4])}" if b.size else why
    return None


def outcome_of(wanted, got):
    if isinstance(got, str):
        return ("crash", got) if got.startswith("ended by") or "INTERNAL" in got else ("refused", got)
    why = difference(wanted, got)
    return ("WRONG", why) if why else ("right", "")


class Sweep:
    """Runs cases; floectl runs beside the making of the next ones."""

    def __init__(self, folder, suffix, keep=None, verbose=False):
        self.folder, self.suffix, self.keep, self.verbose = pathlib.Path(folder), suffix, keep, verbose
        self.number = 0

    def run(self, cases):
        """{(set, expression): (outcome, why)} of [(set, package, expression)]."""
        found, waiting = {}, collections.deque()
        for kind, package, expression in cases:
            folder = self.folder / str(self.number)
            self.number += 1
            folder.mkdir()
            path = folder / f"model.{self.suffix}"
            try:
                arrays, wanted = written(package, expression, path)
            except Unbuilt as error:
                found[kind, expression] = "unbuilt", str(error)
                continue
            waiting.append((kind, package, expression, path, arrays, wanted, keras_files.Running(path, arrays, folder)))
            while len(waiting) > 4:
                self.take(found, *waiting.popleft())
        while waiting:
            self.take(found, *waiting.popleft())
        return found

    def take(self, found, kind, package, expression, path, arrays, wanted, job):
        got = job.result()
        outcome, why = outcome_of(wanted, got)
        if outcome != "right":
            try:  # does the file say what the model was?
                again = loaded_answers(package, path, arrays)
                if outcome == "WRONG":
                    outcome, why = outcome_of(again, got)
            except Unbuilt as error:
                outcome, why = "unbuilt", f"{error}; floe: {outcome}"
        found[kind, expression] = outcome, why
        if self.verbose and outcome in ("WRONG", "crash", "refused"):
            print(f"{outcome} | {expression} | {short(why)}", flush=True)
        if self.keep and outcome in ("WRONG", "crash", "refused"):
            name = re.sub(r"\W+", "_", expression)[:80]
            path.rename(pathlib.Path(self.keep) / f"{name}.{self.suffix}")
            np.savez(pathlib.Path(self.keep) / f"{name}.npz", *arrays)
        for file in path.parent.iterdir():
            file.unlink()


def functions_of_ops():
    names = [n for n in dir(keras.ops) if callable(getattr(keras.ops, n)) and not n.startswith("_")]
    return names + [f"image.{n}" for n in dir(keras.ops.image) if callable(getattr(keras.ops.image, n)) and not n.startswith("_")]


def all_cases(sets):
    """[(set, group, package, expression)]"""
    cases = []
    for kind, package, table in (("ops", keras, keras_sweep_ops.CASES), ("tf", tf_keras, keras_sweep_tf.CASES),
                                 ("layers", keras, None), ("layers2", tf_keras, None)):
        if kind not in sets:
            continue
        for group, expressions in (keras_sweep_layers.cases(package) if table is None else table).items():
            cases += [(kind, group, package, e) for e in dict.fromkeys(expressions)]
    return cases


def missing(sets):
    """What has no case and no reason."""
    lost = []
    if "ops" in sets:
        lost += [f"ops.{n} has no case" for n in functions_of_ops() if n not in keras_sweep_ops.CASES and n not in keras_sweep_ops.NEVER]
        for name, expressions in keras_sweep_ops.CASES.items():
            function = keras.ops
            for part in name.split("."):
                function = getattr(function, part, None)
            if function is None:
                continue
            names = [n for n, p in inspect.signature(function).parameters.items() if p.default is not p.empty]
            text = " ".join(expressions)
            positional = max(e.count(", ") for e in expressions)  # any may be given by its place
            lost += [f"ops.{name}: no case gives {n}" for n in names if f"{n}=" not in text and not positional]
    for kind, package in (("layers", keras), ("layers2", tf_keras)):
        if kind in sets:
            lost += keras_sweep_layers.missing(package)
    return lost


def sample(cases, every):
    """The first case of each function and layer, and one in `every` of the others."""
    seen = set()
    return [c for c in cases if (c[0], c[1]) not in seen and not seen.add((c[0], c[1])) or zlib.crc32(c[3].encode()) % every == 0]


def short(message):
    """A message without what differs from run to run."""
    message = re.sub(r"/tmp/\S*?/model\.\w+:? ?", "", " ".join(message.split()))
    message = re.sub(r"0x[0-9a-f]+|<.*? at .*?>", "...", message)
    message = re.sub(r"floectl run: [A-Z_]+: |; export the model with .*", "", message)
    return message.replace(" | ", "; ")[:120].strip()


def table_lines(cases, found):
    """The table's lines: a function's count, and its cases that are not right."""
    groups = collections.defaultdict(list)
    for kind, group, _, expression in cases:
        if (kind, expression) in found:
            groups[kind, group].append((expression, *found[kind, expression]))
    lines = []
    for (kind, group), rows in sorted(groups.items()):
        count = collections.Counter(outcome for _, outcome, _ in rows)
        lines.append(f"{kind} {group}: " + ", ".join(f"{count[o]} {o}" for o in ("right", "refused", "WRONG", "crash", "unbuilt") if count[o]))
        lines += [f"    {outcome} | {expression} | {short(why)}" for expression, outcome, why in rows if outcome != "right"]
    if any(kind == "ops" for kind, _ in groups):
        lines += [f"ops {name}: never | {why}" for name, why in sorted(keras_sweep_ops.NEVER.items())]
    return lines


def known():
    """{"set expression": outcome} of the table."""
    table, kind = {}, ""
    for line in TABLE.read_text().splitlines() if TABLE.exists() else ():
        if line.startswith("    "):
            outcome, rest = line.strip().split(" | ", 1)
            table[f"{kind} {rest.rsplit(' | ', 1)[0]}"] = outcome
        else:
            kind = line.split(" ")[0]
    return table


def run(cases, suffix="keras", keep=None, verbose=False):
    """{(set, expression): (outcome, why)} of cases of all_cases()."""
    with tempfile.TemporaryDirectory() as folder:
        return Sweep(folder, suffix, keep, verbose).run([(kind, package, e) for kind, _, package, e in cases])


def news(found, table):
    """What differs from the table, as lines."""
    return [f"{outcome}, {table.get(f'{kind} {expression}', 'right')} in the table: {expression}: {short(why)}"
            for (kind, expression), (outcome, why) in found.items() if outcome != table.get(f"{kind} {expression}", "right")]


def write(lines, sets):
    """The table, with the lines of other sets as they are."""
    kept, kind = [], ""
    for line in TABLE.read_text().splitlines()[1:] if TABLE.exists() else ():
        kind = kind if line.startswith("    ") else line.split(" ")[0]
        if kind not in sets:
            kept.append(line)
    TABLE.write_text("\n".join(["# What is not right, by keras_sweep.py --write: outcome | expression | why.", *kept, *lines]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="functions, layers or expressions with this text")
    parser.add_argument("--set", action="append", choices=["ops", "layers", "layers2", "tf"], help="default: all")
    parser.add_argument("--format", default="keras", choices=["keras", "h5"])
    parser.add_argument("--every", type=int, default=1, help="the first case of each function, and one in N of the others")
    parser.add_argument("--keep", help="a folder for the files of what is not right")
    parser.add_argument("--write", action="store_true", help=f"write what was run to {TABLE.name}: whole sets, without --only and --every")
    parser.add_argument("--verbose", action="store_true", help="print what is not right when it is found")
    parser.add_argument("--list", action="store_true", help="print the table's lines")
    args = parser.parse_args()
    sets = args.set or ["ops", "layers", "layers2", "tf"]
    cases = [c for c in all_cases(sets) if not args.only or any(o == c[1] or (o in c[3] if "(" in o else False) for o in args.only)]
    cases = sample(cases, args.every)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    found = run(cases, args.format, args.keep, args.verbose)
    lost = missing(sets) if not args.only else []
    lines = table_lines(cases, found)
    if args.write:
        write(lines, sets)
    if args.list or args.only:
        print("\n".join(lines))
    bad = news(found, known()) if args.format == "keras" else []
    print("\n".join(bad))
    print("\n".join(lost))
    print(dict(collections.Counter(outcome for outcome, _ in found.values())), f"{len(lost)} without a case")
    return 1 if bad or lost else 0


if __name__ == "__main__":
    sys.exit(main())
