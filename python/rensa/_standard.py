"""rensa.xp's names of the array API standard whose keywords NumPy has not all of; they take both."""

import collections
import functools

from rensa import _engine

_Eigh = collections.namedtuple("EighResult", "eigenvalues eigenvectors")
_Qr = collections.namedtuple("QRResult", "Q R")
_Slogdet = collections.namedtuple("SlogdetResult", "sign logabsdet")
_Svd = collections.namedtuple("SVDResult", "U S Vh")


def sort(a, axis=-1, *, descending=False, stable=True):
    """The elements in their order along an axis; equal ones stay as they stood."""
    made = _engine.sort(a, axis)
    return _engine.flip(made, axis) if descending else made


def argsort(a, axis=-1, *, descending=False, stable=True):
    """Where the elements stand that sort() gives."""
    if not descending:
        return _engine.argsort(a, axis)
    a = _engine.asarray(a)
    backwards = _engine.argsort(_engine.flip(a, axis), axis)  # so that equal ones stay as they stood
    return _engine.flip(a.shape[axis] - 1 - backwards, axis)


def searchsorted(a, v, side="left", sorter=None):
    """Where to put elements into a sorted array; `sorter` sorts it first."""
    return _engine.searchsorted(a if sorter is None else _engine.take(a, sorter), v, side)


def repeat(a, repeats, axis=None):
    """Each element so many times."""
    if isinstance(repeats, _engine.ndarray):
        repeats = repeats.tolist()
    return _engine.repeat(a, repeats, axis)


def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Each element less the one before, n times; `prepend` and `append` are set before and behind."""
    parts = [part for part in (prepend, a, append) if part is not None]
    return _engine.diff(a if len(parts) == 1 else _engine.concatenate(parts, axis), n, axis)


def reshape(a, shape, order="C", copy=None):
    """The same elements in another shape."""
    a = _engine.asarray(a)
    made = _engine.reshape(a, shape, order)
    shared = made.size == 0 or _shares(made, a)
    if copy is False and not shared:
        raise ValueError("reshape: copy=False, but this shape needs a copy")
    return made.copy() if copy and shared else made


def _shares(made, a):
    """Whether a reshaped array is a view."""
    if not a.device.is_cpu or made.size == 0:
        return False
    import numpy

    return numpy.shares_memory(numpy.asarray(made), numpy.asarray(a))


def clip(a, min=None, max=None, out=None, *, a_min=None, a_max=None):
    """The elements between two bounds. a_min and a_max are NumPy's older names of these."""
    made = _engine.clip(a, a_min if min is None else min, a_max if max is None else max)
    if out is None:
        return made
    out[...] = made
    return out


def var(a, axis=None, dtype=None, out=None, ddof=0.0, keepdims=False, *, correction=None):
    """The variance. The sum is divided by the number of elements less `ddof`, or `correction`."""
    return _engine.var(a, axis, dtype, out, float(ddof if correction is None else correction), keepdims)


def std(a, axis=None, dtype=None, out=None, ddof=0.0, keepdims=False, *, correction=None):
    """The square root of the variance."""
    return _engine.std(a, axis, dtype, out, float(ddof if correction is None else correction), keepdims)


def meshgrid(*xi, indexing="xy"):
    """Coordinates of a grid: a list."""
    return list(_engine.meshgrid(*xi, indexing=indexing))


def broadcast_arrays(*args):
    """All of them of one shape: a list."""
    return list(_engine.broadcast_arrays(*args))


def _named(function, result):
    """The function, whose results have names; of other numbers of results as they are."""

    @functools.wraps(function)
    def made(*args, **kwargs):
        results = function(*args, **kwargs)
        return result(*results) if isinstance(results, tuple) and len(results) == len(result._fields) else results

    return made


def name_results(linalg):
    """Results of factors have the standard's names."""
    linalg.eigh, linalg.qr = _named(linalg.eigh, _Eigh), _named(linalg.qr, _Qr)
    linalg.slogdet, linalg.svd = _named(linalg.slogdet, _Slogdet), _named(linalg.svd, _Svd)


def add_random_forms(random):
    """NumPy's forms of xp.random that take extents one by one, or leave the lower bound out."""
    of_bounds = random.randint

    def rand(*shape, dtype=None, device=None):
        """Numbers from [0, 1)."""
        return random.random(shape or None, dtype, device)

    def randn(*shape, dtype=None, device=None):
        """Numbers of the standard normal distribution."""
        return random.standard_normal(shape or None, dtype, device)

    def randint(low, high=None, size=None, dtype=None, device=None):
        """Integers from [low, high), or from [0, low)."""
        if high is None:
            low, high = 0, low
        return of_bounds(low, high, size, dtype) if device is None else of_bounds(low, high, size, dtype, device)

    random.rand, random.randn, random.randint = rand, randn, randint


NAMES = [sort, argsort, searchsorted, repeat, diff, reshape, clip, var, std, meshgrid, broadcast_arrays]
