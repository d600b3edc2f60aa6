#!/usr/bin/env python3
"""Checks that files stand where docs/design.md ("Where files are") says, and that comments name files
which are there.

- A header has a name of its own under rensa/. The exceptions follow from other rules: headers right
  under rensa/ are named after the libraries; in a folder of backend/, and among the files cpu* and cuda*
  of a kind of operation, names are those of a side; a kind's header may be named as the one with its
  functions.
- What x.h declares stands in x.cc, or, a part each, in x_<part>.cc beside it; a side of device/x.h in
  backend/<side>/x*.cc.
- tests/ mirrors rensa/; what others have answered stands in tests/answers, away from tests.
- "path/file.h" in a comment, in docs/ or in README.md is a file of the tree, from its root, from rensa/
  or from the folder above; "file.h" is the name of one.
- A banner is one line: "// --- words ---".

    tools/check_places.py
    tools/check_places.py --mend-banners    writes those of other forms as one line

Prints each fault as file:line.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".h", ".cc", ".cu", ".cuh", ".def", ".inc"}
HASH = {".py", ".sh", ".cmake", ".txt", ""}
FILE = re.compile(r"(?<![\w./<*$}:\-])((?:[A-Za-z0-9_.\-]+/)*[A-Za-z0-9_\-]+\.(?:h|cc|cu|cuh|def|inc|py|sh|cmake))\b(?![(\w*/])")
# Names that stand for any file, and files of others.
EXAMPLE = re.compile(r"(^|/)([a-z]|x_\w+|[A-Z]+|file|device/x)\.\w+$")
OTHERS = re.compile(r"^(cuda\w*|cub|lapack\w*|cublas\w*|cusolver\w*|cufft\w*|cupti|nccl|nvrtc|cudnn\w*|numpy|cupy|chainer|glibc|"
                    r"libm|sys|fmt|std\w*|arrayprint|dlpack|ml_dtypes|math|complex|cmath)\b")
BANNER = re.compile(r"^\s*(?://|#) ?-{2,}")


def folders_of_kinds(path):
    return "operations" in path.parts


def sources():
    return [p for p in sorted((ROOT / "rensa").rglob("*")) if p.suffix in {".h", ".cuh", ".cc", ".cu"}]


def name_faults():
    by_name = collections.defaultdict(list)
    for path in sources():
        inner = path.relative_to(ROOT / "rensa")
        side = re.match("cpu|cuda", inner.name) if folders_of_kinds(inner) else inner.parts[0] == "backend"
        kind = folders_of_kinds(inner) and inner.stem == inner.parts[-2]
        if path.suffix in {".h", ".cuh"} and len(inner.parts) > 1 and not side and not kind:
            by_name[inner.name].append(inner)
    for paths in by_name.values():
        for path in paths[1:]:
            yield f"rensa/{path}:1: rensa/{paths[0]} has the same name"


def header_faults():
    for path in sources():
        inner = path.relative_to(ROOT / "rensa")
        if path.suffix not in {".cc", ".cu"} or folders_of_kinds(inner):
            continue
        folders = [path.parent] + [ROOT / "rensa" / "device"] * (inner.parts[0] == "backend")
        parts = path.stem.split("_")
        names = ["_".join(parts[:i]) for i in range(len(parts), 0, -1)]
        if not any((folder / (name + suffix)).is_file()
                   for folder in folders for name in names for suffix in (".h", ".cuh")):
            yield f"rensa/{inner}:1: there is no header {path.stem}.h, nor one that begins its name"


def test_faults():
    for path in sorted((ROOT / "tests").rglob("*_test.cc")):
        inner = path.parent.relative_to(ROOT / "tests")
        if not (ROOT / "rensa" / inner).is_dir():
            yield f"tests/{inner}/{path.name}:1: there is no rensa/{inner}"
    for path in sorted((ROOT / "tests").iterdir()):
        if path.is_dir() and (ROOT / "rensa" / path.name).is_dir():
            for file in path.rglob("*"):
                if file.suffix in {".txt", ".npz", ".npy", ".py"} and file.name != "CMakeLists.txt":
                    yield f"{file.relative_to(ROOT)}:1: what tests compare with stands in tests/answers"


def tracked():
    """The tree's text files; all but builds where it is no repository."""
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    names = listing.stdout.split() if listing.returncode == 0 else [
        p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file() and "build" not in p.parts]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def comments(path, text):
    """(line number, text) of the comments of a source; of a page, of all lines outside diffs."""
    inside = None
    for number, line in enumerate(text.splitlines(), 1):
        if path.suffix == ".md":
            if line.startswith("```"):
                inside = None if inside else "block"
            elif not inside:
                yield number, line
        elif path.suffix in CODE:
            if "//" in line:
                yield number, line[line.index("//"):]
        elif path.suffix in HASH:
            if line.count('"""') == 1:
                inside = None if inside else "text"
            if inside or '"""' in line:
                yield number, line
            elif match := re.search(r"(^|\s)#(?!include).*", line):
                yield number, match[0]


def comment_faults():
    files = tracked()
    names = {path.relative_to(ROOT).as_posix() for path in files}
    last = {name.rsplit("/", 1)[-1] for name in names}
    for path in files:
        inner = path.relative_to(ROOT)
        if path.suffix not in CODE | HASH | {".md"} or inner.parts[:2] == ("tests", "answers") and path.suffix == ".txt":
            continue
        text = path.read_text(errors="replace")
        if "\0" in text:
            continue
        folder = inner.parent.as_posix()
        for number, line in comments(path, text):
            for word in FILE.findall(re.sub(r"\]\([^)]*\)", "", line)):
                places = [word, f"rensa/{word}", f"tests/{word}", f"{folder}/{word}", f"{folder.rpartition('/')[0]}/{word}"]
                found = word in last if "/" not in word else any(place in names for place in places)
                if not found and not EXAMPLE.search(word) and not OTHERS.match(word):
                    yield f"{inner}:{number}: there is no {word}"
            if path.suffix != ".md" and BANNER.match(line) and not re.search(r"--- .*[^-] ---$", line):
                yield f"{inner}:{number}: a banner is one line: // --- words ---"


def mend_banners():
    for path in tracked():
        if path.suffix in CODE | {".py", ".cmake", ""} and "\0" not in (text := path.read_text(errors="replace")):
            mended = re.sub(r"^( *)(//|#) --- (.*?[^-\s]) *-*\n\1\2 -{10,}$", r"\1\2 --- \3 ---", text, flags=re.M)
            mended = re.sub(r"^( *)(//|#) --- (.*?[^-\s]) *-*$", r"\1\2 --- \3 ---", mended, flags=re.M)
            if mended != text:
                path.write_text(mended)
                print(path.relative_to(ROOT))


def main():
    if sys.argv[1:] == ["--mend-banners"]:
        return mend_banners()
    faults = [*name_faults(), *header_faults(), *test_faults(), *comment_faults()]
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"places: {len(sources())} sources checked, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
