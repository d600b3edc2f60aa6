#!/usr/bin/env python3
"""Checks README.md and docs/: what they show is in the tree.

A C++ block stands after a comment that names the program it comes from,
    <!-- tests/consumer/network.cc -->
and every line of it must be in that file, in this order, spaces at either end aside; the file is
built and run by the tests. Relative links must lead somewhere. Prints each fault as file:line.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = re.compile(r"^<!-- (\S+) -->$")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def missing_lines(block, source):
    """The lines of `block` that `source` does not hold in the block's order."""
    lines = iter(line.strip() for line in source.splitlines())
    return [line for line in map(str.strip, block) if line and line not in lines]


def faults(page, text):
    """(line number, what is wrong) in the Markdown `text` of the file `page`."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if line.startswith("```"):
            start = number
            while number < len(lines) and lines[number] != "```":
                number += 1
            block = lines[start:number]
            number += 1
            if line.strip() != "```cpp":
                continue
            source = SOURCE.match(lines[start - 2]) if start > 1 else None
            if not source:
                yield start, "a C++ block after no comment that names its program"
            elif not (ROOT / source[1]).is_file():
                yield start, f"{source[1]} is not there"
            elif missing := missing_lines(block, (ROOT / source[1]).read_text()):
                yield start, f"not in {source[1]}: {missing[0]}"
            continue
        for target in LINK.findall(line):
            if "://" not in target and not (page.parent / target).exists():
                yield number, f"{target} is not there"


def main():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [(page, *fault) for page in pages for fault in faults(page, page.read_text())]
    for page, number, what in found:
        print(f"{page.relative_to(ROOT)}:{number}: {what}")
    print(f"docs: {len(pages)} pages checked, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
