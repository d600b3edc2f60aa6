"""What a thread computes with: rensa.config.train, rensa.using_config("train", False)."""

import contextlib

from rensa._engine import networks


class Config:
    """The calling thread's configuration: `train`, `enable_backprop`, `debug`, `keep_graph_on_report`, `tf32`,
    `autotune`, `cudnn_deterministic`, and `dtype` of parameters."""

    def __getattr__(self, name):
        return networks.get_dtype() if name == "dtype" else networks.get_config(name)

    def __setattr__(self, name, value):
        if name == "dtype":
            networks.set_dtype(value)
        else:
            networks.set_config(name, value)


config = Config()


@contextlib.contextmanager
def using_config(name, value):
    """Sets one field for a scope."""
    before = getattr(config, name)
    setattr(config, name, value)
    try:
        yield
    finally:
        setattr(config, name, before)


def no_backprop_mode():
    """Functions applied in this scope link no graph."""
    return using_config("enable_backprop", False)


def force_backprop_mode():
    """Functions applied in this scope link a graph, within no_backprop_mode() too."""
    return using_config("enable_backprop", True)
