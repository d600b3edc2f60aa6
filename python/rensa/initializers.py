"""rensa.initializers, under Chainer's names."""

from rensa import _engine
from rensa._engine.initializers import *  # noqa: F403 the engine's names are this module's

__all__ = [name for name in dir(_engine.initializers) if not name.startswith("_")]
