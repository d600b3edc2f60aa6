#!/usr/bin/env python3
"""Writes tools/numpy_signatures.txt: what NumPy's routines of tools/array_names.txt take. Needs numpy.

    python3 tools/record_numpy_signatures.py

A line: the routine, what must be given, and behind the stroke what may be.
"""
import inspect
import pathlib
import re

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = f"""# What the routines of tools/array_names.txt take in NumPy {numpy.__version__}: what must be given, and behind
# the stroke what may be. Written by tools/record_numpy_signatures.py.
"""


def names():
    for line in (ROOT / "tools" / "array_names.txt").read_text().splitlines():
        if ": " in line and not line.startswith("#"):
            yield line.split(": ", 1)[0]
        elif not line.startswith(("#", "[")):
            yield from line.split()


def resolve(name):
    place = numpy
    for part in name.split("."):
        place = getattr(place, part, None)
    return place


def parameters_of(routine):
    """(must, may) of a routine; None where NumPy does not say."""
    if isinstance(routine, numpy.ufunc):
        return ([f"x{i + 1}" for i in range(routine.nin)],
                ["out", "where", "casting", "order", "dtype", "subok", "signature"]
                if routine.signature is None else
                ["out", "casting", "order", "dtype", "subok", "signature", "axes", "axis"])
    try:
        signature = inspect.signature(routine)
    except (TypeError, ValueError):
        return None
    must, may = [], []
    for p in signature.parameters.values():
        if p.kind == p.VAR_KEYWORD:
            continue
        if p.kind == p.VAR_POSITIONAL:
            must.append("*" + p.name)
        else:
            (must if p.default is p.empty else may).append(p.name)
    return must, may


def main():
    rows, lines = sorted(set(names())), [HEAD]
    for name in rows:
        parameters = parameters_of(resolve(name)) if resolve(name) is not None else None
        if parameters is None:
            continue
        must, may = parameters
        # Generator's method of the same name may take more.
        method = getattr(numpy.random.Generator, name.removeprefix("random."), None)
        if name.startswith("random.") and method is not None and name != "random.Generator":
            more = parameters_of(method)
            may += [p for p in more[1] if p not in may + must] if more else []
        lines.append(f"{name}({', '.join(must)}{' | ' if may else ''}{', '.join(may)})\n")
    (ROOT / "tools" / "numpy_signatures.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
