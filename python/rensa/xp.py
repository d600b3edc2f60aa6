"""Arrays with NumPy's names: rensa.xp.add(a, b, out=c), a[rows, 1:], a.sum(axis=0).

What differs from NumPy: an array is on a device (`device="cuda:0"`); one element of an array is an
array without axes, as CuPy's, of which item() gives the number; empty memory is not shared with a
list; there are no elements but numbers and bools.
"""

import collections

from rensa import _engine
from rensa._engine import *  # noqa: F403 the engine's names are this module's
from rensa._engine import ndarray, random, ufunc  # noqa: F401
from rensa._methods import add_members
from rensa._standard import NAMES, add_random_forms, name_results

globals().update(NAMES)
name_results(_engine.linalg)
add_random_forms(_engine.random)
__array_api_version__ = "2024.12"

fft = _engine.fft
linalg = _engine.linalg
for _name in "matmul outer tensordot vecdot matvec vecmat".split():  # the standard has them there, too
    setattr(linalg, _name, getattr(_engine, _name))
newaxis = None
inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045
absolute = _engine.absolute
abs, amax, amin = absolute, _engine.max, _engine.min  # NumPy's other names
asanyarray = _engine.asarray
true_divide, mod, fix = _engine.divide, _engine.remainder, _engine.trunc
deg2rad, rad2deg, bitwise_not = _engine.radians, _engine.degrees, _engine.invert
lib = _engine.lib
Inf = Infinity = infty = inf
NINF, PINF, NZERO, PZERO, NAN, NaN, euler_gamma = -inf, inf, -0.0, 0.0, nan, nan, 0.5772156649015329


# --- the array API standard ---

# Its names of what NumPy calls otherwise.
acos, acosh, asin, asinh, atan, atan2, atanh = (
    _engine.arccos, _engine.arccosh, _engine.arcsin, _engine.arcsinh, _engine.arctan, _engine.arctan2, _engine.arctanh)
bitwise_invert, bitwise_left_shift, bitwise_right_shift = _engine.invert, _engine.left_shift, _engine.right_shift
conj, pow, concat, permute_dims = _engine.conjugate, _engine.power, _engine.concatenate, _engine.transpose

_Unique = collections.namedtuple("UniqueAllResult", "values indices inverse_indices counts")
_UniqueCounts = collections.namedtuple("UniqueCountsResult", "values counts")
_UniqueInverse = collections.namedtuple("UniqueInverseResult", "values inverse_indices")


def unique_all(x):
    """The values, where each stands first, which one each element is, and how often each is there."""
    return _Unique(*_engine._unique(x))


def unique_counts(x):
    """The values, and how often each is there."""
    values, _, _, counts = _engine._unique(x)
    return _UniqueCounts(values, counts)


def unique_inverse(x):
    """The values, and which one each element is."""
    values, _, inverse, _ = _engine._unique(x)
    return _UniqueInverse(values, inverse)


def unique_values(x):
    """The values, sorted."""
    return _engine._unique(x)[0]


def matrix_transpose(x):
    """The last two axes exchanged."""
    return x.mT


def astype(x, dtype, copy=True, device=None):
    """The elements in another dtype."""
    made = x.astype(dtype, copy=copy)
    return made if device is None else made.to(device)


class _Information:
    """What __array_namespace_info__() gives: the array API standard's inspection."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self):
        return _engine.current_device()

    def default_dtypes(self, device=None):
        return {"real floating": _engine.float64, "complex floating": _engine.complex128, "integral": _engine.int64,
                "indexing": _engine.int64}

    def devices(self):
        return [_engine.Device("cpu")] + [_engine.Device(f"cuda:{i}") for i in range(_engine.num_gpus())]

    def dtypes(self, device=None, kind=None):
        names = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128").split()
        found = {name: _engine.dtype(name) for name in names}
        if kind is None:
            return found
        return {name: dtype for name, dtype in found.items() if _engine.isdtype(dtype, kind)}


def __array_namespace_info__():
    """The array API standard's inspection of this module."""
    return _Information()


def _format(self, spec):
    """A number where there is one element and a form of numbers is asked for."""
    return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)


def _numpy_dtype(self):
    """NumPy's, for numpy.dtype(a.dtype)."""
    import numpy

    return numpy.dtype(self.name)


def _namespace(self, api_version=None):
    import sys

    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"the array API standard of {api_version} is not here: 2024.12 is")
    return sys.modules[__name__]


def _to_device(self, device, stream=None):
    return self.to(device)


def asnumpy(a):
    """The elements as an array of NumPy's, which shares the memory where `a` is on the CPU."""
    import numpy

    return numpy.asarray(a if isinstance(a, ndarray) and a.device.is_cpu else asarray(a).get())


def _array(self, dtype=None, copy=None):
    """What numpy.asarray(a) calls where the buffer protocol does not do: GPUs are asked explicitly."""
    import numpy

    if not self.device.is_cpu:
        raise TypeError("an array on a GPU becomes one of NumPy's by asnumpy(a) or a.get(), which wait")
    return numpy.array(memoryview(self), dtype=dtype, copy=copy)


def _array_ufunc(self, function, method, *inputs, **keywords):
    """numpy.add(a, b) of such arrays is ours."""
    own = getattr(_engine, function.__name__, None)
    if own is None or not (isinstance(own, ufunc) or method == "__call__"):
        return NotImplemented
    if method == "__call__":
        return own(*inputs, **keywords)
    return getattr(own, method)(*inputs, **keywords)


def _array_function(self, function, types, arguments, keywords):
    """numpy.concatenate([a, b]) of such arrays is ours."""
    place = getattr(function, "__module__", "").split(".")[-1]
    places = {"linalg": linalg, "fft": fft, "random": random}
    own = getattr(places[place], function.__name__, None) if place in places else globals().get(function.__name__)
    if own is None or not callable(own):
        return NotImplemented
    return own(*arguments, **keywords)


def _of_pickle(data, shape, dtype, device):
    return asarray(bytearray(data), device=device).view(dtype).reshape(shape)


def _reduce(self):
    return _of_pickle, (self.tobytes(), self.shape, str(self.dtype), str(self.device))


def _address(array):
    return _engine.byte_bounds(array)[0] if array.size else 0


class _MemoryPointer:
    """CuPy's ndarray.data: where the elements are."""

    def __init__(self, array):
        self._array = array
        self.device = array.device

    @property
    def ptr(self):
        """The address."""
        return _address(self._array)

    def as_array(self, shape, dtype, strides=None, order="C"):
        """A view of the memory from there on."""
        rows = self._array if self._array.flags.c_contiguous else self._array.T
        a = rows.reshape(-1, copy=False).view(dtype)  # a ValueError where the elements lie apart
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if strides is None:
            wanted = empty(shape, dtype, order, device="cpu")  # noqa: F405
            strides = wanted.strides
        return lib.stride_tricks.as_strided(a, shape, strides)

    def copy_to_host_async(self, mem, size, stream=None):
        """Copies to the host memory that `mem` (a ctypes pointer, or its number) points to."""
        import ctypes

        address = mem if isinstance(mem, int) else ctypes.cast(mem, ctypes.c_void_p).value
        target = asarray((ctypes.c_uint8 * size).from_address(address))
        self._array.view(uint8).reshape(-1)[:size].get(stream=stream, out=target)  # noqa: F405

    copy_to_host = copy_to_host_async


def _data(self):
    return _MemoryPointer(self)


def _iter(self):
    return (self[i] for i in range(len(self)))


def _contains(self, value):
    return bool((self == value).any())


class _Flat:
    """numpy.ndarray.flat: the elements in C order."""

    def __init__(self, array):
        self.base, self.index = array, 0

    def __len__(self):
        return self.base.size

    def __iter__(self):
        return self

    def __next__(self):
        if self.index == self.base.size:
            raise StopIteration
        self.index += 1
        return self.base.ravel()[self.index - 1]

    def copy(self):
        """The elements in an array of their own."""
        return self.base.flatten()

    @staticmethod
    def _checked(key):
        if key is None or isinstance(key, tuple):
            raise IndexError("flat: one integer, slice or array is an index")
        return key

    def __getitem__(self, key):
        return self.base.ravel()[self._checked(key)]

    def __setitem__(self, key, value):
        key = self._checked(key)
        places = arange(self.base.size, device=self.base.device)[key]  # noqa: F405
        self.base.put(places.reshape(-1), asarray(value, self.base.dtype))  # noqa: F405


def _flat(self):
    return _Flat(self)


def _set_flat(self, value):
    _Flat(self)[:] = value


def _dump(self, file):
    """Writes the array's pickle to a file."""
    import pickle

    if hasattr(file, "write"):
        pickle.dump(self, file, protocol=pickle.HIGHEST_PROTOCOL)
        return
    with open(file, "wb") as opened:
        pickle.dump(self, opened, protocol=pickle.HIGHEST_PROTOCOL)


def _to_dlpack(self):
    """CuPy's name of __dlpack__()."""
    return self.__dlpack__()


def _dumps(self):
    """The array's pickle."""
    import pickle

    return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)


add_members(ndarray, __array__=_array, __reduce__=_reduce, __array_ufunc__=_array_ufunc,
            __array_function__=_array_function, __iter__=_iter, __contains__=_contains,
            __array_namespace__=_namespace, __format__=_format, to_device=_to_device,
            data=property(_data), flat=property(_flat, _set_flat), dump=_dump, dumps=_dumps, toDlpack=_to_dlpack)
add_members(_engine.dtype, dtype=property(_numpy_dtype))


def _of_numpy(name):
    """A property of NumPy's dtypes."""
    return property(lambda self: getattr(_numpy_dtype(self), name), doc="As of NumPy's dtype.")


_OF_DTYPES = "type char num str descr byteorder alignment isnative fields names shape subdtype".split()
add_members(_engine.dtype, **{name: _of_numpy(name) for name in _OF_DTYPES})
