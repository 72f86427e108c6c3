#!/usr/bin/env python3
"""How near the estimates of steps are to what they take (docs/performance.md).

    bench/estimates.py [--build build/release] [--batch 1 8 64] [--seconds 0.5] [MODEL ...]

Profiles models, by default those of examples/mnist, and compares the estimate of each step that takes 1 % of its run or
more. Prints the steps that are wrong by more than a factor of two. Ends with 1 when these are more than a tenth.
"""
import argparse
import glob
import json
import os
import subprocess

from serving_kit import ROOT

FACTOR, SHARE, MOST_WRONG = 2, 0.01, 0.1


def profile(build, model, batch, seconds):
    """The steps of `floectl profile`."""
    command = [os.path.join(build, "floectl"), "profile", model, "-b", str(batch), "-s", str(seconds), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["steps"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("models", metavar="MODEL", nargs="*")
    args = parser.parse_args()
    models = args.models or sorted(glob.glob(os.path.join(ROOT, "examples/mnist/models/*")))
    steps = wrong = 0
    for model in models:
        for batch in args.batch:
            taken = estimated = 0
            for step in profile(args.build, model, batch, args.seconds):
                if step["route"] == "" and step["estimated_us"] == 0:
                    continue  # control flow, whose steps have lines of their own
                taken += step["time_us"]
                estimated += step["estimated_us"]
                if step["share"] < SHARE:
                    continue
                steps += 1
                ratio = step["estimated_us"] / max(step["time_us"], 1e-3)
                if 1 / FACTOR <= ratio <= FACTOR:
                    continue
                wrong += 1
                print(f"{os.path.basename(model)} x {batch}: {step['op']} {step['name']} {step['route']}: "
                      f"{step['time_us']:.2f} us, estimated {step['estimated_us']:.2f}")
            print(f"{os.path.basename(model)} x {batch}: {taken:.1f} us, estimated {estimated:.1f}")
    print(f"{steps - wrong} of {steps} steps within a factor of {FACTOR}")
    raise SystemExit(1 if wrong > MOST_WRONG * steps else 0)


if __name__ == "__main__":
    main()
