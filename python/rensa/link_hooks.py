"""What is told of each call of a link, and may change its weights for the time of one: `link.add_hook(hook)`, or all
links that take hooks within `with hook:`."""

from rensa import _engine
from rensa._engine.link_hooks import *  # noqa: F403 the engine's names are this module's
from rensa._engine.link_hooks import Hook
from rensa._methods import add_members
from rensa.function_hooks import print_report


class LinkHook:
    """The base of hooks of one's own. `args` has `link`, `forward_name`, `args` and `kwargs`, behind the call `out`; a part of
    a link of the engine's that nobody has looked at is None, and `link_name` its class. A captured step with such a hook
    stays eager."""

    name = "LinkHook"

    def added(self, link):
        """A link gets it; None as a scope begins."""

    def deleted(self, link):
        """A link loses it; None as a scope ends."""

    def forward_preprocess(self, args):
        """Before a link's forward."""

    def forward_postprocess(self, args):
        """Behind a link's forward."""

    def __enter__(self):
        self.__dict__["_scope"] = Hook(self, self.name)
        self._scope.__enter__()
        self.added(None)
        return self

    def __exit__(self, *error):
        self.__dict__.pop("_scope").__exit__(*error)
        self.deleted(None)



def SpectralNormalization(n_power_iteration=1, eps=1e-6, use_gamma=False, factor=None, weight_name="W", name=None):
    """The link computes with its weight divided by the weight's greatest singular value, times `factor`."""
    hook = _engine.link_hooks.SpectralNormalization(n_power_iteration, eps, use_gamma, factor, weight_name, name)
    hook.__dict__.update(n_power_iteration=n_power_iteration, eps=eps, use_gamma=use_gamma, factor=factor, weight_name=weight_name,
                         vector_name=weight_name + "_u")
    return hook


def WeightStandardization(*, eps=1e-5, weight_name="W", name=None):
    """The link computes with weights of mean 0 and variance 1 in each slice of their first axis."""
    hook = _engine.link_hooks.WeightStandardization(eps, weight_name, name)
    hook.__dict__.update(eps=eps, weight_name=weight_name)
    return hook


add_members(TimerHook, print_report=print_report)  # noqa: F405

__all__ = ["LinkHook", *(name for name in dir(_engine.link_hooks) if not name.startswith("_"))]
