#!/usr/bin/env python3
"""The rows of benchmarks/functions.def in PyTorch, eagerly: forward, and forward with backward.

    functions.py cpu|gpu [--threads N] [--only PART_OF_NAME] [--size small|large] [--dtype float32|bfloat16]
                 [--deterministic "NAME, SIZE, DTYPE" ...]

--deterministic times the rows named, by algorithms that repeat their bits, as ours do.
Prints one JSON object per figure, the least of five timings, with the number of floating elements that the
function gave; of a row that fails, what PyTorch says.
"""
import argparse
import json
import math
import os
import pathlib
import re

from timing import sorted_seconds

ROWS = pathlib.Path(__file__).resolve().parents[1] / "functions.def"
PATTERN = re.compile(r'^RENSA_FUNCTION\("([^"]*)", (\(.*?\)), "([^"]*)", ', re.M)


def rows():
    """(name, operands, the call); a call that PyTorch does not have is ""."""
    for name, operands, call in PATTERN.findall(ROWS.read_text()):
        yield name, f"[{operands[1:-1]}]", call


def extents(size, on_gpu):
    """As functions.cc has them."""
    names = ("n", "side", "size", "batch", "samples", "heads", "length", "steps", "texts", "hidden")
    mi = 1 << 20
    values = (mi // 16, 32, 128, 64, 1, 4, 256, 8, 16, 64)
    if size == "large":
        values = ((16 * mi, 64, 4096, 4096, 8, 16, 1024, 32, 64, 512) if on_gpu else
                  (mi, 64, 512, 512, 1, 8, 512, 16, 16, 128))
    e = {**dict(zip(names, values)), "units": 1024, "channels": 64}
    e["rows"] = e["n"] // e["units"]
    e["few"] = e["rows"] // 2
    e["pixels"] = e["side"] ** 2
    e["deep"] = e["pixels"] // 256
    e["images"] = e["n"] // (e["channels"] * e["pixels"])
    return e


def vocabulary(torch, device, dtype, size):
    """What the texts of functions.def name."""
    import torch.nn.functional as f
    from torch.utils.checkpoint import checkpoint
    e = extents(size, device == "cuda")

    def normal(*shape):
        return torch.randn(shape, device=device).to(dtype).requires_grad_()

    def uniform(*shape):
        return (torch.rand(shape, device=device) * 0.8 + 0.1).to(dtype).requires_grad_()

    def fixed(x):
        return x.detach()

    def integers(high, *shape):
        return torch.randint(0, high, shape, device=device)

    def mask(*shape):
        return integers(2, *shape).bool()

    def places(images, channels, height, width):
        """The chosen elements' places in planes of twice the height and width, as max_unpool2d takes them."""
        place = integers(4, images, channels, height, width)
        y = 2 * torch.arange(height, device=device).view(-1, 1) + place // 2
        return y * 2 * width + 2 * torch.arange(width, device=device) + place % 2

    def recurrent(kind, directions):
        """The network, what it reads and its first states."""
        network = getattr(torch.nn, kind)(e["hidden"], e["hidden"], bidirectional=directions == 2,
                                          device=device, dtype=dtype)
        states = [normal(directions, e["texts"], e["hidden"]) for _ in range(2 if kind == "LSTM" else 1)]
        return [network, normal(e["steps"], e["texts"], e["hidden"]), *states]

    def r2_score(pred, t):
        return (1 - (pred - t).square().sum(0) / (t - t.mean(0)).square().sum(0)).mean()

    def hinge(x, t):
        signs = torch.full_like(x, -1).scatter_(1, t.unsqueeze(1), 1)
        return torch.relu(1 - signs * x).sum() / len(x)

    def ctc(x, t):
        steps, samples, _ = x.shape
        return f.ctc_loss(f.log_softmax(x, 2), t, (steps,) * samples, (t.shape[1],) * samples, blank=127)

    def lstm_cell(c, x):
        a, i, g, o = x.chunk(4, 1)
        c = torch.tanh(a) * torch.sigmoid(i) + torch.sigmoid(g) * c
        return c, torch.sigmoid(o) * torch.tanh(c)

    other = torch.bfloat16 if dtype == torch.float32 else torch.float32
    return {**e, **{key: value for key, value in locals().items() if key not in ("e", "size")}, "math": math}


def flat(values):
    """The tensors in lists, tuples and networks."""
    if isinstance(values, (list, tuple)):
        return [tensor for value in values for tensor in flat(value)]
    if hasattr(values, "parameters"):
        return list(values.parameters())
    return [values] if hasattr(values, "requires_grad") else []


class Timer:
    def __init__(self, torch, wait, who):
        self.torch, self.wait, self.who = torch, wait, who

    def emit(self, name, elements, work):
        """So many calls a timing that it takes 3 ms."""
        once = sorted_seconds(work, 1, self.wait, warm_up=2)[0]
        calls = int(min(max(0.003 / once, 1), 200))
        seconds = sorted_seconds(work, calls, self.wait, warm_up=0)[0]
        print(json.dumps({"name": f"{name} {self.who}", "value": float(f"{seconds * 1e6:.4g}"), "unit": "us",
                          "elements": elements}), flush=True)

    def row(self, name, names, operands, text):
        """Times the call `text` of the operands a, b, ..., forward and with backward."""
        torch = self.torch
        operands = flat_lists(eval(operands, names))
        call = eval("lambda a=None, b=None, c=None, d=None, e=None: " + text, names)
        with torch.no_grad():
            elements = sum(y.numel() for y in flat(call(*operands)) if y.is_floating_point())
            self.emit(f"{name}, forward", elements, lambda: call(*operands))

        def results():
            return [y for y in flat(call(*operands)) if y.requires_grad]
        inputs = [x for x in flat(operands) if x.requires_grad]
        gradients = [torch.randn_like(y) for y in results()] if inputs else []
        if gradients:
            self.emit(f"{name}, both", elements, lambda: torch.autograd.grad(
                results(), inputs, gradients, allow_unused=True))


def flat_lists(operands):
    return [operand for entry in operands for operand in (entry if isinstance(entry, list) else [entry])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", choices=("cpu", "gpu"))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--size", choices=("small", "large"))
    parser.add_argument("--dtype", choices=("float32", "bfloat16"))
    parser.add_argument("--deterministic", nargs="+", default=[])
    options = parser.parse_args()
    if options.deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # what PyTorch asks for
    try:
        import torch
    except ImportError as error:
        print(f"torch: {error}", flush=True)
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    on_gpu = options.device == "gpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # as ours by default
    torch.use_deterministic_algorithms(bool(options.deterministic))
    torch.utils.deterministic.fill_uninitialized_memory = False  # it would cost every row a pass
    torch.backends.cudnn.deterministic = bool(options.deterministic)
    who = "torch deterministic" if options.deterministic else "torch"
    timer = Timer(torch, torch.cuda.synchronize if on_gpu else lambda: None, who)
    for dtype in [options.dtype] if options.dtype else ["float32", "bfloat16"] if on_gpu else ["float32"]:
        for size in [options.size] if options.size else ["small", "large"]:
            names = vocabulary(torch, "cuda" if on_gpu else "cpu", getattr(torch, dtype), size)
            for name, operands, text in rows():
                if options.only not in name or not text:
                    continue
                if options.deterministic and f"{name}, {size}, {dtype}" not in options.deterministic:
                    continue
                try:
                    timer.row(f"function {name}, {size}, {dtype}", names, operands, text)
                except Exception as error:
                    print(f"{name}, {size}, {dtype} in PyTorch: {error!r}"[:300], flush=True)
                if on_gpu:
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
