#!/usr/bin/env python3
"""Whether the estimated costs choose the right routes: each step that can be computed in several ways is timed in each.

    bench/routes.py MODEL.pb... [--batch 1] [--build build/release] [--rounds 5] [--fit]

Prints the estimates, the times and, as `chosen : best`, how much longer the chosen route takes than the fastest; above 1.15 is
marked and makes the exit status 1. The constants are in kernels/cpu/conv/conv_cost.cc; FLOE_FORCE_ISA selects those of another level.
--fit prints the constants that these times ask for, to be put there: all of a route's are scaled by the median of measured :
estimated over the steps of all models. The sizes and speeds of caches are left.
"""
import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
LIMIT = 1.15
COSTS = os.path.join(ROOT, "kernels", "cpu", "conv_cost.cc")
# By the beginning of a route's name, the constants of it, by their place in ConvRates: (rates, times).
CONSTANTS = {"gemm": ([0], []), "fft": ([1], [2]), "winograd": ([6], [7, 8])}


def floectl(options, *arguments):
    program = os.path.join(options.build, "floectl")
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"floectl {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def choices_of(options, model):
    """By step: the chosen route and the estimates of those that are chosen by them."""
    steps = floectl(options, "inspect", model, "--plan", "--json")["plan"]["steps"]
    found = {}
    for step in steps:
        choice = step.get("choice")
        if choice is None:
            continue
        offers = {o["route"]: o["cost_us"] for o in choice["offers"] if o.get("cost_us") and o["route"] != "openblas"}
        if len(offers) > 1 and choice["chosen"] in offers:
            found[step["name"]] = (choice["chosen"], offers)
    return found


def times_of(options, model, route, choices):
    """The time of each step that has the route, per row: the least of the rounds' means."""
    forced = [argument for name, (_, offers) in choices.items() if route in offers
              for argument in ("--route", f"{name}={route}")]
    best = {}
    for _ in range(options.rounds):
        steps = floectl(options, "profile", model, "--json", "--batch", str(options.batch), "--runs", "4", *forced)["steps"]
        for step in steps:
            if route in choices.get(step["name"], ("", {}))[1]:
                per_row = step["time_us"] / options.batch
                best[step["name"]] = min(per_row, best.get(step["name"], per_row))
    return best


def check(options, model, factors):
    """The largest chosen : best. Adds measured : estimated of each step and route to `factors`."""
    choices = choices_of(options, model)
    routes = sorted({route for _, offers in choices.values() for route in offers})
    times = {route: times_of(options, model, route, choices) for route in routes}
    worst = 0
    for name, (chosen, offers) in choices.items():
        taken = {route: times[route][name] for route in offers if name in times[route]}
        for route, us in taken.items():
            factors[route.rstrip("0123456789x")].append(us / offers[route])
        if chosen not in taken:
            continue
        ratio = taken[chosen] / min(taken.values())
        worst = max(worst, ratio)
        figures = ", ".join(f"{route} {offers[route]:.0f} / {us:.0f}" for route, us in taken.items())
        print(f"{ratio:5.2f}{' *' if ratio > LIMIT else '  '} {name}: {chosen}; {figures}")
    return worst


def isa_of(options, model):
    """The instruction set in use: the last word of a route of floe's own."""
    steps = floectl(options, "inspect", model, "--plan", "--json")["plan"]["steps"]
    return next(step["route"].split()[-1] for step in steps if "native" in step.get("route", ""))


def print_fit(isa, factors):
    with open(COSTS, encoding="utf-8") as f:
        row = re.search(r'\{"%s", \{([^}]*)\}\}' % isa, f.read())
    if row is None:
        sys.exit(f"{COSTS} has no constants of {isa}")
    constants = [float(text.replace("'", "")) for text in row[1].split(",")]
    for route, measured in sorted(factors.items()):
        factor = statistics.median(measured)
        print(f"{route}: measured : estimated {factor:.2f}, {min(measured):.2f} to {max(measured):.2f} ({len(measured)} steps)")
        rates, times = CONSTANTS[route]
        for place in rates:
            constants[place] /= factor
        for place in times:
            constants[place] *= factor
    print(f'{{"{isa}", {{{", ".join(f"{c:.3g}" if c < 1 else f"{c:.0f}" for c in constants)}}}}},')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    worst, factors = 0, collections.defaultdict(list)
    for model in options.models:
        print(f"{model}: chosen : best, step, route; microseconds a row, estimated / measured")
        worst = max(worst, check(options, model, factors))
    if options.fit:
        print_fit(isa_of(options, options.models[0]), factors)
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
