#!/usr/bin/env python3
"""Writes the losses that PyTorch gets over 100 steps, for tests/training/reference_losses_test.cc.

    make_reference_losses.py > tests/answers/reference_losses.inc
Data, initial parameters and batch order come from a hash of integers that the test computes too, so
nothing but the losses has to be kept. float32 on the CPU, one thread.
"""
import sys

import numpy as np
import torch

SAMPLES, INPUTS, UNITS, CLASSES, BATCH, STEPS, RATE = 1000, 784, 100, 10, 100, 100, 0.05


def words(stream, count):
    """32 hashed bits for each of 0..count-1 (the finalizer of MurmurHash3)."""
    h = np.arange(count, dtype=np.uint32) + np.uint32(stream) * np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return h ^ (h >> np.uint32(16))


def uniform(stream, *shape):
    """float32 in [-1, 1) with 24 bits."""
    w = words(stream, int(np.prod(shape))) >> np.uint32(8)
    return (w.astype(np.float32) * np.float32(2.0**-23) - np.float32(1)).reshape(shape)


def data():
    """Each class has a random prototype; a sample is half of it plus half noise."""
    t = (words(1, SAMPLES) % np.uint32(CLASSES)).astype(np.int64)
    prototypes = uniform(2, CLASSES, INPUTS)
    return (prototypes[t] + uniform(3, SAMPLES, INPUTS)) * np.float32(0.5), t


def parameters():
    """(W, b) of the three layers, scaled by powers of two."""
    sizes = ((UNITS, INPUTS, 2.0**-4), (UNITS, UNITS, 2.0**-3), (CLASSES, UNITS, 2.0**-3))
    return [(uniform(10 + 2 * i, m, n) * np.float32(scale), uniform(11 + 2 * i, m) * np.float32(0.125))
            for i, (m, n, scale) in enumerate(sizes)]


def batches():
    """The indices of each step's batch: every epoch in the order of its hashes."""
    per_epoch = SAMPLES // BATCH
    for step in range(STEPS):
        epoch, part = divmod(step, per_epoch)
        order = np.argsort(words(100 + epoch, SAMPLES), kind="stable")
        yield order[part * BATCH:(part + 1) * BATCH]


def losses():
    torch.set_num_threads(1)
    x, t = map(torch.from_numpy, data())
    model = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, UNITS), torch.nn.ReLU(), torch.nn.Linear(UNITS, UNITS),
        torch.nn.ReLU(), torch.nn.Linear(UNITS, CLASSES))
    with torch.no_grad():
        for layer, (w, b) in zip(model[::2], parameters()):
            layer.weight.copy_(torch.from_numpy(w))
            layer.bias.copy_(torch.from_numpy(b))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for index in batches():
        index = torch.from_numpy(index)
        loss = torch.nn.functional.cross_entropy(model(x[index]), t[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    with np.errstate(over="ignore"):  # the hash wraps around
        values = [f"{loss:.7f}f" for loss in losses()]
    print(f"// Written by tools/make_reference_losses.py with PyTorch {torch.__version__.split('+')[0]}.")
    for i in range(0, len(values), 8):
        print(", ".join(values[i:i + 8]) + ",")


if __name__ == "__main__":
    sys.exit(main())
