#!/usr/bin/env python3
"""Writes tools/cupy_signatures.txt: what CuPy's routines of tools/array_names.txt and its ndarray's methods
take. Reads CuPy's sources; CuPy need not be installed.

    python3 tools/record_cupy_signatures.py DIRECTORY     which holds the folder `cupy` of a release

A line is written as in tools/numpy_signatures.txt. What CuPy takes over from NumPy as it is has none.
"""
import ast
import pathlib
import re
import sys

from array_names import PLACES, all_names, write_signatures

HEAD = """# What the routines of tools/array_names.txt and ndarray's methods take in CuPy {version}: what must be
# given, and after "|" what may be. Written by tools/record_cupy_signatures.py.
"""
# Imported only when it is first asked for, which is not written down as an import.
LAZY = {"random.Generator": "random._generator_api.Generator"}
INDEXED = {"mgrid", "ogrid", "c_", "r_"}  # objects that are not called
MAKES_UFUNC = re.compile(r"(^|\.)_?create_(\w*ufunc|comparison|arithmetic|bit_op)$")


# --- Cython, as far as it says what is defined and what it takes ---

def split(text):
    """The parts of `text` between the commas that stand outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in parts if part]


def statements(cython):
    """(indentation, text) of each statement, on one line, without comments; docstrings are empty."""
    joined = ""
    for line in re.sub(r"(?s)('''|\"\"\").*?\1", "''", cython).splitlines():
        line = re.sub(r"#[^'\"]*$", "", line).rstrip()
        joined = f"{joined} {line.strip()}" if joined else line
        code = re.sub(r"'[^']*'|\"[^\"]*\"", "", joined)
        if sum(map(code.count, "([{")) > sum(map(code.count, ")]}")):
            continue
        if joined.strip():
            yield len(joined) - len(joined.lstrip()), joined.strip()
        joined = ""


def without_type(parameter):
    """Python's form of a parameter: "Py_ssize_t axis=0" is "axis=None", the default's value being of no interest."""
    declared, default, _ = parameter.partition("=")
    declared = re.sub(r" (not|or) None$", "", declared.strip())
    return re.search(r"\**\w*$", declared)[0] + ("=None" if default else "")


def python_of(cython):
    """A module's imports, assignments, classes and functions in Python; of a function's body stays what it takes
    out of its keywords."""
    lines, function = [], None
    for indentation, text in statements(cython):
        if function is not None and indentation > function:
            lines += [" " * indentation + f"kwargs.pop({name})"
                      for name in re.findall(r"\bkwargs\.pop\(('\w+')", text)]
            continue
        function = None
        indent = " " * indentation
        head = re.match(r"(?:cpdef|def) (?:[\w.]+ )*(\w+)\((.*)\)[\w ?*-]*:$", text)
        if re.match(r"(cdef )?class ", text):
            lines += [indent + text.removeprefix("cdef "), indent + "    pass"]
        elif head:
            function = indentation
            lines += [f"{indent}def {head[1]}({', '.join(map(without_type, split(head[2])))}):", indent + "    pass"]
        elif re.match(r"cdef .*\)[\w ?*-]*:$", text):
            function = indentation  # C's alone
        elif text.startswith("@"):
            lines.append(indent + text)
        elif indentation == 0 and re.match(r"from [\w.]+ import |(cdef )?\w+ = ", text):
            lines.append(text.removeprefix("cdef "))
    return "\n".join(lines)


# --- where a name leads ---

def bindings(path):
    """{name: what a module's top level binds it to}: the node of a definition or of an assigned value, or
    (module, name) for what it imports."""
    text, bound = path.read_text(), {}
    for node in ast.parse(python_of(text) if path.suffix == ".pyx" else text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            bound.update({name.asname or name.name: (node.module, name.name) for name in node.names})
        elif isinstance(node, ast.Import):
            bound.update({name.asname or name.name: (name.name, "") for name in node.names})
        elif isinstance(node, ast.Assign):
            bound.update({target.id: node.value for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign):
            bound[node.target.id] = node.value
    return bound


class Sources:
    def __init__(self, directory):
        self.directory, self.modules = directory, {}

    def path(self, module):
        base = self.directory.joinpath(*module.split("."))
        candidates = (base / "__init__.py", base.with_suffix(".py"), base.with_suffix(".pyx"))
        return next((path for path in candidates if path.is_file()), None)

    def find(self, module, name):
        """(module, node) of what a dotted name means in a module; None where it means nothing, or NumPy's."""
        path = self.path(module)
        if path is None:
            return None
        if module not in self.modules:
            self.modules[module] = bindings(path)
        first, _, rest = name.partition(".")
        node = self.modules[module].get(first, (f"{module}.{first}", ""))
        if isinstance(node, tuple):
            package, name = node
            if name and self.path(f"{package}.{name}"):
                package, name = f"{package}.{name}", ""
            name = ".".join(filter(None, (name, rest)))
            return self.find(package, name) if name else None
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.find(module, ".".join(filter(None, (ast.unparse(node), rest))))
        if isinstance(node, ast.ClassDef) and rest:
            return self.member(module, node, rest)
        return module, node

    def members(self, module, node):
        """{name: (module, method)} of a class, its bases' among them; no properties."""
        found = {}
        for base in node.bases:
            found.update(self.members(*self.find(module, ast.unparse(base))))
        found.update({part.name: (module, part) for part in node.body
                      if isinstance(part, ast.FunctionDef) and not part.decorator_list})
        return found

    def member(self, module, node, name):
        return self.members(module, node).get(name)

    def parameters(self, name):
        """(must, may) of what `name` means in cupy; None where it means nothing there, or NumPy's."""
        found = self.find("cupy", name)
        if found is None:
            return None
        module, node = found
        if isinstance(node, ast.ClassDef):
            made = self.member(module, node, "__init__")
            return parameters_of(made[1]) if made else ([], [])
        if isinstance(node, ast.FunctionDef):
            return parameters_of(node)
        maker = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if maker.endswith("create_reduction_func"):
            return self.parameters("_core._reduction._SimpleReductionKernel.__call__")
        if MAKES_UFUNC.search(maker):
            return operands(node, maker), self.parameters("ufunc.__call__")[1]
        if maker == "_GUFunc":
            return operands(node, maker), self.parameters("_core._gufuncs._GUFunc.__call__")[1]
        raise SystemExit(f"{name}: what does {ast.unparse(node)[:80]} in {module} take?")


# --- what it takes ---

def operands(call, maker):
    """The arrays that a ufunc takes, by the call that makes it."""
    texts = [part.value for part in ast.walk(call)
             if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    loops = [text.partition("->")[0] for text in texts if "->" in text]  # "dd->d", "(m,n),(n)->(m)"
    if maker.endswith("create_math_ufunc"):
        count = call.args[1].value
    elif loops:
        count = loops[0].count("(") or len(loops[0])
    else:
        count = 1 if any("in0" in text and "in1" not in text for text in texts) else 2
    return [f"x{i + 1}" for i in range(count)]


def parameters_of(function):
    args = function.args
    given = [a.arg for a in args.posonlyargs + args.args]
    optional = len(args.defaults)
    must, may = given[:len(given) - optional], given[len(given) - optional:]
    if must[:1] == ["self"]:
        must = must[1:]
    if args.vararg:
        must.append("*" + args.vararg.arg)
    for a, default in zip(args.kwonlyargs, args.kw_defaults):
        (must if default is None else may).append(a.arg)
    if args.kwarg:
        may += [call.args[0].value for call in ast.walk(function)
                if isinstance(call, ast.Call) and
                ast.unparse(call.func) in (f"{args.kwarg.arg}.pop", f"{args.kwarg.arg}.get")]
    return must, list(dict.fromkeys(p for p in may if not p.startswith("_")))


def main():
    directory = pathlib.Path(sys.argv[1])
    sources, rows, left = Sources(directory), [], []
    for name in all_names():
        parameters = None if name in INDEXED else sources.parameters(LAZY.get(name, PLACES.get(name, name)))
        if parameters is None:
            left.append(name)
            continue
        must, may = parameters
        # Generator's method of the same name may take more.
        method = sources.parameters(f"{LAZY['random.Generator']}.{name.removeprefix('random.')}")
        if name.startswith("random.") and method:
            may = may + [p for p in method[1] if p not in may + must]
        rows.append((name, must, may))
    methods = sources.members(*sources.find("cupy", "ndarray"))
    rows += [(f"ndarray.{name}", *parameters_of(node))
             for name, (_, node) in sorted(methods.items()) if not name.startswith("_")]
    version = re.search(r"'(.*)'", (directory / "cupy" / "_version.py").read_text())[1]
    write_signatures("cupy_signatures.txt", HEAD.format(version=version), rows)
    print("NumPy's own, not CuPy's, or not called:", *left)


if __name__ == "__main__":
    main()
