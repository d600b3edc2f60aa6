"""What is told of each function that a thread applies and goes back through, within `with hook:`."""

import sys

from rensa import _engine
from rensa._engine.function_hooks import *  # noqa: F403 the engine's names are this module's
from rensa._engine.function_hooks import Hook
from rensa._methods import add_members

CupyMemoryProfileHook = MemoryProfileHook  # noqa: F405 Chainer's name


class FunctionHook:
    """The base of hooks of one's own. `in_data` are the inputs' arrays, None in backward; `out_grad` those of the outputs'
    gradients."""

    name = "FunctionHook"

    def added(self, function):
        """Its scope begins."""

    def deleted(self, function):
        """Its scope ends."""

    def forward_preprocess(self, function, in_data):
        """Before a function's forward."""

    def forward_postprocess(self, function, in_data):
        """Behind a function's forward."""

    def backward_preprocess(self, function, in_data, out_grad):
        """Before a function's backward."""

    def backward_postprocess(self, function, in_data, out_grad):
        """Behind a function's backward."""

    def __enter__(self):
        self.__dict__["_scope"] = Hook(self)
        self._scope.__enter__()
        return self

    def __exit__(self, *error):
        self.__dict__.pop("_scope").__exit__(*error)


def print_report(self, unit="auto", file=None):
    """Prints the summary as a table."""
    print(self.str(unit), end="", file=file or sys.stdout)


for _class in (TimerHook, MemoryProfileHook):  # noqa: F405
    add_members(_class, print_report=print_report)

__all__ = ["CupyMemoryProfileHook", "FunctionHook", *(name for name in dir(_engine.function_hooks) if not name.startswith("_"))]
