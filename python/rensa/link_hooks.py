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


add_members(TimerHook, print_report=print_report)  # noqa: F405

__all__ = ["LinkHook", *(name for name in dir(_engine.link_hooks) if not name.startswith("_"))]
