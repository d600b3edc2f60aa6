"""The public names of headers with their declarations and comments, as libclang reads them."""
import collections
import dataclasses
import os
import pathlib
import re

import clang.cindex
from clang.cindex import AccessSpecifier, CursorKind

import comments
from signatures import signature

Declaration = collections.namedtuple("Declaration", "signature path line comment takes gives")

CLASSES = {CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE, CursorKind.UNION_DECL}
FUNCTIONS = {CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD,
             CursorKind.CONSTRUCTOR, CursorKind.DESTRUCTOR, CursorKind.CONVERSION_FUNCTION}
ALIASES = {CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_TEMPLATE_DECL}
VALUES = {CursorKind.VAR_DECL, CursorKind.FIELD_DECL}
CONCEPTS = {CursorKind.UNEXPOSED_DECL, getattr(CursorKind, "CONCEPT_DECL", CursorKind.UNEXPOSED_DECL)}
KINDS = CLASSES | FUNCTIONS | ALIASES | VALUES | CONCEPTS | {
    CursorKind.ENUM_DECL, CursorKind.NAMESPACE, CursorKind.FRIEND_DECL, CursorKind.USING_DECLARATION}
# Namespaces whose names are the library's own.
INNER = {"detail", "operations"}


@dataclasses.dataclass
class Name:
    """A public name: all that is declared under it in a namespace or a class."""
    full: str   # "xp::linalg::qr", "Array::sum"; without "rensa::"
    kind: str   # function, class, value, alias, enumeration, concept
    scope: str  # "xp::linalg", "Array"
    scope_kind: str  # namespace or class
    declarations: list = dataclasses.field(default_factory=list)
    bases: list = dataclasses.field(default_factory=list)  # of a class, full names
    values: list = dataclasses.field(default_factory=list)  # of an enumeration
    note: str = ""  # documentation that does not stand at a declaration

    @property
    def last(self):
        return self.full.rpartition("::")[2]

    def comments(self):
        """The different comments of the declarations, in their order."""
        return list({d.comment.text: d.comment for d in self.declarations if d.comment}.values())


def parse(root, header):
    """The translation unit of a header under `root`."""
    unit = clang.cindex.Index.create().parse(
        "names.cc", args=["-std=c++20", f"-I{root}"],
        unsaved_files=[("names.cc", f'#include "{header}"\n')],
        options=clang.cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES)
    errors = [d for d in unit.diagnostics if d.severity >= clang.cindex.Diagnostic.Error]
    if errors:
        raise SystemExit("\n".join(map(str, errors)))
    return unit


class Reader:
    """Fills `names` from a translation unit's namespace `top`."""

    def __init__(self, root, folder, top):
        self.root, self.folder, self.top = pathlib.Path(root), folder, top
        self.names = {}
        self.files = {}  # path of clang's -> path under root, None for others
        self.spaces = []  # (full name, path, first line, last line, comment) of namespaces with a comment

    def read(self, unit):
        for cursor in unit.cursor.get_children():
            if cursor.kind == CursorKind.NAMESPACE and cursor.spelling == self.top and self.file(cursor):
                self.scope([cursor], "", "namespace")
        for space, path, first, last, comment in self.spaces:
            for name in self.names.values():
                if name.scope == space and not name.comments():
                    name.declarations = [d._replace(comment=comment) if d.path == path and first <= d.line <= last
                                         else d for d in name.declarations]
        return self.names

    def file(self, cursor):
        if cursor.location.file is None:
            return None
        name = cursor.location.file.name
        if name not in self.files:
            path = os.path.relpath(name, self.root)
            self.files[name] = path if path.startswith(self.folder + "/") else None
        return self.files[name]

    def scope(self, cursors, full, kind):
        """Reads what stands in namespaces or a class."""
        for cursor in cursors:
            by_file = collections.defaultdict(list)
            for child in cursor.get_children():
                path = self.file(child)
                if path and child.extent.start.line and self.is_public(child, kind):
                    by_file[path].append(child)
            for path, children in by_file.items():
                self.siblings(path, children, full, kind)

    @staticmethod
    def is_public(cursor, kind):
        if kind == "class":
            return cursor.access_specifier == AccessSpecifier.PUBLIC
        # What stands in a namespace and belongs to a class was declared there.
        return cursor.semantic_parent is None or cursor.semantic_parent.kind not in CLASSES

    def siblings(self, path, children, full, kind):
        """Reads what stands in one file of a scope, in order."""
        children = [c for c in children if c.kind in KINDS]
        children.sort(key=lambda c: (c.extent.start.line, c.location.offset))
        absolute = str(self.root / path)
        extents = [self.extent(absolute, c) for c in children]
        for child, extent, comment in zip(children, extents, comments.comments_of(absolute, extents)):
            self.declaration(child, path, extent, comment, full, kind)

    @staticmethod
    def extent(path, cursor):
        first, last = cursor.extent.start.line, cursor.extent.end.line
        head = last
        if cursor.kind in FUNCTIONS | CLASSES or cursor.kind == CursorKind.ENUM_DECL:
            head = first
            while head < last and not re.search(r"[{;]\s*(//.*)?$", comments.lines_of(path)[head]):
                head += 1
        ends_run = cursor.kind == CursorKind.NAMESPACE or (
            last > first and (cursor.kind in CLASSES or cursor.kind == CursorKind.ENUM_DECL))
        return comments.Extent(first, last, head, ends_run, cursor.spelling)

    def declaration(self, cursor, path, extent, comment, full, kind):
        spelling = cursor.spelling
        takes, gives = self.used(cursor)
        if comment and comment.kind == "front":
            leader = f"{full}::{comment.leader}" if full else comment.leader
            comment = comment if leader in [*takes, gives] else None
        if cursor.kind == CursorKind.NAMESPACE:
            if spelling and spelling not in INNER:
                own = f"{full}::{spelling}" if full else spelling
                self.scope([cursor], own, "namespace")
                if comment and comment.kind == "above":
                    self.spaces.append((own, path, extent.first, extent.last, comment))
            return
        if not spelling or cursor.kind in CLASSES and (not cursor.is_definition() or self.of_extern_template(cursor)):
            return
        if cursor.kind == CursorKind.FIELD_DECL and INNER & set(self.class_of(cursor.type).split("::")):
            return  # of a type of the library's own, which no program names
        what = self.kind_of(cursor)
        if not what:
            return
        made = Declaration(signature(str(self.root / path), cursor), path, extent.first, comment, takes, gives)
        if cursor.kind == CursorKind.DESTRUCTOR or what == "function" and self.of_language(cursor):
            return
        if what == "function" and kind == "class" and spelling.partition("<")[0] == full.rpartition("::")[2]:
            name = self.names.get(full)  # a constructor
            if name:
                name.declarations.append(made)
            return
        own = f"{full}::{spelling}" if full else spelling
        name = self.names.setdefault(own, Name(own, what, full, kind))
        name.declarations.append(made)
        if cursor.kind == CursorKind.ENUM_DECL:
            name.values = [c.spelling for c in cursor.get_children() if c.kind == CursorKind.ENUM_CONSTANT_DECL]
        if cursor.kind in CLASSES:
            name.bases = [self.class_of(c.type) for c in cursor.get_children()
                          if c.kind == CursorKind.CXX_BASE_SPECIFIER]
            self.scope([cursor], own, "class")

    def class_of(self, type_):
        """The full name of the class of a type or of what it refers to."""
        text = re.sub(r"<.*", "", re.sub(r"\b(const|class|struct|typename)\b|[&*]", "", type_.spelling)).strip()
        declared = type_.get_pointee() if type_.get_pointee().kind != clang.cindex.TypeKind.INVALID else type_
        cursor, parts = declared.get_declaration(), []
        while cursor and cursor.spelling and cursor.kind != CursorKind.TRANSLATION_UNIT:
            parts.insert(0, cursor.spelling)
            cursor = cursor.semantic_parent
        if parts and parts[0] == self.top:
            return "::".join(parts[1:])
        return text.removeprefix(self.top + "::")

    def used(self, cursor):
        """The classes of a function's parameters, and that of its result."""
        takes = [self.class_of(c.type) for c in cursor.get_children() if c.kind == CursorKind.PARM_DECL]
        gives = self.class_of(cursor.result_type) if cursor.kind in FUNCTIONS else ""
        return takes, gives

    @staticmethod
    def of_extern_template(cursor):
        """Whether this says only that a class is instantiated elsewhere."""
        return next((token.spelling for token in cursor.get_tokens()), "") == "extern"

    @staticmethod
    def of_language(cursor):
        """Whether this is a copy or a move, or deleted."""
        return (cursor.kind == CursorKind.CONSTRUCTOR
                and (cursor.is_copy_constructor() or cursor.is_move_constructor())
                or "= delete" in " ".join(t.spelling for t in list(cursor.get_tokens())[-3:])
                or cursor.spelling == "operator=" and re.fullmatch(
                    r"(const )?([\w:]*::)?" + cursor.semantic_parent.spelling + r"(<.*>)? ?&&?",
                    next((c.type.spelling for c in cursor.get_children() if c.kind == CursorKind.PARM_DECL), "")))

    @staticmethod
    def kind_of(cursor):
        if cursor.kind in CLASSES:
            return "class"
        if cursor.kind in FUNCTIONS:
            return "function"
        if cursor.kind in ALIASES:
            return "alias"
        if cursor.kind in VALUES:
            return "value"
        if cursor.kind == CursorKind.ENUM_DECL:
            return "enumeration"
        # libclang tells concepts from version 17 on
        words = [t.spelling for t in cursor.get_tokens()] if cursor.kind in CONCEPTS else []
        return "concept" if "concept" in words else None
