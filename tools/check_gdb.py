#!/usr/bin/env python3
"""Checks what gdb prints by tools/gdb/rensa_printers.py.

    tools/check_gdb.py PROGRAM        the program of tests/gdb/values.cc, with debug information

Ends with 77 where there is no gdb with Python.
"""
import pathlib
import shutil
import subprocess
import sys

PRINTERS = pathlib.Path(__file__).resolve().parent / "gdb" / "rensa_printers.py"
WANTED = {
    "undefined": "array(undefined)",
    "matrix": "array([[0, 1, 2], [3, 4, 5]], shape=(2, 3), dtype=float32, device='cpu')",
    "transposed": "array([[0, 3], [1, 4], [2, 5]], shape=(3, 2), dtype=float32, device='cpu')",
    "half": "array([1.5, -2], shape=(2,), dtype=float16, device='cpu')",
    "brain": "array([1.5], shape=(1,), dtype=bfloat16, device='cpu')",
    "complex": "array([1-2j], shape=(1,), dtype=complex64, device='cpu')",
    "flags": "array([[False, False, False], [False, False, True]], shape=(2, 3), dtype=bool, "
             "device='cpu')",
    "number": "array(7, shape=(), dtype=int64, device='cpu')",
    "empty": "array([[], []], shape=(2, 0), dtype=float32, device='cpu')",
    "many": "array([0, 1, 2, 3, ...], shape=(1000,), dtype=int64, device='cpu')",
    "row": "array([3, 4, 5], shape=(3,), dtype=float32, device='cpu')",
    "chosen": "array([5], shape=(1,), dtype=float32, device='cpu')",
    "shape": "(2, 3)",
    "one": "(5,)",
    "dtype": "complex64",
    "host": "cpu",
    "device": "cuda:3",
    "variable": "variable(array([[0, 1, 2], [3, 4, 5]], shape=(2, 3), dtype=float32, device='cpu'))",
    "none": "variable(undefined)",
}


def gdb(*arguments):
    return subprocess.run(["gdb", "-nx", "-batch", *arguments], capture_output=True, text=True)


def main():
    if not shutil.which("gdb") or "yes" not in gdb("-ex", "python print('yes')").stdout:
        print("no gdb with Python")
        return 77
    commands = [f"source {PRINTERS}", "break values_are_there", "run", "up"]
    for name in WANTED:
        commands += [f"set print elements {4 if name == 'many' else 200}", f"echo {name} =",
                     f"output {name}", "echo \\n"]
    run = gdb(*(word for command in commands for word in ("-ex", command)), sys.argv[1])
    printed = dict(line.split(" =", 1) for line in run.stdout.splitlines() if " =" in line)
    faults = [f"{name}: wants {text}\n    got {printed.get(name)}"
              for name, text in WANTED.items() if printed.get(name) != text]
    print(*faults, sep="\n")
    if faults:
        print(run.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
