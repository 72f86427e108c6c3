#!/usr/bin/env python3
"""Finds functions in anonymous namespaces that hide one of their library's headers.

    scripts/check_names.py [ROOT]

The sources of a library may be compiled in groups (FLOE_UNITY), where a helper of one source is seen by the sources behind it,
and hides a function of the same name that a header declares: another function than without groups is called, and no compiler
says so. Exit status 1, with a line for each.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
LIBRARY = re.compile(r"^floe_objects\(\w+ FOLDERS ([^)]*?)\s*(?:TESTS \w+\s*)?(?:DEPS|\))", re.M | re.S)
ALONE = re.compile(r"HWY_TARGET_INCLUDE|_test\.cc$")
# At the beginning of a line: what it returns, its name, and its parameters.
FUNCTION = re.compile(r"^(?!return|else|using|typedef|namespace|class|struct|enum|case|static_assert|FLOE_|TEST|#|//)"
                      r"[A-Za-z_][\w:<>,&*\[\] ]*[\s&*>]([A-Za-z_]\w*)\(", re.M)
METHOD = re.compile(r"\w::$")


def functions(text):
    """The free functions of a piece of source."""
    return {m.group(1) for m in FUNCTION.finditer(text) if not METHOD.search(text[:m.start(1)])} - {"operator"}


def hidden(text):
    """The anonymous namespaces of a source."""
    return "\n".join(re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text, re.M | re.S))


def libraries():
    """The folders of each."""
    for makefile in (ROOT / "CMakeLists.txt", ROOT / "kernels/cuda/CMakeLists.txt"):
        for folders in LIBRARY.findall(makefile.read_text() if makefile.exists() else ""):
            yield [f for f in folders.split() if "$" not in f] + (
                [p.relative_to(ROOT) for p in (ROOT / "kernels/cpu").iterdir() if p.is_dir()] if "$" in folders else [])


def clashes(folders):
    """The names, each with the source and the header."""
    declared = {}
    for folder in folders:
        for path in (ROOT / folder).glob("*.h"):
            if not path.name.endswith(("for_test.h", "-inl.h")):  # the latter's are in namespaces of instruction sets
                declared.update(dict.fromkeys(functions(path.read_text()), path))
    for folder in folders:
        for path in sorted((ROOT / folder).glob("*.cc")):
            text = path.read_text()
            if not ALONE.search(path.name) and not ALONE.search(text):
                for name in sorted(functions(hidden(text)) & set(declared)):
                    yield name, path, declared[name]


def main():
    found = [(path.relative_to(ROOT), name, header.relative_to(ROOT))
             for folders in libraries() for name, path, header in clashes(folders)]
    for path, name, header in found:
        print(f"{path}: {name} hides that of {header} from the sources of its group; give it another name")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
