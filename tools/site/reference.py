"""The reference: a page for each namespace, with a section for each header."""
import collections
import html
import re

import comments
from linker import page_of

TITLES = {"": "rensa", "functions": "functions (F)", "links": "links (L)"}


class Reference:
    def __init__(self, root, names, linker, layout):
        self.root, self.names, self.linker, self.layout = root, names, linker, layout
        self.members = collections.defaultdict(list)
        for name in names.values():
            self.members[name.scope].append(name)

    def spaces(self):
        """The namespaces that have names, the main one first."""
        return sorted({n.scope for n in self.names.values() if n.scope_kind == "namespace"})

    def pages(self):
        """(path under the site, HTML) of each page."""
        for space in self.spaces():
            yield "reference/" + page_of(space), self.page(space)
        rows = [f'<li><a href="{page_of(space)}"><code>{TITLES.get(space, space)}</code></a> '
                f'{sum(1 for n in self.members[space])} names</li>' for space in self.spaces()]
        yield "reference/index.html", self.layout.page(
            "Reference", "<h1>Reference</h1><p>The public names by their namespaces, all within <code>rensa</code>."
            "</p><ul>" + "\n".join(rows) + "</ul>", "../")

    def page(self, space):
        title = TITLES.get(space, space)
        by_header = collections.defaultdict(list)
        for name in self.members[space]:
            by_header[name.declarations[0].path].append(name)
        parts = [f"<h1>{html.escape(title)}</h1>", self.contents(by_header)]
        for header, names in sorted(by_header.items()):
            about = comments.first_comment(self.root / header)
            parts.append(f'<h2 id="{header}"><a href="../source/{header}.html">{header}</a></h2>')
            parts.append(f'<div class="about">{self.linker.comment(about, "../", space)}</div>')
            parts += [self.entry(name) for name in sorted(names, key=lambda n: n.declarations[0].line)]
        return self.layout.page(title, "\n".join(parts), "../")

    def contents(self, by_header):
        rows = []
        for header, names in sorted(by_header.items()):
            links = ", ".join(f'<a href="#{html.escape(n.full)}">{html.escape(n.last)}</a>' for n in
                              sorted(names, key=lambda n: n.declarations[0].line))
            rows.append(f'<dt><a href="#{header}">{header.removeprefix("rensa/")}</a></dt><dd>{links}</dd>')
        return '<dl class="contents">' + "\n".join(rows) + "</dl>"

    def entry(self, name, level=3):
        """A name with its declarations, its comments, and the members of a class."""
        anchor = html.escape(name.full)
        parts = [f'<section class="name level{level}"><h{level} id="{anchor}"><a href="#{anchor}">'
                 f"{html.escape(name.last)}</a></h{level}>"]
        parts.append(self.declarations(name))
        if not name.comments():
            parts.append(self.linker.comment(name.note, "../", name.scope))
        if name.kind == "enumeration":
            parts.append("<p>" + ", ".join(f"<code>{html.escape(v)}</code>" for v in name.values) + "</p>")
        members = sorted(self.members.get(name.full, []), key=lambda n: n.declarations[0].line)
        parts += [self.entry(member, level + 1 if level < 5 else 5) for member in members]
        return "\n".join(parts) + "</section>"

    def declarations(self, name):
        """Declarations, each group of them in front of the comment that it shares."""
        groups = []
        for declaration in name.declarations:
            text = declaration.comment.text if declaration.comment else None
            if not groups or (text is not None and groups[-1][0] not in (None, text)):
                groups.append([text, []])
            elif text is not None:
                groups[-1][0] = text
            groups[-1][1].append(declaration)
        parts = []
        for text, declarations in groups:
            lines = [f'{html.escape(d.signature)}<a class="source" href="../source/{d.path}.html#L{d.line}">'
                     f"{d.path.rpartition('/')[2]}:{d.line}</a>" for d in declarations]
            parts.append('<pre class="signature">' + "\n".join(dict.fromkeys(lines)) + "</pre>")
            if text:
                parts.append(self.linker.comment(text, "../", name.full if name.kind == "class" else name.scope))
        return "\n".join(parts)

    def index(self):
        """(shown, where, kind) of each name, for the search."""
        for full, name in sorted(self.names.items()):
            text = (name.comments()[0].text if name.comments() else name.note).replace("\n", " ")
            yield full, self.linker.anchor(full), re.sub(r"[`\s]+", " ", text)[:90]
