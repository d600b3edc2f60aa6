#!/usr/bin/env python3
"""Checks that every kernel waits for the work before it.

Kernels come to a GPU's processors while the work before them ends (rensa/backend/cuda/kernel.cuh,
launch_kernel), so each calls wait_for_previous() before it touches memory: as its first statement,
or in what a reduction of rensa/portable/reduce_blocks.h does first. Prints each that does not as
file:line.
"""
import pathlib
import re
import sys

WAIT = "wait_for_previous();"
# What begins with the wait itself, and the wait that lets nothing come.
WAITS = re.compile(r"\breduce_(rows|columns)_of<|\bwait_for_previous_alone\(\);")


def matching(text, start):
    """The place after the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    raise SystemExit(f"a bracket is not closed: {text[start:start + 80]!r}")


def kernels(text):
    """(place, body) of each kernel that is defined in the text of a file."""
    for found in re.finditer(r"^[^/\n]*\b__global__\b", text, re.MULTILINE):
        depth, at = 0, found.end()
        while depth > 0 or text[at] not in "{;":
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        if text[at] == "{":
            yield found.start(), text[at:matching(text, at)]


def main():
    failed = False
    root = pathlib.Path(__file__).resolve().parent.parent
    for path in sorted((root / "rensa").rglob("*.cu*")):
        text = path.read_text()
        for place, body in kernels(text):
            if WAIT in body or WAITS.search(body):
                continue
            failed = True
            line = text.count("\n", 0, place) + 1
            print(f"{path.relative_to(root)}:{line}: a kernel that does not call {WAIT}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
