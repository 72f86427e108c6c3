#!/usr/bin/env python3
"""Clang's view of the code, from a build's compile_commands.json.

    scripts/check_clang.py thread-safety BUILD          -Wthread-safety over the sources, but tests, that have to do with
                                                        mutexes: themselves, or by a header that they include
    scripts/check_clang.py tidy BUILD [FILE...]         clang-tidy; headers stand for the sources of the same name.
                                                        With FILE without the analyzer, which takes most of the time
    scripts/check_clang.py format [FILE...]             clang-format, checks only

Without FILE, tidy and format look at every source.
"""
import concurrent.futures
import functools
import json
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


def commands(build):
    """Source relative to the root -> (directory, flags without compiler, input and output)."""
    found = {}
    for entry in json.load(open(os.path.join(build, "compile_commands.json"), encoding="utf-8")):
        source = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        build_dir = os.path.realpath(build)
        if not source.startswith(ROOT + "/") or source.startswith(build_dir + "/"):
            continue  # generated
        words = shlex.split(entry["command"])
        if os.path.basename(words[0]).startswith("ccache"):
            words = words[1:]
        flags, skip = [], False
        for word in words[1:]:
            if skip or word in ("-c", entry["file"]):
                skip = False
            elif word == "-o":
                skip = True
            else:
                flags.append(word)
        found[os.path.relpath(source, ROOT)] = (entry["directory"], flags)
    return found


def run_all(jobs):
    """Runs (name, argv, directory) jobs on all CPUs; prints what failed and returns how many did."""
    def run(job):
        name, argv, directory = job
        done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)
        return name, done.returncode, done.stdout + ("" if done.returncode == 0 else done.stderr)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, code, text in pool.map(run, jobs):
            if code != 0:
                print(f"{name}:\n{text}", flush=True)
                bad += 1
    print(f"{len(jobs)} files, {bad} with findings")
    return bad


@functools.lru_cache(maxsize=None)
def text_of(path):
    try:
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""  # generated, or another's


def locks(source):
    """Whether a source may touch what a mutex guards: members are defined where their class's header is included."""
    own = text_of(source)
    return any(re.search(r"\bMutex\b|\bABSL_\w*(GUARDED|LOCKS)", text)
               for text in (own, *(text_of(header) for header in re.findall(r'^#include "([^"]+)"', own, re.M))))


def thread_safety(build):
    return [(source, ["clang++", "-fsyntax-only", *flags, "-Wno-everything",
                      "-Werror=thread-safety", os.path.join(ROOT, source)], directory)
            for source, (directory, flags) in sorted(commands(build).items())
            if not source.endswith("_test.cc") and locks(source)]


def tidy(build, files):
    known = commands(build)
    wanted = set(known) if not files else set()
    for file in files:
        source = file[:-2] + ".cc" if file.endswith(".h") else file
        wanted |= {source} & set(known)
    fast = ["--checks=-clang-analyzer-*"] if files else []
    return [(source, ["clang-tidy", "--quiet", *fast, "-p", os.path.abspath(build), os.path.join(ROOT, source)], ROOT)
            for source in sorted(wanted)]


def format_check(files):
    if not files:
        files = subprocess.run(["git", "-c", "safe.directory=" + ROOT, "ls-files", "*.cc", "*.h"], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.split()
    return [(file, ["clang-format", "--dry-run", "--Werror", file], ROOT) for file in files]


def main():
    what, *rest = sys.argv[1:] or [""]
    if what == "thread-safety" and len(rest) == 1:
        jobs = thread_safety(rest[0])
    elif what == "tidy" and rest:
        jobs = tidy(rest[0], rest[1:])
    elif what == "format":
        jobs = format_check(rest)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 1 if run_all(jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
