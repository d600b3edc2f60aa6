"""rensa.training.updaters, under Chainer's names."""

from rensa import _engine
from rensa._engine.training.updaters import *  # noqa: F403 the engine's names are this module's
from rensa._methods import add_members


def serialize(self, serializer):
    """Names what lasts of a class of one's own: `self.best = serializer("best", self.best)`, a number, a text, an array
    or None. The engine's part names itself."""


add_members(_engine.training.updaters.Updater, serialize=serialize)

__all__ = [name for name in dir(_engine.training.updaters) if not name.startswith("_")]
