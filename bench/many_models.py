#!/usr/bin/env python3
"""What a server of many small models takes while nobody asks for them (docs/operate.md).

    bench/many_models.py [--build build/release] [--models 2000] [--seconds 60] [--trial-load always]

Serves copies of an MNIST model. Prints how long they take to load, memory and threads, the share of a core that floed uses
while it waits for new versions, and how long a new version, `floectl status` and reloads of one more model take.
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from serving_kit import ROOT, free_port

MODEL = os.path.join(ROOT, "examples/mnist/models/mnist_beginner/1")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """MiB and threads, by name in /proc."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        fields = dict(line.split(":", 1) for line in f)
    return {name: int(fields[name].split()[0]) // (1 if name == "Threads" else 1024) for name in ("VmHWM", "VmRSS", "Threads")}


class Server:
    """floed with copies of the model in `folder`."""

    def __init__(self, build, folder, models, trial_load):
        self.build, self.folder, self.trial_load = build, folder, trial_load
        self.log, self.config = os.path.join(folder, "log"), os.path.join(folder, "floe.yaml")
        self.port = free_port()
        for i in range(models + 1):
            shutil.copytree(MODEL, self.path(i, 1))
        self.configure(models)
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([os.path.join(build, "floed"), "--config", self.config, f"--port={self.port}"], stderr=log)

    def path(self, model, version):
        return os.path.join(self.folder, f"m{model}", str(version))

    def configure(self, models):
        entries = "".join(f"  - {{name: m{i}, base_path: {self.folder}/m{i}}}\n" for i in range(models))
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"lifecycle: {{trial_load: {self.trial_load}, file_system_poll_wait_seconds: 1}}\nmodels:\n{entries}")

    def wait(self, text, count=1, start=0):
        """Seconds until the log has it so often after byte `start`."""
        begin = time.monotonic()
        while True:
            with open(self.log, encoding="utf-8") as f:
                f.seek(start)
                if f.read().count(text) >= count:
                    return time.monotonic() - begin
            if self.process.poll() is not None or time.monotonic() > begin + 600:
                raise SystemExit(f"the log lacks '{text}'")
            time.sleep(0.005 if count == 1 else 0.2)

    def logged(self, text, act):
        start = os.path.getsize(self.log)
        act()
        return self.wait(text, start=start)

    def floectl(self, *args):
        begin = time.monotonic()
        subprocess.run([os.path.join(self.build, "floectl"), *args], stdout=subprocess.DEVNULL, check=True)
        return time.monotonic() - begin


def measure(server, models, seconds):
    pid = server.process.pid
    took = server.wait("version 1 is loaded after", models)
    print(f"{models} models loaded after {took:.1f} s, {cpu_seconds(pid):.1f} s of CPU; {memory(pid)['VmHWM']} MiB at most")
    time.sleep(65)  # until all have been scanned again
    before = cpu_seconds(pid)
    time.sleep(seconds)
    used, now = cpu_seconds(pid) - before, memory(pid)
    print(f"idle: {used / seconds:.4f} of a core, {now['VmRSS']} MiB, {now['Threads']} threads")

    copy = os.path.join(server.folder, "copy")
    shutil.copytree(MODEL, copy)
    noticed = server.logged("model 'm0' version 2", lambda: os.rename(copy, server.path(0, 2)))
    server.wait("model 'm0' version 2 is loaded")
    target = f"--target=127.0.0.1:{server.port}"
    status = [server.floectl("status", target) - server.floectl("--version") for _ in range(5)]
    print(f"a new version is noticed after {noticed:.2f} s; a status takes {min(status) * 1000:.0f} ms")

    reloads = []
    for added in (1, 0) * 5:
        server.configure(models + added)
        took = server.logged("is active, by SIGHUP", lambda: server.process.send_signal(signal.SIGHUP))
        if added:
            reloads.append(took)
        time.sleep(3)  # for the unloading, and until what was added is at rest
    print(f"a reload that adds one takes {min(reloads) * 1000:.0f} ms, median {statistics.median(reloads) * 1000:.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--trial-load", default="always")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.build, folder, args.models, args.trial_load)
        try:
            measure(server, args.models, args.seconds)
        finally:
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main()
