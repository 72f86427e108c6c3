#!/usr/bin/env python3
"""Writes the case files of this folder: small graphs with TensorFlow's answers.

    python3 tests/op_cases/make.py [FAMILY...]

needs TensorFlow 2.15 or later and Keras 2 (pip install tensorflow-cpu tf_keras). A family is a module NAME.py here
with a function `cases(c)`, written to NAME.txt; without names all are made.
"""

import importlib
import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from harness import Cases


def main(names):
    """Makes the named families, or all."""
    failed = False
    os.chdir(FOLDER)  # graphs name the files in assets/ from here
    modules = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in ("make", "harness", "add_graph"))
    for name in names or modules:
        cases = Cases()
        importlib.import_module(name).cases(cases)
        text = cases.text()
        (FOLDER / f"{name}.txt").write_text(text)
        print(f"{name}: {len(cases.written)} cases, {len(text)} bytes")
        for case, error in cases.failed:
            print(f"  {case}: {type(error).__name__}: {str(error).splitlines()[-1]}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
