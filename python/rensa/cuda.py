"""Streams, events, memory pools, pinned memory, waits and timelines of NVIDIA GPUs, under CuPy's names."""

from rensa import _engine
from rensa._engine import Device, num_gpus  # noqa: F401
from rensa._engine.cuda import *  # noqa: F403 the engine's names are this module's
from rensa._engine.cuda import Stream, get_current_stream
from rensa._methods import add_scope

add_scope(Stream, lambda stream: get_current_stream(stream.device))


def is_available():
    """Whether there is a GPU."""
    return num_gpus() > 0


__all__ = ["Device", "is_available"] + [name for name in dir(_engine.cuda) if not name.startswith("_")]
