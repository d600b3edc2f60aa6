"""Functions of networks, with gradients: Chainer's `F`."""

from rensa import _engine
from rensa._engine.functions import *  # noqa: F403 the engine's names are this module's
from rensa._engine.networks import FunctionNode, Variable
from rensa._methods import add_members

_functions = _engine.functions


# --- those that take any number of variables ---


def add(*xs):
    """The sum of all of them."""
    return _functions.add(*xs) if len(xs) == 2 else _functions.add(list(xs))


def broadcast(*args):
    """All of them of one shape: a tuple."""
    return _functions.broadcast(list(args))


def einsum(subscripts, *operands):
    """numpy.einsum of variables, with gradients."""
    return _functions.einsum(subscripts, list(operands))


def transpose(x, axes=None):
    """The axes reversed, or in the order `axes`."""
    return _functions.transpose(x) if axes is None else _functions.transpose(x, axes)


# --- methods of variables ---


def _axes(axes):
    """x.transpose(1, 0), x.transpose((1, 0)) and x.transpose()."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        return axes[0]
    return axes or None


def _transpose(self, *axes):
    return transpose(self, _axes(axes))


def _reshape(self, *shape):
    return _functions.reshape(self, shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)


def _sum(self, axis=None, keepdims=False):
    return _functions.sum(self, axis, keepdims)


def _mean(self, axis=None, weights=None, keepdims=False):
    return _functions.average(self, axis, weights, keepdims)


def _max(self, axis=None, keepdims=False):
    return _functions.max(self, axis, keepdims)


def _min(self, axis=None, keepdims=False):
    return _functions.min(self, axis, keepdims)


def _astype(self, dtype):
    return _functions.cast(self, dtype)


def _xp(self):
    from rensa import xp

    return xp


def _label(self):
    """The dtype and the shape in words: "(2, 3), float32"."""
    return f"{self.shape}, {self.dtype}" if self.ndim else str(self.dtype)


# --- functions of one's own ---


def _forward(self, inputs):
    """For classes that have forward_cpu and forward_gpu in place of forward."""
    method = "forward_gpu" if any(isinstance(x, _engine.ndarray) and x.device.is_cuda for x in inputs) else "forward_cpu"
    if not hasattr(self, method):
        raise NotImplementedError(f"{type(self).__name__}: a function has forward, or {method}")
    return getattr(self, method)(inputs)


def _backward(self, indexes, grad_outputs):
    """For classes that have backward_accumulate in place of backward."""
    if not hasattr(self, "backward_accumulate"):
        raise NotImplementedError(f"{type(self).__name__}: its gradients are not implemented")
    return self.backward_accumulate(indexes, grad_outputs, (None,) * len(indexes))


add_members(FunctionNode, forward=_forward, backward=_backward)
add_members(Variable, creator_node=property(lambda self: self.creator))
add_members(Variable, transpose=_transpose, reshape=_reshape, sum=_sum, mean=_mean, max=_max, min=_min, astype=_astype,
            xp=property(_xp), label=property(_label))

__all__ = [name for name in dir(_functions) if not name.startswith("_")]
