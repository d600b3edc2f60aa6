"""How python/suites/run.py counts and shows what tests came to."""

import importlib.util
import pathlib
import types
import unittest

PLACE = pathlib.Path(__file__).resolve().parent.parent / "suites" / "run.py"


def load():
    spec = importlib.util.spec_from_file_location("suites_run", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SUITE = types.SimpleNamespace(
    ABSENT=[(r"test_sparse", "sparse matrices")],
    REASONS=[(r"no such name", "names that are not there", True), (r"a mock", "mocks", False)])


class Suites(unittest.TestCase):
    def test_counts(self):
        run = load()
        outcomes = {"a": ("passed", ""), "b": ("skipped", "another backend"), "c": ("failed", "no such name: x"),
                    "d": ("failed", "a mock"), "e": ("failed", "whatever"), "f": ("absent", "sparse matrices"),
                    "test_sparse": ("failed", "cannot be imported")}
        passed, skipped, failed, absent = counts = run.counts_of(SUITE, outcomes)
        self.assertEqual((passed, skipped), (1, 1))
        self.assertEqual(failed, {"names that are not there": 1, run.UNKNOWN: 1})
        self.assertEqual(absent, {"mocks": 1, "sparse matrices": 2})
        table = run.table_of([("folder", counts)])
        self.assertIn("| folder | 1 | 2 | 3 | 1 | 33.3 % |", table)
        self.assertIn("| sparse matrices | 2 |", table)


if __name__ == "__main__":
    unittest.main()
