#!/usr/bin/env python3
"""Writes optimizers.npz: what 50 updates by each of Chainer's optimizers, and by SGD with each of its hooks,
come to. NesterovAG is PyTorch's: Chainer's takes the velocity with the new gradient in it where the paper has
the last one. tests/optimizers/recorded_test.cc replays them.

    pip install numpy==1.23.5 'setuptools<66' wheel six typing_extensions 'protobuf<3.21' filelock
    pip install --no-build-isolation --no-deps chainer==7.8.1
    pip install torch
    python3 tests/answers/make_optimizer_cases.py

A model has the parameters a (3,) and b (2, 2). Of a case are in the file, behind "name|": the elements of a,
then of b, after 1, 10 and 50 updates ("float32" and "float16", (3, 7)), and of float32 the states at the end,
by the names of Chainer's files ("state/m", (7,)); where the name is an optimizer's the hyperparameters
("hyperparam/alpha"). Parameters of float16 are updated in float32 (use_fp32_update).
"""
import io
import pathlib
import warnings
import zipfile

import chainer
import numpy as np
import torch
from chainer import optimizer_hooks as hooks
from chainer import optimizers

UPDATES = (1, 10, 50)
records = {}


class Two(chainer.Link):
    def __init__(self, dtype):
        super().__init__()
        with self.init_scope():
            self.a = chainer.Parameter(np.array([1.0, -2.0, 0.5], dtype))
            self.b = chainer.Parameter(np.full((2, 2), 3.0, dtype))


def gradient(size, t):
    i = np.arange(size)
    return np.sin(i + 0.37 * t) + 0.1 * i


def case(name, make, *added):
    for dtype in (np.float32, np.float16):
        model, optimizer = Two(dtype), make()
        if dtype == np.float16:
            optimizer.use_fp32_update()
        optimizer.setup(model)
        for hook in added:
            optimizer.add_hook(hook)
        seen = []
        for t in range(1, max(UPDATES) + 1):
            for p in (model.a, model.b):
                p.grad = gradient(p.size, t).reshape(p.shape).astype(dtype)
            optimizer.update()
            if t in UPDATES:
                seen.append(np.concatenate([model.a.array, model.b.array.ravel()]))
        records[f"{name}|{np.dtype(dtype).name}"] = np.array(seen)
        if dtype == np.float16:
            continue
        for key in model.a.update_rule.state or {}:
            states = [np.asarray(p.update_rule.state[key]).ravel() for p in (model.a, model.b)]
            records[f"{name}|state/{key}"] = np.concatenate(states)
        for key, value in optimizer.hyperparam.get_dict().items():
            if name == type(optimizer).__name__ and not isinstance(value, bool):
                records[f"{name}|hyperparam/{key}"] = np.float64(value)


def nesterov(lr=0.01, momentum=0.9):
    start = np.array([1.0, -2.0, 0.5] + [3.0] * 4, np.float32)
    for dtype in (np.float32, np.float16):
        p, seen = torch.tensor(start), []
        optimizer = torch.optim.SGD([p], lr, momentum, nesterov=True)
        for t in range(1, max(UPDATES) + 1):
            g = np.concatenate([gradient(3, t), gradient(4, t)]).astype(dtype)
            p.grad = torch.tensor(g.astype(np.float32))
            optimizer.step()
            if t in UPDATES:
                seen.append(p.numpy().astype(dtype))
        records[f"NesterovAG|{np.dtype(dtype).name}"] = np.array(seen)
        if dtype == np.float32:
            records["NesterovAG|state/v"] = -lr * optimizer.state[p]["momentum_buffer"].numpy()
    records["NesterovAG|hyperparam/lr"] = np.float64(lr)
    records["NesterovAG|hyperparam/momentum"] = np.float64(momentum)


def sgd():
    return optimizers.SGD(0.1)


warnings.simplefilter("ignore")
for name in ("SGD", "MomentumSGD", "CorrectedMomentumSGD", "Adam", "AdamW", "AMSGrad", "AdaBound",
             "AMSBound", "AdaGrad", "AdaDelta", "RMSprop", "RMSpropGraves", "SMORMS3", "MSVAG"):
    case(name, getattr(optimizers, name))
nesterov()
case("AdamW eta=0.5 weight_decay_rate=0.02", lambda: optimizers.AdamW(alpha=0.01, eta=0.5, weight_decay_rate=0.02))
case("Adam amsgrad adabound",
     lambda: optimizers.Adam(alpha=0.05, amsgrad=True, adabound=True, final_lr=0.02, gamma=0.5))
case("RMSprop eps_inside_sqrt", lambda: optimizers.RMSprop(alpha=0.9, eps=0.01, eps_inside_sqrt=True))
case("MSVAG weight_decay_rate=0.02", lambda: optimizers.MSVAG(beta=0.8, eta=0.5, weight_decay_rate=0.02))
case("WeightDecay", sgd, hooks.WeightDecay(0.05))
case("Lasso", sgd, hooks.Lasso(0.05))
case("GradientClipping", sgd, hooks.GradientClipping(0.8))
case("GradientHardClipping", sgd, hooks.GradientHardClipping(-0.4, 0.6))
case("GradientLARS", sgd, hooks.GradientLARS(0.01, 0.05))
case("GradientLARS of small parameters", sgd, hooks.GradientLARS(4.0, 0.05))
case("WeightDecay and GradientClipping", sgd, hooks.WeightDecay(0.05), hooks.GradientClipping(0.8))

path = pathlib.Path(__file__).resolve().parent / "optimizers.npz"
with zipfile.ZipFile(path, "w") as archive:  # the same bytes for the same answers
    for name, array in records.items():
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(name + ".npy"), stream.getvalue(), zipfile.ZIP_DEFLATED, 9)
print(len(records), "arrays,", path.stat().st_size, "bytes")
