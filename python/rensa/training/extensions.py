"""What a Trainer calls beside its updates. One of your own is a function of the trainer, or an object with Chainer's
attributes: `trigger`, `priority`, `default_name`, `initialize(trainer)`, `finalize()`."""

from rensa import _engine
from rensa._methods import names_of

_names = names_of(_engine.training.extensions)
globals().update(_names)


class Extension:
    """What a Trainer calls beside its updates: the base of classes of one's own."""

    trigger = (1, "iteration")
    priority = _engine.training.extensions.PRIORITY_READER
    name = None

    @property
    def default_name(self):
        """The name where extend() gives none."""
        return type(self).__name__

    def __call__(self, trainer):
        """Called in each iteration in which its trigger fires, after the update."""
        raise NotImplementedError(f"{type(self).__name__}: an extension is called with its trainer")

    def initialize(self, trainer):
        """Called before the first iteration."""

    def finalize(self):
        """Called at the end of the run, also of one that fails."""

    def on_error(self, trainer, exception, traceback):
        """Called when the run fails."""

    def serialize(self, serializer):
        """Names what lasts of it: `self.best = serializer("best", self.best)`, a number, a text, an array or None."""


def make_extension(trigger=(1, "iteration"), default_name=None, priority=_engine.training.extensions.PRIORITY_READER,
                   finalizer=None, initializer=None, on_error=None):
    """Says of a function, as a decorator, when a trainer calls it."""

    def decorated(function):
        function.trigger, function.priority = trigger, priority
        function.default_name = default_name or function.__name__
        function.finalize, function.initialize, function.on_error = finalizer, initializer, on_error
        return function

    return decorated


__all__ = ["Extension", "make_extension", *_names]
