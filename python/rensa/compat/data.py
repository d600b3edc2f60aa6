"""chainer.dataset and chainer.iterators: bases of classes of one's own."""

import numpy

from rensa import converters, datasets, iterators


class _IteratorClass(type):
    def __instancecheck__(cls, value):
        return isinstance(value, iterators.Iterator) or type.__instancecheck__(cls, value)


class Iterator(metaclass=_IteratorClass):
    """The base of iterators of one's own: they have __next__, or next, and what updaters read: `epoch`, `is_new_epoch`,
    `epoch_detail`, `previous_epoch_detail`."""

    def __iter__(self):
        return self

    def __next__(self):
        raise NotImplementedError(f"{type(self).__name__}: an iterator has __next__")

    def next(self):
        """The next batch."""
        return self.__next__()

    def __del__(self):
        self.finalize()

    def finalize(self):
        """Lets go of what it holds."""

    def serialize(self, serializer):
        """Names what lasts of it: `self.epoch = serializer("epoch", self.epoch)`."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.finalize()


class OrderSampler:
    """The base of orders of an epoch's examples: called with the last one and the place in it."""

    def __call__(self, current_order, current_position):
        raise NotImplementedError(f"{type(self).__name__}: an order sampler is called")


class ShuffleOrderSampler(OrderSampler):
    """Permutations by a generator of NumPy's."""

    def __init__(self, random_state=None):
        self._random = numpy.random.random.__self__ if random_state is None else random_state

    def __call__(self, current_order, current_position):
        return self._random.permutation(len(current_order))


def converter():
    """As a decorator: says of a function of a batch and a device that it takes a Device, as all do here."""
    return lambda function: function


def modules():
    """{name below chainer: names}"""
    own = {
        "Iterator": Iterator,
        "DatasetMixin": datasets.DatasetMixin,
        "concat_examples": converters.concat_examples,
        "to_device": converters.to_device,
        "converter": converter,
    }
    orders = {"OrderSampler": OrderSampler, "ShuffleOrderSampler": ShuffleOrderSampler}
    return {"dataset": own, "iterators": {**{name: getattr(iterators, name) for name in iterators.__all__}, **orders}}
