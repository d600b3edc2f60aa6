"""Rensa for Python: arrays on the CPU and on NVIDIA GPUs by the C++ engine, under NumPy's names."""

from rensa import xp
from rensa._engine import (
    CompileError, CudaError, Device, DeviceError, DtypeError, Error, IndexError, LinAlgError,
    NotImplementedError, OutOfMemoryError, SerializationError, ShapeError, SyncError, ValueError,
    num_gpus)

__all__ = [
    "CompileError", "CudaError", "Device", "DeviceError", "DtypeError", "Error", "IndexError",
    "LinAlgError", "NotImplementedError", "OutOfMemoryError", "SerializationError", "ShapeError",
    "SyncError", "ValueError", "num_gpus", "xp"]
