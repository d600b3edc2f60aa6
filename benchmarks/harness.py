"""What run_gpu.py and run_cpu.py share: running programs that print figures, and the report."""
import datetime
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


class Report:
    """Figures by name, and the Markdown page that is made of them."""

    def __init__(self, build_dir):
        self.build = pathlib.Path(build_dir).resolve()
        self.figures = {}
        self.faults = []
        self.sections = []

    def program(self, name):
        """The path of one of our benchmark programs; None when the build has none of that name."""
        path = self.build / "benchmarks" / name
        return path if path.is_file() else None

    def run(self, command, *, least=False, **environment):
        """Runs `command` and keeps the figures that it prints; of those that are there already the least where
        `least`. Returns its other lines."""
        print("+", shlex.join(map(str, command)), flush=True)
        process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True,
                                   env=self.environment(command, **environment))
        others = []
        for line in process.stdout:
            print("  " + line, end="", flush=True)
            if line.startswith("{"):
                figure = json.loads(line)
                known = self.figures.get(figure["name"])
                if not (least and known and known["value"] < figure["value"]):
                    self.figures[figure["name"]] = figure
            else:
                others.append(line.rstrip())
        if process.wait() != 0:
            self.faults.append(f"{shlex.join(map(str, command))} ended with {process.returncode}")
        return others

    def environment(self, command, **more):
        """The environment of `command`: a packed build's programs find their libraries in it."""
        libraries = self.build / "lib"
        if str(command[0]).startswith(str(self.build)) and libraries.is_dir():
            others = more.get("LD_LIBRARY_PATH")
            more["LD_LIBRARY_PATH"] = f"{libraries}:{others}" if others else str(libraries)
        return {**os.environ, **more}

    def seconds_to_output(self, name, command, repeats=5):
        """Median seconds from the start of `command`'s process to its first line of output, with an
        empty cache of compiled kernels each time; kept under `name`."""
        seconds = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as cache:
                start = time.perf_counter()
                process = subprocess.Popen(
                    [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    env=self.environment(command, CUDA_CACHE_PATH=cache, CUPY_CACHE_DIR=cache))
                line = process.stdout.readline()
                seconds.append(time.perf_counter() - start)
                process.stdout.read()
                if process.wait() != 0 or not line.strip():
                    self.faults.append(f"{name}: no result")
                    return
        value = round(statistics.median(seconds), 3)
        self.figures[name] = {"name": name, "value": value, "unit": "s"}
        print(f"  {name}: {value} s", flush=True)

    def value(self, name):
        figure = self.figures.get(name)
        return None if figure is None else figure["value"]

    def routines(self, device, python, peers, **environment):
        """Every timed array routine on `device` beside the peers', the worst first."""
        self.run([self.program("array_routines"), device], **environment)
        self.run([python, HERE / "peers" / "array_routines.py",
                  "cpu" if device == "cpu" else "gpu"], **environment)
        names = [name[6:-6] for name in self.figures
                 if name.startswith("array ") and name.endswith(" rensa")]
        rows = []
        for name in names:
            ours = self.value(f"array {name} rensa")
            theirs = [self.value(f"array {name} {peer}") for peer in peers]
            best = min((value for value in theirs if value), default=None)
            rows.append([f"`{name}`", *theirs, ours, ratio(ours, best)])
        rows.sort(key=lambda row: -(row[-1] or 0))
        slower = sum(1 for row in rows if row[-1] and row[-1] > 1.1)
        self.table(f"Array routines on {device} (µs a call), the worst first: {slower} of {len(rows)} "
                   "take more than 1.1 times the best peer's", ["routine", *peers, "Rensa",
                                                               "Rensa / best peer"], rows)

    def activations(self, device, python, *options, **environment):
        """Activation functions on `device`, forward and backward apart, beside PyTorch's."""
        self.run([self.program("activations"), device], **environment)
        self.run([python, HERE / "peers" / "activations.py", "cpu" if device == "cpu" else "gpu",
                  *options], **environment)
        rows = []
        for name in [name for name in self.figures if name.endswith(", forward rensa")]:
            function, row = name.removesuffix(", forward rensa"), []
            for way in ("forward", "backward"):
                theirs, ours = (self.value(f"{function}, {way} {who}") for who in ("torch", "rensa"))
                row += [theirs, ours, ratio(ours, theirs)]
            rows.append([function, *row])
        self.table(f"Activation functions on {device}, eager, {'4' if device == 'cpu' else '64'} Mi "
                   "float32 (µs)", ["function", *(f"{what}, {way}" for way in ("forward", "backward")
                                                  for what in ("PyTorch", "Rensa", "Rensa / PyTorch"))],
                   rows)

    def functions(self, device, python, *options, **environment):
        """Every function of benchmarks/functions.def on `device`, forward and with backward, beside
        PyTorch's, the worst first. Both run twice, in turns, and the least counts: what else the
        machine does takes some rows three times as long."""
        for _ in range(2):
            others = self.run([self.program("functions"), device], least=True, **environment)
            others += self.run([python, HERE / "peers" / "functions.py", "cpu" if device == "cpu" else "gpu",
                                *options], least=True, **environment)
        rows = []
        for name in [name for name in self.figures
                     if name.startswith("function ") and name.endswith(", forward rensa")]:
            work, row = name.removesuffix(", forward rensa"), []
            for way in ("forward", "both"):
                theirs, ours = (self.value(f"{work}, {way} {who}") for who in ("torch", "rensa"))
                row += [theirs, ours, ratio(ours, theirs)]
            given = {self.figures[key]["elements"] for key in (name, f"{work}, forward torch")
                     if key in self.figures}
            if len(given) > 1:
                self.faults.append(f"{work} gives {given} elements: not the same computation")
            function, size, dtype = work.removeprefix("function ").rsplit(", ", 2)
            rows.append([function, size, dtype, *row])
        rows.sort(key=lambda row: -max(row[5] or 0, row[8] or 0))
        slow = [", ".join(row[:3]) for row in rows if max(row[5] or 0, row[8] or 0) > 1.1]
        slower = len(slow)
        self.table(f"Functions on {device}, eager (µs), the worst first: {slower} of {len(rows)} take more "
                   "than 1.1 times PyTorch's, forward or with backward",
                   ["function", "size", "dtype", *(f"{what}, {way}" for way in ("forward", "forward and backward")
                                                   for what in ("PyTorch", "Rensa", "Rensa / PyTorch"))], rows)
        if device != "cpu" and slow:
            others += self.like_for_like(device, python, slow)
        if others:
            self.verbatim("Functions that failed", others)

    def like_for_like(self, device, python, slow):
        """The rows `slow` again: where both repeat their bits, which ours does without being asked, and where neither
        has to. Returns what the peer says of rows that it cannot do so."""
        others = self.run([python, HERE / "peers" / "functions.py", "gpu", "--deterministic", *slow])
        rows = []
        for work in slow:
            function, size, dtype = work.rsplit(", ", 2)
            self.run([self.program("functions"), device, "--any-engine", "--only", function, "--size", size,
                      "--dtype", dtype])
            row = []
            for torch, rensa in (("torch deterministic", "rensa"), ("torch", "rensa any engine")):
                for way in ("forward", "both"):
                    theirs = self.value(f"function {work}, {way} {torch}")
                    ours = self.value(f"function {work}, {way} {rensa}")
                    row += [theirs, ours, ratio(ours, theirs)]
            rows.append([work, *row])
        rows.sort(key=lambda row: -max(row[3] or 0, row[6] or 0))
        heads = [f"{what}, {way}, {bits}" for bits in ("the same bits", "any engine")
                 for way in ("forward", "forward and backward") for what in ("PyTorch", "Rensa", "Rensa / PyTorch")]
        self.table(f"Those rows on {device}, both with bits that repeat, and neither (µs)", ["row", *heads], rows)
        return others

    def attention(self, device, python, *options, **environment):
        """Attention on `device`, forward and with backward, beside PyTorch's."""
        self.run([self.program("attention"), device], **environment)
        self.run([python, HERE / "peers" / "attention.py", "cpu" if device == "cpu" else "gpu",
                  *options], **environment)
        rows = []
        for name in [name for name in self.figures
                     if name.startswith("attention ") and name.endswith(", forward rensa")]:
            work, row = name.removesuffix(", forward rensa"), []
            for way in ("forward", "both"):
                theirs, ours = (self.value(f"{work}, {way} {who}") for who in ("torch", "rensa"))
                row += [theirs, ours, self.figures[f"{work}, {way} rensa"]["tflops"], ratio(ours, theirs)]
            rows.append([work.removeprefix("attention "), *row])
        of_what = "8 heads, float32" if device == "cpu" else "8 samples of 16 heads, bfloat16"
        self.table(f"Attention on {device}, {of_what} (µs)",
                   ["attention", *(f"{what}, {way}" for way in ("forward", "forward and backward")
                                   for what in ("PyTorch", "Rensa", "TFLOP/s", "Rensa / PyTorch"))],
                   rows)

    def convolutions(self, device, python, *options, **environment):
        """Convolutions on `device`, forward and each gradient, beside PyTorch's."""
        self.run([self.program("convolutions"), device], **environment)
        self.run([python, HERE / "peers" / "convolutions.py", "cpu" if device == "cpu" else "gpu",
                  *options], **environment)
        rows, ways = [], ("forward", "input gradient", "weight gradient")
        for name in [name for name in self.figures
                     if name.startswith("convolution ") and name.endswith(", forward rensa")]:
            work, row = name.removesuffix(", forward rensa"), []
            for way in ways:
                theirs, ours = (self.value(f"{work}, {way} {who}") for who in ("torch", "rensa"))
                row += [theirs, ours, ratio(ours, theirs)]
            rows.append([work.removeprefix("convolution "), *row])
        self.table(f"Convolutions on {device}, {8 if device == 'cpu' else 128} images, float32 (µs)",
                   ["convolution", *(f"{what}, {way}" for way in ways
                                     for what in ("PyTorch", "Rensa", "Rensa / PyTorch"))], rows)

    def recordings(self, device, **environment):
        """What capture() does before it can replay a step, by the step's length."""
        self.run([self.program("recording_scale"), device], **environment)
        passes = ["eager", "record", "rewrite", "join", "plan"]
        rows = []
        for name, figure in self.figures.items():
            if name.startswith("recording: "):
                step = name.removeprefix("recording: ").split(",")[0]
                rows.append([step, figure["operations"], *(figure[key] * 1e3 for key in passes),
                             float(figure["value"] * 1e3), figure["plan_as_recorded"] * 1e3])
        self.table(f"A step recorded, rewritten, joined and planned on {device} (ms)",
                   ["step", "operations", *passes, "record to plan", "plan of the list as recorded"],
                   rows)

    def beside(self, start, program, title, libraries, **environment):
        """What a program of benchmarks/libraries prints of ours beside `libraries` (label: what its
        figures call it); `start` is what all of its figures' names start with."""
        if not self.program(program):
            self.faults.append(f"no {program} in this build")
            return
        self.run([self.program(program)], **environment)
        rows = []
        for name in list(self.figures):
            if not (name.startswith(start) and name.endswith(" rensa")):
                continue
            work, ours = name[len(start):-len(" rensa")], self.value(name)
            theirs = [self.value(f"{start}{work} {who}") for who in libraries.values()]
            best = min((value for value in theirs if value), default=None)
            rows.append([work, *theirs, ours, ratio(ours, best)])
        self.table(title, ["work", *libraries, "Rensa", "Rensa / the best"], rows)

    def table(self, title, header, rows):
        """Adds a section; None shows as a dash and a float with three digits."""
        lines = [f"## {title}", "", "| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
        lines += ["| " + " | ".join(map(text_of, row)) + " |" for row in rows]
        self.sections.append("\n".join(lines))

    def verbatim(self, title, lines):
        """Adds a section of lines as a program printed them."""
        self.sections.append("\n".join([f"## {title}", "", "```text", *lines, "```"]))

    def write(self, stem, hardware):
        """Prints the page and writes STEM.md and STEM.json to $OUT, or to the build folder."""
        out = pathlib.Path(os.environ.get("OUT") or self.build)
        now = datetime.datetime.now(datetime.timezone.utc)
        facts = {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "hardware": hardware,
                 "command": shlex.join([f"benchmarks/{stem}.py", *sys.argv[1:]])}
        page = "\n\n".join(["\n".join(f"- {key}: {value}" for key, value in facts.items()),
                            *self.sections]) + "\n"
        page += "".join(f"\nFAULT: {fault}\n" for fault in self.faults)
        print("\n" + page)
        (out / f"{stem}.md").write_text(page)
        record = {**facts, "faults": self.faults, "figures": list(self.figures.values())}
        (out / f"{stem}.json").write_text(json.dumps(record, indent=1) + "\n")
        return 1 if self.faults else 0


def text_of(cell):
    if cell is None:
        return "–"
    return f"{cell:.3g}" if isinstance(cell, float) and cell < 100 else (
        f"{cell:.0f}" if isinstance(cell, float) else str(cell))


def ratio(ours, theirs):
    """How many times theirs ours is; None where one of them is missing."""
    return None if not ours or not theirs else float(ours) / float(theirs)


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
