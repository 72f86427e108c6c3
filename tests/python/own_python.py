"""Pythons with packages that only some tests want, in environments of their own, for --full."""
import os
import subprocess

import pytest

from floed import ROOT

FOLDER = os.path.dirname(os.path.abspath(__file__))


def python_of(requirements):
    """The path of a Python with the packages of that file of this folder; skips the test where they are not asked for."""
    if not os.environ.get("FLOE_SDKS"):
        pytest.skip("the SDKs are asked with --full")
    offline = ["--offline"] if os.environ.get("FLOE_OFFLINE") else []
    done = subprocess.run([ROOT + "/scripts/pyenv.sh", *offline, os.path.join(FOLDER, requirements)], capture_output=True, text=True, check=False)
    if done.returncode and offline:
        pytest.skip("there is no Python environment for the SDKs")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
