"""rensa.initializers, under Chainer's names."""

from rensa import _engine
from rensa._methods import names_of

globals().update(names_of(_engine.initializers))
__all__ = list(names_of(_engine.initializers))
