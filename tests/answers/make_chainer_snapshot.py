#!/usr/bin/env python3
"""Writes chainer_snapshot.npz, the trainer's file of a run of Chainer in the middle of its second
epoch, and prints what the run comes to at that epoch's end, for tests/training/resume_test.cc.

    pip install numpy==1.23.5 'setuptools<66' wheel six typing_extensions 'protobuf<3.21' filelock
    pip install --no-build-isolation --no-deps chainer==7.8.1
    python3 tests/answers/make_chainer_snapshot.py
"""
import json
import pathlib
import tempfile

import chainer
import chainer.functions as F
import numpy as np
from chainer import training
from chainer.training import extensions


class Line(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = chainer.Parameter(np.zeros((), np.float32))

    def forward(self, x, t):
        loss = F.mean(F.square(x * F.broadcast_to(self.w, x.shape) - t))
        chainer.report({"loss": loss}, self)
        return loss


np.random.seed(0)
x = np.arange(1, 13, dtype=np.float32)
model = Line()
optimizer = chainer.optimizers.Adam(0.1)
optimizer.setup(model)
iterator = chainer.iterators.SerialIterator(chainer.datasets.TupleDataset(x, x * 2), 3)
folder = pathlib.Path(tempfile.mkdtemp())
trainer = training.Trainer(training.StandardUpdater(iterator, optimizer), (2, "epoch"), folder)
trainer.extend(extensions.LogReport(trigger=(2, "epoch")))
trainer.extend(extensions.snapshot(filename="snapshot"), trigger=(6, "iteration"))
trainer.run()
here = pathlib.Path(__file__).resolve().parent
(here / "chainer_snapshot.npz").write_bytes((folder / "snapshot").read_bytes())
entry, = json.loads((folder / "log").read_text())
print("w", float(model.w.array), "main/loss", entry["main/loss"], "order", iterator._state.order)
