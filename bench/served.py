#!/usr/bin/env python3
"""What serving costs: floed against an echo server built on grpc++, as ratios from one run.

    bench/served.py [--build build/release] [--model mnist_beginner] [--batch 1] [--json FILE]

`echo_server` answers with the bytes that floed answered, without looking at the input: it is the floor. Both servers
run throughout and are measured by `floectl bench` in turns, several rounds each, so that what else the machine does meets
both; figures are medians over the rounds.
"""
import argparse
import json
import os
import statistics
import sys

from serving_kit import ROOT, add_arguments, cpu_seconds, echo, free_port, load, peak_rss_bytes, running, serving


def measure(args, port, process, concurrency):
    before = cpu_seconds(process.pid)
    out = load(args.build, port, args.model, "--batch", args.batch, "--concurrency", concurrency, "--seconds", args.seconds)
    taken = cpu_seconds(process.pid) - before
    return {"p50_us": out["latency_us"]["p50"], "p99_us": out["latency_us"]["p99"],
            "throughput_rps": out["calls_per_second"], "server_cpu_us": 1e6 * taken / (out["calls"] + out["warmup_calls"]),
            "client_cpus": out["client_cpus"], "peak_rss_bytes": peak_rss_bytes(process.pid)}


def medians(rounds):
    return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}


def compare(args, servers, concurrency):
    rounds = {name: [] for name in servers}
    for _ in range(args.rounds):
        for name, (port, process) in servers.items():
            rounds[name].append(measure(args, port, process, concurrency))
    result = {name: medians(r) for name, r in rounds.items()}
    result["ratio"] = {key: result["floed"][key] / result["echo"][key] for key in result["echo"] if key != "client_cpus"}
    return result


def show(concurrency, result):
    print(f"\nconcurrency {concurrency}      p50 us   p99 us   req/s   CPU us/req   peak RSS MiB   client CPUs")
    for name in ("echo", "floed"):
        r = result[name]
        print(f"  {name:12s} {r['p50_us']:10.0f} {r['p99_us']:8.0f} {r['throughput_rps']:7.0f}"
              f" {r['server_cpu_us']:12.1f} {r['peak_rss_bytes'] / 2**20:14.1f} {r['client_cpus']:13.2f}")
    r = result["ratio"]
    print(f"  {'ratio':12s} {r['p50_us']:10.2f} {r['p99_us']:8.2f} {r['throughput_rps']:7.2f} {r['server_cpu_us']:12.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--config", default=os.path.join(ROOT, "config/floe.yaml"))
    parser.add_argument("--model", default="mnist_beginner")
    parser.add_argument("--batch", type=int, default=1, help="rows of a call")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--json", help="also write the figures to this file")
    args = parser.parse_args()

    echo_port, floed_port = free_port(), free_port()
    floed = [os.path.join(args.build, "floed"), "--config", args.config, f"--port={floed_port}"]
    with serving(args.build, floed, floed_port) as served, \
            running(echo(args.build, echo_port, floed_port), echo_port) as floor:
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
