"""chainer.initializers."""

import numpy

import rensa
from rensa import initializers, xp


def _is_values(value):
    return isinstance(value, (numpy.ndarray, xp.ndarray)) or numpy.isscalar(value)


def get_initializer(initializer):
    """The initializer that an argument stands for: LeCunNormal of none, a constant of a number or an array."""
    if initializer is None:
        return initializers.LeCunNormal()
    if _is_values(initializer):
        return initializers.Constant(initializer)
    if not callable(initializer):
        raise TypeError(f"an initializer is a number, an array, or a function that fills one, not {initializer!r}")
    return initializer


def check_is_initializer_like(initializer):
    """Raises TypeError for what stands for no initializer."""
    if initializer is not None:
        get_initializer(initializer)


def get_fans(shape):
    """How many elements of the input and of the output each element of weights meets."""
    if len(shape) < 2:
        raise ValueError(f"get_fans: two axes are needed, not {len(shape)}")
    size = int(numpy.prod(shape[2:]))
    return shape[1] * size, shape[0] * size


def names():
    """Those of chainer.initializers."""
    own = {name: getattr(initializers, name) for name in initializers.__all__}
    return {
        **own,
        "_get_initializer": get_initializer,
        "_check_is_initializer_like": check_is_initializer_like,
        "Initializer": rensa.Initializer,
    }
