"""rensa.optimizers, under Chainer's names."""

import io

from rensa import _engine, serializers
from rensa._engine.networks import Parameter
from rensa._engine.optimizers import *  # noqa: F403 the engine's names are this module's
from rensa._methods import add_members

__all__ = [name for name in dir(_engine.optimizers) if not name.startswith("_")]


def _setattr(self, name, value):
    """A hyperparameter of that name, or an attribute."""
    if not name.startswith("_") and self._has_hyperparameter(name):
        self._set_hyperparameter(name, value)
    else:
        object.__setattr__(self, name, value)


class Hyperparameter:
    """The hyperparameters of an optimizer, or of one parameter's rule, as attributes."""

    def __init__(self, owner, get, put):
        vars(self).update(_owner=owner, _get=get, _put=put)

    def __getattr__(self, name):
        if name not in self._owner._hyperparameters():
            raise AttributeError(f"there is no hyperparameter {name}: there are {self._owner._hyperparameters()}")
        return self._get(name)

    def __setattr__(self, name, value):
        self._put(name, value)

    def __repr__(self):
        return f"Hyperparameter({', '.join(f'{name}={value}' for name, value in self.get_dict().items())})"

    def get_dict(self):
        """All of them by name."""
        return {name: self._get(name) for name in self._owner._hyperparameters()}


def _hyperparam(self):
    """The hyperparameters as attributes."""
    return Hyperparameter(self, lambda name: getattr(self, name), self._set_hyperparameter)


def _hyperparam_of_rule(self):
    """The parameter's hyperparameters: the optimizer's, where it has none of its own."""
    return Hyperparameter(self, self._hyperparam, self._set_hyperparam)


def _update_rule(self):
    """What an optimizer keeps for it; None before Optimizer.setup."""
    return _engine.optimizers._update_rule(self)


def _remade(cls, hyperparameters, target, state):
    optimizer = cls()
    for name, value in hyperparameters.items():
        optimizer._set_hyperparameter(name, value)
    if target is not None:
        optimizer.setup(target)
        serializers.load_npz(io.BytesIO(state), optimizer)
    return optimizer


def _reduce(self):
    """Its hyperparameters, its model, and what it keeps for that; hooks are not pickled."""
    state = io.BytesIO()
    if self.target is not None:
        serializers.save_npz(state, self)
    return _remade, (type(self), _hyperparam(self).get_dict(), self.target, state.getvalue())


add_members(Optimizer, __setattr__=_setattr, hyperparam=property(_hyperparam), __reduce__=_reduce)  # noqa: F405
add_members(UpdateRule, hyperparam=property(_hyperparam_of_rule))  # noqa: F405
add_members(Parameter, update_rule=property(_update_rule))
