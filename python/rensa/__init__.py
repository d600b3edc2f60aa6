"""Rensa for Python: arrays on the CPU and on NVIDIA GPUs by the C++ engine, under NumPy's names."""

from rensa import _engine, xp
from rensa._engine import Device, num_gpus

CompileError = _engine.errors.CompileError
CudaError = _engine.errors.CudaError
DeviceError = _engine.errors.DeviceError
DtypeError = _engine.errors.DtypeError
Error = _engine.errors.Error
IndexError = _engine.errors.IndexError
LinAlgError = _engine.errors.LinAlgError
NotImplementedError = _engine.errors.NotImplementedError
OutOfMemoryError = _engine.errors.OutOfMemoryError
SerializationError = _engine.errors.SerializationError
ShapeError = _engine.errors.ShapeError
SyncError = _engine.errors.SyncError
ValueError = _engine.errors.ValueError

__all__ = ["Device", "num_gpus", "xp"] + [name for name in vars() if name.endswith("Error")]
