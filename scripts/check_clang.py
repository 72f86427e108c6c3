#!/usr/bin/env python3
"""Clang's view of the code, from a build's compile_commands.json.

    scripts/check_clang.py tidy BUILD [FILE...]     clang-tidy; headers stand for the sources of the same name.
                                                    With FILE without the analyzer, which takes most of the time
    scripts/check_clang.py format [FILE...]         clang-format, checks only

Without FILE, they look at every source. What clang-tidy found clean is remembered in ~/.cache/floe/clang-tidy by the
preprocessed source, and not looked at again.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
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


def run(argv, directory):
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)


def run_all(jobs):
    """Runs (name, argv, directory[, clean]) jobs on all CPUs; prints what failed and returns how many did. clean(), where
    given, says which file stands for the job having found nothing: where there is one, the job is left out."""
    def run_one(job):
        name, argv, directory, *clean = job
        stamp = clean[0]() if clean else None
        if stamp and stamp.exists():
            return name, None, ""
        done = run(argv, directory)
        if stamp and done.returncode == 0:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
        return name, done.returncode, done.stdout + ("" if done.returncode == 0 else done.stderr)

    bad = known = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, code, text in pool.map(run_one, jobs):
            known += code is None
            if code:
                print(f"{name}:\n{text}", flush=True)
                bad += 1
    print(f"{len(jobs)} files, {known} of them known to be clean, {bad} with findings")
    return bad


def stamp_of(source, flags, directory, tidy_command):
    """The file that says that clang-tidy found nothing: named by all that it looks at, wherever the checkout lies. None
    where the source does not compile."""
    text = run(["clang++", "-E", "-C", "-dD", *flags, os.path.join(ROOT, source)], directory)
    if text.returncode != 0:
        return None
    with open(os.path.join(ROOT, ".clang-tidy"), encoding="utf-8") as f:
        parts = [run(["clang-tidy", "--version"], ROOT).stdout, f.read(), *tidy_command, *flags, text.stdout]
    key = hashlib.sha256("\0".join(parts).replace(ROOT, "").encode()).hexdigest()
    return pathlib.Path.home() / ".cache" / "floe" / "clang-tidy" / key


def tidy(build, files):
    known = commands(build)
    wanted = set(known) if not files else set()
    for file in files:
        source = file[:-2] + ".cc" if file.endswith(".h") else file
        wanted |= {source} & set(known)
    command = ["clang-tidy", "--quiet", *(["--checks=-clang-analyzer-*"] if files else [])]
    return [(source, [*command, "-p", os.path.abspath(build), os.path.join(ROOT, source)], ROOT,
             functools.partial(stamp_of, source, flags, directory, command))
            for source, (directory, flags) in sorted(known.items()) if source in wanted]


def format_check(files):
    if not files:
        files = subprocess.run(["git", "-c", "safe.directory=" + ROOT, "ls-files", "*.cc", "*.h"], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.split()
    return [(file, ["clang-format", "--dry-run", "--Werror", file], ROOT) for file in files]


def main():
    what, *rest = sys.argv[1:] or [""]
    if what == "tidy" and rest:
        jobs = tidy(rest[0], rest[1:])
    elif what == "format":
        jobs = format_check(rest)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 1 if run_all(jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
