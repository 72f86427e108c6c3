#!/usr/bin/env python3
"""Adds up what a test run left behind and judges its skips.

    scripts/test_report.py RESULTS_DIR...

A results folder holds ctest.xml (ctest --output-junit) and, for tests that report case by case, NAME_tests.xml
(gtest's or pytest's XML) of the ctest entry NAME. Checks that are no tests come on stdin, one a line: "passed NAME",
"failed NAME" or "skipped NAME: REASON". Prints every failure and every skip that tests/allowed_skips.txt does not allow,
which counts as a failure too, then the totals:

    N passed, N failed, N skipped

Exit status: 0 when nothing failed.
"""
import fnmatch
import itertools
import os
import sys
import xml.etree.ElementTree as ElementTree

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def allowed_skips():
    """[(pattern of the test's name, text its reason must hold)]"""
    rules = []
    with open(os.path.join(ROOT, "tests/allowed_skips.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, reason, why = (part.strip() for part in line.split("|"))
                assert why, line
                rules.append((name, reason))
    return rules


def cases_of(path, group):
    """(name, outcome, detail) of each test case in a JUnit-like file."""
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{group}/{case.get('classname') or ''}.{case.get('name')}"
        failure = next((e for e in case if e.tag in ("failure", "error")), None)
        skipped = case.find("skipped")
        if failure is not None:
            yield name, "failed", failure.get("message") or failure.text or ""
        elif skipped is not None:
            yield name, "skipped", " ".join(filter(None, (skipped.get("message"), skipped.text)))
        elif case.get("status") == "notrun":
            continue  # filtered out or DISABLED_
        else:
            yield name, "passed", ""


def ctest_outcome(case):
    """ctest marks a test that asked to be skipped `notrun` or `disabled`, and a failed one `fail`."""
    if case.get("status") == "run":
        return "passed"
    return "failed" if case.get("status") == "fail" or case.find("failure") is not None else "skipped"


def results(folder):
    label = os.path.basename(os.path.dirname(os.path.abspath(folder)))
    for case in ElementTree.parse(os.path.join(folder, "ctest.xml")).iter("testcase"):
        name, outcome = case.get("name"), ctest_outcome(case)
        output = case.findtext("system-out") or ""
        detail = os.path.join(folder, name + "_tests.xml")
        cases = list(cases_of(detail, f"{label}/{name}")) if os.path.exists(detail) else []
        yield from cases
        # A crash leaves a failed entry without a failed case, or no cases at all.
        if not cases or (outcome == "failed" and all(c[1] != "failed" for c in cases)):
            yield f"{label}/{name}", outcome, output.strip()[-3000:]


def checks(lines):
    for line in lines:
        outcome, name = line.strip().split(" ", 1)
        name, _, detail = name.partition(": ")
        yield name, outcome, detail


def main():
    rules = allowed_skips()
    count = {"passed": 0, "failed": 0, "skipped": 0}
    seen = set()
    for name, outcome, detail in itertools.chain(checks(sys.stdin), *map(results, sys.argv[1:])):
        if outcome == "skipped" and not any(fnmatch.fnmatch(name, pattern) and reason in detail
                                            for pattern, reason in rules):
            outcome, detail = "failed", "skipped, which tests/allowed_skips.txt does not allow: " + detail
        count[outcome] += 1
        if outcome == "failed":
            print(f"FAILED {name}\n{detail}\n")
        elif outcome == "skipped" and (reason := detail.strip()[:200]) not in seen:
            seen.add(reason)
            print(f"skipped {name}: {reason}  (each reason is shown once)")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
