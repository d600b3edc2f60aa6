"""The names `cupy` and `chainer` for programs that were written for them.

    import rensa.compat
    rensa.compat.install()

    import chainer
    import chainer.functions as F, chainer.links as L

`install(gpus="cpu")` has the CPU stand for every GPU that the program names, so that it runs where there is none.
What is not there raises AttributeError, with what takes its place where something does.
"""

import functools
import sys

from rensa import _engine
from rensa.compat import modules, submodules


@functools.lru_cache(maxsize=None)
def _finder():
    return submodules.Finder(modules.all_modules())


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
    if _finder() not in sys.meta_path:
        sys.meta_path.insert(0, _finder())


def uninstall():
    """Takes the names away again."""
    _engine.networks.use_cpu_for_gpus(False)
    for name, module in modules.all_modules().items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    if _finder() in sys.meta_path:
        sys.meta_path.remove(_finder())
    for name in [name for name in sys.modules if _finder().above(name)]:
        del sys.modules[name]
