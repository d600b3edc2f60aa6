"""What every page of the site has around it."""
import html

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} – Rensa</title>
<link rel="stylesheet" href="{top}style.css">
<script>const top_ = "{top}";</script>
<script defer src="{top}search_index.js"></script>
<script defer src="{top}search.js"></script>
</head>
<body>
<nav>
<input id="search" type="search" placeholder="Search (press /)" autocomplete="off" aria-label="Search">
<ol id="found"></ol>
{menu}
</nav>
<main>
{body}
</main>
</body>
</html>
"""


class Layout:
    """`menu`: (heading, [(title, where)]), where from the site's top."""

    def __init__(self):
        self.menu = []

    def page(self, title, body, top):
        menu = []
        for heading, entries in self.menu:
            rows = "".join(f'<li><a href="{top}{where}">{html.escape(shown)}</a></li>' for shown, where in entries)
            menu.append(f"<h2>{html.escape(heading)}</h2><ul>{rows}</ul>")
        return PAGE.format(title=html.escape(title), top=top, menu="\n".join(menu), body=body)
