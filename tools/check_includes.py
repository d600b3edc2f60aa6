#!/usr/bin/env python3
"""Checks who includes whom under rensa/.

A folder includes only from itself and from folders before it in ORDER; public headers include
nothing but the standard library and public headers of rensa/, so that a user's compile stays short
and an installed tree is complete. In the folder of a kind of operation the files cpu* are of one side
and cuda* of the other: only they include from their backend. What the headers for users include, by
whatever way, is no kind of operation. Prints each breach as file:line.
"""
import pathlib
import re
import sys

# A row's folders know nothing of one another.
ORDER = [
    ("core",),
    ("communication",),
    ("device",),
    ("portable",),
    ("backend/cpu", "backend/cuda", "backend/no_cuda"),
    ("operations",),
    ("functions/operations",),
    ("array",),
    ("kernel",),
    ("autograd",),
    ("functions",),
    ("links",),
    ("optimizers",),
    ("graph",),
    ("serializers",),
    ("data",),
    ("training",),
]
KINDS = ("operations", "functions/operations")  # folders of kinds of operations
LEVEL = {folder: level for level, row in enumerate(ORDER) for folder in row}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
# Headers that only .cc files may see (and rensa/fmt.h, which is for programs that have {fmt}).
HEAVY = re.compile(r"^(fmt|nlohmann|curl|cuda|cublas|cudnn|nccl|cupti|nvrtc|CLI|zlib|gtest|gmock)\b")


def folder_of(path):
    """'core' of 'core/dtype.h', 'backend/cpu' of 'backend/cpu/copy.cc', '' of 'rensa.h'."""
    parts = path.split("/")[:-1]
    two = parts[:1] == ["backend"] or parts[:2] == ["functions", "operations"]
    return "/".join(parts[:2 if two else 1])


def side_of(path):
    """'cpu' of 'operations/sort/cpu_kernels.h' and 'backend/cpu/copy.h', '' of what belongs to no side."""
    folder, _, name = path.rpartition("/")
    if folder.startswith("backend/"):
        return folder.split("/")[1]
    match = re.match("cpu|cuda", name) if folder_of(path) in KINDS else None
    return match[0] if match else ""


def breaches(path, text):
    """(line number, what is wrong) for each include of `path` (relative to rensa/) that may not be."""
    folder = folder_of(path)
    umbrella = folder == ""
    if not umbrella and folder not in LEVEL:
        yield 1, f"folder {folder} has no place in ORDER of {pathlib.Path(__file__).name}"
        return
    public = path.endswith(".h") and not side_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        if name.startswith("rensa/"):
            target = folder_of(name[len("rensa/"):])
            if quote != '"':
                yield number, f'{name} is our own: include it in quotes'
            elif target == "":
                if not umbrella:
                    yield number, f"{name} is for users: include what is needed of it"
            elif target not in LEVEL:
                yield number, f"{name} is in no known folder"
            elif not umbrella and target != folder and LEVEL[target] >= LEVEL[folder]:
                yield number, f"{folder} may not include from {target}"
            elif folder == "kernel" and target.startswith("backend/"):
                yield number, f"{name} is a backend's: what kernels made at run time share is in portable/"
            elif folder in KINDS and side_of(name[len("rensa/"):]) not in ("", side_of(path)):
                yield number, f"{name} is of the other side, or of one that {path} does not belong to"
            elif public and side_of(name[len("rensa/"):]):
                yield number, f"{name} is not installed: a public header may not include it"
        elif quote == '"':
            yield number, f"{name}: give the path from the root (rensa/...)"
        elif public and path != "fmt.h" and HEAVY.match(name):
            yield number, f"<{name}> in a public header: include it in the .cc file"


def kinds_for_users(texts):
    """(path, line number, what is wrong) for each kind of operation that a header right under rensa/ comes
    to include, of {path: text}."""
    ways = [path for path in texts if folder_of(path) == "" and path.endswith(".h")]
    seen = set(ways)
    while ways:
        path = ways.pop()
        for number, line in enumerate(texts.get(path, "").splitlines(), 1):
            name = match[2][len("rensa/"):] if (match := INCLUDE.match(line)) else ""
            if name and folder_of(name) in KINDS:
                yield path, number, f"users include {path}, and with it a kind of operation"
            elif name in texts and name not in seen:
                seen.add(name)
                ways.append(name)


def self_test():
    """The rules catch what they are for."""
    shown = {"rensa.h": '#include "rensa/array/a.h"', "array/a.h": '#include "rensa/operations/b/b.h"'}
    caught = [
        ("core/a.h", '#include "rensa/device/stream.h"'),
        ("backend/cpu/a.cc", '#include "rensa/backend/cuda/b.h"'),
        ("array/a.h", '#include "rensa/backend/cpu/b.h"'),
        ("array/a.h", "#include <fmt/format.h>"),
        ("array/a.cc", '#include "rensa/rensa.h"'),
        ("array/a.cc", '#include "array.h"'),
        ("nowhere/a.cc", ""),
        ("operations/a/a.cc", '#include "rensa/backend/cpu/b.h"'),
        ("operations/a/cpu.cc", '#include "rensa/backend/cuda/b.h"'),
        ("operations/a/cuda.cu", '#include "rensa/operations/b/cpu_c.h"'),
        ("operations/a/a.h", '#include "rensa/operations/a/cuda_plan.h"'),
        ("array/a.h", '#include "rensa/operations/a/cuda_plan.h"'),
        ("backend/cpu/a.cc", '#include "rensa/operations/a/a.h"'),
        ("operations/a/cpu.cc", '#include "rensa/functions/operations/b/b.h"'),
        ("functions/operations/a/cuda.cu", '#include "rensa/operations/b/cpu_c.h"'),
        ("graph/a.cc", '#include "rensa/training/trainer.h"'),
        ("portable/a.h", '#include "rensa/backend/cuda/b.h"'),
        ("kernel/a.cc", '#include "rensa/backend/cuda/b.h"'),
    ]
    fine = [
        ("array/a.cc", '#include "rensa/backend/cpu/b.h"\n#include <fmt/format.h>'),
        ("backend/cuda/a.h", "#include <cuda_runtime.h>"),
        ("operations/a/cuda_plan.h", "#include <cuda_runtime.h>"),
        ("operations/a/cpu.cc", '#include "rensa/backend/cpu/b.h"\n#include "rensa/operations/c/c.h"'),
        ("training/a.h", '#include <vector>\n#include "rensa/core/dtype.h"'),
        ("rensa.h", '#include "rensa/training/trainer.h"'),
        ("training/extensions/a.cc", '#include "rensa/graph/capture.h"'),
    ]
    wrong = [c for c in caught if not list(breaches(*c))] + [f for f in fine if list(breaches(*f))]
    wrong += [shown] * (len(list(kinds_for_users(shown))) != 1)
    wrong += [{}] * any(kinds_for_users({**shown, "rensa.h": '#include "rensa/array/c.h"'}))
    for case in wrong:
        print(f"self test: judged wrongly: {case}")
    return not wrong


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "rensa"
    files = [p for p in sorted(root.rglob("*")) if p.suffix in {".h", ".cc", ".cu", ".cuh", ".def"}]
    failed = 0 if self_test() else 1
    for path in files:
        found = list(breaches(path.relative_to(root).as_posix(), path.read_text()))
        failed += bool(found)
        for number, what in found:
            print(f"{path.relative_to(root.parent)}:{number}: {what}")
    texts = {p.relative_to(root).as_posix(): p.read_text() for p in files}
    for path, number, what in kinds_for_users(texts):
        failed += 1
        print(f"rensa/{path}:{number}: {what}")
    print(f"include direction: {len(files)} files checked, {failed} at fault")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
