"""The stubs that are written for editors and type checkers: they are Python, and know every name they use."""

import ast
import builtins
import pathlib
import subprocess
import sys
import tempfile
import unittest

import rensa

try:
    import nanobind  # noqa: F401 writes them
except ImportError:
    nanobind = None


def names_of(tree):
    """The names that a stub defines or imports."""
    names = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def annotations_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from (a.annotation for a in arguments if a.annotation)
            if node.returns:
                yield node.returns


@unittest.skipIf(nanobind is None, "nanobind, which writes stubs, is not installed")
class Stubs(unittest.TestCase):
    def test_every_name_is_known(self):
        package = pathlib.Path(rensa.__file__).parent.parent
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-r", "-m", "rensa._engine", "-i", str(package),
                            "-O", folder], check=True)
            stubs = sorted(pathlib.Path(folder).rglob("*.pyi"))
            self.assertGreater(len(stubs), 10)
            for stub in stubs:
                tree = ast.parse(stub.read_text())
                known = names_of(tree)
                for annotation in annotations_of(tree):
                    for node in ast.walk(annotation):
                        if isinstance(node, ast.Name):
                            self.assertIn(node.id, known, f"{stub.name}: {ast.unparse(annotation)}")


if __name__ == "__main__":
    unittest.main()
