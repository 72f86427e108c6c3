#!/usr/bin/env python3
"""Writes manual pages and bash completion of floed and floectl from their --help, and the package's changelog.

    make_manual.py --programs DIR --version V --out SHARE
"""
import argparse
import gzip
import pathlib
import re
import subprocess

PURPOSE = {"floed": "model server over gRPC", "floectl": "tool for models and for floed"}
SECTION = {"floed": 8, "floectl": 1}

CHANGES = """floe ({version}-1) stable; urgency=medium

  * Version {version}.

 -- The floe maintainers <floe@localhost>  Thu, 01 Jan 2026 00:00:00 +0000
"""


def help_of(program, *words):
    return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True,
                          env={"COLUMNS": "100", "LC_ALL": "C"}).stdout


def subcommands(text):
    """The words of the section "Subcommands:" of CLI11."""
    section = re.search(r"^(?:Subcommands|SUBCOMMANDS):\n((?:(?: .*)?\n)*)", text, re.M)
    return re.findall(r"^  ([a-z][\w-]*)", section.group(1), re.M) if section else []


def options(text):
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)))


def escape(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line[:1] in (".", "'") else line


def page(name, version, texts):
    out = [f'.TH {name.upper()} {SECTION[name]} "" "floe {version}"', ".SH NAME",
           f"{name} \\- {PURPOSE[name]}", ".SH DESCRIPTION"]
    for title, text in texts:
        if title:
            out.append(f'.SH "{title.upper()}"')
        out += [".nf", *(escape(line) for line in text.rstrip().splitlines()), ".fi"]
    return "\n".join(out) + "\n"


def helps(program, *words):
    """The words that lead to each command, and its help: its own, and those of the commands in it."""
    text = help_of(program, *words)
    return [(words, text)] + [one for word in subcommands(text) for one in helps(program, *words, word)]


def completion(name, texts):
    """`texts`: of helps(). The longest words that were typed decide."""
    cases = "".join(f"    {chr(39) + ' '.join(words) + ' ' + chr(39) if words else ''}*) words='{' '.join(subcommands(text) + options(text))}' ;;\n"
                    for words, text in sorted(texts, key=lambda one: -len(one[0])))
    return f"""# bash completion of {name}
_{name}() {{
  local words typed="${{COMP_WORDS[*]:1:COMP_CWORD-1}} " current=${{COMP_WORDS[COMP_CWORD]}}
  case "$typed" in
{cases}  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _{name} {name}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    changes = args.out / "doc" / "floe" / "changelog.Debian.gz"
    changes.parent.mkdir(parents=True, exist_ok=True)
    changes.write_bytes(gzip.compress(CHANGES.format(version=args.version).encode(), mtime=0))
    for name in ("floed", "floectl"):
        program = args.programs / name
        found = helps(program)
        texts = [(" ".join((name, *words)) if words else "", text) for words, text in found]
        manual = args.out / "man" / f"man{SECTION[name]}" / f"{name}.{SECTION[name]}.gz"
        manual.parent.mkdir(parents=True, exist_ok=True)
        # Without a time, so that two builds give the same bytes.
        manual.write_bytes(gzip.compress(page(name, args.version, texts).encode(), mtime=0))
        words = args.out / "bash-completion" / "completions" / name
        words.parent.mkdir(parents=True, exist_ok=True)
        words.write_text(completion(name, found))


if __name__ == "__main__":
    main()
