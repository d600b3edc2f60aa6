"""rensa.iterators, under Chainer's names."""

from rensa import _engine
from rensa._methods import names_of

globals().update(names_of(_engine.iterators))
__all__ = list(names_of(_engine.iterators))

MultiprocessIterator = MultithreadIterator  # noqa: F405 Chainer's name: threads of C++ need no processes
__all__.append("MultiprocessIterator")
