"""The comments of declarations, by the lines that they stand on.

A declaration's comment is, in this order,
- what stands on the lines straight above it, behind /// or //, or above the macro straight above it;
- what stands behind it on its own lines;
- the comment above the run that it stands in, declarations without a blank line between them, where covers()
  says that it is of this one too. A class or enumeration of several lines ends a run;
- the comment above a struct straight in front, which the function takes or gives.
A line `// --- rounding ---` is a heading and no comment; what a file begins with is the file's.
"""
import collections
import functools
import os
import pathlib
import re

# kind: above, behind, run, or front: that of the class straight in front, whose name `leader` is.
Comment = collections.namedtuple("Comment", "text line kind leader", defaults=("",))

Above = collections.namedtuple("Above", "text line group")  # group: behind //, not ///
Extent = collections.namedtuple("Extent", "first last head ends_run name")  # head: the last line before a body

ALONE = re.compile(r"^\s*(///?)(?!/) ?(.*)$")
HEADING = re.compile(r"^\s*// --- (.*?) ---$")
NOT_TEXT = re.compile(r"^(clang-format |NOLINT|NOLINTNEXTLINE)")


@functools.lru_cache(maxsize=None)
def lines_of(path):
    """The lines of a file, from 1 on."""
    return ["", *pathlib.Path(path).read_text().splitlines()]


@functools.lru_cache(maxsize=None)
def behind(path, number):
    """(column, text) of the comment behind the code of a line; None where there is none."""
    line, quoted = lines_of(path)[number], False
    if ALONE.match(line):
        return None
    for i, c in enumerate(line):
        if c == '"' and line[i - 1] not in "\\'":
            quoted = not quoted
        if not quoted and line.startswith("//", i):
            text = line[i:].lstrip("/<").strip()
            return None if NOT_TEXT.match(text) else (i, text)
    return None


def _goes_on(path, number):
    """Whether the comment alone on this line goes on with one behind code, in whose column it stands."""
    line = lines_of(path)[number]
    column = len(line) - len(line.lstrip())
    while number > 1 and ALONE.match(lines_of(path)[number]):
        number -= 1
    found = behind(path, number)
    return found is not None and found[0] == column


def above(path, number):
    """The comment on the lines straight above line `number`, or None."""
    texts, first = [], number
    while first > 1 and (lines_of(path)[first - 1].startswith("#define")
                         or lines_of(path)[first - 1].endswith("\\")
                         or lines_of(path)[first - 2].endswith("\\")):
        first -= 1  # a macro between the comment and its first use
    while first > 1:
        match = ALONE.match(lines_of(path)[first - 1])
        if not match or HEADING.match(lines_of(path)[first - 1]) or _goes_on(path, first - 1):
            break
        first -= 1
        if not NOT_TEXT.match(match[2]):
            texts.insert(0, match[2])
    group = all("///" not in line[:line.find("//") + 3] for line in lines_of(path)[first:number])
    return Above("\n".join(texts), first, group) if any(texts) and first > 1 else None


def behind_lines(path, first, last):
    """The comments behind the code of these lines, and the lines that go on with the last of them."""
    texts = []
    for number in range(first, last + 1):
        if found := behind(path, number):
            texts.append(found[1])
    number = last + 1
    while texts and number < len(lines_of(path)) and ALONE.match(lines_of(path)[number]) and _goes_on(path, number):
        texts.append(ALONE.match(lines_of(path)[number])[2])
        number += 1
    return "\n".join(texts)


def first_comment(path):
    """The comment that a file begins with."""
    texts = []
    for line in lines_of(path)[1:]:
        match = ALONE.match(line)
        if not match:
            break
        texts.append(match[2])
    return "\n".join(texts)


def covers(comment, leader, name):
    """Whether the comment above `leader` is also that of `name`, which stands in one run with it: it says that
    name, or how to come back, or is a group's, or the names are much the same (fft and ifft, scatter_max and
    scatter_min)."""
    if comment.group or re.search(rf"\b{re.escape(name)}\b", comment.text) or "back." in comment.text:
        return True
    shared = set(re.findall(r"[a-z]{3,}", name.lower())) & set(re.findall(r"[a-z]{3,}", leader.lower()))
    ends = len(os.path.commonprefix([leader, name])), len(os.path.commonprefix([leader[::-1], name[::-1]]))
    return bool(shared) or max(ends) >= 3 or name.startswith(leader + "_")


def comments_of(path, extents):
    """The comment, or None, of each of the declarations of a scope, Extents in one file in this order."""
    found, run, leader, last_end, front = [], None, None, None, None
    for extent in extents:
        own = above(path, extent.first)
        between = lines_of(path)[last_end + 1:extent.first] if last_end is not None else [""]
        if own:
            run, leader, front = own, extent.name, None
        elif last_end is None or (extent.first > last_end and any(not line.strip() for line in between)):
            run = front = None
        tail = behind_lines(path, extent.first, extent.head)
        if own:
            found.append(Comment(own.text + ("\n" + tail if tail else ""), own.line, "above"))
        elif tail:
            found.append(Comment(tail, extent.first, "behind"))
        elif run and covers(run, leader, extent.name):
            found.append(Comment(run.text, run.line, "run"))
        elif front:
            found.append(front)
        else:
            found.append(None)
        last_end = extent.last
        if extent.ends_run:
            front = Comment(own.text, own.line, "front", extent.name) if own else front
            run = None
    return found
