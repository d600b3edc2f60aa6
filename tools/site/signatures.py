"""Declarations as the reference shows them: as they are written, without their bodies."""
import functools
import pathlib
import re
import textwrap

from clang.cindex import CursorKind

# The second or a later name of a declaration: `Array Q, R`.
SEVERAL = re.compile(r"[\w:<>* ]+ \w+( = [^,(]*|\{[^}]*\})?,")


@functools.lru_cache(maxsize=None)
def _bytes_of(path):
    return pathlib.Path(path).read_bytes()


def _before_body(text, of_constructor):
    """What stands in front of a body, a list of initializers or a semicolon."""
    depth = 0
    for i, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif depth == 0 and c in "{;":
            return text[:i]
        elif (depth == 0 and of_constructor and c == ":" and text[i - 1:i + 2].count(":") == 1
              and ")" in text[:i]):
            return text[:i]
    return text


def _composed(cursor):
    """The declaration of what a macro made, of its types."""
    if cursor.kind in (CursorKind.VAR_DECL, CursorKind.FIELD_DECL):
        return f"{cursor.type.spelling} {cursor.spelling}"
    if cursor.kind in (CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL):
        return f"class {cursor.spelling}"
    children = list(cursor.get_children())
    parts = [f"{c.type.spelling} {c.spelling}".strip() for c in children if c.kind == CursorKind.PARM_DECL]
    types = [f"class {c.spelling}" for c in children if c.kind == CursorKind.TEMPLATE_TYPE_PARAMETER]
    template = f"template <{', '.join(types)}> " if types else ""
    constant = " const" if cursor.is_const_method() else ""
    static = "static " if cursor.kind == CursorKind.CXX_METHOD and cursor.is_static_method() else ""
    result = "" if cursor.kind == CursorKind.CONSTRUCTOR else cursor.result_type.spelling + " "
    return f"{template}{static}{result}{cursor.spelling}({', '.join(parts)}){constant}"


def _shown(text):
    return re.sub(r" ([&*]+)(?=\W)", r"\1", re.sub(r"\brensa::", "", text))


def signature(path, cursor):
    """The text of a declaration in a file."""
    begin, end = cursor.extent.start.offset, cursor.extent.end.offset
    text = _bytes_of(path)[begin:end].decode()
    name = re.sub(r"<.*", "", cursor.spelling) if not cursor.spelling.startswith("operator") else "operator"
    macro = re.match(r"([A-Z_0-9]+)\(", text)
    if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) or macro and macro[1] != name:
        return _shown(_composed(cursor))
    if cursor.kind in (CursorKind.VAR_DECL, CursorKind.FIELD_DECL) and SEVERAL.match(text):
        return _shown(_composed(cursor))
    functions = (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD,
                 CursorKind.CONSTRUCTOR, CursorKind.CONVERSION_FUNCTION)
    classes = (CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE, CursorKind.UNION_DECL)
    if cursor.kind in functions + classes:
        text = _before_body(text, cursor.kind in functions and "operator" not in text)
    text = re.sub(r"\[\[nodiscard\]\]\s*|\binline (?=\w)", "", text)
    text = re.sub(r"\s*//.*", "", text) if cursor.kind != CursorKind.ENUM_DECL else text
    first, _, rest = text.strip().partition("\n")
    return first + ("\n" + textwrap.indent(textwrap.dedent(rest), "    ") if rest.strip() else "")
