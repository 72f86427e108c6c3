"""Makes model files with Keras and compares what `floectl run` gives for them with Keras' own answers."""
import os
import pathlib
import struct
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLOECTL = os.environ.get("FLOECTL") or pathlib.Path(os.environ.get("FLOE_BUILD_DIR", ROOT / "build" / "release")) / "floectl"


def randomise(model, rng):
    """Weights of every size, where a new model has zeros and ones. Tables and seeds are no weights."""
    values = []
    for variable, value in zip(model.weights, model.get_weights()):
        name = getattr(variable, "path", variable.name)
        if not np.issubdtype(value.dtype, np.floating) or name.split("/")[-1].split(":")[0] in ("mean", "variance", "Variable"):
            values.append(value)
        elif "variance" in name:
            values.append(rng.uniform(.5, 1.5, value.shape).astype(value.dtype))
        else:
            values.append(rng.normal(0, .5, value.shape).astype(value.dtype))
    model.set_weights(values)


def made_up_inputs(model, rng, rows=3, open_size=7):
    inputs = []
    for tensor in model.inputs:
        shape = (rows,) + tuple(open_size if d is None else d for d in tensor.shape[1:])
        dtype = getattr(tensor.dtype, "name", str(tensor.dtype))
        inputs.append(rng.standard_normal(shape).astype(dtype))
    return inputs


def encoded(array):
    """Strings as floectl reads them."""
    if array.dtype != object:
        return array
    parts = [s if isinstance(s, bytes) else s.encode() for s in array.reshape(-1)]
    return np.frombuffer(b"".join(struct.pack("<I", len(p)) + p for p in parts), np.uint8)


def decoded(array, shape):
    parts, data, at = [], array.tobytes(), 0
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        parts.append(data[at + 4:at + 4 + size])
        at += 4 + size
    return np.array(parts, dtype=object).reshape(shape)


def flat(answers):
    """In the order of the signature's outputs: a dict by its keys."""
    if isinstance(answers, dict):
        answers = [answers[k] for k in sorted(answers)]
    return answers if isinstance(answers, (list, tuple)) else [answers]


def answers_of(model, inputs, graph=False):
    """Keras' answers; with `graph`, those of a traced function, as predict() has."""
    import tensorflow as tf
    tensors = [tf.constant(np.array(x, dtype=object if x.dtype == object else x.dtype)) for x in inputs]
    if any(isinstance(getattr(model, name, None), dict) for name in ("_inputs_struct", "_nested_inputs")):
        tensors = {tensor.name: t for tensor, t in zip(model.inputs, tensors)}
    elif len(tensors) == 1:
        tensors = tensors[0]
    call = tf.function(lambda t: model(t, training=False)) if graph else lambda t: model(t, training=False)
    return [np.asarray(a) for a in flat(call(tensors))]


class Running:
    """A floectl at work on a file. No thread waits for it: CPython 3.11 parses headers of arrays, as TensorFlow does
    functions, with a counter that its threads share, and fails now and then where two do so."""

    def __init__(self, path, inputs, folder):
        self.folder = folder
        with open(folder / "stdout", "w") as out, open(folder / "stderr", "w") as errors:
            self.process = subprocess.Popen(command_for(path, inputs, folder), stdout=out, stderr=errors)

    def result(self):
        """What it gives, in the order of the signature; the error's text where it refuses."""
        code = self.process.wait()  # with a timeout, Python looks for the end 20 times a second; ctest has one
        if code < 0:
            return f"ended by signal {-code}"
        if code:
            return (self.folder / "stderr").read_text().strip() or f"exit status {code}"
        arrays = np.load(self.folder / "out.npz")
        return [arrays[line.split()[0]] for line in (self.folder / "stdout").read_text().splitlines()]


def run(path, inputs, folder):
    return Running(path, inputs, folder).result()


def command_for(path, inputs, folder):
    np.savez(folder / "in.npz", **{f"a{k}": encoded(x) for k, x in enumerate(inputs)})
    command = [FLOECTL, "run", path, "--inputs", folder / "in.npz", "--outputs", folder / "out.npz", "--by-position"]
    for k, x in enumerate(inputs):
        if x.dtype == object:
            command += ["--shape", f"a{k}=" + ",".join(map(str, x.shape))]
    return command


def difference(wanted, got, tolerance):
    """None, or in what the answers differ."""
    if isinstance(got, str):
        return got
    if len(wanted) != len(got):
        return f"{len(got)} outputs, wanted {len(wanted)}"
    for k, (a, b) in enumerate(zip(wanted, got)):
        if a.dtype == object:
            b = decoded(b, a.shape)
            if not (a == b).all():
                return f"output {k}: {b}, wanted {a}"
            continue
        if a.shape != b.shape:
            return f"output {k} is {b.shape}, wanted {a.shape}"
        scale = max(1., float(np.abs(a).max(initial=0))) if np.issubdtype(a.dtype, np.floating) else 1.
        off = float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)) / scale
        if not off <= tolerance:
            return f"output {k} differs by {off}"
    return None
