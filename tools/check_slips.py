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


def errors_of(compiler, source):
    """The lines with errors of a source that is compiled as C++20."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "slip.cc"
        path.write_text(source)
        run = subprocess.run([compiler, "-std=c++20", f"-I{ROOT}", "-fsyntax-only", path],
                             capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    lines = [line for line in run.stderr.splitlines() if re.search(r"\berror:", line)]
    if run.returncode and not lines:
        sys.exit(f"{compiler}: {run.stderr}")
    return lines


def main():
    compilers = sys.argv[1:] or [c for c in ("g++", "clang++") if shutil.which(c)]
    faults, told = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for compiler, path in itertools.product(compilers, sorted(SLIPS.glob("*.cc"))):
            head, *blocks = re.split(r"^// slip: ", path.read_text(), flags=re.M)
            slips = [block.split("\n", 1) for block in blocks]
            for line in errors_of(compiler, head)[:1]:
                faults.append(f"{compiler}: without any slip: {line}")
            found = pool.map(lambda slip: errors_of(compiler, head + slip[1]), slips)
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
