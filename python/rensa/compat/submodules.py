"""chainer.functions.loss.softmax_cross_entropy and the like: Chainer's files, which programs import names from.

Each has the names of the module above it that is here."""

import importlib
import importlib.abc
import importlib.machinery
import types

# Folders of Chainer's below its modules, and files that have another name than what they hold.
FOLDERS = {
    "chainer.functions": "activation array connection evaluation loss math noise normalization pooling rnn theano util "
    "basic_math exponential hyperbolic minmax trigonometric",
    "chainer.links": "activation caffe connection loss model normalization rnn theano vision googlenet resnet vgg "
    "n_step_rnn",
    "chainer.training": "",
    "chainer.training.extensions": "value_observation",
    "chainer.training.triggers": "interval",
    "chainer.training.updaters": "",
    "chainer.optimizers": "",
    "chainer.optimizer_hooks": "",
    "chainer.initializers": "normal uniform",
    "chainer.iterators": "",
    "chainer.datasets": "mnist cifar",
    "chainer.dataset": "convert iterator",
    "chainer.serializers": "npz hdf5",
    "chainer.function_hooks": "timer debug_print cupy_memory_profile cuda_profile",
    "chainer.link_hooks": "timer",
    "chainer.distributions": "",
}

FILES = (
    "basic_math exponential hyperbolic minmax trigonometric googlenet resnet vgg n_step_rnn value_observation interval "
    "normal "
    "uniform mnist cifar convert iterator npz hdf5 timer debug_print cupy_memory_profile cuda_profile"
).split()


def _plain(name):
    return name.replace("_", "").lower()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds them below the modules that there are."""

    def __init__(self, modules):
        self.modules = modules

    def above(self, name):
        """The module whose names it has; None where Chainer has no such file."""
        base = max(
            (known for known in FOLDERS if name.startswith(known + ".") and known in self.modules),
            key=len,
            default=None,
        )
        if base is None:
            return None
        held = {_plain(own) for own in vars(self.modules[base])} | {_plain(own) for own in FOLDERS[base].split()}
        parts = name.removeprefix(base + ".").split(".")
        files = all(part == part.lower() and _plain(part) in held for part in parts)
        return self.modules[base] if files else None

    def find_spec(self, name, path, target=None):
        if self.above(name) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return types.ModuleType(spec.name, f"The names of {self.above(spec.name).__name__}.")

    def exec_module(self, module):
        source = self.above(module.__name__)
        names = {
            name: value
            for name, value in vars(source).items()
            if not name.startswith("__") and not isinstance(value, types.ModuleType)
        }
        last = module.__name__.rpartition(".")[2]
        if last in FOLDERS.get(source.__name__, "").split() and last not in FILES:
            names = {}  # a folder: `from chainer.functions.loss import hinge` is the file

        def missing(name):
            if not names and self.above(f"{module.__name__}.{name}"):
                return importlib.import_module(f"{module.__name__}.{name}")
            raise AttributeError(f"{module.__name__} has no {name} here")

        module.__dict__.update(names)
        module.__getattr__ = missing
