"""A random graph as a list of steps, run eagerly while it is made and replayed as a TensorFlow graph.

A step is a function of tensors and the numbers of the values it takes. Because every value is known
while the graph grows, the next step can be chosen to fit shapes and magnitudes.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "op_cases"))

import numpy as np
import tensorflow as tf

import harness

SMALL_FLOATS = ("float16", "bfloat16")
MOST_ELEMENTS = 4096


class Refused(Exception):
    """The step does not fit; another is tried."""


def array_of(tensor):
    """An eager tensor's values; strings as objects."""
    array = tensor.numpy() if hasattr(tensor, "numpy") else np.asarray(tensor)
    return np.array(array, object) if isinstance(array, bytes) else array


class Value:
    """What a step or an input gives. `exact`: integers and dyadic fractions that every correct
    implementation computes to the last bit."""

    def __init__(self, array, exact):
        self.array = array
        self.exact = exact

    @property
    def dtype(self):
        return harness.dtype_name(self.array)

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim


class Step:
    """`run(*tensors)` gives a list of tensors, numbered from `first` on."""

    def __init__(self, name, run, inputs, first, count):
        self.name = name
        self.run = run
        self.inputs = inputs
        self.first = first
        self.count = count


class Graph:
    """Inputs, constants and steps. `fed`: number of a value -> its declared shape."""

    def __init__(self, rng, v2=True, most=MOST_ELEMENTS):
        self.rng = rng
        self.most = most  # elements of a value
        self.values = []
        self.steps = []
        self.fed = {}
        self.constants = set()
        self.v2 = v2  # control flow as functions; otherwise as switches and frames

    # -- making ----------------------------------------------------------------------------------

    def feed(self, array, declared="random"):
        """An input; its declared shape hides some dims, or the rank."""
        array = np.asarray(array)
        if isinstance(declared, str):
            hidden = self.rng.choice(["none", "rows", "some", "all", "rank"], p=[0.15, 0.35, 0.2, 0.15, 0.15])
            declared = list(array.shape)
            if hidden == "rows" and declared:
                declared[0] = None
            elif hidden in ("some", "all"):
                declared = [None if hidden == "all" or self.rng.rand() < 0.5 else d for d in declared]
            elif hidden == "rank":
                declared = None
        self.fed[len(self.values)] = declared
        return self._add(Value(array, True))

    def constant(self, array):
        """A value that is part of the graph."""
        self.constants.add(len(self.values))
        return self._add(Value(np.asarray(array), True))

    def step(self, name, run, inputs, exact=True):
        """Applies `run` to values; gives the numbers of the results. Raises Refused."""
        try:
            results = run(*[tf.constant(self.values[i].array) for i in inputs])
        except (tf.errors.OpError, ValueError, TypeError, NotImplementedError) as error:
            raise Refused(str(error)) from error
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        exact = exact and all(self.values[i].exact for i in inputs)
        values = [Value(array_of(result), exact) for result in results]
        for value in values:
            self._check(value)
        first = len(self.values)
        self.steps.append(Step(name, run, list(inputs), first, len(values)))
        return [self._add(value) for value in values]

    def _check(self, value):
        array = value.array
        if array.size > self.most or array.ndim > 6:
            raise Refused("too large")
        if array.dtype.kind in "fcV" or value.dtype == "bfloat16":
            if value.dtype.startswith("complex"):
                numbers = np.abs(array)
            else:
                numbers = np.abs(array.astype(np.float64))
            numbers = numbers[np.isfinite(numbers)]
            limit = 100 if value.dtype in SMALL_FLOATS else 1e5
            if numbers.size and numbers.max() > limit:
                raise Refused("too large a number")
            if value.exact and value.dtype in SMALL_FLOATS and numbers.size and (numbers * 2 % 1 != 0).any():
                value.exact = False

    def _add(self, value):
        self.values.append(value)
        return len(self.values) - 1

    # -- choosing --------------------------------------------------------------------------------

    def pick(self, holds=lambda v: True):
        """A value for which `holds`, later ones more often."""
        which = [i for i, v in enumerate(self.values) if holds(v)]
        if not which:
            raise Refused("no such value")
        weights = np.linspace(1, 4, len(which))
        return int(self.rng.choice(which, p=weights / weights.sum()))

    def numbers(self, dtype, shape):
        """Small numbers that are exact in every dtype."""
        rng = self.rng
        if dtype == "bool":
            return rng.randint(0, 2, shape).astype(bool)
        if dtype == "string":
            words = ["", "a", "Floe", "two words", "häß", "x,y", " 12 ", "tail "]
            return np.array([words[i] for i in rng.randint(0, 8, shape).ravel()], object).reshape(shape)
        if dtype in harness.INTS:
            return rng.randint(0 if dtype[0] == "u" else -4, 5, shape).astype(dtype)
        numbers = rng.randint(-8, 9, shape) / 2
        if dtype in harness.COMPLEX:
            numbers = numbers + 1j * (rng.randint(-8, 9, shape) / 2)
        return np.asarray(numbers).astype(tf.as_dtype(dtype).as_numpy_dtype)

    # -- replaying -------------------------------------------------------------------------------

    def case_text(self, name, fetches):
        """The case of these values, with TensorFlow's answers."""
        v1 = tf.compat.v1
        (v1.enable_control_flow_v2 if self.v2 else v1.disable_control_flow_v2)()
        inexact = any(not self.values[i].exact for i in fetches)
        largest = max([np.abs(np.nan_to_num(self.values[i].array.astype(np.complex128), posinf=0, neginf=0)).max(initial=0)
                       for i in fetches if self.values[i].array.dtype.kind not in "OSU"], default=0)
        rough = any(v.dtype in SMALL_FLOATS for v in self.values)
        rtol = (5e-2 if rough else 2e-4) if inexact else 0
        return harness.case_text(name, lambda enter: self._build(enter, fetches), rtol, rtol * max(1, largest),
                                 None, None, ())

    def _build(self, enter, fetches):
        tensors = {}
        for i in sorted(self.needed(fetches)):
            if i in self.fed:
                tensors[i] = enter(f"x{i}", harness.Feed(self.values[i].array, self.fed[i]))
            elif i in self.constants:
                tensors[i] = tf.constant(self.values[i].array, name=f"c{i}")
        for step in self.steps:
            if not any(step.first + k in self.needed(fetches) for k in range(step.count)):
                continue
            if all(step.first + k in tensors for k in range(step.count)):
                continue  # fed instead
            results = step.run(*[tensors[i] for i in step.inputs])
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            for k, result in enumerate(results):
                tensors.setdefault(step.first + k, result)
        return [tf.identity(tensors[i], name=f"out{i}") for i in fetches]

    def needed(self, fetches):
        """Numbers of the values that these depend on."""
        maker = {step.first + k: step for step in self.steps for k in range(step.count)}
        found, left = set(), list(fetches)
        while left:
            i = left.pop()
            if i in found:
                continue
            found.add(i)
            if i not in self.fed and i in maker:
                left += maker[i].inputs
        return found

    def sinks(self):
        """Values that no step takes, the inputs left out."""
        taken = {i for step in self.steps for i in step.inputs}
        return [step.first + k for step in self.steps for k in range(step.count) if step.first + k not in taken]
