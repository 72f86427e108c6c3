#!/usr/bin/env python3
"""What serving costs: floed against an echo server built on the same gRPC, as ratios from one run.

    bench/served.py --kit BUILD_OF_SERVING_BENCH [--build build/release] [--model mnist_beginner] [--json FILE]

The kit holds `echo_server` and `loadgen`. Both servers run throughout and are measured in turns, several rounds
each, so that what else the machine does meets both; figures are medians over the rounds. The echo server answers
ten floats without looking at the input: it is the floor.
"""
import argparse
import json
import os
import statistics
import sys

from serving_kit import ROOT, add_arguments, echo, free_port, load, running, serving

def measure(args, port, process, concurrency):
    out = load(args.kit, port, args.model, args.input, "--concurrency", concurrency, "--duration", args.seconds,
               "--warmup", 0.5, "--server-pid", process.pid)
    return {"p50_us": out["latency_us"]["p50"], "p99_us": out["latency_us"]["p99"],
            "throughput_rps": out["throughput_rps"], "server_cpu_us": out["server"]["cpu_us_per_request"],
            "peak_rss_bytes": out["server"]["peak_rss_bytes"]}


def medians(rounds):
    return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}


def compare(args, servers, concurrency):
    rounds = {name: [] for name in servers}
    for _ in range(args.rounds):
        for name, (port, process) in servers.items():
            rounds[name].append(measure(args, port, process, concurrency))
    result = {name: medians(r) for name, r in rounds.items()}
    result["ratio"] = {key: result["floed"][key] / result["echo"][key] for key in result["echo"]}
    return result


def show(concurrency, result):
    print(f"\nconcurrency {concurrency}      p50 us   p99 us   req/s   CPU us/req   peak RSS MiB")
    for name in ("echo", "floed"):
        r = result[name]
        print(f"  {name:12s} {r['p50_us']:10.0f} {r['p99_us']:8.0f} {r['throughput_rps']:7.0f}"
              f" {r['server_cpu_us']:12.1f} {r['peak_rss_bytes'] / 2**20:14.1f}")
    r = result["ratio"]
    print(f"  {'ratio':12s} {r['p50_us']:10.2f} {r['p99_us']:8.2f} {r['throughput_rps']:7.2f} {r['server_cpu_us']:12.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--config", default=os.path.join(ROOT, "config/floe.yaml"))
    parser.add_argument("--model", default="mnist_beginner")
    parser.add_argument("--input", default="input:float32:1x784")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--json", help="also write the figures to this file")
    args = parser.parse_args()

    echo_port, floed_port = free_port(), free_port()
    floed = [os.path.join(args.build, "floed"), "--config", args.config, f"--port={floed_port}"]
    with running(echo(args.kit, echo_port), echo_port) as floor, serving(args.build, floed, floed_port) as served:
        servers = {"echo": (echo_port, floor), "floed": (floed_port, served)}
        results = {}
        for concurrency in args.concurrency:
            results[concurrency] = compare(args, servers, concurrency)
            show(concurrency, results[concurrency])
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"model": args.model, "by_concurrency": results}, f, indent=1)


if __name__ == "__main__":
    sys.exit(main())
