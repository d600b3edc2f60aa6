"""rensa.optimizers, under Chainer's names."""

from rensa import _engine
from rensa._engine.optimizers import *  # noqa: F403 the engine's names are this module's
from rensa._methods import add_members

__all__ = [name for name in dir(_engine.optimizers) if not name.startswith("_")]


def _setattr(self, name, value):
    """A hyperparameter of that name, or an attribute."""
    if not name.startswith("_") and self._has_hyperparameter(name):
        self._set_hyperparameter(name, value)
    else:
        object.__setattr__(self, name, value)


add_members(Optimizer, __setattr__=_setattr)  # noqa: F405
