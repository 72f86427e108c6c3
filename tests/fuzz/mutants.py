#!/usr/bin/env python3
"""Mutants of model files through a real floed and floectl (docs/fuzzing.md).

    tests/fuzz/mutants.py --seeds FOLDER [KIND...] [--count 5000] [--seconds N] [--seed 1] [--build build/release]
                          [--keep .fuzz/mutants] [--jobs 1]

KIND is h5, keras, saved_model, checkpoint or text; without any, all. FOLDER is what make_mutant_seeds.py wrote. Each mutant is
inspected by a floectl of its own, and loaded by a floed as a version beside a good one: with a trial load, and without. It
may be refused or served. It fails when it ends a program by a signal, takes 10 s of CPU time, or moves the server's memory by
64 MB. What failed is kept, a folder each with the model and the reason. --seconds bounds each kind's time. Exit status 1:
something failed.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import mutate

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KINDS = ("h5", "keras", "saved_model", "checkpoint", "text")
TRIALS = ("never", "always")
CPU_SECONDS, MOVED_BYTES = 10, 64 << 20
BATCH = 100
WAIT_SECONDS = 300  # a hang; on a busy machine CPU time takes as long
MARKER = "complete"
OUTCOMES = ("is loaded", "is not served", "is being unloaded")
OUTCOME = r"version (\d+) (" + "|".join(OUTCOMES) + ")"


def read(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def write(model, folder):
    for name, contents in model.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents)


def put(model, place, version):
    """Complete at once."""
    write({**model, MARKER: b""}, place / "new")
    (place / "new").rename(place / str(version))


# ---- floectl ----

def limit_cpu():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def inspect(floectl, folder):
    """What was wrong, or None; and whether floectl understood the file."""
    kind = folder.name.rpartition(".")[2]
    file = folder if kind in ("saved_model", "checkpoint") else next(f for f in folder.iterdir())
    try:
        done = subprocess.run([floectl, "inspect", file], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
                              preexec_fn=limit_cpu, timeout=20 * CPU_SECONDS)
    except subprocess.TimeoutExpired:
        return f"floectl inspect takes more than {20 * CPU_SECONDS} s", False
    if done.returncode == -signal.SIGXCPU:
        return f"floectl inspect takes more than {CPU_SECONDS} s of CPU time", False
    if done.returncode not in (0, 1):
        return f"floectl inspect ended with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}", False
    return None, done.returncode == 0


# ---- floed ----

class Stopped(Exception):
    """The server ended, or does not get on. `version` is the one that it was loading."""

    def __init__(self, why, version):
        super().__init__(why)
        self.version = version


class Server:
    """A floed with one good version, and others for a while. Its log says what became of each."""

    def __init__(self, build, place, good, trial):
        self.place, self.good, self.last, self.read = place, good, 1, 0
        self.outcomes = {}  # by version: the last that happened to it
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        put(good, place, 1)
        config = place.parent / "floe.yaml"
        config.write_text(f"""
server: {{bind_address: 127.0.0.1, port: {port}}}
lifecycle: {{file_system_poll_wait_seconds: 1, max_num_load_retries: 0, trial_load: {trial}, num_load_threads: 1}}
models:
  - {{name: m, base_path: {place}, versions: all, completion_marker: {MARKER}}}
""")
        self.log = place.parent / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([build / "floed", "--config", config], stdout=log, stderr=log)
        self.wait({1: OUTCOMES[:2]})

    def read_log(self):
        """Whether something happened to a version."""
        with open(self.log, "rb") as log:
            log.seek(self.read)
            lines = log.read().rpartition(b"\n")[0]
        self.read += len(lines)
        found = re.findall(OUTCOME, lines.decode(errors="replace"))
        self.outcomes.update((int(version), outcome) for version, outcome in found)
        return bool(found)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait(self, wanted):
        """Until each version has one of its outcomes. One version is loaded at a time, the highest first."""
        since, cpu = time.monotonic(), self.cpu_seconds()
        while True:
            ended = self.process.poll()
            if self.read_log():
                since, cpu = time.monotonic(), self.cpu_seconds() if ended is None else 0
            missing = [version for version in wanted if self.outcomes.get(version) not in wanted[version]]
            if not missing:
                return
            if ended is not None:
                raise Stopped(f"floed ended with {ended}", max(missing))
            if self.cpu_seconds() - cpu > CPU_SECONDS or time.monotonic() - since > WAIT_SECONDS:
                raise Stopped(f"floed takes more than {CPU_SECONDS} s of CPU time, or {WAIT_SECONDS} s", max(missing))
            time.sleep(0.02)

    def memory(self, field):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(text.partition(field + ":")[2].split()[0])

    def load(self, models):
        """Loads all, and the good one after them; then unloads them. Gives how many were served, and the bytes by which memory moved."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # the peak begins anew
        before = self.memory("VmRSS")
        numbers = range(self.last + 1, self.last + 2 + len(models))  # the highest is loaded first
        self.last = numbers[-1]
        for number, model in zip(numbers, [self.good, *models]):
            put(model, self.place, number)
        self.wait({number: OUTCOMES[:1 if number == numbers[0] else 2] for number in numbers})
        loaded = [number for number in numbers if self.outcomes[number] == OUTCOMES[0]]
        peak = self.memory("VmHWM")
        for number in numbers:
            shutil.rmtree(self.place / str(number))
        self.wait({number: OUTCOMES[2:] for number in loaded})
        return len(loaded) - 1, max(peak, self.memory("VmRSS")) - before

    def close(self):
        """By SIGTERM; a server that hangs is killed."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Round:
    """The mutants of one kind: counts, and what failed."""

    def __init__(self, options, kind):
        self.options, self.kind = options, kind
        self.models = [read(folder) for folder in sorted((options.seeds / kind).iterdir())]
        self.rng = random.Random(f"{options.seed} {kind}")
        self.counts, self.moved, self.failed = collections.Counter(), 0, []
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="mutants"))
        self.servers = {}

    def run(self):
        end = time.monotonic() + self.options.seconds
        while self.counts["mutants"] < self.options.count and time.monotonic() < end:
            count = min(BATCH, self.options.count - self.counts["mutants"])
            batch = [mutate.mutant(self.kind, self.models, self.rng) for _ in range(count)]
            self.counts["mutants"] += count
            self.inspect(batch)
            for trial in TRIALS:
                self.load(batch, trial)
        for trial in list(self.servers):
            self.stop(trial)
        shutil.rmtree(self.scratch)

    def inspect(self, batch):
        folders = [self.scratch / f"{number}.{self.kind}" for number in range(len(batch))]
        for model, folder in zip(batch, folders):
            write(model, folder)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for model, (why, understood) in zip(batch, pool.map(lambda f: inspect(self.options.build / "floectl", f), folders)):
                self.counts["inspected"] += understood
                if why:
                    self.keep(model, why)
        for folder in folders:
            shutil.rmtree(folder)

    def server(self, trial):
        if trial not in self.servers:
            home = self.scratch / trial
            shutil.rmtree(home, ignore_errors=True)
            (home / "m").mkdir(parents=True)
            try:
                server = Server(self.options.build, home / "m", self.models[0], trial)
                server.load(self.models)  # what every load needs is there
            except Stopped as stopped:
                sys.exit(f"without a mutant: {stopped}")
            self.servers[trial] = server
        return self.servers[trial]

    def stop(self, trial):
        if server := self.servers.pop(trial, None):
            server.close()

    def load(self, batch, trial):
        """Loads a batch, from its end on."""
        while batch:
            server = self.server(trial)
            first = server.last + 2
            try:
                served, moved = server.load(batch)
            except Stopped as stopped:
                self.stop(trial)
                at = max(0, stopped.version - first)
                self.keep(batch[at], f"trial_load {trial}: {stopped}")
                batch = batch[:at]
                continue
            if moved > MOVED_BYTES and len(batch) > 1:  # which of them?
                self.load(batch[:len(batch) // 2], trial)
                self.load(batch[len(batch) // 2:], trial)
                return
            self.counts[trial] += served
            self.moved = max(self.moved, moved)
            if moved > MOVED_BYTES:
                self.keep(batch[0], f"trial_load {trial}: moved memory by {moved >> 20} MB")
            return

    def keep(self, model, why):
        self.failed.append(why)
        place = self.options.keep / f"{self.kind}-{self.options.seed}-{self.counts['mutants']}-{len(self.failed)}"
        shutil.rmtree(place, ignore_errors=True)
        write({**{"model/" + name: contents for name, contents in model.items()}, "why": why.encode() + b"\n"}, place)
        print(f"{self.kind}: {why.splitlines()[0]}\n  kept in {place}", flush=True)

    def __str__(self):
        return (f"| {self.kind} | {self.counts['mutants']} | {self.counts['inspected']} | {self.counts['never']} | "
                f"{self.counts['always']} | {self.moved / (1 << 20):.0f} MB | {len(self.failed)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], metavar="KIND")
    parser.add_argument("--seeds", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=5000, help="mutants of each kind")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", default="1")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / ".fuzz/mutants")
    parser.add_argument("--jobs", type=int, default=1, help="floectls that run together")
    options = parser.parse_args()
    rounds = []
    for kind in options.kinds or KINDS:
        rounds.append(Round(options, kind))
        rounds[-1].run()
    print("| kind | mutants | inspected | served | served after a trial | memory moved by | failed |\n| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(map(str, rounds)))
    return 1 if any(r.failed for r in rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
