"""The pages: README.md and docs/*.md as HTML, with their links checked."""
import html
import pathlib
import posixpath
import re

import markdown

# A link, or code, in which there is none.
LINK = re.compile(r"`[^`]+`(?!\])|(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```")
ITEM = re.compile(r"^(\s*)([-*]|\d+\.) ")


def slug(text, _separator="-"):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"<[^>]+>|[`*]", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def outside_fences(text):
    """(line number, line) of the lines outside blocks of code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def headings(text):
    """(anchor, title) of a page's headings; of equal ones the later have a number."""
    seen, found = {}, []
    for _, line in outside_fences(text):
        if match := re.match(r"#{1,6} (.*)", line):
            anchor = slug(match[1])
            count = seen[anchor] = seen.get(anchor, -1) + 1
            found.append((f"{anchor}-{count}" if count else anchor, re.sub(r"[`*]", "", match[1])))
    return found


class Pages:
    """The pages of a tree. `faults` are "file:line: what"; `sources` the paths that pages link to."""

    def __init__(self, root, linker, layout):
        self.root, self.linker, self.layout = pathlib.Path(root), linker, layout
        self.paths = ["README.md", *sorted(str(p.relative_to(root)) for p in (self.root / "docs").rglob("*.md"))]
        self.texts = {path: (self.root / path).read_text() for path in self.paths}
        self.anchors = {path: {anchor for anchor, _ in headings(text)} for path, text in self.texts.items()}
        self.faults, self.sources, self.pictures = [], set(), set()

    @staticmethod
    def place(path):
        """Where a page is in the site."""
        return "index.html" if path == "README.md" else path.removesuffix(".md") + ".html"

    def title(self, path):
        found = headings(self.texts[path])
        return found[0][1] if found else path

    def target(self, path, number, target):
        """Where a link of a page leads, from the site's top; None for one that is broken, which is noted."""
        file, _, anchor = target.partition("#")
        full = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
        if not (self.root / full).exists() or full.startswith(".."):
            self.faults.append(f"{path}:{number}: {file} is not there")
            return None
        if full in self.texts:
            if anchor and anchor not in self.anchors[full]:
                self.faults.append(f"{path}:{number}: {full} has no heading #{anchor}")
                return self.place(full)
            return self.place(full) + ("#" + anchor if anchor else "")
        if full.endswith((".png", ".svg", ".jpg")):
            self.pictures.add(full)
            return full
        if anchor:
            self.faults.append(f"{path}:{number}: #{anchor}: {full} is no page")
        self.sources.add(full)
        return f"source/{full}.html"

    def prepared(self, path):
        """A page's Markdown: links lead within the site, lists stand apart from what is before them."""
        top = "../" * path.count("/")
        lines = self.texts[path].splitlines()
        plain = dict(outside_fences(self.texts[path]))
        out = []
        for number, line in enumerate(lines, 1):
            if number in plain:
                def turned(match, number=number):
                    if match[3] is None or re.match(r"[a-z]+:", match[3]):
                        return match[0]
                    where = self.target(path, number, match[3])
                    if where and match[2].startswith("`") and where.startswith("source/"):
                        where = self.linker.declared_in(where[7:-5], match[2]) or where
                    return match[2] if where is None else f"{match[1]}[{match[2]}]({top}{where})"
                line = LINK.sub(turned, line)
                before = out[-1] if out else ""
                if ITEM.match(line) and before.strip() and not ITEM.match(before) and not before.startswith(" "):
                    out.append("")
            out.append(line)
        return "\n".join(out)

    def pages(self):
        """(path under the site, HTML) of each page."""
        for path in self.paths:
            converter = markdown.Markdown(
                extensions=["tables", "fenced_code", "codehilite", "toc", "sane_lists"], tab_length=2,
                extension_configs={"toc": {"slugify": slug, "permalink": False},
                                   "codehilite": {"guess_lang": False, "css_class": "code"}})
            body = converter.convert(self.prepared(path))
            top = "../" * path.count("/")
            body = re.sub(r"(<pre.*?</pre>|<a .*?</a>)|<code>(.*?)</code>",
                          lambda m: m[1] or self.linker.code(html.unescape(m[2]), top), body, flags=re.S)
            yield self.place(path), self.layout.page(self.title(path), body, top)

    def index(self):
        """(shown, where, kind) of each heading, for the search."""
        for path, text in self.texts.items():
            for anchor, title in headings(text):
                yield title, f"{self.place(path)}#{anchor}", path
