#!/usr/bin/env python3
"""Prints how many objects a new row of each table compiles again.

    count_recompiled.py [--most N] BUILD_DIR...

Counted are the objects of Ninja builds that read the table: the library's and the tests', and apart from
them those of examples, benchmarks and the package for Python, which are users of the whole library. What
is counted in one build is not counted again in another one, so that one with CUDA and one without may be
given together. With --most it fails where a table has more than N objects of the library and the tests.
"""
import argparse
import collections
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
USERS = ("examples/", "benchmarks/", "python/")


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


def built(build):
    """What the build makes today: Ninja also remembers objects that are no longer."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], capture_output=True,
                             text=True, check=True).stdout
    return {line.rsplit(":", 1)[0] for line in listing.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="+")
    parser.add_argument("--most", type=int)
    options = parser.parse_args()
    found = collections.defaultdict(set)
    for build in options.build:
        today = built(build)
        for path, objects in readers(build).items():
            found[path] |= objects & today
    failed = False
    for table in tables():
        users = {name for name in found[table] if name.startswith(USERS)}
        objects = found[table] - users
        if not objects:
            print(f"{table}: nothing reads it: is this build complete?")
            failed = True
            continue
        too_many = options.most is not None and len(objects) > options.most
        failed |= too_many
        of_library = sum(name.startswith("rensa/") for name in objects)
        print(f"{table}: {len(objects)} objects, {of_library} of the library"
              + (f" (and {len(users)} of users)" if users else "")
              + (f"; {options.most} are meant" if too_many else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
