"""Source files and folders as pages, so that links to them stay within the site."""
import html
import re

COMMENT = re.compile(r"(^|\s)(//.*)$")


def _listed(root, folder):
    """The files below a folder that are part of the tree."""
    found = sorted(p for p in (root / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return [str(p.relative_to(root)) for p in found]


def file_page(root, path, layout):
    try:
        text = (root / path).read_text()
    except UnicodeDecodeError:
        return layout.page(path, f"<h1>{path}</h1><p>A binary file.</p>", "../" * (path.count("/") + 1))
    shown = []
    for number, line in enumerate(text.splitlines(), 1):
        code = html.escape(line, quote=False)
        if path.endswith((".h", ".cc", ".cu", ".cuh", ".def")):
            code = COMMENT.sub(r'\1<i>\2</i>', code)
        shown.append(f'<span id="L{number}"><a href="#L{number}">{number:4}</a> {code}</span>')
    top = "../" * (path.count("/") + 1)
    return layout.page(path, f'<h1>{path}</h1><pre class="file">' + "\n".join(shown) + "</pre>", top)


def pages(root, paths, layout):
    """(path under the site, HTML) of files, and of folders with all that is in them."""
    files = set()
    for path in paths:
        if (root / path).is_dir():
            inside = _listed(root, path)
            files.update(inside)
            top = "../" * (path.count("/") + 1)
            rows = "".join(f'<li><a href="{top}source/{f}.html">{f}</a></li>' for f in inside)
            yield f"source/{path}.html", layout.page(path, f"<h1>{path}</h1><ul>{rows}</ul>", top)
        else:
            files.add(path)
    for path in sorted(files):
        yield f"source/{path}.html", file_page(root, path, layout)
