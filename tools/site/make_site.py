#!/usr/bin/env python3
"""Writes the project's site: the pages README.md and docs/*.md, and a reference of every public name.

    tools/site/make_site.py [OUT]      writes it to OUT, build/site when left out
    tools/site/make_site.py --check    only looks for faults

Public is what rensa/rensa.h declares in namespace rensa, outside of the namespaces `detail` and `operations`,
and what is public of its classes. The headers are read by libclang, so that what macros declare is there;
comments.py says which comment belongs to a declaration, documented.py what else documents a name. Faults, told
as file:line, are a public name without documentation and a link that leads nowhere. Needs Debian's python3-clang,
python3-markdown and python3-pygments; exits with 77 where they are missing. What the site shows needs no network.
"""
import argparse
import html.parser
import importlib.util
import json
import pathlib
import posixpath
import shutil
import sys
import urllib.parse

if any(importlib.util.find_spec(module) is None for module in ("clang", "markdown", "pygments")):
    print("site: needs python's clang, markdown and pygments", file=sys.stderr)
    sys.exit(77)
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import comments
import public_names
import sources
from documented import Coverage
from layout import Layout
from linker import Linker, page_of
from pages import Pages
from reference import TITLES, Reference


def names_of(root, header, folder, top):
    """The public names of a header, and the faults: those that nothing documents."""
    names = public_names.Reader(root, folder, top).read(public_names.parse(root, header))
    left = Coverage(names, lambda path: comments.lines_of(root / path),
                    lambda path: comments.first_comment(root / path)).fill()
    places = sorted((n.declarations[0].path, n.declarations[0].line, f"{n.kind} {n.full}") for n in left)
    return names, [f"{path}:{line}: {name} has no comment" for path, line, name in places]


class _Anchors(html.parser.HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self):
        super().__init__()
        self.ids, self.links = set(), []

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key == "id":
                self.ids.add(value)
            elif key in ("href", "src"):
                self.links.append(value)


def dead_links(site):
    """The links between pages ({path: HTML}) that lead nowhere, each once."""
    found = {}
    for path, text in site.items():
        found[path] = _Anchors()
        if path.endswith(".html"):
            found[path].feed(text)
    dead = {}
    for path, page in found.items():
        for link in page.links:
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            if "://" in link or link.startswith("mailto:"):
                continue
            full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            if full not in found or anchor and full.endswith(".html") and anchor not in found[full].ids:
                dead.setdefault(full + (f"#{anchor}" if anchor else ""), path)
    return [f"site, {path}: {target} is not there" for target, path in dead.items()]


def make(root, header="rensa/rensa.h", folder="rensa", top="rensa"):
    """({path under the site: text}, pictures, number of names, faults)."""
    root = pathlib.Path(root)
    names, faults = names_of(root, header, folder, top)
    layout, linker = Layout(), Linker(names)
    pages, reference = Pages(root, linker, layout), Reference(root, names, linker, layout)
    layout.menu = [
        ("Pages", [(pages.title(path), pages.place(path)) for path in pages.paths]),
        ("Reference", [("all", "reference/index.html"),
                       *((TITLES.get(s, s), f"reference/{page_of(s)}") for s in reference.spaces())])]
    site = {name: (HERE / name).read_text() for name in ("style.css", "search.js")}
    site.update(pages.pages())
    site.update(reference.pages())
    linked = pages.sources | {d.path for name in names.values() for d in name.declarations}
    site.update(sources.pages(root, sorted(linked), layout))
    index = [list(entry) for part in (pages, reference) for entry in part.index()]
    site["search_index.js"] = "const SEARCH_INDEX = " + json.dumps(index, ensure_ascii=False) + ";\n"
    faults += pages.faults
    faults += dead_links({**site, **dict.fromkeys(pages.pictures, "")})
    return site, pages.pictures, len(names), faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", default="build/site")
    parser.add_argument("--check", action="store_true", help="only look for faults")
    arguments = parser.parse_args()
    root = HERE.parent.parent
    site, pictures, names, faults = make(root)
    if not arguments.check:
        out = root / arguments.out
        shutil.rmtree(out, ignore_errors=True)
        for path, text in site.items():
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_text(text)
        for path in pictures:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / path, out / path)
        print(f"site: {out / 'index.html'}")
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"site: {names} public names, {sum(p.endswith('.html') for p in site)} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
