"""The modules that install() puts under the names of CuPy and Chainer."""

import functools
import types

import rensa
from rensa import converters
from rensa import (configuration, datasets, functions, initializers, iterators, link, links, optimizer_hooks, optimizers,
                   serializers, training)
from rensa.compat import cuda, cupy_module, old_forms

# What programs ask for that is not there, and what they do instead.
REPLACED = {
    "chainer.AbstractSerializer": "classes show their members; rensa.serializers writes them",
    "chainer.backends.intel64": "oneDNN computes on the CPU where it is installed",
    "chainer.backends.chainerx": "rensa.xp",
}


def _module(name, names, doc):
    module = types.ModuleType(name, doc)
    module.__dict__.update(names)
    module.__path__ = []  # a package: `import chainer.functions` finds what install() has put there

    def missing(attribute):
        instead = REPLACED.get(f"{name}.{attribute}")
        raise AttributeError(f"{name} has no {attribute} here" + (f": {instead}" if instead else ""))

    module.__getattr__ = missing
    return module


def _public(module):
    return {name: getattr(module, name) for name in module.__all__}


@functools.lru_cache(maxsize=None)
def all_modules():
    """{name: module}"""
    old_forms.add_methods()
    found = {"cupy": cupy_module, "cupy.cuda": cupy_module.cuda, "cupy.random": cupy_module.random,
             "cupy.linalg": cupy_module.linalg}
    optimizer_names = {**_public(optimizers), **_public(optimizer_hooks)}
    parts = {
        "functions": old_forms.function_names(), "links": _public(links), "optimizers": optimizer_names,
        "optimizer_hooks": _public(optimizer_hooks), "initializers": _public(initializers),
        "iterators": _public(iterators), "datasets": _public(datasets), "serializers": _public(serializers),
        "training": _public(training), "training.updaters": _public(training.updaters),
        "training.triggers": _public(training.triggers), "training.extensions": _public(training.extensions),
        "training.extension": {"Extension": training.Extension, "make_extension": training.make_extension},
        "backends": {"cuda": cuda}, "backend": _backend_names(), "dataset": _dataset_names(),
        "reporter": {"report": rensa.report}, "utils": {}, "link": vars_of_link(),
        "variable": {"Variable": old_forms.Variable, "Parameter": rensa.Parameter, "as_variable": as_variable},
        "optimizer": {"Optimizer": optimizers.Optimizer, **_public(optimizer_hooks)},
        "initializer": {"Initializer": rensa.Initializer}, "function": {"Function": old_forms.Function},
        "configuration": {"config": rensa.config, "using_config": rensa.using_config},
        "gradient_check": {}, "function_node": {"FunctionNode": rensa.FunctionNode},
    }
    for name, names in parts.items():
        found[f"chainer.{name}"] = _module(f"chainer.{name}", names, f"chainer.{name} on Rensa's engine.")
    found["chainer.backends.cuda"] = found["chainer.cuda"] = cuda
    top = {name: module for name, module in ((n.removeprefix("chainer."), m) for n, m in found.items())
           if "." not in name and not name.startswith("cupy")}
    top.update(_top_names())
    found["chainer"] = _module("chainer", top, "chainer on Rensa's engine.")
    for name in parts:
        if "." in name:
            setattr(found[f"chainer.{name.split('.')[0]}"], name.split(".")[1], found[f"chainer.{name}"])
    return found


def vars_of_link():
    return {"Link": link.Link, "Chain": link.Chain, "ChainList": link.ChainList, "Sequential": link.Sequential}


def _top_names():
    names = {**vars_of_link(), "Variable": old_forms.Variable, "Parameter": rensa.Parameter,
             "FunctionNode": rensa.FunctionNode, "Function": old_forms.Function, "FunctionSet": old_forms.FunctionSet, "Optimizer": optimizers.Optimizer,
             "Initializer": rensa.Initializer, "report": rensa.report, "grad": rensa.grad, "config": rensa.config,
             "global_config": rensa.config, "using_config": rensa.using_config, "get_dtype": rensa.get_dtype,
             "no_backprop_mode": configuration.no_backprop_mode, "force_backprop_mode": configuration.force_backprop_mode,
             "as_variable": as_variable, "get_device": get_device, "__version__": "7.8.1",
             "set_debug": lambda on: setattr(rensa.config, "debug", on), "is_debug": lambda: rensa.config.debug}
    return names


def _backend_names():
    return {"get_array_module": cupy_module.get_array_module, "get_device": get_device,
            "get_device_from_array": cuda.get_device_from_array, "cuda": cuda,
            "copyto": lambda to, source: to.__setitem__(..., source)}


def _dataset_names():
    return {"Iterator": iterators.Iterator, "DatasetMixin": datasets.DatasetMixin, "concat_examples": converters.concat_examples, "to_device": converters.to_device}


def as_variable(value):
    """The Variable, or one of an array to which no gradient goes."""
    return value if isinstance(value, rensa.Variable) else rensa.Variable(value, requires_grad=False)


def get_device(spec):
    """A device by Chainer's names: "@numpy", "@cupy:1", a number (the CPU below 0)."""
    if isinstance(spec, rensa.Device):
        return spec
    text = str(spec)
    if text in ("@numpy", "-1"):
        return rensa.Device("cpu")
    if text.startswith("@cupy:") or text.isdigit():
        return cupy_module.Device(int(text.removeprefix("@cupy:")))
    return rensa.Device(text)
