"""rensa.iterators, under Chainer's names."""

from rensa import _engine
from rensa._engine.iterators import *  # noqa: F403 the engine's names are this module's

__all__ = [name for name in dir(_engine.iterators) if not name.startswith("_")]
