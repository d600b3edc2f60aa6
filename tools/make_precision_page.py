#!/usr/bin/env python3
"""Writes the lists of docs/mixed_precision.md from autograd/autocast.def.

    python3 tools/make_precision_page.py           writes them
    python3 tools/make_precision_page.py --check   fails when they are not what it would write, or when a function
                                                   node of the sources has no row
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "rensa" / "autograd" / "autocast.def"
PAGE = ROOT / "docs" / "mixed_precision.md"
BEGIN, END = "<!-- autocast.def -->\n", "<!-- end of autocast.def -->\n"
KINDS = {"narrow": "the scope's dtype", "wide": "float32", "widest": "the widest dtype given", "as_given": "as given"}
# Nodes that only backward applies, which computes in what forward did.
OF_BACKWARD = re.compile(r"_grad$|^col2im$")


def rows():
    """[(subject, kind, names)] in the table's order; its comments are the subjects."""
    found, subject = [], ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("// "):
            subject = line[3:].rstrip(".:")
        row = re.fullmatch(r"RENSA_AUTOCAST\((\w+), (\w+)\)", line)
        if not row:
            continue
        if not found or found[-1][:2] != (subject, row[2]):
            found.append((subject, row[2], []))
        found[-1][2].append(row[1])
    return found


def lists():
    lines = ["| compute in | what they are | functions |", "| --- | --- | --- |"]
    for subject, kind, names in rows():
        lines.append(f"| {KINDS[kind]} | {subject} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines) + "\n"


def nodes():
    """{name: file} of the function nodes whose names stand in the sources."""
    found = {}
    for path in sorted((ROOT / "rensa").rglob("*.cc")):
        text = path.read_text()
        names = re.findall(r'FunctionNode\("(\w+)"\)|static constexpr const char\* name = "(\w+)"', text)
        found.update({a or b: path for a, b in names})
    for path in (ROOT / "rensa" / "operations" / "pointwise").glob("*.def"):
        names = re.findall(r"^RENSA_DIFFERENTIABLE\((\w+)", path.read_text(), re.M)
        found.update({name: path for name in names})
    return {name: path.relative_to(ROOT) for name, path in found.items() if not OF_BACKWARD.search(name)}


def main():
    table = {name for _, _, names in rows() for name in names}
    faults = [f"{path}: the function node {name} has no row in {TABLE.relative_to(ROOT)}"
              for name, path in nodes().items() if name not in table]
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    wanted = text[:begin] + lists() + text[end:]
    if "--check" not in sys.argv:
        PAGE.write_text(wanted)
    elif wanted != text:
        faults.append(f"{PAGE.relative_to(ROOT)} is old: run tools/make_precision_page.py")
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
