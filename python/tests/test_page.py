"""What docs/python.md shows runs."""

import pathlib
import re
import unittest


class Page(unittest.TestCase):
    def test_blocks_run_one_after_the_other(self):
        page = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 2)
        names = {}
        for block in blocks:
            exec(block, names)


if __name__ == "__main__":
    unittest.main()
