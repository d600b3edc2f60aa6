#!/usr/bin/env python3
"""Checks that the public headers leave no macro behind that is not meant for programs.

    tools/check_macros.py [COMPILER]        g++ when left out

Each header rensa/*.h is read by the compiler; what is defined in rensa/ and still defined at the end has
to stand in MEANT. Prints the others as file:line.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEANT = {
    # the version, for #if
    "RENSA_VERSION_MAJOR", "RENSA_VERSION_MINOR", "RENSA_VERSION_PATCH", "RENSA_VERSION_AT_LEAST",
    # functions for the host and for devices, which a program may write as core/half.h does
    "RENSA_FN",
}
MARKER = re.compile(r'# (\d+) "([^"]*)"')
CHANGE = re.compile(r"#(define|undef) (\w+)")


def left_by(header, compiler):
    """{macro: file:line} of what is defined in rensa/ after `header`."""
    command = [compiler, "-E", "-dD", "-std=c++20", f"-I{ROOT}", "-x", "c++", str(header)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    left, file, line = {}, None, 0
    for text in output.splitlines():
        if marker := MARKER.match(text):
            line, path = int(marker[1]), os.path.relpath(marker[2], ROOT)
            file = path if path.startswith("rensa/") else None
            continue
        if change := CHANGE.match(text):
            if change[1] == "undef":
                left.pop(change[2], None)
            elif file:
                left[change[2]] = f"{file}:{line}"
        line += 1
    return left


def main():
    compiler = sys.argv[1] if len(sys.argv) > 1 else "g++"
    headers = sorted((ROOT / "rensa").glob("*.h"))
    found = {}
    for header in headers:
        if header.name != "fmt.h":  # for programs that have {fmt}; no more than array/printable.h otherwise
            found.update(left_by(header, compiler))
    stray = {name: where for name, where in found.items() if name not in MEANT}
    for name, where in sorted(stray.items(), key=lambda item: item[1]):
        print(f"{where}: {name} is still defined where a program has included the header")
    for name in sorted(MEANT - set(found)):
        print(f"tools/check_macros.py: {name} is meant to be there, and is not")
    print(f"macros: {len(headers)} public headers checked, {len(stray)} macros too many")
    return 1 if stray or MEANT - set(found) else 0


if __name__ == "__main__":
    sys.exit(main())
