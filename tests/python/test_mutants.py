"""Mutants of model files through floed and floectl, for a short while (tests/fuzz/mutants.py)."""
import os
import pathlib
import subprocess
import sys

import pytest

from floed import BUILD, ROOT

FUZZ = os.path.join(ROOT, "tests/fuzz")
KINDS = ("h5", "keras", "saved_model", "checkpoint", "text")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    place = tmp_path_factory.mktemp("seeds")
    subprocess.run([sys.executable, os.path.join(FUZZ, "make_mutant_seeds.py"), place], check=True, capture_output=True)
    return place


def run(seeds, keep, *arguments, build=BUILD):
    done = subprocess.run([sys.executable, os.path.join(FUZZ, "mutants.py"), "--seeds", seeds, "--keep", keep, "--build", build,
                           *arguments], capture_output=True, text=True, check=False)
    print(done.stdout[-20000:], done.stderr[-2000:])
    return done


def test_no_mutant_ends_a_program_or_takes_its_time_or_memory(seeds, tmp_path):
    done = run(seeds, tmp_path, "--count", "40", "--jobs", "2")
    assert done.returncode == 0
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ") and line.split()[1] in KINDS]
    assert len(rows) == len(KINDS)
    for row in rows:  # some mutants are still models
        mutants, inspected, served, after_trial = map(int, row.split("|")[2:6])
        assert mutants >= inspected > 0
        assert served == after_trial > 0


def stub(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


# Programs that fail as floe must not.
def test_what_fails_is_found_and_kept(seeds, tmp_path):
    build, keep = tmp_path / "build", tmp_path / "keep"
    build.mkdir()
    real = pathlib.Path(BUILD)
    stub(build, "floed", f'exec {real / "floed"} "$@"')
    stub(build, "floectl", f'[ "$1" = inspect ] && kill -SEGV $$\nexec {real / "floectl"} "$@"')
    done = run(seeds, keep, "text", "--count", "2", build=build)
    assert done.returncode == 1
    kept = sorted(keep.iterdir())
    assert len(kept) == 2
    assert "floectl inspect ended with -11" in (kept[0] / "why").read_text()
    assert (kept[0] / "model/frozen.pbtxt").exists()
