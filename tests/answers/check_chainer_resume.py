#!/usr/bin/env python3
"""Lets Chainer go on from a trainer's snapshot that the tests write, and holds its numbers to Chainer's own run.

    pip install numpy==1.23.5 'setuptools<66' wheel six typing_extensions 'protobuf<3.21' filelock
    pip install --no-build-isolation --no-deps chainer==7.8.1
    RENSA_DATASET_ROOT=DATA python3 tests/answers/check_chainer_resume.py build/cpu/tests/rensa_tests

DATA holds mnist/ and chainer/ (the log and the losses of a run of which this is the end). Each loss of the third epoch
may be 1e-5 from Chainer's, each number of the log too.
"""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions

data = pathlib.Path(os.environ["RENSA_DATASET_ROOT"])


def read(name, offset):
    return np.frombuffer(gzip.open(data / "mnist" / name).read()[offset:], np.uint8)


def examples(part, n):
    x = (read(part + "-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:n] / 255).astype("f")
    return chainer.datasets.TupleDataset(x, read(part + "-labels-idx1-ubyte.gz", 8)[:n].astype("i"))


class MLP(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2, self.l3 = L.Linear(784, 50), L.Linear(50, 50), L.Linear(50, 10)

    def forward(self, x):
        return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([sys.argv[1], "--gtest_filter=ChainerRunTest.FromTheBeginning*"], check=True,
                   stdout=subprocess.DEVNULL, env=os.environ | {"RENSA_TEST_CHAINER_FOLDER": str(folder)})
    model = L.Classifier(MLP())
    optimizer = chainer.optimizers.Adam()
    optimizer.setup(model)
    iterator = chainer.iterators.SerialIterator(examples("train", 5000), 100, shuffle=False)
    tested = chainer.iterators.SerialIterator(examples("t10k", 1000), 100, repeat=False, shuffle=False)
    trainer = training.Trainer(training.StandardUpdater(iterator, optimizer), (3, "epoch"), folder / "again")
    losses = []

    @training.make_extension(trigger=(1, "iteration"))
    def keep(trainer):
        losses.append(float(trainer.observation["main/loss"].array))

    trainer.extend(keep)
    trainer.extend(extensions.Evaluator(tested, model))
    trainer.extend(extensions.ExponentialShift("alpha", 0.9), trigger=(1, "epoch"))
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.observe_lr())
    chainer.serializers.load_npz(folder / "snapshot_epoch_2", trainer)
    trainer.run()
    log = json.loads((folder / "again/log").read_text())

chainers = json.loads((data / "chainer/losses.json").read_text())
far = max(abs(a - b) for a, b in zip(losses, chainers[100:], strict=True))
for entry, chainers_entry in zip(log, json.loads((data / "chainer/log").read_text()), strict=True):
    for key in chainers_entry.keys() - {"elapsed_time"}:
        far = max(far, abs(entry[key] - chainers_entry[key]))
print(f"{len(losses)} losses and {len(log)} entries of the log, at most {far:.2g} from Chainer's")
sys.exit(far > 1e-5)
