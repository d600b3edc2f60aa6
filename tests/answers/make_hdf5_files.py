#!/usr/bin/env python3
"""Writes hdf5/: files of Chainer and of h5py for tests/serializers/hdf5_test.cc, and prints what Chainer's run comes to.

    pip install numpy==1.23.5 h5py==3.11.0 'setuptools<66' wheel six typing_extensions 'protobuf<3.21' filelock
    pip install --no-build-isolation --no-deps chainer==7.8.1
    python3 tests/answers/make_hdf5_files.py

chainer_trainer.h5 is a trainer's file in the middle of an epoch (without LogReport, whose text Chainer does not save so),
chainer_model.h5 a model's with a parameter that waits for its shape. Of the others the first has what is to be read, and
each of the rest one dataset that is not.
"""
import pathlib
import tempfile

import chainer
import chainer.functions as F
import chainer.links as L
import h5py
import numpy as np
from chainer import training

FOLDER = pathlib.Path(__file__).resolve().parent / "hdf5"


class Line(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = chainer.Parameter(np.zeros((), np.float32))

    def forward(self, x, t):
        return F.mean(F.square(x * F.broadcast_to(self.w, x.shape) - t))


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(3, 2, initialW=np.arange(6, dtype=np.float32).reshape(2, 3))
            self.bn = L.BatchNormalization(2)
            self.l2 = L.Linear(None, 4)


def write_chainers():
    np.random.seed(0)
    x = np.arange(1, 13, dtype=np.float32)
    model = Line()
    optimizer = chainer.optimizers.Adam(0.1)
    optimizer.setup(model)
    iterator = chainer.iterators.SerialIterator(chainer.datasets.TupleDataset(x, x * 2), 3)
    trainer = training.Trainer(training.StandardUpdater(iterator, optimizer), (2, "epoch"), tempfile.mkdtemp())
    trainer.extend(lambda t: chainer.serializers.save_hdf5(FOLDER / "chainer_trainer.h5", t), name="save",
                   trigger=(6, "iteration"), priority=-100)
    trainer.run()
    print("w", float(model.w.array))
    chainer.serializers.save_hdf5(FOLDER / "chainer_model.h5", Net())


def open_new(name):
    return h5py.File(FOLDER / name, "w", libver=("earliest", "v110"))


def write_h5pys():
    with open_new("read.h5") as f:
        f["floats"] = np.array([[1.5, -2], [np.inf, 0]], ">f4")
        f["halves"] = np.array([0.5, -3], ">f2")
        f["numbers"] = np.array([1, 2**40], ">i8")
        f["flags"] = np.array([True, False])
        f["roots"] = np.array([1 + 2j], "<c16")
        f["text"] = "größer"
        f["fixed"] = np.bytes_("abc")
        f.create_dataset("packed", data=np.arange(2000, dtype=np.int16), chunks=(300,), compression="gzip", shuffle=True,
                         fletcher32=True)
    with open_new("long_double.h5") as f:
        f["x"] = np.zeros(2, np.longdouble)
    with open_new("lzf.h5") as f:
        f.create_dataset("x", data=np.zeros(300, np.float32), compression="lzf")
    with open_new("texts.h5") as f:
        f["x"] = ["a", "b"]
    with open_new("never_written.h5") as f:
        f.create_dataset("x", shape=(2**40,), dtype=np.float32)
    with open_new("never_packed.h5") as f:
        f.create_dataset("x", shape=(2**40,), dtype=np.float32, chunks=(1024,), compression="gzip")
    with open_new("soft_link.h5") as f:
        f["x"] = h5py.SoftLink("/y")
    with open_new("two_names.h5") as f:
        f["x/y"] = np.zeros(2, np.float32)
        f["z"] = f["x"]
    with open_new("external_link.h5") as f:
        f["x"] = h5py.ExternalLink("read.h5", "/floats")
    with open_new("external.h5") as f:
        f.create_dataset("x", shape=(2,), dtype=np.float32, external=[("read.h5", 0, 8)])
    with open_new("virtual.h5") as f:
        layout = h5py.VirtualLayout(shape=(2, 2), dtype=np.float32)
        layout[:] = h5py.VirtualSource("read.h5", "floats", shape=(2, 2))
        f.create_virtual_dataset("x", layout)


FOLDER.mkdir(exist_ok=True)
write_chainers()
write_h5pys()
