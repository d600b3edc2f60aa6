"""Links of the engine: Chainer's `L`."""

from rensa import _engine, functions
from rensa._engine.links import *  # noqa: F403 the engine's names are this module's
from rensa._engine.networks import Parameter as rensa_parameter, report
from rensa._methods import add_members
from rensa.link import Chain


class Classifier(Chain):
    """A predictor with a loss and a measure of accuracy, which it reports."""

    compute_accuracy = True

    def __init__(self, predictor, lossfun=functions.softmax_cross_entropy, accfun=functions.accuracy, label_key=-1):
        if not isinstance(label_key, (int, str)):
            raise TypeError(f"Classifier: label_key must be int or str, the number of an argument or its name, not {label_key!r}")
        super().__init__()
        self.lossfun, self.accfun, self.label_key = lossfun, accfun, label_key
        self.y = self.loss = self.accuracy = None
        with self.init_scope():
            self.predictor = predictor

    def forward(self, *args, **kwargs):
        if isinstance(self.label_key, int):
            if not -len(args) <= self.label_key < len(args):
                raise ValueError(f"Label key of Classifier: {self.label_key}, but there are {len(args)} arguments")
            args = list(args)
            t = args.pop(self.label_key)
        else:
            if self.label_key not in kwargs:
                raise ValueError(f"Label key of Classifier: {self.label_key!r}, but there is no such argument")
            t = kwargs.pop(self.label_key)
        self.y = self.loss = self.accuracy = None  # lets go of the last call's graph
        self.y = self.predictor(*args, **kwargs)
        self.loss = self.lossfun(self.y, t)
        report({"loss": self.loss}, self)
        if self.compute_accuracy:
            self.accuracy = self.accfun(self.y, t)
            report({"accuracy": self.accuracy}, self)
        return self.loss


class Parameter(Chain):
    """A link that is one parameter, and gives it."""

    def __init__(self, array):
        super().__init__()
        with self.init_scope():
            self.W = rensa_parameter(array)

    def forward(self, volatile="off"):
        return self.W


class _Layer:
    """One layer of an n-step network: its parameters w0, w1, ..., b0, b1, ..."""

    def __init__(self, link, name):
        self._link, self._name = link, f"/{name}/"

    def namedparams(self):
        """(path, parameter) of all: "/w0"."""
        return [(path.removeprefix(self._name[:-1]), parameter) for path, parameter in self._link.namedparams()
                if path.startswith(self._name)]

    def params(self):
        return [parameter for _, parameter in self.namedparams()]

    def __getattr__(self, name):
        found = dict(self.namedparams()).get(f"/{name}")
        if found is None:
            raise AttributeError(f"a layer has no {name}: it has {[path[1:] for path, _ in self.namedparams()]}")
        return found


def _layers(self):
    """The links in it by their numbers; of an n-step network what its layers have."""
    links = {path: link for path, link in self.namedlinks() if path[1:].isdigit()}
    numbers = sorted({int(path.split("/")[1]) for path, _ in self.namedparams()})
    return [links.get(f"/{number}") or _Layer(self, number) for number in numbers]


def _weights(kind):
    """The parameters of all layers whose names begin so: w0, w1, ... of each."""

    def found(self):
        layers = [[one for one in layer.namedparams() if one[0][1] == kind] for layer in _layers(self)]
        return [[parameter for _, parameter in sorted(layer, key=lambda one: int(one[0][2:]))] for layer in layers]

    return property(found)


for _name in [name for name in dir(_engine.links) if name.startswith("NStep")]:
    add_members(getattr(_engine.links, _name), ws=_weights("w"), bs=_weights("b"),
                n_cells=property(lambda self: 2 if "LSTM" in type(self).__name__ else 1))
for _name in [name for name in dir(_engine.links) if name.startswith("NStep") or name == "MLPConvolution2D"]:
    add_members(getattr(_engine.links, _name), __iter__=lambda self: iter(_layers(self)),
                __len__=lambda self: len(_layers(self)), __getitem__=lambda self, i: _layers(self)[i])


# --- calls in Chainer's form ---


def _tree_call(call):
    """forward(c1, c2, ..., h1, h2, ..., x), and of lists, forward(cs, hs, x)."""

    def forward(self, *cshsx):
        if len(cshsx) == 3 and isinstance(cshsx[0], (list, tuple)):
            return call(self, *cshsx)
        if len(cshsx) % 2 == 0:
            raise ValueError(f"{type(self).__name__}: as many cells as states and one x are needed, "
                             f"not {len(cshsx)} in all")
        half = len(cshsx) // 2
        return call(self, cshsx[:half], cshsx[half:-1], cshsx[-1])

    return forward


for _class in (ChildSumTreeLSTM, NaryTreeLSTM):  # noqa: F405
    add_members(_class, forward=_tree_call(_class.forward))


GRU = StatefulGRU  # noqa: F405 Chainer's name

__all__ = ["Classifier", "GRU", "Parameter"] + [name for name in dir(_engine.links) if not name.startswith("_")]
