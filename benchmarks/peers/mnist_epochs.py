#!/usr/bin/env python3
"""Epochs of MNIST as mnist_epochs.cc has them, by PyTorch: through a DataLoader, with the data on the GPU, and
with the step in a CUDA graph. The files lie in $RENSA_DATASET_ROOT/mnist."""
import argparse
import gzip
import json
import os
import pathlib
import statistics
import time

import numpy
import torch
import torch.nn.functional as F
from timing import graphed
from torch import nn

BATCH = 100


def read(folder, name):
    packed = folder / f"{name}.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    axes = data[3]
    shape = numpy.frombuffer(data, ">i4", axes, 4)
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * axes).reshape(shape)


def samples(folder, part):
    images = torch.from_numpy(read(folder, f"{part}-images-idx3-ubyte").reshape(-1, 784).astype(numpy.float32) / 255)
    return images, torch.from_numpy(read(folder, f"{part}-labels-idx1-ubyte").astype(numpy.int64))


class Run:
    """A network in training, and what one step of it is."""

    def __init__(self, capturable=False):
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(),
                                 nn.Linear(1000, 10)).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters(), fused=True, capturable=capturable)

    def step(self, x, t):
        self.optimizer.zero_grad()
        F.cross_entropy(self.net(x), t).backward()
        self.optimizer.step()


def through_loader(train, workers):
    run = Run()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*train), BATCH, shuffle=True, num_workers=workers,
                                         pin_memory=True, persistent_workers=workers > 0)

    def epoch():
        for x, t in loader:
            run.step(x.cuda(non_blocking=True), t.cuda(non_blocking=True))
    return run, epoch


def on_device(train):
    run = Run()
    images, labels = (part.cuda() for part in train)

    def epoch():
        for chosen in torch.randperm(len(images), device="cuda").split(BATCH):
            run.step(images[chosen], labels[chosen])
    return run, epoch


def in_graph(train):
    run = Run(capturable=True)
    images, labels = (part.cuda() for part in train)
    chosen = torch.arange(BATCH, device="cuda")
    run.read = images, labels, chosen  # by the graph, which does not hold them
    replay = graphed(lambda: run.step(images[chosen], labels[chosen]))

    def epoch():
        for batch in torch.randperm(len(images), device="cuda").split(BATCH):
            chosen.copy_(batch)
            replay()
    return run, epoch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--only", default="", help="the ways whose names contain this")
    options = parser.parse_args()
    folder = pathlib.Path(os.environ["RENSA_DATASET_ROOT"], "mnist")
    train, test = samples(folder, "train"), samples(folder, "t10k")
    ways = {"data on the host torch": lambda: through_loader(train, 0),
            "data on the host, 4 workers torch": lambda: through_loader(train, 4),
            "data on the GPU torch eager": lambda: on_device(train),
            "data on the GPU torch cuda graph": lambda: in_graph(train)}
    for name, make in ways.items():
        if options.only not in name:
            continue
        run, epoch = make()
        seconds = []
        for _ in range(options.epochs):
            torch.cuda.synchronize()
            start = time.perf_counter()
            epoch()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        with torch.no_grad():
            right = (run.net(test[0].cuda()).argmax(1) == test[1].cuda()).float().mean().item()
        print(json.dumps({"name": f"mnist epoch, {name}", "value": round(statistics.median(seconds[1:]), 4), "unit": "s",
                          "accuracy": round(right, 5), "epochs": options.epochs}), flush=True)


if __name__ == "__main__":
    main()
