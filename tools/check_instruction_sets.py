#!/usr/bin/env python3
"""Checks what the kernels' objects leave for others to be linked with.

    check_instruction_sets.py OBJECT...

The objects are those compiled for instructions that not every machine has. A name that they define
outside of their set's namespace may be the one that the linker keeps for the whole program, which
then ends on such a machine with an illegal instruction. What an object does when the program starts would end
it there too. Prints each such name.
"""
import pathlib
import re
import subprocess
import sys


def names(path):
    """What an object defines for others, as nm tells it."""
    listing = subprocess.run(["nm", "--defined-only", "--extern-only", "--demangle", path],
                             capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        _, kind, name = line.split(maxsplit=2)
        # Data has no instructions.
        if kind in "TtWwiu":
            yield name


def starts_something(path):
    """Whether it has something to run when the program starts."""
    sections = subprocess.run(["readelf", "--section-headers", "--wide", path], capture_output=True,
                              text=True, check=True).stdout
    return ".init_array" in sections or ".ctors" in sections


def main():
    objects = [path for path in sys.argv[1:] if path]
    functions, wrong = 0, 0
    for path in objects:
        set_of_it = re.search("_(avx2|avx512)\\.dir/", pathlib.Path(path).as_posix())[1]
        if starts_something(path):
            wrong += 1
            print(f"{path}: runs when the program starts")
        for name in names(path):
            functions += 1
            if f"rensa::host::{set_of_it}::" not in name:
                wrong += 1
                print(f"{path}: {name}")
    if objects and functions == 0:
        print("no functions in the objects")
        return 1
    print(f"{functions} functions in {len(objects)} objects, {wrong} of them beside the sets")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
