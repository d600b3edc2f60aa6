"""rensa.optimizer_hooks, under Chainer's names."""

from rensa import _engine
from rensa._methods import names_of

_names = names_of(_engine.optimizer_hooks)
globals().update(_names)
__all__ = list(_names)
