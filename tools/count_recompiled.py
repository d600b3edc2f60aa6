#!/usr/bin/env python3
"""Prints how many objects a new row of each table compiles again.

    count_recompiled.py BUILD_DIR [--most TABLE=N ...]

Counted are the objects of a Ninja build that read the table, the library's and the tests' apart.
With --most it fails where a table has more than N of them in all.
"""
import argparse
import collections
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tables():
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "rensa").rglob("*.def"))


def readers(build):
    """The objects that read each file of the tree, from what the compilers told Ninja."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                             check=True).stdout
    found, target = collections.defaultdict(set), None
    for line in listing.splitlines():
        if line and not line.startswith(" "):
            target = line.split(":")[0]
        elif line.strip():
            path = pathlib.Path(build, line.strip()).resolve()
            if path.is_relative_to(ROOT):
                found[path.relative_to(ROOT).as_posix()].add(target)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--most", nargs="*", default=[], metavar="TABLE=N")
    options = parser.parse_args()
    limits = dict(limit.split("=") for limit in options.most)
    found, failed = readers(options.build), False
    for table in tables():
        objects = found[table]
        of_library = sum(name.startswith("rensa/") for name in objects)
        most = limits.get(pathlib.Path(table).name)
        too_many = most is not None and len(objects) > int(most)
        failed |= too_many
        print(f"{table}: {len(objects)} objects, {of_library} of the library"
              + (f"; {most} are meant" if too_many else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
