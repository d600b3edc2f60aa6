"""rensa.initializers, under Chainer's names: classes, and bases of classes of one's own."""

from rensa import _engine
from rensa._engine.networks import Initializer


def _class_of(name, make):
    """The class of an initializer of the engine's."""

    def init(self, *args, dtype=None, **kwargs):
        own = {} if dtype is None else {"dtype": dtype}
        Initializer.__init__(self, dtype, like=make(*args, **own, **kwargs))
        self._made_with = args, {**kwargs, "dtype": dtype}
        self.scale = args[0] if args else kwargs.get("scale", _SCALES.get(name, 1.0))

    return type(name, (Initializer,), {"__init__": init, "__reduce__": _reduce, "__doc__": make.__doc__,
                                   "__module__": __name__})


def _made(cls, args, kwargs):
    return cls(*args, **kwargs)


def _reduce(self):
    return _made, (type(self), *self._made_with)


_SCALES = {"Normal": 0.05, "Uniform": 0.05, "Orthogonal": 1.1}
_names = {name: _class_of(name, make) for name, make in vars(_engine.initializers).items() if name[0].isupper()}
globals().update(_names)


class Constant(Initializer):
    """One value everywhere, or the values of an array."""

    def __init__(self, fill_value, dtype=None):
        super().__init__(dtype, like=fill_value if dtype is None or hasattr(fill_value, "shape")
                         else _engine.initializers.Constant(fill_value, dtype))
        self.fill_value, self._made_with = fill_value, ((fill_value, dtype), {})

    __reduce__ = _reduce


__all__ = [*_names]


def generate_array(initializer, shape, xp, dtype=None, device=None):
    """A new array that an initializer has filled: of `xp`, numpy or rensa.xp, and of the initializer's dtype."""
    own = getattr(initializer, "dtype", None)
    if dtype is not None and own is not None and _engine.dtype(dtype) != _engine.dtype(own):
        raise ValueError(f"generate_array: the initializer's dtype is {own}, not {dtype}")
    found = _engine.networks.get_dtype() if dtype is None and own is None else own if dtype is None else dtype
    array = xp.empty(shape, found, **({} if device is None else {"device": device}))
    initializer(array)
    return array


__all__.append("generate_array")
