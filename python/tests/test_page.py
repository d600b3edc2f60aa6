"""What docs/python.md shows runs."""

import os
import pathlib
import re
import tempfile
import unittest


class Page(unittest.TestCase):
    def test_blocks_run_one_after_the_other(self):
        page = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 2)
        names, folder = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            try:
                for block in blocks:
                    exec(block, names)
            finally:
                os.chdir(folder)


if __name__ == "__main__":
    unittest.main()
