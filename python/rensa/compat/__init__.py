"""The names `cupy` and `chainer` for programs that were written for them.

    import rensa.compat
    rensa.compat.install()

    import chainer
    import chainer.functions as F, chainer.links as L

`install(gpus="cpu")` has the CPU stand for every GPU that the program names, so that it runs where there is none.
What is not there raises AttributeError, with what takes its place where something does.
"""

import sys

from rensa import _engine
from rensa.compat import modules


def install(gpus=None):
    """Puts the modules under their names, for this process. Throws ImportError where others of the names are loaded."""
    if gpus not in (None, "cpu"):
        raise ValueError(f"install: gpus is None or 'cpu', not {gpus!r}")
    _engine.networks.use_cpu_for_gpus(gpus == "cpu")
    ours = modules.all_modules()
    for name in ("chainer", "cupy"):
        known = sys.modules.get(name)
        if known is not None and known is not ours[name]:
            raise ImportError(f"install: another {name} is loaded already; call install() before it is imported")
    sys.modules.update(ours)


def uninstall():
    """Takes the names away again."""
    _engine.networks.use_cpu_for_gpus(False)
    for name, module in modules.all_modules().items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
