#!/usr/bin/env python3
"""Checks README.md and docs/: what they show is in the tree.

    python3 tools/check_docs.py
    python3 tools/check_docs.py --write-diffs FOLDER   only writes the diffs there, as 1.diff, ...

A C++ block stands after a comment that names the program it comes from,
    <!-- tests/consumer/network.cc -->
In README.md it is that whole file; in docs/ every line of it must be in that file, in this order, spaces
at either end aside. The file is built and run by the tests. A diff must apply to the tree. It may stand after a comment that says how
long it may be, files aside that are named:
    <!-- at most 15 added lines outside tests/array/op_table_test.cc -->
Relative links must lead somewhere. What stands in code font as `F::x`, `L::X`, `optimizers::X`, `xp::x`
and the like is declared in the public headers, but in docs/design.md, whose examples add names.
docs/environment.md lists the RENSA_* variables that the sources read or set, each once, and no other;
rensa/ reads them by core/environment.h. Prints each fault as file:line.
"""
import functools
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

from declarations import declarations

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = re.compile(r"^<!-- (\S+) -->$")
LENGTH = re.compile(r"^<!-- at most (\d+) added lines outside (.+) -->$")
# How a variable of the environment is named where it is read or set, in C++, a shell and Python.
ENVIRONMENT = [
    re.compile(r'(?:environment::\w+|getenv|EnvironmentScope \w+)\(\s*"(RENSA_[A-Z_]+)"'),
    re.compile(r"\$\{?(RENSA_[A-Z_]+)\b"),
    re.compile(r"\benviron\b[^#]*[\"'](RENSA_[A-Z_]+)[\"']"),
]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"`([^`]+)`")
# Names of Rensa's namespaces, and what the abbreviated ones stand for in tools/declarations.py.
NAME = re.compile(r"(?<![\w:])(F|L|xp|computational_graph|cuda|datasets|dlpack|extensions|function_hooks|functions|gradient_check|initializers|iterators|"
                  r"link_hooks|links|optimizer_hooks|optimizers|serializers|training|transforms)::(\w+(?:::\w+)*)")
SPACES = {"F": "functions", "L": "links", "xp": ""}


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def parts(text):
    """The blocks and the other lines of Markdown `text`.

    Gives (line number, kind, the line before, lines); kind is "text" for a line outside blocks, of
    a block what follows its opening ```.
    """
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line.startswith("```"):
            yield number, "text", "", [line]
            continue
        start = number
        while number < len(lines) and lines[number] != "```":
            number += 1
        yield start, line[3:].strip(), lines[start - 2] if start > 1 else "", lines[start:number]
        number += 1


def missing_lines(block, source):
    """The lines of `block` that `source` does not hold in the block's order."""
    lines = iter(line.strip() for line in source.splitlines())
    return [line for line in map(str.strip, block) if line and line not in lines]


def program_faults(before, block, whole):
    source = SOURCE.match(before)
    if not source:
        yield "a C++ block after no comment that names its program"
    elif not (ROOT / source[1]).is_file():
        yield f"{source[1]} is not there"
    elif whole and "\n".join(block) + "\n" != (ROOT / source[1]).read_text():
        yield f"it is not the whole of {source[1]}"
    elif missing := missing_lines(block, (ROOT / source[1]).read_text()):
        yield f"not in {source[1]}: {missing[0]}"


def git_apply(option, diff):
    """Runs `git apply` on the tree. It needs no repository, and must not find one around the tree:
    in a subfolder of that it would leave the diff's files out."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(ROOT.parent)}
    return subprocess.run(["git", "apply", option, "--whitespace=nowarn", "-"], cwd=ROOT,
                          env=environment, input=diff, capture_output=True, text=True)


def diff_faults(before, block):
    diff = "\n".join(block) + "\n"
    check = git_apply("--check", diff)
    if check.returncode != 0:
        yield "the diff does not apply: " + check.stderr.strip().replace("\n", "; ")
        return
    limit = LENGTH.match(before)
    if not limit:
        return
    added = {}
    for line in git_apply("--numstat", diff).stdout.splitlines():
        count, _, path = line.split("\t")
        added[path] = int(count)
    for path in limit[2].split():
        if path not in added:
            yield f"the diff has no {path}"
        added.pop(path, None)
    if sum(added.values()) > int(limit[1]):
        yield (f"the diff adds {sum(added.values())} lines outside {limit[2]}, "
               f"at most {limit[1]} are meant")


def link_faults(page, line):
    for target in LINK.findall(CODE.sub("", line)):
        if "://" not in target and not (page.parent / target).exists():
            yield f"{target} is not there"


@functools.lru_cache(maxsize=None)
def classes():
    """The names of the classes of the headers, also of those that have no constructors or that macros make,
    what one namespace takes from another, and the values of plain enums."""
    headers = "\n".join(path.read_text() for path in sorted((ROOT / "rensa").rglob("*.h")))
    pairs = re.findall(r"\b(?:class|struct|using|namespace) (?:\[\[\w+\]\] )?(?:\w+::)*(\w+)|^[A-Z_]+\((\w+),", headers, re.M)
    enums = re.findall(r"\benum \w+(?: : [\w: ]+)? \{([^}]*)\}", headers)
    values = {name for body in enums for name in re.findall(r"\b([a-z]\w+)(?=\s*[=,]|\s*$)", body)}
    return {name for pair in pairs for name in pair} | values


@functools.lru_cache(maxsize=None)
def declared():
    """What tools/declarations.py finds, and the namespaces and classes that it is in."""
    names = declarations("rensa/rensa.h")[0]
    return {prefix for name in names for prefix in itertools.accumulate(name.split("."), "{}.{}".format)}


def name_faults(line):
    """The names in code font that no header declares."""
    for code in CODE.findall(line):
        for space, name in NAME.findall(code):
            full = ".".join([*filter(None, [SPACES.get(space, space)]), *name.split("::")])
            if full not in declared() and name.rpartition("::")[2] not in classes():
                yield f"{space}::{name} is declared in no header"


def environment_variables():
    """(file:line, name, whether it is read past the strict reader) of each use in the sources."""
    suffixes = {".cc", ".h", ".cu", ".cuh", ".sh", ".py", ""}
    for folder in ("rensa", "tests", "examples", "benchmarks", "fuzz", "tools", "dev"):
        top = ROOT / folder
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if not path.is_file() or path.suffix not in suffixes:
                continue
            name = path.relative_to(ROOT)
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                for pattern in ENVIRONMENT:
                    for use in pattern.finditer(line):
                        yield f"{name}:{number}", use[1], folder == "rensa" and "getenv" in use[0]


def environment_faults():
    page = ROOT / "docs" / "environment.md"
    rows = [row[1] for row in re.finditer(r"^\| `(RENSA_[A-Z_]+)` \|", page.read_text(), re.M)]
    used = set()
    for where, name, unchecked in environment_variables():
        if name not in rows and name not in used:
            yield f"{where}: {name} is not in docs/environment.md"
        if unchecked:
            yield f"{where}: {name} is read by getenv; core/environment.h reads it strictly"
        used.add(name)
    for name in rows:
        if name not in used or rows.count(name) > 1:
            yield f"docs/environment.md:1: {name} is used nowhere, or listed twice"


def write_diffs(folder):
    diffs = [block for page in pages() for _, kind, _, block in parts(page.read_text())
             if kind == "diff"]
    for i, block in enumerate(diffs, 1):
        (folder / f"{i}.diff").write_text("\n".join(block) + "\n")


def main():
    has_git = shutil.which("git") is not None
    faults = diffs = 0
    for page in pages():
        for number, kind, before, block in parts(page.read_text()):
            found = []
            if kind == "text":
                found = [*link_faults(page, block[0])]
                found += name_faults(block[0]) if page.name != "design.md" else []
            elif kind == "cpp":
                found = program_faults(before, block, page.name == "README.md")
            elif kind == "diff":
                diffs += 1
                found = diff_faults(before, block) if has_git else []
            for what in found:
                faults += 1
                print(f"{page.relative_to(ROOT)}:{number}: {what}")
    for what in environment_faults():
        faults += 1
        print(what)
    if diffs and not has_git:
        print(f"docs: {diffs} diffs not checked: there is no git to apply them with")
    print(f"docs: {len(pages())} pages checked, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--write-diffs":
        write_diffs(pathlib.Path(sys.argv[2]))
    elif len(sys.argv) > 1:
        sys.exit(__doc__)
    else:
        sys.exit(main())
