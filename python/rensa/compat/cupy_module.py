"""cupy: rensa.xp, whose arrays begin on the current GPU."""

import functools
import sys
import types
import warnings

import numpy

import rensa
from rensa import _engine, xp


def _gpu(index=None):
    return _engine.networks.gpu_of(index)


def _cpu_stands_for_gpus():
    try:
        return _gpu().is_cpu
    except rensa.DeviceError:  # there is none
        return False


def _home():
    """Where CuPy makes arrays: the current device where it is a GPU, else GPU 0."""
    current = rensa.current_device()
    return current if current.is_cuda else _gpu()


class _DeviceClass(type):
    def __instancecheck__(cls, value):
        return isinstance(value, rensa.Device)


class Device(metaclass=_DeviceClass):
    """cupy.cuda.Device(1): a GPU; without a number the current one."""

    def __new__(cls, device=None):
        if device is None:
            return _home()
        return device if isinstance(device, rensa.Device) else _gpu(int(device))


class _ArrayClass(type):
    def __instancecheck__(cls, value):
        return isinstance(value, xp.ndarray)

    def __subclasscheck__(cls, other):
        return issubclass(other, xp.ndarray)

    def __getattr__(cls, name):
        return getattr(xp.ndarray, name)


class ndarray(metaclass=_ArrayClass):
    """cupy.ndarray(shape, dtype): memory on the current GPU, whose elements are whatever they were; with `memptr`, an
    array's `data`, a view of that memory."""

    def __new__(cls, shape, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is None and strides is None:
            return xp.empty(shape, float if dtype is None else dtype, order, device=_home())
        if memptr is None:
            raise ValueError("ndarray: strides are of the memory of another array: give memptr, too")
        return memptr.as_array(shape, float if dtype is None else dtype, strides, order)


def get_array_module(*args):
    """numpy, cupy, or rensa.xp for its arrays on the CPU: of the first array among the arguments."""
    for arg in args:
        array = arg.array if isinstance(arg, rensa.Variable) else arg
        if isinstance(array, xp.ndarray):
            return sys.modules[__name__] if array.device.is_cuda or _cpu_stands_for_gpus() else xp
    return numpy


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    """The elements as an array of NumPy's. Waits."""
    if out is not None:
        numpy.copyto(out, xp.asnumpy(a))
        return out
    if not isinstance(a, xp.ndarray):
        return numpy.asarray(a, order=order)
    made = xp.asnumpy(a)
    return numpy.array(made, order=order) if a.device.is_cpu else numpy.asarray(made, order=order)


def _on_gpu(function):
    """Creation where CuPy creates: on the current GPU, unless an array says where."""

    @functools.wraps(function, updated=())
    def made(*args, **kwargs):
        if "device" in kwargs or any(isinstance(a, xp.ndarray) for a in args[:1]):
            return function(*args, **kwargs)
        with _home():
            return function(*args, **kwargs)

    return made


def _with_blocking(function):
    """The function, which also takes `blocking`, whether copies to a GPU are waited for: they always are."""

    @functools.wraps(function)
    def made(*args, blocking=False, **kwargs):
        return function(*args, **kwargs)

    return made


_CREATION = ("arange array asanyarray asarray ascontiguousarray asfortranarray bartlett blackman diag_indices "
             "empty eye frombuffer fromfile fromfunction fromiter full geomspace hamming hanning identity indices "
             "kaiser linspace logspace mask_indices ones tri tril_indices triu_indices zeros").split()
for _name in _CREATION:
    if hasattr(xp, _name):
        globals()[_name] = _on_gpu(getattr(xp, _name))
array, asarray, asanyarray, ascontiguousarray, asfortranarray = map(
    lambda name: _with_blocking(globals().get(name, getattr(xp, name))),
    "array asarray asanyarray ascontiguousarray asfortranarray".split())
for _name in "empty_like zeros_like ones_like full_like".split():
    globals()[_name] = _on_gpu(getattr(xp, _name))


class _Random(types.ModuleType):
    """cupy.random: numbers on the current GPU."""

    def __getattr__(self, name):
        found = getattr(xp.random, name, None)
        if found is None or name.startswith("__"):
            raise AttributeError(f"cupy.random has no {name} here")
        return found if name == "seed" or isinstance(found, type) else _on_gpu(found)


class RandomState:
    """cupy.random.RandomState(seed): a stream of numbers of one's own, by Philox."""

    def __init__(self, seed=None, method=None):
        self._generator = _on_gpu(xp.random.default_rng)(seed)

    def __getattr__(self, name):
        return getattr(self._generator, name)

    def seed(self, seed=None):
        self._generator.seed(seed)

    def random_sample(self, size=None, dtype=float):
        return self._generator.random(size, dtype)

    def rand(self, *size, dtype=float):
        return self._generator.random(size or None, dtype)

    def randn(self, *size, dtype=float):
        return self._generator.standard_normal(size or None, dtype)

    def randint(self, low, high=None, size=None, dtype=int):
        return self._generator.integers(low, high, size, dtype)

    def multivariate_normal(self, mean, cov, size=None, check_valid="raise", tol=1e-8, method="cholesky", dtype=float):
        """Whether cov can be one is always looked at."""
        return self._generator.multivariate_normal(mean, cov, size, dtype=dtype)

    def random_integers(self, low, high=None, size=None):
        return self._generator.integers(*((1, low) if high is None else (low, high)), size, endpoint=True)

    def tomaxint(self, size=None):
        return self._generator.integers(0, sys.maxsize, size, endpoint=True)


class _CurrentState(RandomState):
    """The generator of the current device, as a RandomState."""

    def __init__(self):
        pass

    def __getattr__(self, name):
        return getattr(random, {"integers": "randint"}.get(name, name))

    seed = staticmethod(xp.random.seed)
    random_sample, rand, randn, randint, random_integers = (
        staticmethod(lambda *args, _name=name, **kwargs: getattr(random, _name)(*args, **kwargs))
        for name in "random_sample rand randn randint random_integers".split())


def _reset_states():
    """Lets all generators begin anew, by chance."""
    xp.random.seed(None)


ElementwiseKernel, ReductionKernel, RawKernel, RawModule = (
    rensa.ElementwiseKernel, rensa.ReductionKernel, rensa.RawKernel, rensa.RawModule)


def fuse(*args, **kwargs):
    """@cupy.fuse, or @cupy.fuse(kernel_name="f"), a name that is not needed: a function whose operations are one
    kernel."""
    kwargs.pop("kernel_name", None)
    if kwargs or len(args) > 1:
        raise TypeError("fuse: a function, and kernel_name")
    if not args:
        return rensa.fuse
    return functools.wraps(args[0], updated=())(rensa.fuse(args[0]))


random = _Random("cupy.random")
random.RandomState, random.get_random_state, random.reset_states = RandomState, _CurrentState, _reset_states
linalg, fft, lib = xp.linalg, xp.fft, xp.lib
linalg.LinAlgError = numpy.linalg.LinAlgError  # the engine's are some, too


def row_stack(tup, *, dtype=None, casting="same_kind"):
    """vstack by its older name."""
    warnings.warn("row_stack is vstack", DeprecationWarning, stacklevel=2)
    return xp.vstack(tup, dtype=dtype, casting=casting)


def broadcast_arrays(*args):
    """As rensa.xp's: a tuple."""
    return tuple(xp.broadcast_arrays(*args))


class _Capsule:
    """What has __dlpack__, of a capsule."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **keywords):
        return self._capsule


def fromDlpack(capsule):
    """An array on the memory of a DLPack capsule, which a.toDlpack() makes."""
    return xp.from_dlpack(_Capsule(capsule))


def meshgrid(*xi, **keywords):
    """As rensa.xp's: a tuple."""
    return tuple(_on_gpu(xp.meshgrid)(*xi, **keywords))


def ravel_multi_index(multi_index, dims, mode="wrap", order="C"):
    """As rensa.xp's, but that coordinates out of range go round, unless told otherwise."""
    return xp.ravel_multi_index(multi_index, dims, mode=mode, order=order)


# NumPy's own objects, as in CuPy: dtypes and what is asked about them, errors.
_OF_NUMPY = ("bool_ byte cdouble complex64 complex128 complexfloating csingle double dtype errstate finfo flexible "
             "float16 float32 float64 floating generic half iinfo inexact int8 int16 int32 int64 int_ intc integer "
             "intp isscalar issubdtype longlong mintypecode number promote_types short signedinteger single typecodes "
             "typename ubyte uint "
             "uint8 uint16 uint32 uint64 uintc uintp ulonglong unsignedinteger ushort base_repr").split()
for _name in _OF_NUMPY:
    globals()[_name] = getattr(numpy, _name)
bool, float_, complex_ = numpy.bool_, numpy.float64, numpy.complex128


def result_type(*arrays_and_dtypes):
    """As NumPy's, a dtype of its."""
    return numpy.result_type(*[a.dtype.dtype if isinstance(a, xp.ndarray) else a for a in arrays_and_dtypes])


def can_cast(from_, to, casting="safe"):
    """As NumPy's, of arrays too."""
    return numpy.can_cast(from_.dtype.dtype if isinstance(from_, xp.ndarray) else from_, to, casting)


def min_scalar_type(a):
    """As NumPy's, of arrays too."""
    return a.dtype.dtype if isinstance(a, xp.ndarray) else numpy.min_scalar_type(a)


def common_type(*arrays):
    """As NumPy's, of arrays of either kind: a scalar type of its."""
    return numpy.common_type(*[numpy.empty(0, a.dtype.dtype) if isinstance(a, xp.ndarray) else a for a in arrays])


def ndim(a):
    """The number of axes."""
    return a.ndim if isinstance(a, xp.ndarray) else numpy.ndim(a)


def size(a, axis=None):
    """The number of elements, or an axis's extent."""
    if not isinstance(a, xp.ndarray):
        return numpy.size(a, axis)
    return a.size if axis is None else a.shape[axis]


def shape(a):
    """The extents."""
    return a.shape if isinstance(a, xp.ndarray) else numpy.shape(a)


exceptions = types.ModuleType("cupy.exceptions", "NumPy's errors and warnings.")
for _name in ("AxisError ComplexWarning ModuleDeprecationWarning RankWarning TooHardError "
              "VisibleDeprecationWarning").split():
    setattr(exceptions, _name, getattr(numpy.exceptions, _name))
AxisError = numpy.exceptions.AxisError


class errstate:
    """cupyx.errstate: errors of linear algebra are thrown, always."""

    def __init__(self, *, linalg=None):
        if linalg not in (None, "raise"):
            raise NotImplementedError("errstate: errors of linear algebra are thrown: linalg='raise'")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def allow_synchronize(allow):
    """cupyx.allow_synchronize(False): a scope in which nothing may wait for a GPU."""
    return rensa.cuda.AllowSync() if allow else rensa.cuda.ForbidSync()


cupyx = types.ModuleType("cupyx", "cupyx on Rensa's engine.")
cupyx.__dict__.update(rsqrt=xp.rsqrt, scatter_add=xp.scatter_add, scatter_max=xp.scatter_max,
                      scatter_min=xp.scatter_min, errstate=errstate, allow_synchronize=allow_synchronize,
                      DeviceSynchronized=rensa.SyncError, __path__=[])
errstate = numpy.errstate


def modules():
    """{name: module} of what is below `cupy`, and `cupyx`."""
    return {"cupy.cuda": cuda, "cupy.random": random, "cupy.linalg": linalg, "cupy.fft": fft,
            "cupy.exceptions": exceptions, "cupyx": cupyx}


class _NoStream:
    """A stream where the CPU stands for GPUs: all is done when it is called."""

    def __init__(self, null=False, non_blocking=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def use(self):
        return self

    def synchronize(self):
        pass

    done = True


_NoStream.null = _NoStream.ptds = _NoStream()


class _NoPool:
    """A pool of memory where the CPU stands for GPUs: it holds nothing."""

    def free_all_blocks(self, stream=None):
        pass

    free_all_free = free_all_blocks

    def used_bytes(self):
        return 0

    total_bytes = free_bytes = n_free_blocks = used_bytes


def get_default_memory_pool():
    """The pool of the current GPU's memory."""
    return _NoPool() if _gpu().is_cpu else rensa.cuda.get_default_memory_pool()


def get_default_pinned_memory_pool():
    """The pool of page-locked memory."""
    return _NoPool() if _gpu().is_cpu else rensa.cuda.get_default_pinned_memory_pool()


class _Cuda(types.ModuleType):
    """cupy.cuda."""

    Device = Device

    def is_available(self):
        return rensa.num_gpus() > 0

    def __getattr__(self, name):
        if name == "Stream" and _gpu().is_cpu:
            return _NoStream
        if name == "alloc_pinned_memory" and _gpu().is_cpu:
            return bytearray
        found = getattr(rensa.cuda, name, None)
        if found is None:
            raise AttributeError(f"cupy.cuda has no {name} here")
        return found


cuda = _Cuda("cupy.cuda")


def __getattr__(name):
    if not hasattr(xp, name):
        raise AttributeError(f"cupy has no {name} here: see docs/python.md for what there is")
    return getattr(xp, name)
