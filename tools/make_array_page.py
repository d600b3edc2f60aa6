#!/usr/bin/env python3
"""Writes docs/array_api.md: every array routine, what it takes, and what shows that it works.

    python3 tools/make_array_page.py           writes the page
    python3 tools/make_array_page.py --check   fails when the page is not what it would write, when a
                                               routine is neither there nor left out with a reason, or
                                               when it lacks a parameter of NumPy's without a reason

What routines take is read from the public headers (tools/declarations.py), what NumPy's take from
tools/numpy_signatures.txt (tools/record_numpy_signatures.py), the reasons from tools/array_parameters.txt.

A routine is there when tests/array/routines.def has a row of its name: tests/array/coverage_test.cc
runs that row on the CPU and on a GPU. The number of cases is that of the calls with NumPy's answers in
tests/data.
"""
import collections
import re
import sys

from declarations import ROOT, declarations, names_of_parameters

PAGE = ROOT / "docs" / "array_api.md"
HEAD = """# The array routines

Written by `tools/make_array_page.py`; do not edit. A tick under CPU and CUDA: the routine is a row of
`tests/array/routines.def`, which `tests/array/coverage_test.cc` runs on each device. Cases: calls that
the tests replay against NumPy's answers on every device, in several memory layouts (`tests/data`;
dtypes, shapes, axes and special values vary); where there are none, tests written by hand look at the
routine, or at the one that it is another name of. [differences.md](differences.md) says where the answers
differ from NumPy's on purpose.

Under "takes" stands what a caller may give, by position or, in braces, by name, in the words of the header
that the routine's name leads to: `sum(a, {axis, ...})` is called `sum(a, {.axis = 1})`. Where there are
several forms the longest stand there. Array's methods take the same. [Parameters that are not
here](#parameters-that-are-not-here) lists what NumPy's routines take and these do not, and why.
"""
PARAMETERS = ROOT / "tools" / "array_parameters.txt"
SIGNATURES = ROOT / "tools" / "numpy_signatures.txt"


def wanted():
    """{tier: {subject: [(name, reason for its absence or "")]}}"""
    tiers = collections.defaultdict(dict)
    for line in (ROOT / "tools" / "array_names.txt").read_text().splitlines():
        if line.startswith("["):
            tier, subject = line.strip("[]").split(" ", 1)
            names = tiers[tier][subject] = []
        elif ": " in line and not line.startswith("#"):
            names.append(tuple(line.split(": ", 1)))
        elif not line.startswith("#"):
            names += [(name, "") for name in line.split()]
    return tiers


def cases():
    """How many replayed calls each routine has."""
    counts = collections.Counter()
    for path in (ROOT / "tests" / "data").glob("numpy_*.txt"):
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
    last = name.rpartition(".")[2]
    return functions.get(name) or functions.get(name + "_") or functions.get(last) or []


def signature(name, functions, structs):
    """(takes, header) for the page; ("", "") for what is no function."""
    overloads = overloads_of(name, functions)
    if not overloads:
        return "", ""
    shown = []
    for f in sorted(overloads, key=lambda f: -len(names_of_parameters(f, structs))):
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


def reasons():
    """{"name.parameter" or "*.parameter" or "name": why it is not here}."""
    found = {}
    for line in PARAMETERS.read_text().splitlines():
        if ": " in line and not line.startswith("#"):
            names, reason = line.split(": ", 1)
            for name in names.split(", "):
                found[name] = reason
    return found


def missing_parameters(functions, structs):
    """[(routine, parameter)] of NumPy's that these routines do not take."""
    missing = []
    for line in SIGNATURES.read_text().splitlines():
        match = re.match(r"([\w.]+)\((.*)\)$", line)
        if not match:
            continue
        must, _, may = match[2].partition("|")
        must = [p for p in must.split(",") if p.strip()]
        given = [names_of_parameters(f, structs) for f in overloads_of(match[1], functions)]
        if not given:
            continue
        if max(len(names) for names in given) < len(must):
            missing.append((match[1], must[-1].strip()))
        words = {name for names in given for name in names}
        missing += [(match[1], p.strip()) for p in may.split(",") if p.strip() and p.strip() not in words]
    return missing


def parameters_section(functions, structs, faults):
    """The list of what is not here, with its reasons; each without one is a fault."""
    known, used, by_reason = reasons(), set(), collections.defaultdict(list)
    for name, parameter in missing_parameters(functions, structs):
        for key in (f"{name}.{parameter}", name, f"*.{parameter}"):
            if key in known:
                used.add(key)
                if key.startswith("*"):
                    by_reason[f"`{parameter}`, wherever NumPy has it", known[key]] = []
                else:
                    by_reason[f"`{name}`", known[key]].append(f"`{parameter}`")
                break
        else:
            faults.append(f"{name}: NumPy's parameter {parameter} is neither here nor in {PARAMETERS.name}")
    faults += [f"{PARAMETERS.name}: {key} is here, or NumPy has it not" for key in sorted(set(known) - used)]
    rows = [f"| {name} | {', '.join(sorted(set(names)))} | {reason} |"
            for (name, reason), names in sorted(by_reason.items())]
    return "\n".join(["## Parameters that are not here", "", "| of | NumPy's | why |", "| --- | --- | --- |", *rows])


def main():
    functions, structs = declarations()
    table = (ROOT / "tests" / "array" / "routines.def").read_text()
    rows = set(re.findall(r'^RENSA_(?:ROUTINE|COVERED)\("([^"]+)"', table, re.M))
    counts, faults, sections, summary = cases(), [], [], []
    for tier, subjects in wanted().items():
        total = missing = 0
        for subject, names in subjects.items():
            lines = [f"## {tier}: {subject}", "", "| routine | takes | CPU | CUDA | cases |",
                     "| --- | --- | --- | --- | --- |"]
            for name, reason in names:
                total += 1
                if name in rows:
                    takes, header = signature(name, functions, structs)
                    linked = f"[`{name}`](../{header})" if header else f"`{name}`"
                    lines.append(f"| {linked} | {takes or '–'} | ✓ | ✓ | {cases_of(name, counts) or '–'} |")
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
    sections.append(parameters_section(functions, structs, faults))
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
