#!/usr/bin/env python3
"""Holds the public headers against the Python array API standard 2024.12: every function of it, with linalg
and fft, is there and takes what the standard's takes, by position and by name; so are the constants, the
dtypes, what can be asked of the namespace, and the attributes, methods and operators of arrays.

    python3 tools/check_array_api.py

What the functions give, their dtypes and their special cases are held by tests/array/standard_test.cc.
"""
import pathlib
import re
import sys

from declarations import ROOT, declarations, names_of_parameters

TABLE = ROOT / "tools" / "array_api_2024_12.txt"

# Where C++ has another word, or a parameter's place takes the word's.
WORDS = {
    "axis": {"axis", "axes"},
    "axes": {"axes", "a_axes", "axis"},
    "n_cols": {"n_cols", "m", "M"},
    "shift": {"shift", "shifts"},
}
# By another name, for the reason given.
RENAMED = {
    "from_dlpack": ("from_dlpack", {"device": "a tensor stays where it is: from_dlpack(t).to(device)",
                                    "copy": "a tensor is shared: from_dlpack(t).copy()"}),
}
CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]
DTYPES = ["bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
          "float64", "complex64", "complex128"]
INSPECTION = ["capabilities", "default_device", "default_dtypes", "devices", "dtypes"]
ATTRIBUTES = ["dtype", "device", "mT", "ndim", "shape", "size", "T"]
# What the standard's methods are called here.
METHODS = {"__bool__": "item", "__int__": "item", "__float__": "item", "__complex__": "item",
           "__index__": "item", "to_device": "to"}
FUNCTIONS = {"__abs__": "abs", "__floordiv__": "floor_divide", "__pow__": "pow", "__matmul__": "matmul"}
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>", "[]"]
INPLACE = ["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="]


def wanted():
    """[(name, positional, named)] of the table."""
    rows = []
    for line in TABLE.read_text().splitlines():
        match = re.match(r"([\w.]+)\((.*)\)$", line)
        if match:
            positional, _, named = match[2].partition("|")
            rows.append((match[1], [p.strip() for p in positional.split(",") if p.strip()],
                         [k.strip() for k in named.split(",") if k.strip()]))
    return rows


def found(name, functions):
    """The overloads; linalg's functions that are the main namespace's own are named in it by `using`."""
    if functions.get(name):
        return functions[name]
    package, _, routine = name.rpartition(".")
    header = (ROOT / "rensa" / "array" / "linalg.h").read_text()
    if package == "linalg" and f"using xp::{routine};" in header:
        return functions[routine]
    return []


def faults_of(name, positional, named, functions, structs):
    overloads = found(name, functions)
    if not overloads and name in structs:  # made by a constructor, of one argument
        return [] if len(positional) == 1 and not named else [f"{name}: takes one argument"]
    if not overloads:
        return [f"{name}: is not there"]
    given = [names_of_parameters(f, structs) for f in overloads]
    faults = []
    if max(len(names) for names in given) < len(positional):
        faults.append(f"{name}: takes fewer than the {len(positional)} of {', '.join(positional)}")
    reasons = RENAMED.get(name, (name, {}))[1]
    for word in named:
        if word in reasons:
            continue
        if not any(WORDS.get(word, {word}) & set(names) for names in given):
            faults.append(f"{name}: takes no {word}")
    return faults


def main():
    functions, structs = declarations()
    faults = []
    table = wanted()
    for name, positional, named in table:
        faults += faults_of(name, positional, named, functions, structs)
    text = "".join(path.read_text() for path in sorted((ROOT / "rensa").glob("array/*.h")))
    text += (ROOT / "rensa" / "core" / "dtype.h").read_text()
    for constant in CONSTANTS:
        if not re.search(rf"inline constexpr \w+[ \w:]* {constant}\b", text):
            faults.append(f"constant {constant}: is not there")
    for dtype in DTYPES:
        if not re.search(rf"\b{dtype}\b", text):
            faults.append(f"dtype {dtype}: is not there")
    for question in INSPECTION:
        if not functions.get(f"array_namespace_info.{question}"):
            faults.append(f"array_namespace_info().{question}: is not there")
    for name in ATTRIBUTES + sorted(set(METHODS.values())):
        if not functions.get(f"Array.{name}"):
            faults.append(f"Array.{name}: is not there")
    for method, function in FUNCTIONS.items():
        if not functions.get(function):
            faults.append(f"{method}: there is no {function}")
    if not functions.get("to_dlpack"):
        faults.append("__dlpack__: there is no to_dlpack")
    header = (ROOT / "rensa" / "array" / "array.h").read_text()
    for operator in OPERATORS + INPLACE:
        quoted = re.escape(operator)
        if not re.search(rf"operator ?{quoted}\(|_(OPERATOR|INPLACE)\({quoted}[,)]", header):
            faults.append(f"operator {operator}: is not there")
    print(*faults, sep="\n" if faults else "", end="\n" if faults else "")
    if not faults:
        print(f"array API 2024.12: {len(table)} functions, their parameters, constants, dtypes and arrays are here")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
