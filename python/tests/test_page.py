"""What the pages about Python show runs."""

import os
import pathlib
import re
import tempfile
import unittest


class Page(unittest.TestCase):
    def test_python(self):
        self.run_blocks("python.md")

    def test_guide_python(self):
        self.run_blocks("guide_python.md")

    def run_blocks(self, page):
        """Runs a page's blocks one after the other."""
        page = pathlib.Path(__file__).parents[2] / "docs" / page
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
