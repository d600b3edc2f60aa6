"""What documents a public name that has no comment of its own.

In this order:
- of what every class has that the library asks for it (PROTOCOLS), what it asks;
- of what a header's first comment begins with, as in `// Shape: up to eight extents`, that comment;
- of a method the comment of the method of that name in a base class;
- of a struct the functions and classes that take it as options, or give it;
- of a call, and of operators with one meaning, the class;
- of a member the comment of its class, or of those that take the struct of options or give the result, that
  says its name: a field's as a word, a method's as name();
- of an accessor the option of that name that its class takes;
- of a method of Array the routine of namespace xp of that name;
- of a ufunc its row.
`note` says which, and links there. What is left has no documentation.
"""
import re

# Classes whose methods are functions of a namespace.
METHODS_OF = {"ArrayMethods": "xp", "Array": "xp"}
# What the library asks of classes by name, wherever they stand.
PROTOCOLS = {"fields": "Shows v each field with its name: `v(\"lr\", lr)`.",
             "members": "Names what a file keeps of it to v; `Link::members` says how."}
OPERATORS = {f"operator{o}" for o in ("()", "*", "->", "++", "--", "==", "!=", "<=>", "=")}
TYPES = {"iterator_category", "value_type", "reference", "pointer", "difference_type"}  # of iterators
ROW = re.compile(r"^RENSA_UFUNC\((\w+),\s*(\d), (\w+),\s*(.*)\)$")


class Coverage:
    """`lines_of` and `first_comment` are those of comments.py, of paths under the root."""

    def __init__(self, names, lines_of, first_comment):
        self.names, self.lines_of, self.first_comment = names, lines_of, first_comment
        self.takers = {}  # struct's full name -> names of functions and classes that take it
        for name in names.values():
            for declaration in name.declarations:
                for taken in [*declaration.takes, declaration.gives]:
                    if taken in names and taken != name.full:
                        self.takers.setdefault(taken, {})[name.full] = name

    def fill(self):
        """Writes the notes of the names that have no comment; gives those that nothing documents."""
        rules = (self.protocol, self.header, self.base, self.taker, self.call, self.told, self.accessor,
                 self.routine, self.row)
        open_names = [n for n in self.names.values() if not n.comments()]
        for rule in rules:
            for name in open_names:
                if not name.note:
                    name.note = rule(name) or ""
        return [n for n in open_names if not n.note]

    def protocol(self, name):
        return name.scope_kind == "class" and PROTOCOLS.get(name.last)

    def base(self, name):
        if name.scope_kind != "class" or name.scope not in self.names:
            return None
        waiting = list(self.names[name.scope].bases)
        while waiting:
            base = self.names.get(waiting.pop(0))
            if base is None:
                continue
            inherited = self.names.get(f"{base.full}::{name.last}")
            if inherited and inherited.comments():
                return f"As `{inherited.full}`."
            waiting += base.bases
        return None

    def taker(self, name):
        takers = [t for t in self.takers.get(name.full, {}).values() if t.comments()]
        users = ", ".join(f"`{t.full}`" for t in takers)
        if name.kind == "class" and name.last.endswith("Options") and takers:
            return f"The options of {users}."
        given = all(name.full == d.gives for t in takers for d in t.declarations)
        return f"What {users} gives." if name.kind == "class" and takers and given else None

    def header(self, name):
        """The first comment of a header that begins with this name."""
        if name.scope_kind != "namespace":
            return None
        for declaration in name.declarations:
            text = self.first_comment(declaration.path)
            subjects = text.replace("\n", " ").partition(": ")
            if subjects[1] and re.search(rf"\b{re.escape(name.last)}\b", subjects[0]):
                return text
        return None

    def call(self, name):
        owner = self.names.get(name.scope)
        if (name.scope_kind == "class" and owner and (owner.comments() or owner.note)
                and (name.last in OPERATORS or name.last.startswith("operator ") or name.last in TYPES)):
            return f"See `{owner.full}`."
        return None

    def told(self, name):
        if name.scope_kind != "class" or name.scope not in self.names:
            return None
        word = re.escape(name.last)
        if name.kind == "function":
            word = rf"\b{word}\(|`{word}`"
        elif name.last == "a":
            word = "`a`"
        else:
            word = rf"\b{word}\b"
        owner = self.names[name.scope]
        place = (name.declarations[0].path, name.declarations[0].line)
        if owner.comments() and place == (owner.declarations[0].path, owner.declarations[0].line):
            return f"See `{owner.full}`."  # both are of one macro
        bases = [self.names[b] for b in owner.bases if b in self.names]
        takers = self.takers.get(owner.full, {}).values() if owner.last.endswith(("Options", "Result")) else ()
        for teller in [owner, *bases, *takers]:
            if any(re.search(word, comment.text) for comment in teller.comments()):
                return f"See `{teller.full}`."
        return None

    def accessor(self, name):
        owner = self.names.get(name.scope)
        if not owner or name.scope_kind != "class":
            return None
        for declaration in owner.declarations:
            for taken in declaration.takes:
                field = self.names.get(f"{taken}::{name.last}")
                if field and (field.comments() or field.note):
                    return f"The option `{field.full}`."
        return None

    def routine(self, name):
        space = METHODS_OF.get(name.scope)
        routine = self.names.get(f"{space}::{name.last}")
        return routine and (routine.comments() or self.row(routine)) and f"As `{routine.full}`."

    def row(self, name):
        rows = (ROW.match(self.lines_of(d.path)[d.line]) for d in name.declarations if d.path.endswith(".def"))
        match = next(filter(None, rows), None)
        if not match:
            return None
        operands = "of `a` and `b`" if match[2] == "2" else "of `a`"
        return f"Elementwise, {operands}: `{match[4]}`. Dtypes: `DtypeRule::{match[3]}`."
