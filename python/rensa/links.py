"""Links of the engine: Chainer's `L`."""

from rensa import _engine, functions
from rensa._engine.links import *  # noqa: F403 the engine's names are this module's
from rensa._engine.networks import Parameter as rensa_parameter, report
from rensa.link import Chain


class Classifier(Chain):
    """A predictor with a loss and a measure of accuracy, which it reports."""

    compute_accuracy = True

    def __init__(self, predictor, lossfun=functions.softmax_cross_entropy, accfun=functions.accuracy, label_key=-1):
        super().__init__()
        self.lossfun, self.accfun, self.label_key = lossfun, accfun, label_key
        self.y = self.loss = self.accuracy = None
        with self.init_scope():
            self.predictor = predictor

    def forward(self, *args, **kwargs):
        if isinstance(self.label_key, int):
            args = list(args)
            t = args.pop(self.label_key)
        else:
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


GRU = StatefulGRU  # noqa: F405 Chainer's name

__all__ = ["Classifier", "GRU", "Parameter"] + [name for name in dir(_engine.links) if not name.startswith("_")]
