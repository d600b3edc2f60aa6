"""chainer.backends.cuda, and chainer.cuda of Chainer 1: devices, and arrays on their way between them."""

import numpy

import rensa
from rensa import _engine, xp
from rensa.compat import cupy_module as cupy
from rensa.compat.cupy_module import Device, get_array_module, ndarray  # noqa: F401

cudnn_enabled = True  # where there is cuDNN
empty, empty_like, full, full_like, zeros, zeros_like, ones, ones_like = (
    cupy.empty, cupy.empty_like, cupy.full, cupy.full_like, cupy.zeros, cupy.zeros_like, cupy.ones, cupy.ones_like)


class DummyDeviceType:
    """A device that is none: what selects it changes nothing."""

    id = -1

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def use(self):
        pass

    def synchronize(self):
        pass

    def __int__(self):
        return -1

    __index__ = __int__

    def __eq__(self, other):
        return isinstance(other, DummyDeviceType)

    def __hash__(self):
        return hash(DummyDeviceType)


DummyDevice = DummyDeviceType()


def _available():
    return rensa.num_gpus() > 0 or _engine.networks.gpu_of(None).is_cpu


def check_cuda_available():
    """Raises RuntimeError where there is no GPU."""
    if not _available():
        raise RuntimeError("there is no GPU; install(gpus='cpu') has the CPU stand for one")


def get_device_from_id(device_id):
    """The GPU of that number; of None, or a number below 0, a device that is none."""
    return DummyDevice if device_id is None or device_id < 0 else Device(device_id)


def get_device_from_array(*arrays):
    """The GPU of the first array that is on one; else a device that is none."""
    for array in arrays:
        array = array.array if isinstance(array, rensa.Variable) else array
        if isinstance(array, xp.ndarray) and array.device.is_cuda:
            return Device(array.device.id)
    return DummyDevice


def get_device(*args):
    """Chainer 1's: of a number, a device or an array; without one the current device."""
    for arg in args:
        if isinstance(arg, bool) or arg is None:
            continue
        if isinstance(arg, (int, numpy.integer)):
            return get_device_from_id(int(arg))
        if isinstance(arg, (rensa.Device, DummyDeviceType)):
            return arg
        device = get_device_from_array(arg)
        if device is not DummyDevice or isinstance(arg, (numpy.ndarray, xp.ndarray, rensa.Variable)):
            return device
    current = rensa.current_device()
    return current if current.is_cuda else DummyDevice if args else Device(_engine.networks.gpu_of(None).id)


def to_gpu(array, device=None, stream=None):
    """The array on a GPU: the current one, unless another is named. Arrays that are there stay what they are."""
    if array is None:
        return None
    if isinstance(array, (list, tuple)):
        return type(array)(to_gpu(a, device, stream) for a in array)
    index = device.id if isinstance(device, rensa.Device) else device
    target = _engine.networks.gpu_of(None if index is None else int(index))
    source = array.array if isinstance(array, rensa.Variable) else array
    return xp.asarray(source, device=target)


def to_cpu(array, stream=None):
    """The array as one of NumPy's. Waits."""
    if array is None:
        return None
    if isinstance(array, (list, tuple)):
        return type(array)(to_cpu(a, stream) for a in array)
    return xp.asnumpy(array.array if isinstance(array, rensa.Variable) else array)


def copy(array, out=None, out_device=None, stream=None):
    """A copy on a GPU."""
    if out is not None:
        out[...] = array
        return out
    target = rensa.current_device() if out_device is None else _engine.networks.gpu_of(int(out_device))
    return xp.array(array, device=target)


def init(device=None):
    """Chainer 1's: nothing has to be made ready."""
    if device is not None:
        Device(device).use()


def memoize(for_each_device=False):
    """A function that computes once for each of its arguments."""
    import functools

    return lambda function: functools.lru_cache(maxsize=None)(function)


def clear_memo():
    """Nothing is kept that has to be given back."""


def __getattr__(name):
    if name == "available":
        return _available()
    if name == "cupy":
        return cupy
    found = getattr(cupy.cuda, name, None)
    if found is None:
        raise AttributeError(f"chainer.backends.cuda has no {name} here")
    return found
