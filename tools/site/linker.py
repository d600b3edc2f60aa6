"""From names in texts to where the reference has them."""
import collections
import html
import re

SHORT = {"F": "functions", "L": "links", "rensa": ""}  # namespaces' short names
CODE = re.compile(r"^((?:[A-Za-z_]\w*::)*~?[A-Za-z_]\w*)(?:<.*>)?(?:\(.*\)|\{.*\})?$", re.S)
IN_TEXT = re.compile(r"`([^`]+)`|\b((?:\w+::)+\w+|[A-Z][a-z0-9]+(?:[A-Z0-9]\w*))\b")


def page_of(name):
    """The page, under reference/, of a namespace: its own, or that of its first two parts."""
    return (name.replace("::", ".") or "rensa") + ".html"


class Linker:
    """Finds the anchors of public names."""

    def __init__(self, names):
        self.names = names
        self.by_last = collections.defaultdict(set)
        for full in names:
            parts = full.split("::")
            for i in range(len(parts)):
                self.by_last["::".join(parts[i:])].add(full)

        self.by_place = collections.defaultdict(dict)  # (header, last part) -> full names
        for name in names.values():
            for declaration in name.declarations:
                self.by_place[declaration.path, name.last][name.full] = name

    def declared_in(self, path, text):
        """Where the name that a header declares is (`sum`, `linalg.qr`), from the site's top; None where
        that is not certain."""
        last = re.split(r"\.|::", text.strip("`"))[-1]
        found = self.by_place.get((path, last), {})
        outer = [full for full, name in found.items() if name.scope_kind == "namespace"] or list(found)
        return self.anchor(outer[0]) if len(outer) == 1 else None

    def space_of(self, name):
        """The namespace that a name stands in, whatever classes it is a member of."""
        while name.scope_kind == "class":
            name = self.names[name.scope]
        return name.scope

    def anchor(self, full):
        """Where a public name is, from the site's top."""
        return f"reference/{page_of(self.space_of(self.names[full]))}#{full}"

    def find(self, text, scope=""):
        """The full name of what `text` (`F::relu(x)`) means, seen from a scope; None where that is not certain."""
        match = CODE.match(text.strip())
        if not match:
            return None
        first, _, rest = match[1].partition("::")
        wanted = "::".join(filter(None, [SHORT.get(first, first), rest])) if rest else first
        if rest and wanted in self.names:
            return wanted
        while True:
            full = f"{scope}::{wanted}" if scope else wanted
            if full in self.names:
                return full
            if not scope:
                break
            scope = scope.rpartition("::")[0]
        found = self.by_last.get(wanted, ())
        certain = rest or re.search(r"[A-Z].*[a-z]|_", wanted)
        return next(iter(found)) if len(found) == 1 and certain else None

    def code(self, text, top, scope="", known=None):
        """HTML of code that links to what it names. `top`: the way to the site's top."""
        full = known or self.find(text, scope)
        shown = f"<code>{html.escape(text)}</code>"
        return f'<a href="{top}{html.escape(self.anchor(full))}">{shown}</a>' if full else shown

    def line(self, text, top, scope=""):
        """HTML of plain text with `code`."""
        parts, last = [], 0
        for match in IN_TEXT.finditer(text):
            parts.append(html.escape(text[last:match.start()], quote=False))
            full = self.find(match[1] or match[2], scope)
            if match[1] or full:
                parts.append(self.code(match[1] or match[2], top, scope, full))
            else:
                parts.append(html.escape(match[0], quote=False))
            last = match.end()
        return "".join(parts) + html.escape(text[last:], quote=False)

    def comment(self, text, top, scope=""):
        """HTML of a comment: paragraphs, lists, and indented lines as they are."""
        blocks = []  # (kind, lines)
        for line in text.split("\n"):
            kind = "gap" if not line.strip() else "pre" if line.startswith("  ") else "p"
            if kind == "pre" and blocks and blocks[-1][0] == "item" and not blocks[-1][1][-1].endswith(":"):
                kind = "item"
            elif line.startswith("- "):
                blocks.append(("item", []))
                kind = "item"
            if not blocks or blocks[-1][0] != kind:
                blocks.append((kind, []))
            blocks[-1][1].append(line)
        shown = []
        for kind, lines in blocks:
            if kind == "pre":
                shown.append(f"<pre>{html.escape(chr(10).join(lines))}</pre>")
            elif kind != "gap":
                shown.append(f"<p>{self.line(' '.join(part.strip() for part in lines), top, scope)}</p>")
        return "\n".join(shown)
