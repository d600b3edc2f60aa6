"""Checks of gradients against differences of values, for tests of functions."""

from rensa import _engine
from rensa._engine.gradient_check import *  # noqa: F403 the engine's names are this module's

__all__ = [name for name in dir(_engine.gradient_check) if not name.startswith("_")]
