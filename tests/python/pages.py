"""What the pages of documentation hold: blocks of code with the marks before them, headings and links.

A block of shell is indented by four spaces or fenced as sh. It runs in test_docs.py unless a comment in the line before it
says what it needs, or which other test runs it:

    <!-- needs: docker -->
    <!-- tested by: tests/python/test_clients.py -->
"""
import pathlib
import re
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = re.compile(r"<!-- (needs|tested by): (\S.*\S) -->")


@dataclass
class Block:
    page: pathlib.Path
    line: int  # the first line of the code, from 1
    language: str
    text: str
    mark: str = ""   # "needs" or "tested by"
    value: str = ""  # what the mark names

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page):
    """The blocks of a page, in order."""
    found, mark, lines = [], None, page.read_text(encoding="utf-8").split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence := re.match(r"```(.*)$", line):
            end = lines.index("```", at + 1)
            block = Block(page, at + 2, fence.group(1).strip(), "\n".join(lines[at + 1:end]))
            at = end + 1
        elif line.startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            block = Block(page, at + 1, "sh", "\n".join(text[4:] for text in lines[at:end]).rstrip())
            at = end
        else:
            if line.strip():
                mark = MARK.fullmatch(line.strip())
            at += 1
            continue
        if mark:
            block.mark, block.value = mark.groups()
        mark = None
        found.append(block)
    return found


def prose(page):
    """The page without its blocks of code."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for block in blocks(page):
        for number in range(block.line - 1, block.line - 1 + block.text.count("\n") + 1):
            lines[number] = ""
    return "\n".join(lines)


def anchors(page):
    """What links may name behind #: the headings, as GitHub turns them into ids."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page):
    """The targets of links to files and headings of this repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]
