"""rensa.optimizer_hooks, under Chainer's names."""

from rensa import _engine
from rensa._engine.optimizer_hooks import *  # noqa: F403 the engine's names are this module's

__all__ = [name for name in dir(_engine.optimizer_hooks) if not name.startswith("_")]
