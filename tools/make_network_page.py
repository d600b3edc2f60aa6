#!/usr/bin/env python3
"""Writes docs/networks_api.md: functions, links, optimizers, hooks and initializers by their names, what each
takes, and what shows that it works.

    python3 tools/make_network_page.py           writes the page
    python3 tools/make_network_page.py --check   fails when the page is not what it would write, or when a name
                                                 of tools/network_names.txt is neither there nor has a reason

What there is and what it takes is read from the public headers (tools/declarations.py), what is recorded from
tests/answers.
"""
import collections
import re
import struct
import sys
import zipfile

from array_names import by_tier
from declarations import ROOT, declarations
from make_array_page import signature

PAGE = ROOT / "docs" / "networks_api.md"
NAMES = "network_names.txt"
HEAD = """# Functions, links, optimizers, hooks and initializers

Written by `tools/make_network_page.py`; do not edit. The names are Chainer's, and those of today that Chainer
lacks. Under "takes" stands what a caller may give, in the words of the header that the name leads to and which
documents it: by position or, in braces, by name. What stands without that is made as the class that it derives from.

Cases are calls with the answers of Chainer 7.8.1, or of PyTorch where Chainer has none (`tests/answers/functions`,
`links`, `optimizers.npz`; scripts beside them record them). Those of functions are replayed on each device that
there is, in every floating dtype, contiguous and transposed, eager and captured; ∂ says that their gradients are
among the answers, ∂² that the gradients of these are. Those of links are their values, their gradients and the
names of their parameters, those of an optimizer or a hook 50 updates. Where there are none, tests written by hand
look at it."""


SHORT_NAMES = {"attention": "scaled_dot_product_attention"}  # of cases


def layout_of(path):
    """The names in a file of recorded answers."""
    with zipfile.ZipFile(path) as archive:
        if "layout.npy" not in archive.namelist():
            return [name.removesuffix(".npy") for name in archive.namelist()]
        data = archive.read("layout.npy")
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return [line.split("\t")[0] for line in data[begin:].decode().splitlines()]


def recorded():
    """{name: (cases, ∂, ∂²)}"""
    cases, keys = collections.defaultdict(set), collections.defaultdict(set)
    answers = ROOT / "tests" / "answers"
    for path in (answers / "functions").glob("*.npz"):
        for line in layout_of(path):
            case, key = line.rsplit("/", 1)
            name = re.split(r"[ |]", case)[0]
            name = SHORT_NAMES.get(name, name)
            cases[name].add(case)
            keys[name].add(key[0])
    for path in [*(answers / "links").glob("*.npz"), answers / "optimizers.npz"]:
        for line in layout_of(path):
            case, _, key = line.partition("|")
            name = re.split(r"[ (]", case)[0]
            cases[name].add(case)
            keys[name].add(key[0])
    return {name: (len(found), "✓" if "g" in keys[name] else "–", "✓" if "h" in keys[name] else "–")
            for name, found in cases.items()}


def header_of(folder, name):
    """The header of rensa/FOLDER that declares a class or another name of one."""
    pattern = re.compile(rf"\b(class|struct|using) {name}\b(?!;)|^[A-Z_]+\({name},", re.M)
    for path in sorted((ROOT / "rensa" / folder).rglob("*.h")):
        if pattern.search(path.read_text()):
            return str(path.relative_to(ROOT))
    return None


def signature_of(space, name, functions, structs):
    """(takes, header); constructors that are inherited by `using` are those of the class they stand in."""
    overloads = functions.get(f"{space}.{name}")
    if not overloads:
        return "", ""
    inherited = f"{space}.{overloads[0].parameters[0].name}" if len(overloads[0].parameters) == 1 else ""
    if inherited not in functions:
        return signature(f"{space}.{name}", functions, structs)
    takes, _ = signature(inherited, functions, structs)
    return takes.replace(inherited.rpartition(".")[2] + "(", name + "("), overloads[0].header


FOLDERS = {"links": "links", "link_hooks": "links", "optimizers": "optimizers", "optimizer_hooks": "optimizers",
           "initializers": "links", "function_hooks": "autograd"}


def row_of(space, name, functions, structs, answers):
    """The line for a name, or none where it is not declared."""
    takes, header = signature_of(space, name, functions, structs)
    if not takes:
        header = header_of(FOLDERS[space], name) if space in FOLDERS else None
    if not header:
        return None
    cases, first, second = answers.get(name, ("–", "–", "–"))
    derivatives = f" {first} | {second} |" if space == "functions" else ""
    return f"| [`{name}`](../{header}) | {takes} | {cases} |{derivatives}"


def main():
    functions, structs = declarations("rensa/rensa.h")
    answers, faults, sections, summary = recorded(), [], [], collections.Counter()
    there = collections.Counter()
    for tier, subjects in by_tier(NAMES).items():
        for subject, names in subjects.items():
            space = subject.split(":")[0]
            more = " ∂ | ∂² |" if space == "functions" else ""
            lines = [f"## {tier} {subject}", "", f"| name | takes | cases |{more}",
                     "| --- | --- | --- |" + " --- | --- |" * bool(more)]
            for name, reason in names:
                row = row_of(space, name, functions, structs, answers)
                summary[tier, space] += 1
                there[tier, space] += row is not None
                if row is None and not reason:
                    faults.append(f"{tier} {name}: neither declared nor with a reason in tools/{NAMES}")
                if row is not None and reason:
                    faults.append(f"{tier} {name}: it is there and has a reason why it is not in tools/{NAMES}")
                lines.append(row or f"| `{name}` | {reason} | – |" + " – | – |" * bool(more))
            sections.append("\n".join(lines))
    counts = [f"- {tier} {space.replace('_', ' ')}: {there[tier, space]} of {total} names"
              for (tier, space), total in summary.items()]
    page = "\n\n".join([HEAD, "\n".join(counts), *sections]) + "\n"
    if sys.argv[1:] == ["--check"]:
        if not PAGE.is_file() or PAGE.read_text() != page:
            faults.append("docs/networks_api.md is old: run tools/make_network_page.py")
    else:
        PAGE.write_text(page)
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
