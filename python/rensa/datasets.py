"""rensa.datasets, under Chainer's names."""

from rensa import _engine
from rensa._methods import names_of

_names = names_of(_engine.datasets)
globals().update(_names)
__all__ = list(_names)


class DatasetMixin:
    """The base of datasets of one's own: they have get_example(i) and a length."""

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self.get_example(i) for i in range(*index.indices(len(self)))]
        if isinstance(index, (list, tuple)):
            return [self.get_example(i) for i in index]
        return self.get_example(index if index >= 0 else len(self) + index)

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}: a dataset has a length")

    def get_example(self, i):
        """Example i: a tuple of columns, or the one."""
        raise NotImplementedError(f"{type(self).__name__}: a dataset has examples")


__all__.append("DatasetMixin")
