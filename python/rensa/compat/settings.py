"""chainer.config: the engine's configuration, with the fields that Chainer's has beside."""

import contextlib
import threading

import numpy

from rensa import configuration
from rensa._engine import networks

# What Chainer's has and the engine decides by itself: it can be read and set, and nothing depends on it.
DECIDED = {
    "use_cudnn": "auto",
    "use_cudnn_tensor_core": "auto",
    "use_ideep": "never",
    "type_check": True,
    "lazy_grad_sum": False,
    "cudnn_fast_batch_normalization": False,
    "keep_graph_on_report": False,
    "warn_nondeterministic": False,
    "compute_mode": None,
    "in_recomputing": False,
    "use_static_graph": True,
    "schedule_func": None,
}


class Config(configuration.Config):
    """The calling thread's configuration. What it has no field for is an attribute of the thread's."""

    def __init__(self):
        object.__setattr__(self, "own", threading.local())

    def __getattr__(self, name):
        own = vars(object.__getattribute__(self, "own"))
        if name in own:
            return own[name]
        if name in DECIDED and not _has_field(name):
            return DECIDED[name]
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        if name == "dtype" or _has_field(name):
            super().__setattr__(name, value)
        else:
            setattr(self.own, name, value)

    def __delattr__(self, name):
        delattr(self.own, name)

    def show(self, file=None):
        """Prints it, a line for each field."""
        for name in sorted({*configuration.FIELDS, *DECIDED, *vars(self.own)}):
            print(f"{name:<30} {getattr(self, name)}", file=file)


def _has_field(name):
    try:
        networks.get_config(name)
    except AttributeError:
        return False
    return True


config = Config()


def get_dtype(dtype=None, map_mixed16=None):
    """The dtype, as NumPy's; that of the configuration where there is none; `map_mixed16` in place of mixed16."""
    found = config.dtype if dtype is None else dtype
    if found is configuration.mixed16 and map_mixed16 is not None:
        found = map_mixed16
    return found if isinstance(found, configuration.Mixed) else numpy.dtype(getattr(found, "name", found))


@contextlib.contextmanager
def using_config(name, value, config=config):
    """Sets one field for a scope."""
    known = hasattr(config, name)
    before = getattr(config, name, None)
    setattr(config, name, value)
    try:
        yield
    finally:
        if known:
            setattr(config, name, before)
        else:
            delattr(config, name)
