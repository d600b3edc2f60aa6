#!/usr/bin/env python3
"""Runs the GPU benchmarks next to the peers' on one machine, in one go, and writes the comparison.

    run_gpu.py --build-dir DIR [--python PYTHON] [--only PART ...]
PART is training, floor, short, epochs, startup, host, arrays, routines, activations, functions, attention, networks,
recordings, chains, fragmentation, libraries or products; or, only where they are named, collectives, which wants two
GPUs, and package, which wants a build with RENSA_PYTHON.
The peers (PyTorch, JAX, CuPy) are those of PYTHON; what it lacks shows as a dash. Writes run_gpu.md
and run_gpu.json to $OUT, or to DIR.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys

from harness import HERE, Report, cpu_name, ratio

# microseconds per step: (batch, precision): (first milestone captured, target captured, target eager)
GOALS = {(100, "fp32"): (95, 60, 250), (100, "tf32x3"): (95, 60, 250), (100, "tf32"): (70, 35, 250),
         (1024, "fp32"): (320, 250, 400), (1024, "tf32x3"): (320, 250, 400), (1024, "tf32"): (155, 85, 250)}
UPDATES = 8  # of a captured step, as a scan over batches has them
# array work: (unit, target), a time where the unit is ms
ARRAY_GOALS = {
    "device copy": ("GB/s", 4100), "a + b": ("GB/s", 4250), "softplus, eager": ("GB/s", 640),
    "softplus, fused": ("GB/s", 3950), "sum of all": ("GB/s", 4050),
    "sum over axis 0": ("GB/s", 3900), "sum over axis 1": ("GB/s", 3900),
    "transposed copy": ("GB/s", 3000), "softmax over rows": ("GB/s", 3600),
    "cumsum": ("GB/s", 3500), "normal random numbers": ("GB/s", 3000), "sort": ("Gkeys/s", 37),
    "matmul 8192, float32": ("TFLOP/s", None), "matmul 8192, TF32": ("TFLOP/s", None),
    "matmul 8192, TF32 x 3": ("TFLOP/s", None), "matmul 8192, bfloat16": ("TFLOP/s", None),
    "error of matmul 2048, float32": ("1e-7", None), "error of matmul 2048, TF32 x 3": ("1e-7", None),
    "error of matmul 2048, TF32": ("1e-7", None), "80 MB pinned, host to device": ("GB/s", 55),
    "80 MB pinned, device to host": ("GB/s", 55), "80 MB pageable, host to device": ("GB/s", 12),
    "80 MB pageable, device to host": ("GB/s", 12),
    "1000 products with norm, each to the host": ("ms", 15),
    "1000 products with norm, log on the device": ("ms", None),
    "1000 products with norm, captured": ("ms", 3)}
STARTUP_GOALS = {"add": 0.5, "product": 1.0}


def cublas_folders(python):
    """Where the loader finds cuBLASLt for the step by hand, which links it: the toolkit's folder and
    those of the packages of `python`."""
    probe = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                           capture_output=True, text=True, check=True)
    found = pathlib.Path(probe.stdout.strip(), "nvidia").glob("**/libcublasLt.so.*")
    return ":".join(["/usr/local/cuda/lib64", *sorted({str(path.parent) for path in found})])


def training(report, python):
    """The training step of every row, ours, by hand and the peers'."""
    # Eager steps are timed with it too, and those of the second run count.
    report.run([report.program("training_step"), "--device", "cuda:0", "--updates", UPDATES, "--eager-steps", 10])
    report.run([report.program("training_step"), "--device", "cuda:0"])
    if report.program("hand_written_step"):
        report.run([report.program("hand_written_step")], LD_LIBRARY_PATH=cublas_folders(python))
    report.run([python, HERE / "peers" / "training_step.py", "gpu"])
    rows, equal = [], []
    for (batch, precision), (milestone, target, eager_target) in GOALS.items():
        row = f"mnist_mlp1000 B={batch} {precision}"
        eager, captured = (report.value(f"{row} rensa {how}") for how in ("eager", "captured"))
        peers = [report.value(f"{row} {peer}") for peer in (
            "torch eager", "torch eager fused sgd", "torch cuda graph", "jax jit",
            "jax scan over the epoch")]
        several = report.value(f"{row} rensa captured, {UPDATES} updates a replay")
        best = min((p for p in peers if p), default=None)
        rows.append([f"{batch}, {precision}", *peers, report.value(f"{row} by hand"), eager,
                     captured, several, milestone, target, eager_target, ratio(captured, best),
                     ratio(several, best), ratio(eager, peers[0])])
        figure = report.figures.get(f"{row} rensa captured", {})
        equal.append([f"{batch}, {precision}", *(figure.get(key) for key in (
            "equal_to_eager", "replays", "fallbacks", "operations", "rewritten_operations"))])
    report.table(
        "Training step: MLP 784-1000-1000-10, SGD, data on the GPU (µs a step)",
        ["batch", "PyTorch eager", "PyTorch eager, fused SGD", "PyTorch, CUDA graph", "JAX jit",
         "JAX scan", "by hand", "Rensa eager", "Rensa captured", f"Rensa, {UPDATES} updates a replay",
         "first milestone", "target", "target, eager", "captured / best peer",
         f"{UPDATES} updates / best peer", "eager / PyTorch eager"], rows)
    report.table("Captured against eager: parameters and losses after 100 steps from one start",
                 ["batch", "bit-equal", "replays", "fallbacks", "operations", "after rewriting"], equal)


def short(report, python):
    """Steps so short that launches decide."""
    report.run([report.program("short_steps"), "--device", "cuda:0"])
    report.run([python, HERE / "peers" / "short_steps.py"])
    rows = []
    for what, end in (("policy", ""), ("policy", " to the host"), ("lstm cell", "")):
        for how in ("fp32", "tf32"):
            for batch in (1, 16, 64):
                name = f"{what} B={batch} {how}"
                peers = [report.value(f"{name} {who}{end}") for who in ("torch cuda graph", "jax jit")]
                ours = report.value(f"{name} rensa captured{end}")
                figure = report.figures.get(f"{name} rensa captured{end}", {})
                rows.append([f"{what}{end}", how, batch, *peers, ours, figure.get("rewritten_operations"),
                             ratio(ours, min((p for p in peers if p), default=None))])
    report.table("Short steps: an LSTM cell of 256 units, a policy of two layers of 256 (µs a step)",
                 ["step", "products", "batch", "PyTorch, CUDA graph", "JAX jit", "Rensa captured",
                  "operations", "captured / best peer"], rows)


def epochs(report, python):
    """Epochs of MNIST by the library's iterator and updater; $RENSA_DATASET_ROOT/mnist has the files."""
    for flags in ([], ["--autotune"], ["--tf32"]):
        report.run([report.program("mnist_epochs"), "cuda:0", *flags])
    report.run([python, HERE / "peers" / "mnist_epochs.py"])
    rows = []
    for name in [name for name in report.figures if name.startswith("mnist epoch, ")]:
        figure = report.figures[name]
        rows.append([name.removeprefix("mnist epoch, "), figure["value"], f"{100 * figure['accuracy']:.2f} %",
                     figure["epochs"]])
    report.table("An epoch of MNIST: MLP 784-1000-1000-10, Adam, batch 100 (s, the median)",
                 ["way", "seconds", "right of the test images", "after epochs"], rows)


def startup(report, python):
    """Seconds from the start of a process to its first result, kernel caches empty."""
    rows = []
    for work, goal in STARTUP_GOALS.items():
        report.seconds_to_output(f"startup {work} rensa", [report.program("startup"), work, "cuda:0"])
        for peer in ("torch", "cupy", "jax"):
            probe = subprocess.run([python, "-c", f"import {peer}"], capture_output=True, check=False)
            if probe.returncode == 0:
                report.seconds_to_output(f"startup {work} {peer}",
                                         [python, HERE / "peers" / "startup.py", peer, work], 3)
        values = [report.value(f"startup {work} {who}") for who in ("torch", "cupy", "jax", "rensa")]
        rows.append([work, *values, goal, ratio(values[3], min((v for v in values[:3] if v),
                                                               default=None))])
    report.table("Process start to the first result on the GPU (s)",
                 ["work", "PyTorch", "CuPy", "JAX", "Rensa", "goal", "Rensa / best peer"], rows)


def host(report, python):
    """What the host pays: a small operation, and the pool."""
    report.run([report.program("eager_overhead"), "cuda:0"])
    if report.program("hand_written_launches"):
        report.run([report.program("hand_written_launches")])
    report.run([python, HERE / "peers" / "eager_overhead.py"])
    names = [name for name in report.figures if name.startswith("host cost")]
    report.table("Host cost of a small operation", ["work", "value", "unit"],
                 [[name, report.figures[name]["value"], report.figures[name]["unit"]]
                  for name in names])
    report.verbatim("The memory pool", report.run([report.program("pool")]))


def arrays(report, python):
    """Array work that memory, the bus or the host bounds."""
    report.run([report.program("arrays"), "cuda:0"])
    report.run([python, HERE / "peers" / "arrays.py"])
    if report.program("hand_written_products"):
        report.run([report.program("hand_written_products")])
    rows = []
    for work, (unit, target) in ARRAY_GOALS.items():
        torch, cupy, hand, ours = (report.value(f"{work} {who}") for who in (
            "torch", "cupy", "by hand, overlapped", "rensa"))
        peers = [peer for peer in (torch, cupy) if peer]
        best = (min if unit == "ms" else max)(peers, default=None)
        rows.append([work, unit, torch, cupy, hand, ours, target, ratio(ours, best)])
    report.table("Array work: float32, 64 Mi elements unless said",
                 ["work", "unit", "PyTorch", "CuPy", "by hand", "Rensa", "target",
                  "Rensa / best peer"], rows)


def routines(report, python):
    report.routines("cuda:0", python, ["torch", "cupy"])


def activations(report, python):
    report.activations("cuda:0", python)


def functions(report, python):
    report.functions("cuda:0", python)


def collectives(report, python):
    """The exchanges of two processes with a GPU each, beside PyTorch's by NCCL."""
    launcher = report.build / "programs" / "rensa-run"
    report.run([launcher, "-n", 2, report.program("collectives"), "gpu"])
    report.run([launcher, "-n", 2, python, HERE / "peers" / "collectives.py", "gpu"])
    for collective in ("allreduce", "allgather", "alltoall"):
        rows = []
        for kilobytes in (4, 64, 1024, 16384, 131072, 1048576):
            name = f"{collective} {kilobytes} KB, 2"
            theirs, eager, captured = (report.value(f"{name} {what}") for what in (
                "GPUs nccl", "GPUs rensa", "GPUs, captured, rensa"))
            rows.append([f"{kilobytes} KB", theirs, eager, ratio(eager, theirs), captured, ratio(captured, theirs)])
        report.table(f"{collective} of float32 over two processes with a GPU each (µs)",
                     ["array of each", "PyTorch (NCCL)", "Rensa", "Rensa / PyTorch", "Rensa, captured", "captured / PyTorch"],
                     rows)


def package(report, python):
    """The package for Python beside the C++ that it calls, and beside the peers."""
    report.run([report.program("eager_overhead"), "cuda:0"])
    report.run([report.program("mnist_epochs"), "cuda:0"])
    report.run([python, HERE / "python_package.py", "cuda:0"], PYTHONPATH=str(report.build / "python"))
    report.run([python, HERE / "peers" / "eager_overhead.py"])
    rows = [["import", "s", None, report.value("import of the package rensa python"), None]]
    for name, unit in (("host cost of a small add, cuda:0", "us"), *(
            (f"mnist epoch, data on the {where}", "s") for where in ("host", "GPU"))):
        for how in ("",) if unit == "us" else (" eager", " captured"):
            ours, bound = (report.value(f"{name} rensa{way}{how}") for way in ("", " python"))
            rows.append([f"{name},{how}" if how else name, unit, ours, bound, ratio(bound, ours)])
    rows += [[f"host cost of a small add, cuda:0, {peer}", "us", None,
              report.value(f"host cost of a small add, cuda:0 {peer}"), None] for peer in ("torch", "cupy")]
    report.table("The package for Python beside C++", ["work", "unit", "C++", "Python", "Python / C++"], rows)


def attention(report, python):
    report.attention("cuda:0", python)


NETWORKS = ("nin", "resnet50", "vgg16", "gpt2", "ptb", "inference1", "inference1_folded", "inference128",
            "inference128_folded")


def networks(report, python):
    """Training steps of whole networks, and inference; the peers' of folded networks is that of the row before."""
    rows = []
    for network in NETWORKS:
        for precision in ("bf16",) if network == "gpt2" or network.startswith("inference") else ("tf32", "bf16"):
            before = set(report.figures)
            report.run([report.program("networks"), network, "--precision", precision])
            if not network.endswith("_folded"):
                report.run([python, HERE / "peers" / "networks.py", network, precision])
            new = [name for name in report.figures if name not in before]
            names = {name.split(f" {precision} ", 1)[1]: name for name in new}
            hows = ("torch eager", "torch cuda graph", "rensa eager", "rensa captured")
            values = [report.value(names.get(how, "")) for how in hows]
            memory = [report.figures.get(names.get(how, ""), {}).get("peak_gib") for how in hows]
            unit = report.figures[new[0]]["unit"] if new else ""
            if network.endswith("_folded"):
                values[:2], memory[:2] = rows[-1][3:5], rows[-1][8:10]
            best = (min if unit == "us" else max)((v for v in values[:2] if v), default=None)
            rows.append([network, precision, unit, *values, ratio(values[3], best), *memory])
    heads = ["PyTorch eager", "PyTorch, CUDA graph", "Rensa eager", "Rensa captured"]
    report.table("Networks: training steps, batch 128 (gpt2 16 x 1024, ptb 20 x 35), and ResNet-50's inference",
                 ["network", "precision", "unit", *heads, "captured / best peer",
                  *(f"{head}, peak GiB" for head in heads)], rows)


def recordings(report, _python):
    report.recordings("cuda:0")


def chains(report, python):
    """A captured step's elementwise chains as joint kernels."""
    report.run([report.program("captured_chains"), "cuda:0"])
    report.run([python, HERE / "peers" / "captured_chains.py"])
    rows = []
    for shape in ("(8192, 8192)", "(1024, 1000)", "(100, 1000)"):
        row = f"gelu and its gradient, {shape}"
        peers = [report.value(f"{row} {who}") for who in (
            "torch eager", "torch cuda graph", "torch compile", "jax jit")]
        ours = [report.value(f"{row} rensa {how}") for how in (
            "eager", "captured, apart", "captured, joined")]
        figure = report.figures.get(f"{row} rensa captured, joined", {})
        rows.append([shape, *peers, *ours, figure.get("operations"),
                     figure.get("rewritten_operations"),
                     ratio(ours[2], min((p for p in peers if p), default=None))])
    report.table("GELU of elementwise operations, forward and backward (µs)",
                 ["shape", "PyTorch eager", "PyTorch, CUDA graph", "PyTorch compiled", "JAX jit",
                  "Rensa eager", "captured, chains apart", "captured", "operations",
                  "after rewriting", "captured / best peer"], rows)


def fragmentation(report, python):
    """What the pools hold beyond what is asked of them."""
    report.run([report.program("pool_fragmentation")])
    report.run([python, HERE / "peers" / "pool_fragmentation.py"])
    rows = []
    for pattern in ("growing", "mixed", "lifetimes"):
        names = [f"fragmentation {pattern} {who}"
                 for who in ("cupy gpu", "torch gpu", "rensa gpu", "rensa counting")]
        values = [report.value(name) for name in names]
        rows.append([pattern, *values,
                     ratio(values[2], min((v for v in values[:2] if v), default=None)),
                     *(report.figures.get(name, {}).get("again_ms") for name in names[:3])])
    report.table("Pools: most memory reserved / most asked for at once, and ms for the requests",
                 ["requests", "CuPy", "PyTorch", "Rensa", "Rensa, no GPU", "Rensa / best peer",
                  "CuPy (ms)", "PyTorch (ms)", "Rensa (ms)"], rows)


def libraries(report, python):
    """What is our own, beside the libraries that could do it."""
    report.beside("beside CUB: ", "library_cub", "Beside CUB: 64 Mi elements (µs)", {"CUB": "cub"})
    report.beside("beside cuBLASLt: ", "library_cublaslt", "Beside cuBLASLt, the fastest of its plans: "
                  "small and skinny products of float32 (µs on the device)", {"cuBLASLt": "cublaslt"},
                  LD_LIBRARY_PATH=cublas_folders(python))


def products(report, python):
    """The table of small products beside cuBLASLt."""
    report.run([report.program("library_cublaslt"), "cuda:0", "table"], LD_LIBRARY_PATH=cublas_folders(python))
    pattern = re.compile(r"beside cuBLASLt: (\w+), (\d+) of \((\d+), (\d+)\) @ \(\d+, (\d+)\) rensa$")
    work = [(found[1], *map(int, found.groups()[1:]), name.removesuffix("rensa"))
            for name in report.figures if (found := pattern.match(name))]
    value = lambda name, who: report.value(name + who)
    groups = {}
    for precision, batch, m, k, n, name in work:
        tuned, untuned, theirs = (value(name, who) for who in ("rensa", "rensa, untuned", "cublaslt"))
        ratios = tuned / theirs, untuned / theirs, untuned / min(tuned, theirs)
        for sides in ("all",) if max(m, k, n) >= 256 else ("all", "below 256"):
            groups.setdefault((precision, batch, sides), []).append(ratios)
    percent = lambda share: f"{100 * share:.0f} %"
    rows = []
    for (precision, batch, sides), ratios in groups.items():
        row = [precision, batch, sides, len(ratios)]
        *ways, beside_fastest = zip(*ratios)
        for way in ways:
            row += [percent(sum(r < 0.98 for r in way) / len(way)), percent(sum(r > 1.05 for r in way) / len(way)),
                    round(statistics.median(way), 2), round(max(way), 2)]
        rows.append(row + [round(statistics.mean(beside_fastest), 3)])
    columns = ["faster by 2 %", "slower by 5 %", "median", "worst"]
    report.table("Products of 1 to 1024 rows, columns and terms beside the fastest of cuBLASLt's plans: ours / cuBLASLt's",
                 ["precision", "products at a time", "sides", "rows", *columns,
                  *(f"{column}, untuned" for column in columns), "untuned / fastest, mean"], rows)
    rows = [[precision, f"({m}, {k}) @ ({k}, {n})", value(name, "cublaslt"), value(name, "rensa"),
             value(name, "rensa, untuned"), ratio(value(name, "rensa"), value(name, "cublaslt"))]
            for precision, batch, m, k, n, name in work if batch == 1 and {m, k, n} <= {64, 200, 1024}]
    report.table("Some of them, one at a time (µs on the device)",
                 ["precision", "product", "cuBLASLt", "Rensa", "Rensa, untuned", "Rensa / cuBLASLt"], rows)


def floor(report, python):
    """The captured step beside the bounds by multiplications, memory and its chain of operations."""
    report.run([report.program("step_floor"), "cuda:0", "--autotune"])
    rows = []
    for name, figure in report.figures.items():
        if not name.startswith("floor B="):
            continue
        _, batch, precision, *_ = name.split()
        rows.append([f"{batch.removeprefix('B=')}, {precision}", figure["value"],
                     *(figure[key] for key in ("multiplications", "memory", "chain", "longest_chain", "operations",
                                               "times_floor"))])
    report.table("A captured training step beside its floor: MLP 784-1000-1000-10, SGD (µs)",
                 ["batch", "step", "multiplications", "memory", "chain", "operations in the chain", "operations",
                  "step / highest"], rows)


def hardware():
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm",
                            "--format=csv,noheader"], capture_output=True, text=True, check=False)
    gpus = "; ".join(query.stdout.split("\n")).strip("; ") or "no GPU"
    return f"{gpus}; {cpu_name()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--python", default=sys.executable)
    parts = {"training": training, "floor": floor, "short": short, "epochs": epochs,
             "startup": startup, "host": host, "arrays": arrays,
             "routines": routines, "activations": activations, "functions": functions,
             "attention": attention, "networks": networks, "recordings": recordings, "chains": chains,
             "fragmentation": fragmentation, "libraries": libraries, "products": products}
    of_one_gpu = list(parts)
    parts["collectives"], parts["package"] = collectives, package
    parser.add_argument("--only", nargs="+", choices=parts, default=of_one_gpu)
    options = parser.parse_args()
    report = Report(options.build_dir)
    for part in options.only:
        parts[part](report, options.python)
    return report.write("run_gpu", hardware())


if __name__ == "__main__":
    sys.exit(main())
