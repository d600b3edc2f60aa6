"""The modules that install() puts under the names of CuPy and Chainer."""

import functools
import importlib
import importlib.util
import sys
import types

import rensa
from rensa import configuration, datasets, function_hooks, link, link_hooks, optimizer_hooks, optimizers, serializers
from rensa.compat import functions as compat_functions, initializers as compat_initializers, links as compat_links
from rensa.compat import training as compat_training
from rensa.compat import cuda, cupy_module, data, devices, gradient_check, gradients, old_forms, reporter, settings

# What programs ask for that is not there, and what they do instead.
REPLACED = {
    "chainer.AbstractSerializer": "serialize(serializer) of extensions, updaters and iterators gets a rensa.serializers.Serializer",
    "chainer.Deserializer": "serializer.reads says whether what a serializer gives is a file's",
    "chainer.backends.intel64": "oneDNN computes on the CPU where it is installed",
    "chainer.backends.chainerx": "rensa.xp",
}


def _module(name, names, doc):
    module = types.ModuleType(name, doc)
    module.__dict__.update(names)
    module.__path__ = []  # a package: `import chainer.functions` finds what install() has put there

    def missing(attribute):
        installed = sys.modules.get(name) is module
        if installed and importlib.util.find_spec(f"{name}.{attribute}") is not None:  # a file: submodules.py
            return importlib.import_module(f"{name}.{attribute}")
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
    devices.add_methods()
    compat_links.add_methods()
    found = {"cupy": cupy_module, **cupy_module.modules()}
    optimizer_names = {**_public(optimizers), **_public(optimizer_hooks)}
    optimizer_names.pop("Optimizer")  # chainer.Optimizer
    parts = {
        "functions": compat_functions.names(),
        "links": compat_links.names(),
        "optimizers": optimizer_names,
        "optimizer_hooks": _public(optimizer_hooks),
        "initializers": compat_initializers.names(),
        **data.modules(),
        "datasets": _public(datasets),
        "serializers": _public(serializers),
        **compat_training.modules(),
        "backends": {"cuda": cuda},
        "backend": {**devices.names(), "cuda": cuda},
        "reporter": reporter.names(),
        "utils": {},
        "link": vars_of_link(),
        "variable": {"Variable": old_forms.Variable, "Parameter": rensa.Parameter, "as_variable": as_variable},
        "optimizer": {"Optimizer": optimizers.Optimizer, **_public(optimizer_hooks)},
        "function_hooks": _public(function_hooks),
        "function_hook": {"FunctionHook": function_hooks.FunctionHook},
        "link_hooks": _public(link_hooks),
        "link_hook": {"LinkHook": link_hooks.LinkHook},
        "initializer": {"Initializer": rensa.Initializer, "get_fans": compat_initializers.get_fans},
        "function": {"Function": old_forms.Function},
        "configuration": {
            "config": settings.config,
            "using_config": settings.using_config,
            "global_config": settings.config,
        },
        "gradient_check": gradient_check.names(),
        "function_node": {"FunctionNode": rensa.FunctionNode},
    }
    for name, names in parts.items():
        found[f"chainer.{name}"] = _module(f"chainer.{name}", names, f"chainer.{name} on Rensa's engine.")
    found["chainer.backends.cuda"] = found["chainer.cuda"] = cuda
    top = {
        name: module
        for name, module in ((n.removeprefix("chainer."), m) for n, m in found.items())
        if "." not in name and not name.startswith("cupy")
    }
    top.update(_top_names())
    found["chainer"] = _module("chainer", top, "chainer on Rensa's engine.")
    for name in parts:
        if "." in name:
            setattr(found[f"chainer.{name.split('.')[0]}"], name.split(".")[1], found[f"chainer.{name}"])
    return found


def vars_of_link():
    return {"Link": link.Link, "Chain": link.Chain, "ChainList": link.ChainList, "Sequential": link.Sequential}


def _top_names():
    names = {
        **vars_of_link(),
        **reporter.names(),
        "mixed16": configuration.mixed16,
        "Variable": old_forms.Variable,
        "Parameter": rensa.Parameter,
        "FunctionNode": rensa.FunctionNode,
        "Function": old_forms.Function,
        "FunctionSet": old_forms.FunctionSet,
        "Optimizer": optimizers.Optimizer,
        "GradientMethod": optimizers.Optimizer,
        "UpdateRule": optimizers.UpdateRule,
        "Serializer": serializers.Serializer,
        "Initializer": rensa.Initializer,
        "report": rensa.report,
        "FunctionHook": function_hooks.FunctionHook,
        "LinkHook": link_hooks.LinkHook,
        "grad": gradients.grad,
        "backward": rensa.backward,
        "config": settings.config,
        "global_config": settings.config,
        "using_config": settings.using_config,
        "get_dtype": settings.get_dtype,
        "no_backprop_mode": configuration.no_backprop_mode,
        "force_backprop_mode": configuration.force_backprop_mode,
        "as_variable": as_variable,
        "get_device": devices.get_device,
        "using_device": devices.using_device,
        "get_array_types": devices.get_array_types,
        "is_arrays_compatible": devices.is_arrays_compatible,
        "__version__": "7.8.1",
        "as_array": as_array,
        "disable_experimental_feature_warning": True,
        "should_use_cudnn": lambda level, lowest_version=0: False,
        "should_use_cudnn_tensor_core": lambda dtype: False,
        "set_debug": lambda on: setattr(rensa.config, "debug", on),
        "is_debug": lambda: rensa.config.debug,
    }
    return names


def as_array(value):
    """The array of a variable; an array stays what it is."""
    return value.array if isinstance(value, rensa.Variable) else value


def as_variable(value):
    """The Variable, or one of an array to which no gradient goes."""
    return value if isinstance(value, rensa.Variable) else rensa.Variable(value, requires_grad=False)
