"""rensa.iterators, under Chainer's names."""

from rensa import _engine
from rensa._methods import names_of

_names = names_of(_engine.iterators)
globals().update(_names)
__all__ = list(_names)


class MultiprocessIterator(MultithreadIterator):  # noqa: F405
    """Chainer's name: threads of C++ fetch, and need no processes, nor memory that these share."""

    def __init__(self, dataset, batch_size, repeat=True, shuffle=None, n_processes=None, n_prefetch=1, shared_mem=None,
                 order_sampler=None, dataset_timeout=30.0, maxtasksperchild=None):
        super().__init__(dataset, batch_size, repeat, shuffle, n_processes or 0, order_sampler, n_prefetch=n_prefetch)


__all__.append("MultiprocessIterator")
