#!/usr/bin/env python3
"""Lists the raw ops of the installed TensorFlow that docs/ops.md neither has nor refuses.

    $(scripts/pyenv.sh) scripts/list_tf_ops.py [--all]

--all: every op with `supported`, the reason for refusing it, or `?`. Exit code 1 where there are ops of neither kind.
"""

import fnmatch
import pathlib
import re
import sys

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs" / "ops.md"


def known_ops(document=DOCUMENT):
    """The supported ops, and the refused ones as (pattern, reason), both as docs/ops.md has them."""
    supported, refused = set(), []
    tables = document.read_text(encoding="utf-8").split("## Refused ops")
    for line in tables[0].splitlines():
        if line.startswith("| ") and not line.startswith(("| Op |", "| ---")):
            supported.update(name.strip() for name in line.split("|")[1].split(","))
    for line in tables[1].splitlines():
        if line.startswith("| ") and not line.startswith(("| What |", "| ---")):
            _, _, names, reason, _ = line.split("|")
            refused += [(name, reason.strip()) for name in re.findall(r"`([^`]+)`", names)]
    return supported, refused


def verdict(op, supported, refused):
    """What becomes of an op; None where nothing is known."""
    if op in supported:
        return "supported"
    return next((reason for pattern, reason in refused if fnmatch.fnmatchcase(op, pattern)), None)


def raw_ops():
    """Every op that tf.raw_ops has."""
    import tensorflow as tf

    return sorted(name for name in dir(tf.raw_ops) if name[0].isupper())


def main():
    """Prints the list."""
    supported, refused = known_ops()
    verdicts = {op: verdict(op, supported, refused) for op in raw_ops()}
    unknown = [op for op, word in verdicts.items() if word is None]
    if "--all" in sys.argv[1:]:
        for op, word in verdicts.items():
            print(f"{op}: {word or '?'}")
    else:
        print("\n".join(unknown))
    counts = sum(word == "supported" for word in verdicts.values())
    print(
        f"{len(verdicts)} ops: {counts} supported, {len(verdicts) - counts - len(unknown)} refused, "
        f"{len(unknown)} neither",
        file=sys.stderr,
    )
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
