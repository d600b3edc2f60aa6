"""rensa.serializers, under Chainer's names."""

import functools
import os

from rensa import _engine
from rensa._engine.serializers import *  # noqa: F403 the engine's names are this module's



def _in_file(name, loads):
    """Of a path, or of an open file: that is written and read as a whole."""
    call = getattr(_engine.serializers, name)

    @functools.wraps(call, updated=())
    def called(file, obj, *args, **kwargs):
        if isinstance(file, (str, os.PathLike)):
            return call(os.fspath(file), obj, *args, **kwargs)
        import tempfile  # which imports much that nobody else wants

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            if loads:
                with open(path, "wb") as copy:
                    copy.write(file.read())
            result = call(path, obj, *args, **kwargs)
            if not loads:
                with open(path, "rb") as written:
                    file.write(written.read())
        return result

    return called


save_npz, load_npz = _in_file("save_npz", False), _in_file("load_npz", True)

__all__ = [name for name in dir(_engine.serializers) if not name.startswith("_")]
