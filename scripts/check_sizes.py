#!/usr/bin/env python3
"""Fails when a file is longer than 600 lines or a function longer than 80 (60 in server/ and config/, but for tests),
and when a class of server/ or runtime/ has more than 15 methods and its comment does not say why: "One class: REASON".

    scripts/check_sizes.py [ROOT]

scripts/size_exceptions.txt lists what may be longer, one a line: PATH[:FUNCTION] LINES REASON.
"""
import ast
import os
import re
import sys

MAX_FILE, MAX_FUNCTION = 600, 80
MAX_SERVING_FUNCTION = 60  # what people read first
MAX_METHODS = 15


def function_limit(path):
    serving = path.startswith(("server/", "config/")) and not re.search(r"_test\.cc$|_for_test\.h$", path)
    return MAX_SERVING_FUNCTION if serving else MAX_FUNCTION


CODE = (".h", ".cc", ".cu", ".cuh", ".py", ".sh")
SKIP = {"build", ".git"}
NAME = re.compile(r"(~?[A-Za-z_][\w:]*|operator[^\s(]+)\s*\(")
LABELS = re.compile(r"(\s|(public|private|protected)\s*:)*")
CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum)\b|extern\s*$")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_text(source):
    """The source with comments, strings and preprocessor lines blanked; lines stay where they are."""
    return re.sub(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])\''
                  r'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, source, flags=re.S | re.M)


def cc_functions(source):
    """(name, first line, number of lines) of each function defined at namespace or class scope."""
    text = without_text(source)
    stack = []  # True for a container, (name, line) for a function, False for any other brace
    head = 0    # where the declaration under way starts
    for at, c in ((m.start(), m.group()) for m in re.finditer(r"[{};]", text)):
        outside = all(item is True for item in stack)
        if c == "{":
            declaration = text[head:at]
            if outside and CONTAINER.search(declaration.split("(")[0]):
                stack.append(True)
            # clang-format puts a space before a body's brace and none before an initialiser's.
            elif (outside and declaration[-1:].isspace() and (name := NAME.search(declaration)) and
                  not re.search(r"=\s*$", declaration)):
                start = head + LABELS.match(declaration).end()
                stack.append((name.group(1), text.count("\n", 0, start) + 1))
            else:
                stack.append(False)
                continue  # a brace initialiser does not end the declaration
        elif c == "}" and stack:
            item = stack.pop()
            if isinstance(item, tuple):
                yield item[0], item[1], text.count("\n", 0, at) + 2 - item[1]
            if item is False:
                continue
        if all(item is True for item in stack) or c == "{":
            head = at + 1


CLASS = re.compile(r"^[ ]*(?:class|struct) (?:ABSL_\w+ )?(\w+)(?: final)?(?: : [^;{]*)?\s*{", re.M)
METHOD = re.compile(r"(~?\w+|operator\S+)\s*$")


def methods(body, name):
    """How many methods are declared or defined between the braces of class `name`, but for what makes, copies and ends it."""
    found, depth, head = 0, 0, ""
    for c in body:
        if depth == 0 and c in ";{":
            # What stands before the first parenthesis ends with a name; a member with an initialiser or a type with
            # parentheses (std::function<void()>) does not.
            before = re.sub(r"ABSL_\w+\([^()]*\)", "", LABELS.sub("", head, 1)).partition("(")
            called = METHOD.search(before[0])
            found += (bool(before[1]) and called is not None and called.group(1) not in (name, "~" + name) and
                      "=" not in before[0] and before[0].count("<") == before[0].count(">") and
                      not re.match(r"\s*(friend|using|static_assert)\b", before[0]))
            head = ""
        elif depth == 0 and c != "}":
            head += c
        depth += (c == "{") - (c == "}")
    return found


def large_classes(source):
    """(name, line, methods) of each class with more than MAX_METHODS whose comment has no "One class:"."""
    text = without_text(source)
    for match in CLASS.finditer(text):
        end, depth = match.end(), 1
        while depth and end < len(text):
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        count, line = methods(text[match.end():end - 1], match.group(1)), text.count("\n", 0, match.start())
        comment = []
        for above in reversed(source.split("\n")[:line]):
            if not above.lstrip().startswith("//"):
                break
            comment.insert(0, above.strip(" /"))
        if count > MAX_METHODS and "One class:" not in " ".join(comment):
            yield match.group(1), line + 1, count


def py_functions(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def exceptions(root):
    allowed = {}
    with open(os.path.join(root, "scripts/size_exceptions.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                where, lines, reason = line.split(maxsplit=2)
                assert reason, line
                allowed[where] = int(lines)
    return allowed


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    allowed, bad, files, functions = exceptions(root), 0, 0, 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIP)
        for name in sorted(n for n in names if n.endswith(CODE)):
            path = os.path.relpath(os.path.join(folder, name), root)
            source = open(os.path.join(root, path), encoding="utf-8").read()
            files += 1
            lines = source.count("\n")
            if lines > allowed.get(path, MAX_FILE):
                print(f"{path}: {lines} lines, {allowed.get(path, MAX_FILE)} allowed")
                bad += 1
            if name.endswith(".sh"):
                continue
            if path.startswith(("server/", "runtime/")) and "_test." not in name and "_for_test." not in name:
                for class_name, line, count in large_classes(source):
                    print(f"{path}:{line}: class {class_name} has {count} methods, {MAX_METHODS} allowed without "
                          '"One class: REASON" in its comment')
                    bad += 1
            for function, line, length in (py_functions if name.endswith(".py") else cc_functions)(source):
                functions += 1
                limit = allowed.get(f"{path}:{function}", function_limit(path))
                if length > limit:
                    print(f"{path}:{line}: {function} has {length} lines, {limit} allowed")
                    bad += 1
    print(f"{files} files, {functions} functions, {bad} too large")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
