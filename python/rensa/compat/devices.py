"""chainer.backend: devices in Chainer's form, which are the engine's Device with Chainer's methods."""

import contextlib

import numpy

import rensa
from rensa import _engine, xp
from rensa._methods import add_members
from rensa.compat import cupy_module


class _DeviceClass(type):
    def __instancecheck__(cls, value):
        return isinstance(value, rensa.Device) and cls.fits(value)


class Device(metaclass=_DeviceClass):
    """chainer.backend.Device, of which every device is one."""

    @staticmethod
    def fits(device):
        return True


class CpuDevice(Device):
    """CpuDevice(): the CPU."""

    fits = staticmethod(lambda device: device.is_cpu)

    def __new__(cls):
        return rensa.Device("cpu")

    @staticmethod
    def from_array(array):
        """The CPU, of an array there; else None."""
        return rensa.Device("cpu") if _is_on_cpu(array) else None


class GpuDevice(Device):
    """GpuDevice(cupy.cuda.Device(1)): a GPU."""

    fits = staticmethod(lambda device: device.is_cuda or _engine.networks.gpu_of(None).is_cpu)

    def __new__(cls, device):
        return cupy_module.Device(device)

    @staticmethod
    def from_device_id(device_id):
        if not isinstance(device_id, (int, numpy.integer)) or device_id < 0:
            raise ValueError(f"GpuDevice: the number of a GPU is needed, not {device_id!r}")
        return cupy_module.Device(int(device_id))

    @staticmethod
    def from_array(array):
        """The GPU of an array there; else None."""
        on_gpu = isinstance(array, xp.ndarray) and array.device.is_cuda
        return array.device if on_gpu else None


def _is_on_cpu(array):
    return isinstance(array, numpy.ndarray) or isinstance(array, xp.ndarray) and array.device.is_cpu


def get_device(spec):
    """A device by Chainer's names: "@numpy", "@cupy:1", a number (the CPU below 0), or the engine's."""
    if isinstance(spec, rensa.Device):
        return spec
    text = str(spec)
    if text == "@numpy" or text.lstrip("-").isdigit() and int(text) < 0:
        return rensa.Device("cpu")
    if text.startswith("@cupy:") or text.isdigit():
        return cupy_module.Device(int(text.removeprefix("@cupy:")))
    if text.startswith("@"):
        raise ValueError(f"get_device: {text!r} names no device: '@numpy' and '@cupy:N' do")
    if not isinstance(spec, str):
        raise TypeError(f"get_device: a device, its name or number is needed, not {spec!r}")
    return rensa.Device(text)


def get_device_from_array(*arrays):
    """The device of the first array that is on a GPU; else the CPU."""
    for array in arrays:
        if GpuDevice.from_array(array) is not None:
            return array.device
    return rensa.Device("cpu")


def using_device(spec):
    """A scope in which a device is the current one."""
    return get_device(spec).create_context()


def copyto(dst, src):
    """Copies the elements of an array into another one, wherever they are."""
    if not isinstance(dst, (numpy.ndarray, xp.ndarray)) or not isinstance(src, (numpy.ndarray, xp.ndarray)):
        raise TypeError(f"copyto: arrays are needed, not {type(dst).__name__} and {type(src).__name__}")
    dst[...] = xp.asnumpy(src) if isinstance(dst, numpy.ndarray) else src


def get_array_types():
    """The classes of arrays that functions take."""
    return numpy.ndarray, xp.ndarray


def is_arrays_compatible(arrays):
    """Whether all of them are on the CPU, or all on GPUs."""
    return len({_is_on_cpu(array) for array in arrays if array is not None}) < 2


def _each(arrays, move):
    if isinstance(arrays, (list, tuple)):
        moved = {id(a): move(a) for a in arrays}
        return type(arrays)([moved[id(a)] for a in arrays])
    return move(arrays)


def _send(self, arrays):
    """The array, or those of a list, there; on the CPU as NumPy's."""

    def moved(array):
        if array is None:
            return None
        if not isinstance(array, (numpy.ndarray, numpy.generic, int, float, xp.ndarray)):
            raise TypeError(f"Device.send: an array is needed, not {type(array).__name__}")
        if self.is_cpu:
            return xp.asnumpy(array) if isinstance(array, xp.ndarray) else numpy.asarray(array)
        return xp.asarray(array, device=self)

    return _each(arrays, moved)


def _xp(self):
    return numpy if self.is_cpu else cupy_module


def _name(self):
    return "@numpy" if self.is_cpu else f"@cupy:{self.id}"


def _supported_array_types(self):
    return get_array_types() if self.is_cpu else (xp.ndarray,)


def _create_context(self):
    """A scope in which it is the current device."""
    return contextlib.nullcontext(self) if self.is_cpu else self


def _is_array_supported(self, array):
    return _is_on_cpu(array) if self.is_cpu else isinstance(array, xp.ndarray) and array.device == self


def _scalar_type(self):
    return numpy.dtype(self.name).type


def add_methods():
    """Chainer's methods of devices; NumPy's of dtypes."""
    if not hasattr(_engine.dtype, "type"):
        add_members(_engine.dtype, type=property(_scalar_type))
    add_members(
        rensa.Device,
        send=_send,
        send_array=_send,
        xp=property(_xp),
        name=property(_name),
        create_context=_create_context,
        supported_array_types=property(_supported_array_types),
        is_array_supported=_is_array_supported,
    )


def names():
    """Those of chainer.backend."""
    return {
        "Device": Device,
        "CpuDevice": CpuDevice,
        "GpuDevice": GpuDevice,
        "get_device": get_device,
        "get_device_from_array": get_device_from_array,
        "using_device": using_device,
        "copyto": copyto,
        "get_array_module": cupy_module.get_array_module,
    }
