#!/usr/bin/env python3
"""Runs the CPU benchmarks next to the peers' on the same cores, and writes the comparison.

    run_cpu.py --build-dir DIR [--python PYTHON] [--threads N] [--only PART ...]
PART is training, short, networks, routines, activations, functions, attention, convolutions, recordings or collectives, or
what is our own beside the libraries that could do it: sorting, products or transforms.
PYTHON is one that has PyTorch and NumPy. Writes run_cpu.md and run_cpu.json to $OUT, or to DIR.
"""
import argparse
import os
import sys

from harness import HERE, Report, cpu_name, ratio, text_of


BATCHES = (1, 10, 100, 1024)  # of the training step


def training(report, python, threads):
    """The training step, beside PyTorch's."""
    rows = []
    # Both twice, in turns: what else the machine does shows as a difference.
    for turn in (1, 2):
        report.run([report.program("training_step"), "--device", "cpu", "--batchsize", *map(str, BATCHES)],
                   RENSA_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads)
        report.run([python, HERE / "peers" / "training_step.py", "cpu", "--threads", threads])
        for batch in BATCHES:
            ours = report.value(f"mnist_mlp1000 B={batch} fp32 cpu rensa eager")
            theirs = report.value(f"mnist_mlp1000 B={batch} fp32 cpu torch eager")
            rows.append([batch, turn, theirs, ours, ratio(ours, theirs)])
    report.table(f"Training step on the CPU, {threads} threads: MLP 784-1000-1000-10, SGD (µs a step)",
                 ["batch", "turn", "PyTorch eager", "Rensa", "Rensa / PyTorch"], rows)


def short(report, python, threads):
    """Steps so short that calls decide, beside PyTorch's, in turns."""
    rows = []
    for turn in (1, 2):
        report.run([report.program("short_steps"), "--device", "cpu"],
                   RENSA_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads)
        report.run([python, HERE / "peers" / "short_steps.py", "--device", "cpu", "--threads", threads])
        for what in ("policy", "lstm cell"):
            for batch in (1, 16, 64):
                name = f"{what} B={batch} cpu"
                ours, theirs, jax = (report.value(f"{name} {who}") for who in ("rensa", "torch", "jax jit"))
                rows.append([what, batch, turn, theirs, jax, ours,
                             ratio(ours, min((p for p in (theirs, jax) if p), default=None))])
    report.table(f"Short steps on the CPU, {threads} threads: an LSTM cell of 256 units, a policy of two layers of 256 "
                 "(µs a step)", ["step", "batch", "turn", "PyTorch", "JAX jit", "Rensa", "Rensa / best peer"], rows)


# The networks of networks.cc that a step of takes seconds at most, and how many steps a timing has.
NETWORKS = {"mlp": 40, "lenet": 20, "resnet18": 1, "lstm": 10, "ptb": 1, "transformer": 2, "transformer0": 2}
OF_CONVOLUTIONS = ("lenet", "resnet18")


def networks(report, python, threads):
    """Training steps of whole networks, beside PyTorch's: of three turns of five timings each the least.
    PyTorch's threads sleep where they wait: those that spin take the cores from each other where others work too."""
    turns = {}  # the least of each turn's timings

    def run(command, **environment):
        report.run(command, **environment)
        for name in [name for name, figure in report.figures.items() if "least" in figure]:
            turns.setdefault(name, []).append(report.figures.pop(name)["least"])

    layouts = {network: ([], ["--channels-first"]) if network in OF_CONVOLUTIONS else ([],) for network in NETWORKS}
    for _ in range(3):
        for network, steps in NETWORKS.items():
            for layout in layouts[network]:
                run([report.program("networks"), network, "--device", "cpu", "--precision", "fp32",
                     "--steps", steps, *layout], RENSA_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads)
                run([python, HERE / "peers" / "networks.py", network, "fp32", "--device", "cpu",
                     "--threads", threads, "--steps", steps, *layout], OMP_WAIT_POLICY="passive")
    report.figures.update({name: {"name": name, "value": min(values), "unit": "us", "turns": values}
                           for name, values in turns.items()})
    rows = []
    for name in [name for name in turns if name.endswith(" rensa eager")]:
        ours, theirs = turns[name], turns.get(name.replace(" rensa ", " torch "), [])
        apart = " ".join(text_of(ratio(*pair)) for pair in zip(ours, theirs))
        rows.append([name.removesuffix(" fp32 rensa eager"), min(theirs, default=None), min(ours),
                     ratio(min(ours), min(theirs, default=None)), apart])
    report.table(f"Training steps of networks on the CPU, {threads} threads, float32 (µs, the least of 15 timings)",
                 ["network", "PyTorch eager", "Rensa", "Rensa / PyTorch", "the same in each turn"], rows)


def routines(report, python, threads):
    report.routines("cpu", python, ["numpy", "torch"], RENSA_NUM_THREADS=threads,
                    OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads)


def activations(report, python, threads):
    report.activations("cpu", python, "--threads", threads, RENSA_NUM_THREADS=threads)


def functions(report, python, threads):
    """PyTorch's threads sleep where they wait, as in networks()."""
    report.functions("cpu", python, "--threads", threads, RENSA_NUM_THREADS=threads,
                     OPENBLAS_NUM_THREADS=threads, OMP_WAIT_POLICY="passive")


def attention(report, python, threads):
    report.attention("cpu", python, "--threads", threads, RENSA_NUM_THREADS=threads)


def convolutions(report, python, threads):
    report.convolutions("cpu", python, "--threads", threads, RENSA_NUM_THREADS=threads)


def recordings(report, _python, threads):
    report.recordings("cpu", RENSA_NUM_THREADS=threads)


def collectives(report, python, _threads):
    """allreduce over two ranks, threads and processes, beside PyTorch's gloo."""
    launcher = report.build / "programs" / "rensa-run"
    report.run([report.program("collectives"), 2], RENSA_NUM_THREADS="1")
    report.run([launcher, "-n", 2, report.program("collectives")], RENSA_NUM_THREADS="1")
    report.run([launcher, "-n", 2, python, HERE / "peers" / "collectives.py"], OMP_NUM_THREADS="1")
    rows = []
    for kilobytes in (4, 64, 1024, 16384, 131072):
        name = f"allreduce {kilobytes} KB, 2"
        threads, ours, theirs = (report.value(f"{name} {what}") for what in (
            "threads rensa", "processes rensa", "processes gloo"))
        rows.append([f"{kilobytes} KB", theirs, ours, ratio(ours, theirs), threads])
    report.table("allreduce of float32 over two ranks on the CPU (µs)",
                 ["array", "gloo, processes", "Rensa, processes", "Rensa / gloo", "Rensa, threads"], rows)


def every_pool(threads):
    return {name: threads for name in ("RENSA_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS",
                                       "OPENBLAS_NUM_THREADS")}


def sorting(report, _python, threads):
    report.beside("sort: ", "library_sort", f"Sorting beside Highway's vqsort; xp::sort has {threads} "
                  "threads (µs)", {"vqsort": "vqsort", "std::sort": "std"}, **every_pool(threads))


def products(report, _python, threads):
    report.beside("products: ", "library_products", f"Products beside other libraries', {threads} "
                  "threads (µs)", {"OpenBLAS": "openblas", "BLIS": "blis", "oneDNN": "dnnl"},
                  **every_pool(threads))


def transforms(report, _python, threads):
    report.beside("fourier: ", "library_fourier", "Fourier transforms, complex unless said, beside "
                  f"pocketfft's and FFTW's, {threads} threads (µs)",
                  {"pocketfft": "pocketfft", "FFTW": "fftw"}, **every_pool(threads))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parts = {"training": training, "short": short, "networks": networks, "routines": routines, "activations": activations,
             "functions": functions, "attention": attention, "convolutions": convolutions, "recordings": recordings,
             "collectives": collectives, "sorting": sorting, "products": products, "transforms": transforms}
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    options = parser.parse_args()
    report = Report(options.build_dir)
    for part in options.only:
        parts[part](report, options.python, str(options.threads))
    return report.write("run_cpu", cpu_name())


if __name__ == "__main__":
    sys.exit(main())
