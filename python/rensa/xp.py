"""Arrays with NumPy's names: rensa.xp.add(a, b, out=c), a[rows, 1:], a.sum(axis=0).

What differs from NumPy: an array is on a device (`device="cuda:0"`); one element of an array is an
array without axes, as CuPy's, of which item() gives the number; empty memory is not shared with a
list; there are no elements but numbers and bools.
"""

from rensa import _engine
from rensa._engine import *  # noqa: F403 the engine's names are this module's
from rensa._engine import ndarray, random, ufunc  # noqa: F401
from rensa._methods import add_members

newaxis = None
inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045
absolute = _engine.absolute
abs, amax, amin = absolute, _engine.max, _engine.min  # NumPy's other names
asanyarray, ascontiguousarray = _engine.asarray, lambda a, dtype=None: asarray(a, dtype).copy()


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
    if not isinstance(own, ufunc):
        return NotImplemented
    if method == "__call__":
        return own(*inputs, **keywords)
    return getattr(own, method)(*inputs, **keywords)


def _array_function(self, function, types, arguments, keywords):
    """numpy.concatenate([a, b]) of such arrays is ours."""
    own = globals().get(function.__name__)
    if own is None or not callable(own):
        return NotImplemented
    return own(*arguments, **keywords)


def _of_pickle(data, shape, dtype, device):
    return asarray(bytearray(data), device=device).view(dtype).reshape(shape)


def _reduce(self):
    return _of_pickle, (self.tobytes(), self.shape, str(self.dtype), str(self.device))


class _MemoryPointer:
    """CuPy's ndarray.data: where the elements are."""

    def __init__(self, array):
        self._array = array
        self.device = array.device

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


def _divmod(self, other):
    return self // other, self % other


def _sort(self, axis=-1):
    """Sorts the elements where they stand."""
    copyto(self, sort(self, axis))


add_members(ndarray, __array__=_array, __reduce__=_reduce, __array_ufunc__=_array_ufunc, __array_function__=_array_function,
            __iter__=_iter, __contains__=_contains, __divmod__=_divmod, sort=_sort, data=property(_data))
