#!/usr/bin/env python3
"""Checks that what several compilers read is there once.

What a header of rensa/portable/ defines at namespace scope (conversions, division by constants, sums
of warps and blocks, the reduction of rows and columns, the plans of launches) is defined nowhere
else under rensa/, not even in the texts of kernels that are made at run time; and what those
definitions are made of (shuffles, high words of products, counters of blocks, the processors'
conversions of 16-bit floats) is used by them alone. Prints each breach as file:line.
"""
import pathlib
import re
import sys

FOLDER = "rensa/portable/"
TYPE = re.compile(r"(?:struct|class|enum class) (?:alignas\(.*?\) )?(\w+)(?: final)?(?: : [^;]*)? \{")
CONSTANT = re.compile(r"(?:inline |static )*constexpr [\w:<> ]+ (k\w+)(?:\[.*\])? =")
FUNCTION = re.compile(r"[\w:<>,&*\[\] ]*?[\w>&*] [&*]*(\w+)\(.*\{")
# The parts, and the files that may use them besides those of rensa/portable/.
PARTS = {
    r"__shfl_\w*sync\b": (),
    r"__umulhi\b": (),
    r"\batomicInc\b": (),
    r"\bcvt\.(rn\.)?f(16|32)\.f(16|32)\b": ("rensa/core/half.h",),
    r"1ull?\}? << shift|\} << shift": (),
    r"griddepcontrol|cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion": (),
}


def logical_lines(text):
    """(line number, line), template heads and broken parameter lists joined with what follows."""
    lines = text.splitlines()
    n = 0
    while n < len(lines):
        first, line = n + 1, lines[n]
        if line and not line[0].isspace() and line[0] not in "/#}":
            while n + 1 < len(lines) and not re.search(r"[{;]\s*(//.*)?$", line) and len(line) < 600:
                n += 1
                line += " " + lines[n].strip()
        yield first, line
        n += 1


def definitions(text):
    """(line number, name) of what is defined at namespace scope, as the tree is formatted; a
    constant's name with its namespace, as short names like kBlock have many meanings."""
    namespace = ""
    for number, line in logical_lines(text):
        opened = re.match(r"namespace ([\w:]+) \{", line)
        namespace = opened[1] if opened else namespace
        while line.startswith("template <"):  # its own brackets may hold others
            depth = 0
            for at, c in enumerate(line):
                depth += (c == "<") - (c == ">")
                if c == ">" and depth == 0:
                    break
            line = line[at + 1:].lstrip()
        if not line or line[0].isspace() or re.match(r"extern|using|typedef|static_assert|namespace|#|//", line):
            continue
        constant = CONSTANT.match(line)
        match = TYPE.match(line) or FUNCTION.match(line)
        if constant:
            yield number, f"{namespace}::{constant[1]}"
        elif match and match[1] != "operator":
            yield number, match[1]


def breaches(files):
    """(path, line number, what is wrong) of {path: text}."""
    owner = {}
    for path, text in files.items():
        if not path.startswith(FOLDER) or path.endswith(".cc"):
            continue
        for number, name in definitions(text):
            if path != owner.setdefault(name, path):
                yield path, number, f"{name} is defined in {owner[name]} too"
    for path, text in files.items():
        if path.startswith(FOLDER):
            continue
        for number, name in definitions(text):
            if name in owner:
                yield path, number, f"{name} is defined in {owner[name]} too: include it"
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r"\s*//", line):
                continue
            for part, others in PARTS.items():
                found = re.search(part, line)
                if found and path not in others:
                    yield path, number, f"{found[0]} belongs to {FOLDER}: call what is there"


def self_test():
    """The rules catch what they are for."""
    home = {FOLDER + "a.h": "namespace rensa::cuda {\n"
                            "template <class To, class From> RENSA_FN To convert(From x) {\n}\n"
                            "struct FastDiv {\n  int divide(int n);\n};\n"
                            "constexpr int kBlock = 256;\n"
                            "template <class R,\n          class A>\n"
                            "__device__ __forceinline__ A join_lanes(A value,\n"
                            "                                        int n = 32) {\n}\n"}
    caught = [
        "template <class To, class From> inline To convert(From x) {\n",
        "struct FastDiv {\n",
        "struct FastDiv : Divisor {\n",
        "namespace rensa::cuda {\nconstexpr int kBlock = 128;\n",
        "template <class A> __device__ A join_lanes(A value) {\n",
        '    out += "template <class A> A down(A a) { return __shfl_down_sync(~0u, a, 1); }";\n',
        "  unsigned high = __umulhi(n, magic);\n",
    ]
    fine = [
        "auto x = convert<float>(y);\n",
        "  int divide(int n) const {\n",
        "using cuda::kBlock;\n",
        "namespace rensa::host {\nconstexpr int kBlock = 64;\n",
        "void convert_elements(const ArrayView& in) {\n",
        "// __umulhi is a word of CUDA's\n",
        "return convert(x);\n",
    ]
    wrong = [c for c in caught if not list(breaches({**home, "rensa/b/b.cc": c}))]
    wrong += [f for f in fine if list(breaches({**home, "rensa/b/b.cc": f}))]
    for case in wrong:
        print(f"self test: judged wrongly: {case}")
    return not wrong


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    files = {p.relative_to(root).as_posix(): p.read_text() for p in sorted((root / "rensa").rglob("*"))
             if p.suffix in {".h", ".cc", ".cu", ".cuh", ".inc"}}
    sound = self_test()
    found = list(breaches(files))
    for path, number, what in found:
        print(f"{path}:{number}: {what}")
    names = sum(len(list(definitions(t))) for p, t in files.items() if p.startswith(FOLDER))
    print(f"one copy: {names} definitions in {FOLDER}, {len(found)} second ones")
    return 0 if sound and not found and names else 1


if __name__ == "__main__":
    sys.exit(main())
