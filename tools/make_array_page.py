#!/usr/bin/env python3
"""Writes docs/array_api.md: every array routine of tiers T1 and T2, and what shows that it works.

    python3 tools/make_array_page.py           writes the page
    python3 tools/make_array_page.py --check   fails when the page is not what it would write, or when
                                               a routine is neither there nor left out with a reason

A routine is there when tests/array/routines.def has a row of its name: tests/array/coverage_test.cc
runs that row on the CPU and on a GPU. The number of cases is that of the calls with NumPy's answers in
tests/data.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "array_api.md"
HEAD = """# The array routines

Written by `tools/make_array_page.py`; do not edit. A tick under CPU and CUDA: the routine is a row of
`tests/array/routines.def`, which `tests/array/coverage_test.cc` runs on each device. Cases: calls that
the tests replay against NumPy's answers on every device, in several memory layouts (`tests/data`;
dtypes, shapes, axes and special values vary); where there are none, tests written by hand look at the
routine, or at the one that it is another name of. [differences.md](differences.md) says where the answers
differ from NumPy's on purpose.
"""


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


def main():
    table = (ROOT / "tests" / "array" / "routines.def").read_text()
    rows = set(re.findall(r'^RENSA_(?:ROUTINE|COVERED)\("([^"]+)"', table, re.M))
    counts, faults, sections, summary = cases(), [], [], []
    for tier, subjects in wanted().items():
        total = missing = 0
        for subject, names in subjects.items():
            lines = [f"## {tier}: {subject}", "", "| routine | CPU | CUDA | cases |",
                     "| --- | --- | --- | --- |"]
            for name, reason in names:
                total += 1
                if name in rows:
                    lines.append(f"| `{name}` | ✓ | ✓ | {cases_of(name, counts) or '–'} |")
                    continue
                missing += 1
                lines.append(f"| `{name}` | – | – | {reason} |")
                if not reason or tier == "T1":
                    faults.append(f"{tier} {name}: neither a row nor a reason")
            sections.append("\n".join(lines))
        summary.append(f"- {tier}: {total - missing} of {total} names"
                       + (f", {missing} left out" if missing else ""))
        if missing > total / 20:
            faults.append(f"{tier}: {missing} of {total} are left out, more than 5 %")
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
