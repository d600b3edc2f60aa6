#!/usr/bin/env python3
"""Writes docs/array_api.md: every array routine, what it takes, and what shows that it works.

    python3 tools/make_array_page.py           writes the page
    python3 tools/make_array_page.py --check   fails when the page is not what it would write, when a
                                               routine is neither there nor left out with a reason, or when
                                               it lacks a parameter of NumPy's or CuPy's without a reason

What routines take is read from the public headers (tools/declarations.py); what NumPy's and CuPy's take from
tools/numpy_signatures.txt and tools/cupy_signatures.txt, which the scripts record_numpy_signatures.py and
record_cupy_signatures.py write; the reasons from tools/array_parameters.txt.

A routine is there when tests/array/routines.def has a row of its name: tests/array/coverage_test.cc
runs that row on the CPU and on a GPU. The number of cases is that of the calls with NumPy's answers in
tests/answers.
"""
import collections
import re
import sys

from array_names import by_tier, read_signatures
from declarations import ROOT, declarations, names_of_parameters

PAGE = ROOT / "docs" / "array_api.md"
HEAD = """# The array routines

Written by `tools/make_array_page.py`; do not edit. A tick under CPU and CUDA: the routine is a row of
`tests/array/routines.def`, which `tests/array/coverage_test.cc` runs on each device. Cases: calls that
the tests replay against NumPy's answers on every device, in several memory layouts (`tests/answers`;
dtypes, shapes, axes and special values vary); where there are none, tests written by hand look at the
routine, or at the one that it is another name of. [differences.md](differences.md) says where the answers
differ from NumPy's on purpose.

Under "takes" stands what a caller may give, by position or, in braces, by name, in the words of the header
that the routine's name leads to: `sum(a, {axis, ...})` is called `sum(a, {.axis = 1})`. Where there are
several forms the longest stand there. [Array's methods](#arrays-methods) stand behind the routines, and behind
them [what NumPy's or CuPy's take and these do not](#parameters-that-are-not-here), with the reason.
"""
METHODS_HEAD = """## Array's methods

The methods that NumPy's or CuPy's `ndarray` has. Under "takes" stands what Array's method of that name takes,
written as above; where Array has none, what to write instead, or why there is none."""
PARAMETERS_HEAD = """## Parameters that are not here

NumPy {numpy} and CuPy {cupy} are the measure. "Of" names the routines and methods that do not take the
parameter. Under "NumPy's" stand parameters that NumPy's routine takes, whether CuPy's takes them or not; under
"CuPy's alone" those that CuPy's takes and NumPy's does not. "Why" says why they are not here, or what to write
instead. What is named in neither column may be given, by position or by name."""
PARAMETERS = ROOT / "tools" / "array_parameters.txt"
SIGNATURES = {"NumPy": "numpy_signatures.txt", "CuPy": "cupy_signatures.txt"}


def cases():
    """How many replayed calls each routine has."""
    counts = collections.Counter()
    for path in (ROOT / "tests" / "answers").glob("numpy_*.txt"):
        if path.name == "numpy_reprs.txt":
            continue
        for line in path.read_text().splitlines():
            counts[re.split(r"[ /]", line, maxsplit=1)[0]] += 1
    return counts


def cases_of(name, counts):
    """The calls of linalg.qr are written down as calls of qr."""
    package, _, routine = name.rpartition(".")
    return counts[routine] if package in ("", "linalg", "fft") else 0


def overloads_of(name, functions):
    """What the headers declare under a name of NumPy's: linalg's may be the main namespace's own."""
    kind, _, last = name.rpartition(".")
    if kind == "ndarray":
        return functions.get("Array." + last, [])
    if kind == "ufunc":
        return functions.get("BinaryUfunc." + last, [])
    return functions.get(name) or functions.get(name + "_") or functions.get(last) or []


def signature(name, functions, structs):
    """(takes, header) for the page; ("", "") for what is not declared."""
    overloads = overloads_of(name, functions)
    if not overloads:
        return "", ""
    shown = []
    named = [f for f in overloads if all(p.name for p in f.parameters)]
    for f in sorted(named or overloads, key=lambda f: -len(names_of_parameters(f, structs))):
        names = names_of_parameters(f, structs)
        if any(set(names) <= set(other) for other, _ in shown) and shown:
            continue
        parts = []
        for p in f.parameters:
            fields = names_of_parameters(f._replace(parameters=[p]), structs)
            parts.append(p.name if fields == [p.name] else "{" + ", ".join(fields) + "}")
        shown.append((names, ", ".join(parts)))
    last = name.rpartition(".")[2]
    takes = "<br>".join(f"`{last}({text})`" for _, text in shown[:3])
    return takes, overloads[0].header


def missing_parameters(functions, structs):
    """{(routine, parameter): whose}: what these routines do not take and NumPy's do, or CuPy's alone."""
    missing, numpys = {}, {}
    for library, file in SIGNATURES.items():
        for name, must, may in read_signatures(file):
            if library == "NumPy":
                numpys[name] = must + may
            given = [names_of_parameters(f, structs) for f in overloads_of(name, functions)]
            if not given:
                continue
            words = {word for words in given for word in words}
            lacks = [p for p in may if p not in words]
            if max(len(names) for names in given) < len(must):
                lacks.insert(0, must[-1])
            for parameter in lacks:
                missing.setdefault((name, parameter), "NumPy" if parameter in numpys.get(name, []) else library)
    return missing


class Reasons:
    """{"name.parameter" or "*.parameter" or "name": why it is not here}, of tools/array_parameters.txt."""

    def __init__(self):
        self.known, self.used = {}, set()
        for line in PARAMETERS.read_text().splitlines():
            if ": " in line and not line.startswith("#"):
                names, reason = line.split(": ", 1)
                self.known.update({name: reason for name in names.split(", ")})

    def of(self, *keys):
        """(key, reason) of the first key that has one."""
        for key in keys:
            if key in self.known:
                self.used.add(key)
                return key, self.known[key]
        return None, ""

    def unused(self):
        return sorted(set(self.known) - self.used)


def methods_section(functions, structs, reasons, faults):
    rows = []
    for name in sorted({name for file in SIGNATURES.values() for name, _, _ in read_signatures(file)
                        if name.startswith("ndarray.")}):
        takes, header = signature(name, functions, structs)
        method = name.removeprefix("ndarray.")
        if takes:
            rows.append(f"| [`{method}`](../{header}) | {takes} |")
        else:
            _, reason = reasons.of(name)
            rows.append(f"| `{method}` | – {reason} |")
            if not reason:
                faults.append(f"{name}: neither a method of Array nor a reason in {PARAMETERS.name}")
    return "\n".join([METHODS_HEAD, "", "| method | takes |", "| --- | --- |", *rows])


def parameters_section(functions, structs, reasons, faults):
    """The list of what is not here, with its reasons; each without one is a fault."""
    lacking = collections.defaultdict(lambda: {library: set() for library in SIGNATURES})
    for (name, parameter), library in missing_parameters(functions, structs).items():
        key, reason = reasons.of(f"{name}.{parameter}", name, f"*.{parameter}")
        if key is None:
            faults.append(f"{name}: {library}'s parameter {parameter} is neither here nor in {PARAMETERS.name}")
            continue
        of = "wherever it is not taken" if key.startswith("*") else f"`{name.replace('ndarray.', 'Array.')}`"
        lacking[of, reason][library].add(f"`{parameter}`")
    faults += [f"{PARAMETERS.name}: {key} is here, or neither NumPy nor CuPy has it" for key in reasons.unused()]
    rows = collections.defaultdict(list)  # what lacks the same for the same reason shares a row
    for (of, reason), whose in lacking.items():
        whose["CuPy"] -= whose["NumPy"]  # what several routines lack, of which NumPy's have it
        rows[reason, *(", ".join(sorted(names)) for names in whose.values())].append(of)
    lines = sorted(f"| {', '.join(sorted(ofs))} | {numpys} | {cupys} | {reason} |"
                   for (reason, numpys, cupys), ofs in rows.items())
    versions = {library.lower(): re.search(r" in \w+ ([\d.]+\w*):", (ROOT / "tools" / file).read_text())[1]
                for library, file in SIGNATURES.items()}
    return "\n".join([PARAMETERS_HEAD.format(**versions), "", "| of | NumPy's | CuPy's alone | why |",
                      "| --- | --- | --- | --- |", *lines])


def main():
    functions, structs = declarations()
    table = (ROOT / "tests" / "array" / "routines.def").read_text()
    rows = set(re.findall(r'^RENSA_(?:ROUTINE|COVERED)\("([^"]+)"', table, re.M))
    counts, faults, sections, summary = cases(), [], [], []
    for tier, subjects in by_tier().items():
        total = missing = 0
        for subject, names in subjects.items():
            lines = [f"## {tier}: {subject}", "", "| routine | takes | CPU | CUDA | cases |",
                     "| --- | --- | --- | --- | --- |"]
            for name, reason in names:
                total += 1
                if name in rows:
                    takes, header = signature(name, functions, structs)
                    lines.append(f"| [`{name}`](../{header}) | {takes} | ✓ | ✓ | {cases_of(name, counts) or '–'} |")
                    if not takes:
                        faults.append(f"{name}: the headers do not declare it, as tools/declarations.py reads them")
                    continue
                missing += 1
                lines.append(f"| `{name}` | – | – | – | {reason} |")
                if not reason or tier == "T1":
                    faults.append(f"{tier} {name}: neither a row nor a reason")
            sections.append("\n".join(lines))
        summary.append(f"- {tier}: {total - missing} of {total} names"
                       + (f", {missing} left out" if missing else ""))
        if missing > total / 20:
            faults.append(f"{tier}: {missing} of {total} are left out, more than 5 %")
    reasons = Reasons()
    sections.append(methods_section(functions, structs, reasons, faults))
    sections.append(parameters_section(functions, structs, reasons, faults))
    page = "\n\n".join([HEAD + "\n" + "\n".join(summary), *sections]) + "\n"
    if sys.argv[1:] == ["--check"]:
        if not PAGE.is_file() or PAGE.read_text() != page:
            faults.append("docs/array_api.md is old: run tools/make_array_page.py")
    else:
        PAGE.write_text(page)
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
