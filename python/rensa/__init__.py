"""Rensa for Python: arrays and networks on the CPU and on NVIDIA GPUs by the C++ engine, under NumPy's and Chainer's
names."""

from rensa import _engine, xp
from rensa._engine import (Device, ElementwiseKernel, RawKernel, RawModule, ReductionKernel, current_device, fuse,
                           num_gpus)
from rensa._engine.networks import (FunctionNode, Initializer, Parameter, Variable, backward, capture, get_dtype, grad,
                                    report)
from rensa._methods import add_scope
from rensa.configuration import config, force_backprop_mode, no_backprop_mode, using_config
from rensa.link import Chain, ChainList, Link, Sequential
from rensa import cuda, datasets, function_hooks, functions, gradient_check, initializers, iterators, link_hooks, links, optimizer_hooks, optimizers, serializers, training


add_scope(Device, lambda device: current_device())

CompileError = _engine.errors.CompileError
CudaError = _engine.errors.CudaError
DeviceError = _engine.errors.DeviceError
DtypeError = _engine.errors.DtypeError
Error = _engine.errors.Error
IndexError = _engine.errors.IndexError
InvalidType = _engine.errors.InvalidType
LinAlgError = _engine.errors.LinAlgError
NotImplementedError = _engine.errors.NotImplementedError
OutOfMemoryError = _engine.errors.OutOfMemoryError
SerializationError = _engine.errors.SerializationError
ShapeError = _engine.errors.ShapeError
SyncError = _engine.errors.SyncError
ValueError = _engine.errors.ValueError

__all__ = ["Chain", "ChainList", "Device", "ElementwiseKernel", "FunctionNode", "Initializer", "Link", "Parameter", "RawKernel",
           "RawModule", "ReductionKernel", "Sequential", "Variable", "backward", "capture", "config", "cuda", "current_device",
           "datasets", "force_backprop_mode", "function_hooks", "functions", "fuse", "get_dtype", "grad", "gradient_check", "initializers", "iterators", "link_hooks", "links",
           "no_backprop_mode", "num_gpus", "optimizer_hooks", "optimizers", "report", "serializers", "training",
           "using_config", "xp"] + [name for name in vars() if name.endswith("Error")]
