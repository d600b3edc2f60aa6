"""cupy: rensa.xp, whose arrays begin on the current GPU."""

import functools
import sys
import types

import numpy

import rensa
from rensa import _engine, xp


def _gpu(index=None):
    return _engine.networks.gpu_of(index)


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


class ndarray(metaclass=_ArrayClass):
    """cupy.ndarray(shape, dtype): memory on the current GPU, whose elements are whatever they were."""

    def __new__(cls, shape, dtype=float, order="C"):
        return xp.empty(shape, dtype, order, device=_home())


def get_array_module(*args):
    """numpy, cupy, or rensa.xp for its arrays on the CPU: of the first array among the arguments."""
    for arg in args:
        array = arg.array if isinstance(arg, rensa.Variable) else arg
        if isinstance(array, xp.ndarray):
            return sys.modules[__name__] if array.device.is_cuda else xp
    return numpy


def asnumpy(a, stream=None, order="C"):
    """The elements as an array of NumPy's. Waits."""
    return xp.asnumpy(a)


def _on_gpu(function):
    """Creation where CuPy creates: on the current GPU, unless an array says where."""

    @functools.wraps(function, updated=())
    def made(*args, **kwargs):
        if "device" in kwargs or any(isinstance(a, xp.ndarray) for a in args[:1]):
            return function(*args, **kwargs)
        with _home():
            return function(*args, **kwargs)

    return made


_CREATION = ("arange array asarray empty eye full identity linspace logspace ones tri zeros "
             "meshgrid indices frombuffer fromiter").split()
for _name in _CREATION:
    if hasattr(xp, _name):
        globals()[_name] = _on_gpu(getattr(xp, _name))
for _name in "empty_like zeros_like ones_like full_like".split():
    globals()[_name] = _on_gpu(getattr(xp, _name))


class _Random(types.ModuleType):
    """cupy.random: numbers on the current GPU."""

    def __getattr__(self, name):
        found = getattr(xp.random, name, None)
        if found is None:
            raise AttributeError(f"cupy.random has no {name} here")
        return _on_gpu(found) if callable(found) and name != "seed" else found


ElementwiseKernel, ReductionKernel, RawKernel, RawModule, fuse = (
    rensa.ElementwiseKernel, rensa.ReductionKernel, rensa.RawKernel, rensa.RawModule, rensa.fuse)
random = _Random("cupy.random")
linalg = xp.linalg


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
