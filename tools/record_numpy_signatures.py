#!/usr/bin/env python3
"""Writes tools/numpy_signatures.txt: what NumPy's routines of tools/array_names.txt and its ndarray's methods
take. Needs numpy.

    python3 tools/record_numpy_signatures.py

A line: the routine, what must be given, and after "|" what may be.
"""
import inspect

import numpy

from array_names import PLACES, all_names, write_signatures

HEAD = f"""# What the routines of tools/array_names.txt and ndarray's methods take in NumPy {numpy.__version__}: what must be
# given, and after "|" what may be. Written by tools/record_numpy_signatures.py.
"""


UFUNC = ["out", "where", "casting", "order", "dtype", "subok", "signature"]
# What a routine's **kwargs may be, which inspect does not know.
KEYWORDS = {
    "clip": UFUNC,
    "einsum": ["dtype", "order", "casting"],
    "pad": ["constant_values", "end_values", "stat_length", "reflect_type"],
    "ufunc.outer": UFUNC,
    "ufunc.reduce": ["keepdims", "initial", "where"],
}


def resolve(name):
    place = numpy
    for part in PLACES.get(name, name).split("."):
        place = getattr(place, part, None)
    return place


def parameters_of(routine):
    """(must, may) of a routine; None where NumPy does not say."""
    if isinstance(routine, numpy.ufunc):
        return ([f"x{i + 1}" for i in range(routine.nin)],
                UFUNC if routine.signature is None else [p for p in UFUNC if p != "where"] + ["axes", "axis"])
    try:
        signature = inspect.signature(routine)
    except (TypeError, ValueError):
        return None
    must, may = [], []
    for p in signature.parameters.values():
        if p.kind == p.VAR_KEYWORD or p.name == "self":
            continue
        if p.kind == p.VAR_POSITIONAL:
            must.append("*" + p.name)
        else:
            (must if p.default is p.empty else may).append(p.name)
    return must, may


def with_more(parameters, more):
    must, may = parameters
    return must, may + [p for p in more if p not in may + must]


def main():
    rows = []
    for name in all_names():
        routine = resolve(name)
        parameters = parameters_of(routine) if routine is not None else None
        if parameters is None:
            continue
        # Generator's method of the same name may take more.
        method = getattr(numpy.random.Generator, name.removeprefix("random."), None)
        if name.startswith("random.") and method is not None and name != "random.Generator":
            parameters = with_more(parameters, (parameters_of(method) or ([], []))[1])
        rows.append((name, *with_more(parameters, KEYWORDS.get(name, []))))
    for name, method in sorted(vars(numpy.ndarray).items()):
        if name.startswith("_") or not callable(method):
            continue
        parameters = parameters_of(method)
        passed_on = any(p.kind == p.VAR_KEYWORD for p in inspect.signature(method).parameters.values())
        if passed_on and hasattr(numpy, name):  # a.sum(**kwargs) takes what numpy.sum does
            parameters = with_more(parameters, KEYWORDS.get(name) or parameters_of(getattr(numpy, name))[1])
        rows.append((f"ndarray.{name}", *parameters))
    write_signatures("numpy_signatures.txt", HEAD, rows)


if __name__ == "__main__":
    main()
