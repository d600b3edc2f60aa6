"""What a Trainer calls beside its updates. One of your own is a function of the trainer, or an object with Chainer's
attributes: `trigger`, `priority`, `default_name`, `initialize(trainer)`, `finalize()`."""

from rensa import _engine
from rensa._engine.training.extensions import *  # noqa: F403 the engine's names are this module's


def make_extension(trigger=(1, "iteration"), default_name=None, priority=_engine.training.extensions.PRIORITY_READER,
                   finalizer=None, initializer=None):
    """Says of a function, as a decorator, when a trainer calls it."""

    def decorated(function):
        function.trigger, function.priority = trigger, priority
        function.default_name = default_name or function.__name__
        function.finalize, function.initialize = finalizer, initializer
        return function

    return decorated


__all__ = ["make_extension"] + [name for name in dir(_engine.training.extensions) if not name.startswith("_")]
