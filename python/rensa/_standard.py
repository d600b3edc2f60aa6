"""What rensa.xp has beside the engine's routines: results with names, NumPy's other forms of arguments."""

import collections
import functools

from rensa import _engine

_Eig = collections.namedtuple("EigResult", "eigenvalues eigenvectors")
_Eigh = collections.namedtuple("EighResult", "eigenvalues eigenvectors")
_Qr = collections.namedtuple("QRResult", "Q R")
_Slogdet = collections.namedtuple("SlogdetResult", "sign logabsdet")
_Svd = collections.namedtuple("SVDResult", "U S Vh")


def _named(function, result):
    """The function, whose results have names; of other numbers of results as they are."""

    @functools.wraps(function)
    def made(*args, **kwargs):
        results = function(*args, **kwargs)
        return result(*results) if isinstance(results, tuple) and len(results) == len(result._fields) else results

    return made


def name_results(linalg):
    """Results of factors have the standard's names."""
    linalg.eig, linalg.eigh, linalg.qr = _named(linalg.eig, _Eig), _named(linalg.eigh, _Eigh), _named(linalg.qr, _Qr)
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
        low, high = (int(bound) if isinstance(bound, float) else bound for bound in (low, high))
        return of_bounds(low, high, size, dtype) if device is None else of_bounds(low, high, size, dtype, device)

    def bytes(length):  # noqa: A001 NumPy's name
        """That many random bytes."""
        return random.randint(0, 256, length, "uint8").tobytes()

    random.bytes = bytes
    random.rand, random.randn, random.randint = rand, randn, randint


def clip(a, min=None, max=None, out=None, *, a_min=None, a_max=None):
    """The elements between two bounds. a_min and a_max are NumPy's older names of these."""
    return _engine.clip(a, a_min if min is None else min, a_max if max is None else max, out)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _subscripts_of(labels):
    return "".join("..." if label is Ellipsis else _LETTERS[label] for label in labels)


def einsum(subscripts, *operands, out=None, dtype=None, casting=None, optimize=None):
    """Einstein's sums: einsum("ij,jk->ik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if not isinstance(subscripts, str):
        arguments = (subscripts, *operands)
        operands = arguments[:len(arguments) // 2 * 2:2]
        labels = [_subscripts_of(one) for one in arguments[1::2]]
        result = "->" + _subscripts_of(arguments[-1]) if len(arguments) % 2 else ""
        subscripts = ",".join(labels) + result
    return _engine.einsum(subscripts, *operands, out=out, dtype=dtype, casting=casting)


# --- grids and joins that are written between brackets ---


class _Grid:
    """mgrid[0:3, 0:1:5j]: the coordinates of a grid."""

    def __init__(self, sparse):
        self._sparse = sparse

    @staticmethod
    def _values(axis):
        start, step = 0 if axis.start is None else axis.start, 1 if axis.step is None else axis.step
        if isinstance(step, complex):
            number = int(abs(step))
            if isinstance(start, _engine.ndarray) or isinstance(axis.stop, _engine.ndarray):
                return _engine.arange(number) * ((axis.stop - start) / (number - 1)) + start
            return _engine.linspace(start, axis.stop, number)
        return _engine.arange(start, axis.stop, step)

    def __getitem__(self, key):
        if not isinstance(key, tuple):
            return self._values(key)
        parts = _engine.meshgrid(*[self._values(axis) for axis in key], indexing="ij", sparse=self._sparse)
        dtype = _engine.result_type(*parts) if parts else float
        parts = [part.astype(dtype, copy=False) for part in parts]
        if self._sparse:
            return tuple(parts)
        return _engine.stack(parts) if parts else _engine.zeros((0,))


class _Joined:
    """r_[a, 0, 1:5] and c_[a, b]: what stands between the brackets, joined along an axis."""

    def __init__(self, axis, ndmin, trans1d):
        self._directions = axis, ndmin, trans1d

    def __getitem__(self, key):
        axis, ndmin, trans1d = self._directions
        parts = list(key) if isinstance(key, tuple) else [key]
        if parts and isinstance(parts[0], str):
            text = parts.pop(0)
            if text in ("r", "c"):
                raise NotImplementedError("r_: there are no matrices")
            numbers = [int(number) for number in text.split(",")]
            axis, ndmin, trans1d = (numbers + [axis, ndmin, trans1d][len(numbers):])[:3]
        return _engine.concatenate(_of_one_dtype([self._part(part, ndmin, trans1d) for part in parts]), axis=axis)

    @staticmethod
    def _part(part, ndmin, trans1d):
        weak = isinstance(part, (bool, int, float, complex))
        if isinstance(part, slice):
            part = _Grid._values(part)
        a = _engine.asarray(part)
        first = a.ndim
        if a.ndim < ndmin:
            a = _engine.array(a, copy=None, ndmin=ndmin)
            if trans1d != -1 and first > 0:
                places = list(range(ndmin))
                at = trans1d + ndmin - first + 1 if trans1d < 0 else trans1d
                axes = places[:0]
                rest = iter(range(ndmin - first))
                kept = iter(range(ndmin - first, ndmin))
                axes = [next(kept) if at <= place < at + first else next(rest) for place in places]
                a = a.transpose(axes)
        return (a if a.ndim else a.reshape(1)), weak

    def __len__(self):
        return 0


def _of_one_dtype(parts):
    """Arrays in the dtype that all meet in, in which plain numbers weigh by their kind alone."""
    strong = [a for a, weak in parts if not weak]
    kinds = [a.item() for a, weak in parts if weak]
    dtype = _engine.result_type(*strong, *kinds) if strong else _engine.result_type(*[a for a, _ in parts])
    return [a.astype(dtype, copy=False) for a, _ in parts]


mgrid, ogrid = _Grid(False), _Grid(True)
r_, c_ = _Joined(0, 1, -1), _Joined(-1, 2, 0)

NAMES = {"clip": clip, "einsum": einsum, "mgrid": mgrid, "ogrid": ogrid, "r_": r_, "c_": c_}
