"""rensa.serializers, under Chainer's names."""

from rensa import _engine
from rensa._engine.serializers import *  # noqa: F403 the engine's names are this module's

__all__ = [name for name in dir(_engine.serializers) if not name.startswith("_")]
