"""What the public headers declare: the functions of namespace xp, Array's methods, and structs of options.

The headers are read as the compiler sees them ($CXX -E, g++ if unset), so that what macros declare is there.
"""
import collections
import functools
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent

Parameter = collections.namedtuple("Parameter", "type name default")
# name: "sum", "linalg.qr", "Array.sum", or "poly1d" for a class's constructor. header and line: where it
# stands in the tree.
Function = collections.namedtuple("Function", "name result parameters header line")


def _lines(header):
    """(text, file, line) of the lines that come from rensa/."""
    command = [os.environ.get("CXX", "g++"), "-E", "-std=c++20", "-I" + str(ROOT), str(ROOT / header)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    file, line = None, 0
    for text in output.splitlines():
        marker = re.match(r'# (\d+) "([^"]*)"', text)
        if marker:
            line, path = int(marker[1]), os.path.relpath(marker[2], ROOT)
            file = path if path.startswith("rensa/") else None
            continue
        if file:
            yield text, file, line
        line += 1


def _split(text, separator=","):
    """The parts of `text` between separators that stand outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{<" and not text.startswith("<<", i):
            depth += 1
        elif c in ")]}>" and text[i - 1:i + 1] != "->":
            depth -= 1
        elif c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _parameter(text):
    declared, _, default = text.partition("=")
    declared = declared.strip()
    match = re.match(r"(.*[\s&*>.])(\w+)$", declared)
    if not match or match[2] in ("int", "bool", "double", "Array", "Scalar", "None"):
        return Parameter(declared, "", default.strip())
    return Parameter(match[1].strip(), match[2], default.strip())


class _Reader:
    def __init__(self):
        self.functions, self.structs = [], {}
        self.types = {}  # {(struct, field): type}
        self.objects = []  # (name, class, header, line): what is called by its operator()
        self.places = {}  # {struct: (header, line)}
        self.scopes = []  # (kind, name)

    def where(self):
        return [name for kind, name in self.scopes if kind in ("namespace", "class") and name]

    def read(self, lines):
        statement, start = "", None
        depth = 0  # of parentheses
        skip = 0   # of braces of a body or of an initializer
        for text, file, line in lines:
            text = text.strip()
            if text.startswith("#"):
                continue
            for c in text + " ":
                if skip:
                    skip += (c == "{") - (c == "}")
                    if not skip and self.pending == "initializer":
                        statement += "{}"
                    continue
                if c in "()":
                    depth += 1 if c == "(" else -1
                if depth == 0 and c == ":" and re.fullmatch(r"\s*(public|private|protected)\s*", statement):
                    statement, start = "", None
                    continue
                if depth == 0 and c == ";":
                    self.end(statement, start)
                    statement, start = "", None
                elif depth == 0 and c == "{":
                    opened = self.open(statement, start)
                    if opened == "scope":
                        statement, start = "", None
                    else:
                        skip, self.pending = 1, opened
                        if opened == "body":
                            statement, start = "", None
                elif depth == 0 and c == "}":
                    if self.scopes:
                        self.scopes.pop()
                    statement, start = "", None
                elif depth and c == "{":
                    statement += c
                else:
                    if start is None and not c.isspace():
                        start = (file, line)
                    statement += c

    def path(self):
        """Where the reader is, as its names are given: "linalg" in rensa::xp::linalg."""
        path = re.sub(r"^(rensa\.?)?(xp\b\.?)?", "", ".".join(self.where()))
        return "Array" if path == "ArrayMethods" else path

    def open(self, statement, start):
        text = " ".join(statement.split())
        text = re.sub(r"\[\[[^\]]*\]\]\s*", "", text)
        match = re.match(r"(?:inline )?namespace ?([\w:]*)$", text)
        if match:
            self.scopes.append(("namespace", match[1].replace("::", ".")))
            return "scope"
        match = re.match(r"(?:template ?<.*> ?)?(class|struct|union) ([\w:]+)(?: final)?(?: ?:[^:].*)?$", text)
        if match:
            name = match[2].replace("::", ".")
            self.scopes.append(("class", name))
            if match[1] == "struct":
                self.structs.setdefault(self.path(), [])
                self.places.setdefault(self.path(), start)
            return "scope"
        if re.match(r"(enum|extern \"C\")", text):
            return "initializer"
        if "(" in text and not re.search(r"=\s*$", text):
            self.end(statement, start)
            return "body"
        return "initializer"

    def end(self, statement, start):
        text = " ".join(statement.split()).replace("operator()", "call_of")
        if not text or not self.scopes or start is None:
            return
        objects = re.match(r"extern const (\w*Ufunc) (.*)$", text)
        if objects:
            for part in _split(objects[2]):
                self.objects.append((re.match(r"\w+", part)[0], objects[1], *start))
            return
        kind, name = self.scopes[-1]
        made = re.match(r"(?:explicit |constexpr )*(\w+)(\(.*)$", text)
        if kind == "class" and made and made[1] == name and "= delete" not in text:
            _, _, parameters = self.function(f"void {name}{made[2]}")
            self.functions.append(Function(self.path(), "", parameters, *start))
            return
        function = self.function(text)
        if function:
            name, result, parameters = function
            full = (self.path() + "." if self.path() else "") + name
            self.functions.append(Function(full, result.strip(), parameters, *start))
        elif kind == "class" and self.path() in self.structs and "operator" not in text:
            kind_of_all = None
            for part in _split(text):
                field = re.search(r"(\w+)\s*(=.*)?$", re.sub(r"\{.*", "", part))
                if field:
                    self.structs[self.path()].append(field[1])
                    kind_of_all = part[:field.start()].strip() or kind_of_all
                    self.types[self.path(), field[1]] = kind_of_all

    @staticmethod
    def function(text):
        if re.match(r"(using|friend|typedef|static_assert|return|extern template)\b", text):
            return None
        if "operator" in text or "= delete" in text:
            return None
        text = re.sub(r"^template ?<", "<", text)
        if text.startswith("<"):
            text = _after_angles(text)
        while text.startswith("requires"):
            text = _after_requires(text)
        text = re.sub(r"^((inline|constexpr|static|explicit|virtual|\[\[\w+\]\]) )+", "", text)
        match = re.match(r"([\w:<>,&* ]*?[\w>&*] ?[&*]?) ?\b(\w+) ?\((.*)$", text)
        if not match or match[1] in ("return", "else", "new"):
            return None
        rest, depth = match[3], 1
        for i, c in enumerate(rest):
            depth += (c == "(") - (c == ")")
            if depth == 0:
                return match[2], match[1], [_parameter(p) for p in _split(rest[:i])]
        return None


def _after_angles(text):
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "<") - (c == ">")
        if depth == 0:
            return text[i + 1:].strip()
    return text


def _after_requires(text):
    """What follows a requires-clause: an expression in parentheses or a concept with arguments."""
    text = text[len("requires"):].strip()
    while True:
        if text.startswith("("):
            depth = 0
            for i, c in enumerate(text):
                depth += (c == "(") - (c == ")")
                if depth == 0:
                    break
            text = text[i + 1:].strip()
        else:
            match = re.match(r"[\w:!]+ ?", text)
            text = text[match.end():]
            if text.startswith("<"):
                text = _after_angles(text)
        text = text.strip()
        if not text.startswith(("&&", "||")):
            return text
        text = text[2:].strip()


@functools.lru_cache(maxsize=None)
def _read(header):
    reader = _Reader()
    reader.read(_lines(header))
    return reader


@functools.lru_cache(maxsize=None)
def declarations(header="rensa/array.h"):
    """({name: [Function]}, {struct: [field]}) of a header and all that it includes of rensa/."""
    reader = _read(header)
    functions = collections.defaultdict(list)
    for function in reader.functions:
        functions[function.name].append(function)
    for name, fields in reader.structs.items():
        if name not in functions:  # an aggregate is made of its fields
            parameters = [Parameter("", field, "") for field in fields]
            functions[name].append(Function(name, "", parameters, *reader.places[name]))
    # Of an object that two headers declare the place is the table that has its row.
    objects = {o[0]: o for o in sorted(reader.objects, key=lambda o: o[2].endswith(".def"))}
    for name, kind, header, line in objects.values():
        functions[name] += [f._replace(name=name, header=header, line=line)
                            for f in functions[f"{kind}.call_of"]]
    return functions, reader.structs


def types_of_fields(header):
    """{(struct, field): type} of the structs of a header and all that it includes of rensa/."""
    return _read(header).types


def names_of_parameters(function, structs):
    """The names by which a caller may give the function something: its parameters', and the fields of
    its structs of options."""
    names = []
    for parameter in function.parameters:
        fields = fields_of(function.name, parameter.type, structs)
        names += [parameter.name] if fields is None else [f for f in fields if f != "named"]
    return names


def fields_of(name, kind, structs):
    """The fields of a struct of options that a function of that name is given; None for another type."""
    struct = re.sub(r"^const |[&* ]+$", "", kind).replace("::", ".")
    struct = re.sub(r"^(rensa\.)?(xp\.)?", "", struct)
    if not struct.endswith(("Options", "Like")):
        return None
    space = name
    while space:
        space = space.rpartition(".")[0]
        fields = structs.get(f"{space}.{struct}" if space else struct)
        if fields is not None:
            return fields
    return None
