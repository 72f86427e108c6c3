"""What the case files are made with: building one-op graphs, asking TensorFlow, writing text.

A family is a module of this folder with a function `cases(c)`; `c` is a Cases. Answers come from
TensorFlow's kernels with its graph optimiser off, so that no rewriting stands between an op and
its result. Everything is seeded by the case alone: a new case changes no other one.
"""

import inspect
import os
import re
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.python.framework import op_def_registry

v1 = tf.compat.v1

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
QUANTIZED = ("qint8", "quint8", "qint16", "quint16", "qint32")
CHANNELS_LAST = ("Conv2D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "Conv3D", "MaxPool", "AvgPool")
TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-9, "complex128": 1e-9}


class Feed:
    """A value fed at run time; `shape` is what the placeholder declares."""

    def __init__(self, value, shape="rows", default=False):
        self.value = np.asarray(value)
        if isinstance(shape, str):
            shape = ([None] if self.value.ndim else []) + list(self.value.shape[1:])
        self.shape = shape
        self.default = default


class Values:
    """Numbers for the case being made. The n-th call of a case always gives the same ones."""

    def __init__(self):
        self.calls = 0

    def __call__(self, dtype, *shape, low=-3, high=3):
        """Uniform numbers between `low` and `high`, floats with two decimals."""
        self.calls += 1
        rng = np.random.RandomState(zlib.crc32(f"{dtype} {shape} {low} {high} {self.calls}".encode()))
        if dtype == "bool":
            return rng.randint(0, 2, shape).astype(bool)
        if dtype == "string":
            words = ["", "a", "Floe", "two words", "häß", "x,y", " 12 ", "tail "]
            return np.array([words[i] for i in rng.randint(0, 8, shape).ravel()], object).reshape(shape)
        if dtype in QUANTIZED:
            return rng.randint(low, high + 1, shape).astype(tf.as_dtype(dtype).as_numpy_dtype)
        if dtype in INTS:
            low = max(low, 0) if dtype[0] == "u" else low
            return rng.randint(low, high + 1, shape).astype(dtype)
        numbers = np.round(rng.uniform(low, high, shape), 2)
        if dtype in COMPLEX:
            numbers = numbers + 1j * np.round(rng.uniform(low, high, shape), 2)
        return numbers.astype(tf.as_dtype(dtype).as_numpy_dtype)


class Cases:
    """Collects the cases of one family."""

    def __init__(self):
        self.values = Values()
        self.written = []
        self.failed = []  # (case, reason)
        self.names = set()

    # -- inputs ----------------------------------------------------------------------------------

    def data(self, dtype, *shape, low=-3, high=3):
        """Numbers to use as a constant."""
        return self.values(dtype, *shape, low=low, high=high)

    def feed(self, dtype, *shape, low=-3, high=3, declared="rows"):
        """Numbers to feed."""
        return Feed(self.values(dtype, *shape, low=low, high=high), declared)

    # -- cases -----------------------------------------------------------------------------------

    def op(self, op, *inputs, case="", **more):
        """A case of one node: `inputs` in the op's order (Feed, array, or a list of them).

        Keywords that are no options of `graph` are attributes.
        """
        options = {k: more.pop(k) for k in ("rtol", "atol", "bounds", "fails", "init", "batchable") if k in more}
        definition = op_def_registry.get(op)
        function = getattr(tf.raw_ops, op)
        parameters = list(inspect.signature(function).parameters)

        def build(enter):
            arguments = {}
            for i, (arg, value) in enumerate(zip(definition.input_arg, inputs, strict=True)):
                # The Python function has other names for some inputs.
                name = arg.name if arg.name in parameters else parameters[i]
                if arg.number_attr or arg.type_list_attr:
                    arguments[name] = [enter(f"{arg.name}{k}", v) for k, v in enumerate(value)]
                else:
                    arguments[name] = enter(arg.name, value)
            return function(name="out", **arguments, **more)

        first = next((v for v in inputs if not isinstance(v, list)), None)
        if first is None:
            first = next((v[0] for v in inputs if v), None)
        dtype = "" if first is None else dtype_name(first)
        self.graph("_".join(filter(None, (op, dtype, case))), build, **options)

    def graph(self, name, build, rtol=None, atol=None, bounds=None, fails=None, init=(), batchable=False):
        """A case of any graph. `build(enter)` makes it and returns what is fetched.

        `enter(name, value)` gives the tensor of an input: a placeholder for a Feed, a constant
        otherwise. `bounds` (low, high, mean, deviation) stands for the values of random outputs,
        `fails` for a run that must end in an error with these words; `init` names nodes to run
        before. `batchable`: floe must prove that rows stay apart.
        """
        self.values.calls = 0
        try:
            if name in self.names:
                raise ValueError("a second case of this name")
            self.names.add(name)
            self.written.append(case_text(name, build, rtol, atol, bounds, fails, init, batchable))
        except Exception as error:  # whatever TensorFlow raises; all are told at the end
            self.failed.append((name, error))

    def text(self):
        """The family's file."""
        head = f"# Made by tests/op_cases/make.py with TensorFlow {tf.__version__}.\n"
        return head + "\n" + "\n\n".join(self.written) + "\n"


class Builder:
    """The inputs of one case while its graph is built."""

    def __init__(self):
        self.fed = {}  # tensor: value

    def enter(self, label, value):
        """The tensor of an input."""
        if isinstance(value, tf.Tensor):
            return value
        if not isinstance(value, Feed):
            return tf.constant(value, name=label)
        dtype = tf.string if value.value.dtype.kind == "O" else tf.as_dtype(value.value.dtype)
        if value.default:
            tensor = v1.placeholder_with_default(value.value, value.shape, name=label)
        else:
            tensor = v1.placeholder(dtype, value.shape, name=label)
        self.fed[tensor.ref()] = value.value
        return tensor


def case_text(name, build, rtol, atol, bounds, fails, init, batchable=False):
    """Runs a case and writes it down."""
    builder = Builder()
    graph = tf.Graph()
    with graph.as_default():
        fetches = flatten(build(builder.enter))
        feeds = {ref.deref(): value for ref, value in builder.fed.items()}
        with v1.Session(config=session_config(graph.as_graph_def())) as session:
            for node in init:
                session.run(graph.get_operation_by_name(node))
            answers = answers_of(session, fetches, feeds, fails)
    lines = [f"case {name}{tolerance_words(answers, rtol, atol)}{' batchable' if batchable else ''}"]
    lines += graph_lines(graph.as_graph_def())
    lines += [f"init {node}" for node in init]
    lines += [f"feed {tensor_words(t.name, v)}" for t, v in feeds.items()]
    names = [t.name for t in fetches]
    if fails is not None:
        lines += [f"fetch {n}" for n in names] + [f"fails {fails}"]
    elif bounds is not None:
        words = " ".join(f"{x:.9g}" for x in bounds)
        lines += [f"bounds {tensor_head(n, a)} {words}" for n, a in zip(names, answers)]
    else:
        lines += [f"want {tensor_words(n, a)}" for n, a in zip(names, answers)]
    return "\n".join(lines)


def answers_of(session, fetches, feeds, fails):
    """What TensorFlow gives; None where the run fails, as it must with `fails`."""
    try:
        answers = [as_declared(t, a) for t, a in zip(fetches, session.run(fetches, feeds))]
    except tf.errors.OpError:
        if fails is None:
            raise
        return None
    if fails is not None:
        raise ValueError("TensorFlow runs it")
    return answers


def as_declared(tensor, value):
    """An answer; sessions give quantised ones as plain integers, and a scalar string as bytes, whose last zeros NumPy drops."""
    if isinstance(value, bytes):
        return np.array(value, object)
    return value.astype(tensor.dtype.as_numpy_dtype) if tensor.dtype.name in QUANTIZED else value


def dtype_name(value):
    """The dtype of an input as case names have it."""
    value = value.value if isinstance(value, Feed) else np.asarray(value)
    if value.dtype.names:  # a quantised type is a record of one integer
        return value.dtype.names[0]
    return {"O": "string", "U": "string", "S": "string"}.get(value.dtype.kind, value.dtype.name)


def flatten(fetches):
    """Tensors to fetch, from what an op or a builder returns."""
    if isinstance(fetches, tf.Operation):
        return list(fetches.outputs)
    return [t for t in tf.nest.flatten(fetches) if isinstance(t, tf.Tensor)]


def session_config(graph_def):
    """Kernels only: no rewriting, no folding, one thread. But TensorFlow too lacks the kernels for images with channels in front."""
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    rewriting = config.graph_options.rewrite_options
    rewriting.disable_meta_optimizer = not any(needs_channels_last(node) for node in graph_def.node)
    rewriting.meta_optimizer_iterations = rewriting.ONE
    rewriting.min_graph_nodes = -1
    rewriting.cpu_layout_conversion = rewriting.NCHW_TO_NHWC
    config.graph_options.optimizer_options.opt_level = -1
    return config


def needs_channels_last(node):
    """Whether TensorFlow runs a node on a CPU only after its layout optimizer."""
    return node.op in CHANNELS_LAST and node.attr["data_format"].s.startswith(b"NC")


def tolerance_words(answers, rtol, atol):
    """What float answers are compared with; nothing for exact ones."""
    kinds = [np.asarray(a).dtype.name for a in answers or ()]
    if not any("float" in k or "complex" in k for k in kinds):
        return ""
    usual = max(TOLERANCES.get(k, 1e-5) if k in FLOATS + COMPLEX else 0 for k in kinds)
    rtol = usual if rtol is None else rtol
    return f" rtol={rtol:g} atol={rtol if atol is None else atol:g}"


def graph_lines(graph_def):
    """The graph as text, a node a line, without what depends on TensorFlow's build or run."""
    graph_def.ClearField("versions")
    for nodes in [graph_def.node, *(f.node_def for f in graph_def.library.function)]:
        for node in nodes:
            for attr in [a for a in node.attr if a.startswith("_")]:
                del node.attr[attr]
            node.ClearField("experimental_debug_info")
            node.ClearField("experimental_type")
    for function in graph_def.library.function:
        for field in ("arg_attr", "attr", "resource_arg_unique_id"):
            function.ClearField(field)
    # TensorFlow numbers functions through the life of the process, and lists them in any order.
    functions = sorted(graph_def.library.function, key=lambda f: numbered(f.signature.name))
    print_line = lambda message: text_format.MessageToString(message, as_one_line=True)
    lines = [f"node {{ {print_line(node)} }}" for node in graph_def.node]
    lines += [f"function {{ {print_line(f)} }}" for f in functions]
    text = "\n".join(lines)
    for i, function in enumerate(functions):
        text = re.sub(rf"\b{re.escape(function.signature.name)}\b", f"function_{i}", text)
    text = re.sub(r"_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "", text)  # made-up names of tables
    return text.split("\n")


def numbered(name):
    """A name and the number at its end, to sort by."""
    stem, number = re.fullmatch(r"(.*?)(\d*)", name).groups()
    return stem, int(number or 0)


def tensor_head(name, value):
    """Name, dtype and shape."""
    value = np.asarray(value)
    shape = ",".join(map(str, value.shape))
    return f"{name} {dtype_name(value)} [{shape}]"


def tensor_words(name, value):
    """A whole tensor as words of one line."""
    value = np.asarray(value)
    return " ".join([tensor_head(name, value), *(number_words(value))])


def number_words(value):
    """Every element, floats with just the digits that bring them back."""
    kind = dtype_name(value)
    if value.dtype.names:
        value = value[kind]
    for x in value.ravel():
        if kind == "string":
            yield escaped(x)
        elif kind in COMPLEX:
            part = np.float32 if kind == "complex64" else np.float64
            yield from (shortest(part(x.real)), shortest(part(x.imag)))
        elif kind in ("float32", "float64"):
            yield shortest(x)
        elif kind in FLOATS:
            yield f"{float(x):.6g}"
        else:
            yield str(int(x))


def shortest(x):
    """A float's shortest text."""
    return np.format_float_positional(x, trim="-") if 1e-4 <= abs(x) < 1e7 else str(x)


def escaped(text):
    """Bytes in quotes, everything but plain characters as \\xHH."""
    data = text if isinstance(text, bytes) else str(text).encode()
    plain = lambda b: chr(b) if 32 < b < 127 and b not in b'"\\' else f"\\{b:03o}"
    return '"' + "".join(plain(b) for b in data) + '"'
