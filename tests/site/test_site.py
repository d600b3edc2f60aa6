#!/usr/bin/env python3
"""Tests tools/site on small trees: what is public, which comment is whose, and what is a fault.

    tests/site/test_site.py        exits with 77 where libclang's python or Markdown's is not installed
"""
import importlib.util
import pathlib
import sys
import tempfile
import unittest

if any(importlib.util.find_spec(module) is None for module in ("clang", "markdown", "pygments")):
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "site"))

import make_site

PAGE = "# The library\n\nSee [the guide](docs/guide.md#a-first-step) and `lib::area`.\n"
GUIDE = "# Guide\n\n## A first step\n\n[Back](../README.md)\n"


class Site(unittest.TestCase):
    def make(self, header, page=PAGE, guide=GUIDE, table=""):
        """Sets what make() gives for a tree of one header, whose namespace is lib, and a table."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (("lib/lib.h", f"namespace lib {{\n{header}}}\n"), ("README.md", page),
                               ("lib/table.def", table), ("docs/guide.md", guide)):
                (root / path).parent.mkdir(exist_ok=True)
                (root / path).write_text(text)
            self.site, _, self.count, self.faults = make_site.make(root, "lib/lib.h", "lib", "lib")

    def documents(self, header, text="", faults=()):
        """The header's faults are these, of names; the reference has the text."""
        self.make(header)
        self.assertEqual([fault.split()[2] for fault in self.faults], list(faults))
        self.assertIn(text, self.site["reference/rensa.html"])

    def test_a_name_without_a_comment_is_a_fault(self):
        self.make("/// Its area.\ndouble area(double r);\n\ndouble length(double r);\n")
        self.assertEqual(self.faults, ["lib/lib.h:5: function length has no comment"])

    def test_comments_stand_above_and_behind(self):
        self.documents("/// Its area.\ndouble area(double r);\n", "Its area.")
        self.documents("double area(double r);  // in m^2\n", "in m^2")
        self.documents("double area(double r,\n            double s);  // in m^2\n", "in m^2")
        self.documents("// --- shapes ---\ndouble area(double r);\n", faults=["area"])

    def test_a_run_shares_a_comment_that_is_of_all(self):
        self.documents("/// The transform, and back.\nint fft(int);\nint ifft(int);\n")
        self.documents("/// -1, 0 or 1; as width, and its floor.\nint sign(int);\nint floor(int);\n")
        self.documents("// Rounded.\nint sign(int);\nint trunc(int);\n")

    def test_a_run_does_not_lend_a_comment_of_another_name(self):
        self.documents("/// 1 / (1 + exp(-x)).\nint sigmoid(int);\nint relu(int);\n", faults=["relu"])
        self.documents("/// The transform, and back.\nint fft(int);\n\nint ifft(int);\n", faults=["ifft"])

    def test_what_is_not_public_needs_no_comment(self):
        self.documents("namespace detail { int f(); }\nnamespace operations { int g(); }\n"
                       "/// A class.\nclass C {\n  int private_;\n protected:\n  void f();\n};\n")

    def test_members_need_comments(self):
        self.documents("/// A class.\nclass C {\n public:\n  C();\n  explicit C(int);\n  ~C();\n"
                       "  C(const C&);\n  C& operator=(const C&);\n  void f();\n};\n", faults=["C::f"])
        self.documents("/// A class of width() only.\nstruct C {\n  int width();\n  int height();\n};\n",
                       faults=["C::height"])

    def test_an_override_is_as_what_it_overrides(self):
        self.documents("/// A base.\nstruct B {\n  /// The answer.\n  virtual int f();\n};\n"
                       "/// Derived.\nstruct D : B {\n  int f() override;\n};\n", "As <a")

    def test_what_is_instantiated_elsewhere_says_nothing_of_its_template(self):
        self.documents("/// A base.\nstruct B {\n  /// The answer.\n  int f();\n};\n/// Of it.\n"
                       "template <class T> struct D : B {\n  int f();\n};\n"
                       "extern template struct D<int>;  // compiled once\n", "As <a")
        self.assertNotIn("compiled once", self.site["reference/rensa.html"])

    def test_options_are_those_of_what_takes_them(self):
        self.documents("struct AreaOptions {\n  int unit;  // of the result\n  int scale;\n};\n\n"
                       "/// Its area, times scale.\nint area(const AreaOptions& options);\n", "The options of")

    def test_a_comment_above_options_is_the_functions(self):
        self.documents("/// Its area.\nstruct AreaOptions {\n  int unit;  // of the result\n};\n"
                       "int area(const AreaOptions& options);\n")
        self.documents("/// Its area.\nstruct AreaOptions {\n  int unit;  // of the result\n};\n"
                       "int length(int);\n", faults=["length"])

    def test_what_macros_make_is_there(self):
        header = "/// Of its name.\n#define LIB_MAKE(name) \\\n  int name(int value);\nLIB_MAKE(%s)\nLIB_MAKE(area)\n"
        self.documents(header % "area_of", "int area(int value)")
        self.documents(header % "length", faults=["area"])

    def test_a_row_of_a_table_documents_a_ufunc(self):
        header = '#define RENSA_UFUNC(name, n, rule, f) extern const int name;\n#include "lib/table.def"\n'
        self.make(header, table="// A table.\nRENSA_UFUNC(add, 2, any, a + b)\n")
        self.assertEqual(self.faults, [])
        self.assertIn("<code>a + b</code>. Dtypes: <code>DtypeRule::any</code>", self.site["reference/rensa.html"])

    def test_a_signature_has_no_body(self):
        self.documents("/// A class.\nclass C {\n public:\n  /// Makes it.\n  C(int x) : x_(x) {}\n"
                       "  /// Its x.\n  int x() const { return x_; }\n private:\n  int x_;\n};\n",
                       ">int x() const<a")
        self.assertIn(">C(int x)<a", self.site["reference/rensa.html"])

    def test_links_have_to_lead_somewhere(self):
        header = "/// Its area.\ndouble area(double r);\n"
        self.make(header, "# A\n\n[there](docs/guide.md), [not](docs/none.md), `[code](none)`\n")
        self.assertEqual(self.faults, ["README.md:3: docs/none.md is not there"])
        self.make(header, guide="# Guide\n\n## Another step\n")
        self.assertEqual(self.faults, ["README.md:3: docs/guide.md has no heading #a-first-step"])
        self.make(header, "# A\n\n```\n[an example](none.md)\n```\n\n[header](lib/lib.h), [net](https://x.org)\n")
        self.assertEqual(self.faults, [])
        self.assertIn("source/lib/lib.h.html", self.site["index.html"])

    def test_names_in_pages_lead_to_the_reference(self):
        self.make("/// Its area.\ndouble area(double r);\n", "# A\n\n`area` and `volume`.\n")
        self.assertIn('<a href="reference/rensa.html#area"><code>area</code></a>', self.site["index.html"])
        self.assertIn("<code>volume</code>", self.site["index.html"])

    def test_dead_links_of_the_site_are_found(self):
        site = {"a.html": '<a href="b.html#x">b</a> <a href="c.html">c</a>', "b.html": '<p id="y">'}
        self.assertEqual(make_site.dead_links(site), ["site, a.html: b.html#x is not there",
                                                      "site, a.html: c.html is not there"])

    def test_the_search_has_names_and_headings(self):
        self.make("/// Its area.\ndouble area(double r);\n")
        for part in ('"area", "reference/rensa.html#area", "Its area."', '"docs/guide.html#a-first-step"'):
            self.assertIn(part, self.site["search_index.js"])


if __name__ == "__main__":
    unittest.main()
