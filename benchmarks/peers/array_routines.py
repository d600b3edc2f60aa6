#!/usr/bin/env python3
"""The timed rows of tests/array/routines.def in NumPy, CuPy and PyTorch. Prints one JSON object per figure.

    array_routines.py gpu|cpu [NAME ...]
"""
import json
import pathlib
import re
import sys

from timing import median_seconds

ROWS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "array" / "routines.def"
PATTERN = re.compile(r'^RENSA_ROUTINE\("([^"]*)", "([^"]*)", "([^"]*)", (.*)\)$', re.M)


def rows():
    """(name, the call in NumPy's form, in PyTorch's); "=" is our own with . for ::."""
    for name, numpy, torch, ours in PATTERN.findall(ROWS.read_text()):
        yield name, ours.replace("::", ".") if numpy == "=" else numpy, torch


def microseconds(call, wait):
    """Median microseconds per call over five timings of 20 ms."""
    once = median_seconds(call, 1, wait, warm_up=1)
    count = int(min(max(0.02 / once, 1), 1000))
    return median_seconds(call, count, wait, warm_up=0) * 1e6


def setitem(array, index, value):
    array[index] = value


def numpy_operands(xp, n, r, t):
    """The operands for NumPy or CuPy, as RoutineTable makes them."""
    rng = xp.random.default_rng(7)
    f32 = xp.float32

    def uniform(*shape):
        return (rng.random(shape, dtype=f32) * 0.8 + 0.1).astype(f32)
    x = uniform(n)
    z = x.copy()
    z[1] = xp.nan
    m = uniform(t, t) + xp.eye(t, dtype=f32) * t
    return {
        "xp": xp, "f32": f32, "n": n, "r": r, "t": t, "setitem": setitem, "float32": f32,
        "d32": {"dtype": f32} if xp.__name__ == "cupy" else {}, "x": x, "y": uniform(n), "z": z,
        "g": x + 1, "o": x.copy(), "a": uniform(r, r), "b": uniform(r, r),
        "c": (uniform(n // 2) * (1 + 2j)).astype(xp.complex64),
        "i": rng.integers(1, 31, n).astype(xp.int32), "u": rng.integers(0, 8, n).astype(xp.int32),
        "k": rng.integers(0, 2, n).astype(bool), "l": rng.integers(0, 2, n).astype(bool),
        "w": xp.linspace(0, 1, r).astype(f32), "v": uniform(r), "j": rng.integers(0, n, n // 4),
        "p": xp.random.permutation(n), "q": rng.integers(0, r, r), "m": m,
        "s": m @ m.T + xp.eye(t, dtype=f32), "e": uniform(r, 64)}


def torch_operands(torch, dev, n, r, t):
    def uniform(*shape):
        return torch.rand(*shape, device=dev) * 0.8 + 0.1
    x = uniform(n)
    z = x.clone()
    z[1] = torch.nan
    m = uniform(t, t) + torch.eye(t, device=dev) * t

    def integers(low, high, *shape, dtype=torch.int64):
        return torch.randint(low, high, shape, device=dev, dtype=dtype)
    return {
        "torch": torch, "dev": dev, "n": n, "r": r, "t": t, "x": x, "y": uniform(n), "z": z,
        "g": x + 1, "o": x.clone(), "a": uniform(r, r), "b": uniform(r, r),
        "c": (uniform(n // 2) * (1 + 2j)).to(torch.complex64),
        "i": integers(1, 31, n, dtype=torch.int32), "u": integers(0, 8, n, dtype=torch.int32),
        "k": integers(0, 2, n).bool(), "l": integers(0, 2, n).bool(),
        "w": torch.linspace(0, 1, r, device=dev), "v": uniform(r), "j": integers(0, n, n // 4),
        "p": torch.randperm(n, device=dev), "q": integers(0, r, r), "m": m,
        "s": m @ m.T + torch.eye(t, device=dev), "e": uniform(r, 64),
        "ten": torch.full((n,), 10.0, device=dev)}


def run(peer, operands, wait, column, names):
    for name, *calls in rows():
        text = calls[column]
        if not text or (names and name not in names):
            continue
        try:
            value = microseconds(eval("lambda: " + text, operands), wait)
        except Exception as error:
            print(f"{peer} {name}: {error!r}"[:200], flush=True)
            continue
        print(json.dumps({"name": f"array {name} {peer}", "value": round(value, 3), "unit": "us"}),
              flush=True)


def main():
    gpu, names = sys.argv[1] == "gpu", sys.argv[2:]
    sizes = (1 << 26, 8192, 1024) if gpu else (1 << 22, 1024, 256)
    try:
        import torch
        dev = torch.device("cuda" if gpu else "cpu")
        wait = torch.cuda.synchronize if gpu else lambda: None
        run("torch", torch_operands(torch, dev, *sizes), wait, 1, names)
        if gpu:
            torch.cuda.empty_cache()
    except ImportError as error:
        print(f"left out: {error}")
    try:
        if gpu:
            import cupy as xp
            wait = xp.cuda.Device().synchronize
        else:
            import numpy as xp
            wait = lambda: None
        run(xp.__name__, numpy_operands(xp, *sizes), wait, 0, names)
    except ImportError as error:
        print(f"left out: {error}")


if __name__ == "__main__":
    main()
