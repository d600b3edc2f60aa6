#!/usr/bin/env python3
"""Holds the HDF5 files that the tests write to h5py and to Chainer's load_hdf5.

    pip install numpy==1.23.5 h5py==3.11.0 'setuptools<66' wheel six typing_extensions 'protobuf<3.21' filelock
    pip install --no-build-isolation --no-deps chainer==7.8.1
    python3 tests/answers/check_hdf5.py build/cpu/tests/rensa_tests

What they read of Chainer's and h5py's is written by make_hdf5_files.py.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import chainer
import chainer.functions as F
import chainer.links as L
import h5py
import numpy as np
from chainer import training


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
            self.l1 = L.Linear(3, 2)
            self.bn = L.BatchNormalization(2)
            self.l2 = L.Linear(None, 4)


def check_values(folder):
    with h5py.File(folder / "everything.h5") as f:
        numbers = np.arange(6).reshape(2, 3)
        for name in ("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
                     "complex128").split():
            assert f[name].dtype == name, (name, f[name].dtype)
            assert np.array_equal(f[name][()], numbers), name
        assert f["bool"].dtype == bool and np.array_equal(f["bool"][()], numbers != 0)
        assert f["bfloat16"].dtype == np.float32 and np.array_equal(f["bfloat16"][()], numbers)
        assert f["more/scalar"].shape == () and f["more/scalar"][()] == 2.5
        assert f["more/empty"].shape == (0, 3)
        assert f["more/none"].shape is None and f["more/none"][()] == h5py.Empty("f")
        assert f["more/text"].asstr()[()] == "größer\n" and f["more/nothing"].asstr()[()] == ""
        assert f["number"][()] == -2**60 and f["number"].dtype == np.int64
        assert f["real"][()] == 0.1 and f["flag"][()] == np.True_ and f["flag"].dtype == bool
    with h5py.File(folder / "many.h5") as f:
        assert f["x"].compression == "gzip" and f["x"].compression_opts == 4
        assert np.array_equal(f["x"][()], np.arange(1000003, dtype=np.float64))


def check_model(folder):
    net = Net()
    chainer.serializers.load_hdf5(folder / "model.h5", net)
    for path, parameter in net.namedparams():
        assert (parameter.array == 7).all(), path
    assert net.l2.W.shape == (4, 2) and (net.bn.avg_var == 7).all()


def check_trainer(folder):
    x = np.arange(1, 13, dtype=np.float32)
    model = Line()
    optimizer = chainer.optimizers.Adam(0.1)
    optimizer.setup(model)
    iterator = chainer.iterators.SerialIterator(chainer.datasets.TupleDataset(x, x * 2), 3)
    trainer = training.Trainer(training.StandardUpdater(iterator, optimizer), (2, "epoch"), folder / "out")
    trainer.extend(lambda t: None, name="save", trigger=(7, "iteration"), priority=-100)
    chainer.serializers.load_hdf5(folder / "trainer.h5", trainer)
    assert trainer.updater.iteration == 7
    trainer.run()
    assert abs(float(model.w.array) - 0.721404492855072) < 1e-5, model.w.array


with tempfile.TemporaryDirectory() as name:
    subprocess.run([sys.argv[1], "--gtest_filter=Hdf5Test.*"], check=True, stdout=subprocess.DEVNULL,
                   env=os.environ | {"RENSA_TEST_HDF_FOLDER": name})
    for check in (check_values, check_model, check_trainer):
        check(pathlib.Path(name))
        print(check.__name__, "holds")
