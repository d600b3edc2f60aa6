"""Streams, events, memory pools, pinned memory, waits and timelines of NVIDIA GPUs, under CuPy's names."""

import threading

from rensa import _engine
from rensa._engine import Device, num_gpus  # noqa: F401
from rensa._engine.cuda import *  # noqa: F403 the engine's names are this module's
from rensa._engine.cuda import Stream, get_current_stream
from rensa._methods import add_members

_outer = threading.local()


def _enter(self):
    """with stream: what the thread queues on the stream's device goes to it."""
    _outer.stack = [*getattr(_outer, "stack", []), get_current_stream(self.device)]
    return self.use()


def _exit(self, *error):
    _outer.stack.pop().use()


add_members(Stream, __enter__=_enter, __exit__=_exit)


def is_available():
    """Whether there is a GPU."""
    return num_gpus() > 0


__all__ = ["Device", "is_available"] + [name for name in dir(_engine.cuda) if not name.startswith("_")]
