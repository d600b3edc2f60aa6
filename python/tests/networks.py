"""What tests of networks share."""

import numpy as np
import rensa
from rensa import Chain, Variable, functions as F, links as L


def host(value):
    """The elements of a variable or an array, as NumPy's."""
    array = value.array if isinstance(value, Variable) else value
    return np.asarray(array.get())


class MLP(Chain):
    def __init__(self, units=16, out=4):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, units)
            self.l2 = L.Linear(units, out)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


def examples(n=64, units=6, seed=0):
    random = np.random.RandomState(seed)
    x = random.rand(n, units).astype("float32")
    return rensa.datasets.TupleDataset(x, (x.sum(axis=1) * 7 % 4).astype("int32"))
