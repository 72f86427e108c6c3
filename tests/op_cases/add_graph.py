#!/usr/bin/env python3
"""Writes one case file of graphs/: a whole GraphDef with TensorFlow's answers.

    python3 tests/op_cases/add_graph.py NAME GRAPH.pb INPUTS.npz [--fetch NODE,...] [--fails WORDS]

The arrays of INPUTS.npz are named after the nodes they feed, with or without ":0". Without
--fetch the nodes that nobody reads are fetched, in the order of their names; a placeholder is none.
--fails: TensorFlow must refuse the run, and floe with these words.
"""

import argparse
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from harness import answers_of, graph_lines, session_config, tensor_words, tf, tolerance_words, v1

import numpy as np


def unread(graph_def):
    """Tensors of nodes that are no input of another."""
    read = {i.lstrip("^").split(":")[0] for node in graph_def.node for i in node.input}
    left = [n.name for n in graph_def.node if n.name not in read and not n.op.startswith("Placeholder")]
    return sorted(left)


def case_lines(name, graph_def, inputs, fetches, fails, rtol=None, atol=None):
    """The case as lines of text, with TensorFlow's answers for `inputs` ({tensor name: array})."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
        feeds = {graph.get_tensor_by_name(n): typed(graph.get_tensor_by_name(n), v) for n, v in inputs.items()}
        tensors = [graph.get_tensor_by_name(n) for n in fetches]
        with v1.Session(config=session_config()) as session:
            answers = answers_of(session, tensors, feeds, fails)
    lines = [f"case {name}{tolerance_words(answers, rtol, atol)}"]
    lines += graph_lines(graph_def)
    lines += [f"feed {tensor_words(t.name, v)}" for t, v in feeds.items()]
    if fails is not None:
        return lines + [f"fetch {n}" for n in fetches] + [f"fails {fails}"]
    return lines + [f"want {tensor_words(n, a)}" for n, a in zip(fetches, answers)]


def typed(tensor, array):
    """The array in the tensor's dtype; .npz files hold bfloat16 as bytes of two."""
    wanted = tensor.dtype.as_numpy_dtype
    return array.view(wanted) if array.dtype.kind == "V" else array.astype(wanted)


def tensor_name(name):
    """The name with its output's number."""
    return name if ":" in name else name + ":0"


def main():
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("inputs", type=pathlib.Path)
    parser.add_argument("--fetch")
    parser.add_argument("--fails")
    options = parser.parse_args()
    graph_def = v1.GraphDef.FromString(options.graph.read_bytes())
    arrays = np.load(options.inputs, allow_pickle=True)
    inputs = {tensor_name(n): arrays[n] for n in arrays.files}
    fetches = options.fetch.split(",") if options.fetch else unread(graph_def)
    lines = case_lines(options.name, graph_def, inputs, [tensor_name(f) for f in fetches], options.fails)
    head = f"# Made by tests/op_cases/add_graph.py with TensorFlow {tf.__version__}.\n"
    (FOLDER / "graphs" / f"{options.name}.txt").write_text(head + "\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
