#!/usr/bin/env python3
"""What a trial load takes beyond the load that it tries (docs/versions.md).

    bench/trial_load.py [--build build/release] [--versions 20] [--most-ms 40]

Puts versions of an MNIST model into the directory of a floed that serves one, and takes the times from its log. Ends with
1 when the median is above the bound. Builds with sanitizers are slower.
"""
import argparse
import os
import re
import shutil
import statistics
import tempfile
import time

from serving_kit import ROOT, free_port, start

TIMES = re.compile(r"version (\d+) is loaded after ([\d.]+) ms and a trial of ([\d.]+) ms")


def loads(build, versions):
    """(load, trial) in ms of so many versions."""
    with tempfile.TemporaryDirectory() as folder:
        first, log = os.path.join(folder, "m/1"), os.path.join(folder, "log")
        shutil.copytree(os.path.join(ROOT, "examples/mnist/models/mnist_beginner/1"), first)
        port = free_port()
        process = start(["/bin/sh", "-c", f'exec "$0" "$@" 2>{log}', os.path.join(build, "floed"), "--model_name=m",
                         f"--model_base_path={folder}/m", f"--port={port}"], port)
        try:
            for version in range(1, versions + 1):
                if version > 1:
                    shutil.copytree(first, os.path.join(folder, "new"))
                    os.rename(os.path.join(folder, "new"), os.path.join(folder, f"m/{version}"))
                end = time.monotonic() + 60
                while True:
                    with open(log, encoding="utf-8") as f:
                        found = {int(number): (float(load), float(trial)) for number, load, trial in TIMES.findall(f.read())}
                    if version in found:
                        break
                    if process.poll() is not None or time.monotonic() > end:
                        raise SystemExit(f"version {version} was not loaded; see docs/versions.md")
                    time.sleep(0.02)
            return list(found.values())
        finally:
            process.terminate()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--versions", type=int, default=20)
    parser.add_argument("--most-ms", type=float, default=40)
    args = parser.parse_args()
    times = loads(args.build, args.versions)
    prices = sorted(trial - load for load, trial in times)
    median = statistics.median(prices)
    print(f"load {statistics.median(load for load, _ in times):.1f} ms, trial {statistics.median(t for _, t in times):.1f} ms; "
          f"the trial takes {median:.1f} ms beyond the load ({prices[0]:.1f} to {prices[-1]:.1f} of {len(prices)})")
    if median > args.most_ms:
        raise SystemExit(f"more than {args.most_ms:g} ms")


if __name__ == "__main__":
    main()
