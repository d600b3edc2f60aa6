#!/usr/bin/env python3
"""What the package for Python costs: its import, a small addition, and epochs of MNIST as mnist_epochs.cc has them,
by Python's Trainer. Prints one JSON object per figure.

    python_package.py [cpu | cuda:0]
PYTHONPATH names the folder of the package; $RENSA_DATASET_ROOT/mnist has the files."""
import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))

import rensa  # noqa: E402
from rensa import Sequential, converters, cuda, datasets, functions as F, iterators, links as L  # noqa: E402
from rensa import optimizers, training, xp  # noqa: E402
from timing import median_seconds  # noqa: E402

EPOCHS = 20


def figure(name, value, unit, **more):
    print(json.dumps({"name": name, "value": float(f"{value:.4g}"), "unit": unit, **more}), flush=True)


def wait(device):
    if device != "cpu":
        cuda.synchronize(device)


def import_seconds():
    """The time of the import alone, as the interpreter tells it: the median of seven processes."""
    lines = []
    for _ in range(7):
        told = subprocess.run([sys.executable, "-X", "importtime", "-c", "import rensa"], capture_output=True, text=True,
                              check=True).stderr
        lines.append(next(line for line in told.splitlines() if line.split("|")[-1].strip() == "rensa"))
    return statistics.median(int(line.split("|")[1]) for line in lines) / 1e6


def small_add(device):
    a = xp.ones(16, "float32", device=device)
    return median_seconds(lambda: a + a, 3000, lambda: wait(device), warm_up=10)


def epoch_of_mnist(device, mnist, on_device, captured):
    """Median seconds of an epoch, and the share of the test images that are named rightly after all of them."""
    xp.random.seed(0)
    model = L.Classifier(Sequential(L.Linear(1000), F.relu, L.Linear(1000), F.relu, L.Linear(10)))
    model.to_device(device)
    optimizer = optimizers.Adam().setup(model)
    columns = [xp.asarray(x, device=device) for x in mnist[0]] if on_device else mnist[0]
    iterator = iterators.SerialIterator(datasets.TupleDataset(*columns), 100)
    updater = training.updaters.StandardUpdater(iterator, optimizer, device=device, capture=captured)
    trainer = training.Trainer(updater, (EPOCHS, "epoch"), out="result_of_epochs")
    times = []

    @training.make_extension(trigger=(1, "epoch"))
    def clock(_trainer):
        wait(device)
        times.append(time.perf_counter())

    trainer.extend(clock)
    trainer.run()
    x, t = (xp.asarray(column, device=device) for column in mnist[1])
    with rensa.using_config("train", False), rensa.no_backprop_mode():
        right = F.accuracy(model.predictor(x), t).item()
    return statistics.median(later - before for before, later in zip(times, times[1:])), right


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda:0"
    figure("import of the package rensa python", import_seconds(), "s")
    figure(f"host cost of a small add, {device} rensa python", small_add(device) * 1e6, "us")
    mnist = [converters.concat_examples(part[:]) for part in datasets.get_mnist()]
    for on_device in (False, True):
        for captured in (False, True):
            seconds, right = epoch_of_mnist(device, mnist, on_device, captured)
            figure(f"mnist epoch, data on the {'GPU' if on_device else 'host'} rensa python "
                   f"{'captured' if captured else 'eager'}", seconds, "s", accuracy=right, epochs=EPOCHS)


if __name__ == "__main__":
    main()
