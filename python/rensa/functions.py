"""Functions of networks, with gradients: Chainer's `F`."""

from rensa import _engine
from rensa._engine.functions import *  # noqa: F403 the engine's names are this module's

__all__ = [name for name in dir(_engine.functions) if not name.startswith("_")]
