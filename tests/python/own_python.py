"""Pythons with packages that only some tests want, in environments of their own."""
import os
import subprocess
import textwrap

import pytest

from floed import ROOT

FOLDER = os.path.dirname(os.path.abspath(__file__))


def environment(requirements):
    """The path of a Python with the packages of that file; skips the test where it may not be made."""
    offline = ["--offline"] if os.environ.get("FLOE_OFFLINE") else []
    done = subprocess.run([ROOT + "/scripts/pyenv.sh", *offline, requirements], capture_output=True, text=True, check=False)
    if done.returncode and offline:
        pytest.skip(f"there is no Python environment for {os.path.relpath(requirements, ROOT)}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def python_of(requirements):
    """Of a file of this folder, for --full alone."""
    if not os.environ.get("FLOE_SDKS"):
        pytest.skip("the SDKs are asked with --full")
    return environment(os.path.join(FOLDER, requirements))


def ask(python, code, *args):
    """What that Python prints of the code, on both streams."""
    done = subprocess.run([python, *args, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
