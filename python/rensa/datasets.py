"""rensa.datasets, under Chainer's names."""

from rensa import _engine
from rensa._engine.datasets import *  # noqa: F403 the engine's names are this module's

__all__ = [name for name in dir(_engine.datasets) if not name.startswith("_")]
