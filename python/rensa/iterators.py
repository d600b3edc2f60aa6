"""rensa.iterators, under Chainer's names."""

from rensa import _engine
from rensa._methods import names_of

_names = names_of(_engine.iterators)
globals().update(_names)
__all__ = list(_names)

MultiprocessIterator = MultithreadIterator  # noqa: F405 Chainer's name: threads of C++ need no processes
__all__.append("MultiprocessIterator")
