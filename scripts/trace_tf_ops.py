#!/usr/bin/env python3
"""Lists what floe refuses of the raw ops that TensorFlow's public functions and Keras' layers emit.

    $(scripts/pyenv.sh) scripts/trace_tf_ops.py [--all] [MODULE...]

Each function of tf.image, tf.strings, tf.signal, tf.sparse, tf.ragged, tf.linalg, tf.math, tf.sets and tf.io, and each layer, is
called with sample arguments inside a tf.function; what docs/ops.md says of the ops in its graph decides. The samples are in
trace_samples.py; functions without one are listed too. --all: every function with its ops. Exit code 1 where docs/ops.md lacks
an op, a function has no sample, or a sample fails.
"""

import collections
import inspect
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import list_tf_ops
import tensorflow as tf
from trace_samples import ARGUMENTS, MODULES, NOT_FOR_INFERENCE, SAMPLES, structures

# Calls, whose functions count instead, and what freezing a model turns into constants.
LEFT_OUT = {"PartitionedCall", "StatefulPartitionedCall", "Placeholder", "ReadVariableOp", "VarHandleOp", "NoOp"}


def public_functions(module):
    """The names of a module that are functions."""
    found = MODULES[module]
    names = [n for n in dir(found) if not n.startswith("_") and callable(getattr(found, n))]
    if module == "keras.layers":
        return [n for n in names if inspect.isclass(getattr(found, n))]
    return [n for n in names if not inspect.isclass(getattr(found, n))]


def ops_of(module, sample):
    """The raw ops that evaluating a sample emits."""
    names = dict(ARGUMENTS)
    scope = {"tf": tf, "f": MODULES[module], "layers": tf.keras.layers}

    layer, _, inputs = sample.partition(" | ")
    if inputs:  # a layer makes its variables outside the function
        scope["layer"] = eval(layer, scope)  # pylint: disable=eval-used
        sample = f"layer({inputs})"
        zeros = {n: tf.fill(v.shape, "") if v.dtype == tf.string else tf.zeros(v.shape, v.dtype) for n, v in names.items()}
        eval(sample, {**scope, **zeros})  # pylint: disable=eval-used

    def run(*tensors):
        values = dict(zip(names, tensors))
        values.update(structures(values))
        result = eval(sample, {**scope, **values})  # pylint: disable=eval-used
        flat = tf.nest.flatten(result, expand_composites=True)
        return [t for t in flat if tf.is_tensor(t)]

    specs = [tf.TensorSpec(value.shape, value.dtype) for value in names.values()]
    graph = tf.function(run, input_signature=specs, autograph=False).get_concrete_function().graph.as_graph_def()
    library = {function.signature.name: function for function in graph.library.function}
    found, todo, seen = set(), list(graph.node), set()
    while todo:
        node = todo.pop()
        found.add(node.op)
        called = [a.func.name for a in node.attr.values() if a.HasField("func")]
        called += [f.name for a in node.attr.values() for f in a.list.func] + [node.op]
        for name in called:
            if name in library and name not in seen:
                seen.add(name)
                todo += library[name].node_def
    return found - LEFT_OUT - set(library)


def main(arguments):
    """Prints the lists."""
    show_all = "--all" in arguments
    modules = [a for a in arguments if a != "--all"] or list(MODULES)
    supported, refused = list_tf_ops.known_ops()
    users, missing, failed, counts = collections.defaultdict(list), [], [], {}
    for module in modules:
        samples = SAMPLES[module]
        missing += [
            f"{module}.{name}"
            for name in public_functions(module)
            if name not in samples and name not in NOT_FOR_INFERENCE[module]
        ]
        whole = 0
        for name, sample in samples.items():
            try:
                ops = ops_of(module, sample)
            except Exception as error:  # pylint: disable=broad-except
                failed.append(f"{module}.{name}: {str(error).splitlines()[0][:150]}")
                continue
            left = sorted(op for op in ops if list_tf_ops.verdict(op, supported, refused) != "supported")
            whole += not left
            for op in left:
                users[op].append(f"{module}.{name}")
            if show_all:
                print(f"{module}.{name}: {' '.join(sorted(ops))}{' | refused: ' + ' '.join(left) if left else ''}")
        counts[module] = (whole, len(samples))
    for op, names in sorted(users.items(), key=lambda item: -len(item[1])):
        reason = list_tf_ops.verdict(op, supported, refused) or "NOT IN docs/ops.md"
        print(f"{op} ({len(names)}): {', '.join(names)}\n    {reason}")
    for title, names in (("no sample", missing), ("fails", failed)):
        if names:
            print(f"-- {title}:", *names, sep="\n   ")
    for module, (whole, all_of_it) in counts.items():
        print(f"{module}: {whole} of {all_of_it} functions with every op supported", file=sys.stderr)
    whole, all_of_it = (sum(c[i] for c in counts.values()) for i in (0, 1))
    print(f"together: {whole} of {all_of_it}, {100 * whole / all_of_it:.1f} %", file=sys.stderr)
    unknown = [op for op in users if list_tf_ops.verdict(op, supported, refused) is None]
    return 1 if unknown or missing or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
