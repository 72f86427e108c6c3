#!/usr/bin/env python3
"""Random graphs through floe and TensorFlow; prints every difference as a small case file.

    differential.py [--minutes N] [--rounds N] [--seed S] [--family NAME] [--runner PATH] [--keep DIR]

Graph K of family F is made from the seed "S F K" alone. Exit status 1: answers differ, or a graph that TensorFlow runs
is refused.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import numpy as np

from families import FAMILIES
from graph import Refused
from keras_models import KERAS

BATCH = 40  # graphs a run of the runner


def generator(seed, family, number):
    return np.random.RandomState(zlib.crc32(f"{seed} {family} {number}".encode()))


def make(seed, family, number):
    """(graph, values to fetch), or None where nothing came of it."""
    rng = generator(seed, family, number)
    graph = FAMILIES[family](rng)
    sinks = graph.sinks()
    fetches = sinks[-4:] + [i for i in sinks[:-4] if rng.rand() < 0.3]
    return (graph, fetches) if fetches else None


def text_of(name, made):
    """The case's text; None where TensorFlow itself refuses the graph."""
    graph, fetches = made
    try:
        return graph.case_text(name, fetches)
    except Exception as error:  # whatever TensorFlow raises: shapes that it cannot infer
        if os.environ.get("FLOE_DIFFERENTIAL_VERBOSE"):
            print(f"{name}: TensorFlow: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
        return None


class Runner:
    """The program that runs case files."""

    def __init__(self, path, folder):
        self.path = path
        self.folder = pathlib.Path(folder)

    def run(self, texts):
        """{case name: [(way, message)]} of what failed."""
        file = self.folder / "cases.txt"
        file.write_text("# Random graphs.\n\n" + "\n\n".join(texts) + "\n")
        try:
            done = subprocess.run([self.path, str(file)], capture_output=True, text=True, check=False, errors="replace",
                                  timeout=60 + 10 * len(texts))
            code, output, errors = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            code, output, errors = "time", (late.stdout or b"").decode(errors="replace"), "it took too long"
        failed, last = {}, None
        for line in output.splitlines():
            if line.startswith("case "):
                last = line[5:]
            elif line.count(" | ") >= 2:
                name, way, message = line.split(" | ", 2)
                failed.setdefault(name, []).append((way, message))
        if code == 0:
            return failed
        if last is None:
            raise RuntimeError(f"{self.path} did not run: {errors[-2000:]}")
        failed.setdefault(last, []).append((f"ended with {code}", ""))
        names = [text.split("\n", 1)[0].split()[1] for text in texts]
        rest = texts[names.index(last) + 1:]
        if rest:
            failed.update(self.run(rest))
        return failed


def kind(failure):
    """What a smaller graph must still show."""
    return [re.sub(r"\d+", "", way) for way, _ in failure][:1]


def minimised(runner, graph, fetches, failure):
    """A smaller case with the first way of failing, as text."""
    wanted = kind(failure)

    def still(fetches):
        text = text_of("smaller", (graph, fetches))
        if text is None:
            return None
        found = runner.run([text]).get("smaller")
        return text if found and kind(found) == wanted else None

    best = still(fetches)
    if best is None:
        return None
    # The earliest value that shows it, alone.
    for i in sorted(graph.needed(fetches)):
        if i in graph.fed or i in graph.constants:
            continue
        if (text := still([i])) is not None:
            fetches, best = [i], text
            break
    # What it depends on, fed where that still shows it.
    for i in sorted(graph.needed(fetches) - set(fetches), reverse=True):
        if i in graph.fed or i in graph.constants or i not in graph.needed(fetches):
            continue
        graph.fed[i] = list(graph.values[i].shape)
        if (text := still(fetches)) is not None:
            best = text
        else:
            del graph.fed[i]
    return best


def fewer_layers(runner, model, failure):
    """The fewest layers of a Keras model with the first way of failing, as text."""
    for last in range(len(model.outputs)):
        text = text_of("smaller", (model, last))
        found = runner.run([text]).get("smaller") if text else None
        if found and kind(found) == kind(failure):
            return text
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=0, help="some graphs of each family a round; 0: any number")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--family", choices=sorted([*FAMILIES, "keras"]), action="append")
    parser.add_argument("--runner", default=str(FOLDER.parents[1] / "build/release/differential_runner"))
    parser.add_argument("--keep", help="a folder for the case files of what failed")
    parser.add_argument("--most", type=int, default=20, help="differences to print")
    args = parser.parse_args()
    families = args.family or [*FAMILIES, "keras"]
    end, number, graphs, refused_by_tensorflow = time.monotonic() + 60 * args.minutes, 0, 0, 0
    failures = {}
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(args.runner, folder)
        while time.monotonic() < end and (args.rounds == 0 or number < args.rounds * BATCH):
            for family in families:
                made, texts = {}, []
                few = 4 if family == "keras" else BATCH // len(families) + 1
                for k in range(number, number + few):
                    name = f"{family}_{k}"
                    one = make_keras(args.seed, k) if family == "keras" else make(args.seed, family, k)
                    text = None if one is None else text_of(name, one)
                    refused_by_tensorflow += text is None
                    if text is not None:
                        made[name] = one
                        texts.append(text)
                graphs += len(texts)
                for name, failure in runner.run(texts).items() if texts else ():
                    failures[name] = failure
                    report(args, runner, name, made.get(name), failure, len(failures))
                if time.monotonic() > end:
                    break
            number += BATCH
    print(f"{graphs} graphs of seed {args.seed}, {refused_by_tensorflow} not to be made; {len(failures)} failed")
    return 1 if failures or not graphs else 0


def make_keras(seed, number):
    rng = generator(seed, "keras", number)
    try:
        return KERAS(rng), None
    except (ValueError, Refused):
        return None


def report(args, runner, name, made, failure, count):
    """Prints a failure and its smallest case."""
    print(f"FAILED {name}: " + "; ".join(f"{way}: {message[:300]}" for way, message in failure[:3]), flush=True)
    if made is None or count > args.most:
        return
    graph, fetches = made
    small = fewer_layers(runner, graph, failure) if fetches is None else minimised(runner, graph, fetches, failure)
    text = small or text_of(name, made)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
        (pathlib.Path(args.keep) / f"{name}.txt").write_text("# " + str(failure[:3]) + "\n\n" + text + "\n")
    print("\n".join(line[:400] for line in text.splitlines()[:60]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
