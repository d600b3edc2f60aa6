"""What a thread computes with: rensa.config.train, rensa.using_config("train", False)."""

import contextlib

from rensa._engine import networks


FIELDS = ("train", "enable_backprop", "debug", "keep_graph_on_report", "tf32", "autotune", "cudnn_deterministic",
          "dtype")


class Mixed:
    """A dtype of parameters of 16 bits, beside which normalizations compute in float32."""

    def __init__(self, name):
        self.name = name

    @property
    def dtype(self):
        """The dtype of parameters: NumPy's, where it has one."""
        if self is mixed_bf16:
            return "bfloat16"
        import numpy  # not before it is wanted: it takes longer to import than this package

        return numpy.dtype("float16")

    def __repr__(self):
        return f"dtype('{self.name}')"


mixed16, mixed_bf16 = Mixed("mixed16"), Mixed("mixed_bf16")


class Config:
    """The calling thread's configuration: `train`, `enable_backprop`, `debug`, `keep_graph_on_report`, `tf32`,
    `autotune`, `cudnn_deterministic`, and `dtype` of parameters. All are bools but for `dtype`, and for `tf32`, which may
    be "x3" as well."""

    def __getattr__(self, name):
        if name != "dtype":
            return networks.get_config(name)
        own = networks.get_dtype()
        return own if not networks.is_mixed() else mixed16 if str(own) == "float16" else mixed_bf16

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
