#!/usr/bin/env python3
"""Checks that the commonest slips are told by the first line of the compiler's errors.

    tools/check_slips.py [COMPILER ...]        g++ and clang++, those that there are, when left out

Each slip of tests/slips/ is compiled alone; the first line with "error" has to hold the words
that stand after "// slip:". What stands there otherwise has to compile.
"""
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLIPS = ROOT / "tests" / "slips"


def errors_of(command, source, name):
    """The lines with errors of a source that `command` compiles as C++20, as a file of that name."""
    path = pathlib.Path(command.folder) / name
    path.write_text(source)
    arguments = [*command.arguments, path] if name.endswith(".cc") else [*command.header, path]
    run = subprocess.run(arguments, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    lines = [line for line in run.stderr.splitlines() if re.search(r"\berror:", line)]
    if run.returncode and not lines:
        sys.exit(f"{command.compiler}: {run.stderr}")
    return lines


class Command:
    """How a compiler is asked: once for the head of a file of slips, precompiled, then for each slip after it."""

    def __init__(self, compiler, folder):
        self.compiler, self.folder = compiler, folder
        head = pathlib.Path(folder) / "head.h"
        made = head.with_suffix(".h.gch")
        options = [compiler, "-std=c++20", f"-I{ROOT}"]
        self.header = [*options, "-x", "c++-header", "-o", made]
        self.arguments = [*options, "-fsyntax-only", *(["-include-pch", made] if "clang" in compiler else
                                                       ["-include", head])]


def main():
    compilers = sys.argv[1:] or [c for c in ("g++", "clang++") if shutil.which(c)]
    faults, told = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for compiler, path in itertools.product(compilers, sorted(SLIPS.glob("*.cc"))):
            head, *blocks = re.split(r"^// slip: ", path.read_text(), flags=re.M)
            slips = [block.split("\n", 1) for block in blocks]
            with tempfile.TemporaryDirectory() as folder:
                command = Command(compiler, folder)
                for line in errors_of(command, head, "head.h")[:1]:
                    faults.append(f"{compiler}: without any slip: {line}")
                found = list(pool.map(lambda n: errors_of(command, slips[n][1], f"slip{n}.cc"), range(len(slips))))
            for (words, code), lines in zip(slips, found):
                name = re.search(r"\w+(?=\()", code).group()
                told += 1
                if not lines:
                    faults.append(f"{compiler}: {name} compiles")
                elif words not in lines[0]:
                    faults.append(f"{compiler}: {name}: wants \"{words}\"\n  {lines[0]}")
    print(*faults, sep="\n")
    if not faults:
        print(f"{told} times a slip is told by the first line of {', '.join(compilers)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
