#!/usr/bin/env python3
"""Trains networks on real data in PyTorch and in Rensa from one start, and holds the results against each other.

    run_accuracy.py --build-dir DIR --data FOLDER [--python PYTHON] [--device cuda:0|cpu]
                    [--only NETWORK ...] [--precision fp32|tf32|bf16 ...] [--seeds N ...] [--jobs N] [--quick]
--jobs runs are made side by side, which says nothing of seconds any more.
FOLDER has mnist/, cifar10/ and text/ (peers/accuracy.py says what), PYTHON is one that has PyTorch, torchvision
and NumPy. On a GPU Rensa's steps run eagerly and captured. Ends with 1 where the mean over the seeds misses its
demand: LeNet 99.2 % of MNIST's test images, VGG and ResNet-18 within one point of PyTorch, the networks of text
within 1 % of PyTorch's loss. --quick makes a few steps in float64 instead, whose losses are to be the same.
Writes run_accuracy.md and run_accuracy.json to $OUT, or to DIR.
"""
import argparse
import concurrent.futures
import pathlib
import statistics
import sys
import tempfile

from harness import HERE, Report, cpu_name
from run_gpu import hardware

NETWORKS = ("lenet", "vgg", "resnet18", "charlstm", "transformer")


def demand(network, ours, theirs):
    """What is asked of the network, and whether it is met."""
    if network == "lenet":
        return "at least 99.2 %", ours >= 99.2
    if network in ("vgg", "resnet18"):
        return "within 1 point", abs(ours - theirs) <= 1
    return "within 1 %", abs(ours / theirs - 1) <= 0.01


def difference(ours, theirs):
    """The largest relative difference of the first losses."""
    pairs = zip(ours["first_losses"], theirs["first_losses"], strict=True)
    return max(abs(a / b - 1) for a, b in pairs)


class Runs:
    """Runs of both sides, by one file for each network and seed."""

    def __init__(self, report, options, folder):
        self.report, self.options, self.folder = report, options, pathlib.Path(folder)
        self.ways = ("eager",) if options.device == "cpu" else ("eager", "captured")

    def run_all(self):
        """Makes all runs, `jobs` of them side by side: the longest networks first."""
        networks = [network for network in ("resnet18", "vgg", "lenet", "transformer", "charlstm")
                    if network in self.options.only]
        files = [(network, seed) for network in networks for seed in self.options.seeds]
        runs = [(network, precision, seed, who) for network, seed in files for precision in self.options.precision
                for who in ("torch", *(f"rensa {how}" for how in self.ways))]
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(lambda file: self.write(*file), files))
            list(pool.map(lambda run: self.train(*run), runs))

    def file(self, network, seed):
        return self.folder / f"{network}-seed{seed}.npz"

    def write(self, network, seed):
        few = ["--samples", 384, "--epochs", 1] if self.options.quick else []
        self.peer("write", network, self.file(network, seed), "--data", self.options.data, "--seed", seed, *few)

    def train(self, network, precision, seed, who):
        arguments = [network, self.file(network, seed), "--device", self.options.device, "--precision", precision]
        if who == "torch":
            self.peer("train", *arguments)
        else:
            captured = ["--captured"] if who == "rensa captured" else []
            self.report.run([self.report.program("accuracy"), *arguments, *captured])

    def peer(self, *arguments):
        self.report.run([self.options.python, HERE / "peers" / "accuracy.py", *arguments])

    def figures(self, network, precision, who):
        """The figures of all seeds; empty where one failed."""
        found = [self.report.figures.get(f"accuracy {network}-seed{seed} {precision} {who}")
                 for seed in self.options.seeds]
        return found if all(found) else []

    def rows(self, network, precision):
        theirs = self.figures(network, precision, "torch")
        for how in self.ways:
            ours = self.figures(network, precision, f"rensa {how}")
            if theirs and ours:
                yield self.row(network, precision, how, ours, theirs)

    def row(self, network, precision, how, ours, theirs):
        means = [statistics.mean(figure["value"] for figure in side) for side in (theirs, ours)]
        seconds = [statistics.mean(figure["seconds"] for figure in side) for side in (theirs, ours)]
        first = max(difference(a, b) for a, b in zip(ours, theirs))
        asked, met = demand(network, means[1], means[0])
        if self.options.quick:
            asked, met = "the same first losses", first < 1e-6
        if not met:
            self.report.faults.append(f"{network} {precision} {how}: {means[1]:.4g}, PyTorch {means[0]:.4g}, "
                                      f"first losses {first:.1e} apart; asked for: {asked}")
        return [network, precision, how, ours[0]["unit"], *(f"{mean:.4g}" for mean in means), asked,
                "yes" if met else "no", f"{first:.1e}", *seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--precision", nargs="+", choices=("fp32", "tf32", "bf16"), default=("fp32", "bf16"))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.precision = ("fp64",)
    report = Report(options.build_dir)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(report, options, folder)
        runs.run_all()
        rows = [row for network in options.only for precision in options.precision
                for row in runs.rows(network, precision)]
    report.table(f"Accuracy on real data on {options.device}, means over {len(options.seeds)} seed(s)",
                 ["network", "precision", "Rensa's steps", "unit", "PyTorch", "Rensa", "asked for", "met",
                  "first losses apart", "PyTorch (s)", "Rensa (s)"], rows)
    return report.write("run_accuracy", cpu_name() if options.device == "cpu" else hardware())


if __name__ == "__main__":
    sys.exit(main())
