#!/usr/bin/env python3
"""Writes functions/<subject>.npz: what Chainer's functions, and PyTorch's where Chainer has none, give for
the cases of functions/<subject>.py. tests/functions/function_cases_test.cc replays them.

    pip install numpy==1.23.5 scipy==1.10.1 'setuptools<66' wheel six typing_extensions 'protobuf<3.21' filelock
    pip install --no-build-isolation --no-deps chainer==7.8.1
    pip install torch
    python3 tests/answers/make_function_cases.py [subject ...]

A file of cases calls `case(name, function, *inputs)` for each:

    from make_function_cases import F, case, integers, torch, uniform
    case("elu alpha=1.5", lambda x: F.elu(x, alpha=1.5), uniform(-2, 2, (3, 4)))
    case("gelu", lambda x: torch.nn.functional.gelu(x), uniform(-2, 2, (3, 4)), by=torch)

Of a case are written, behind "name/": the inputs x0, x1, ... (float32 or integers), the outputs y0, y1,
..., and where a gradient leads to a floating input the outputs' gradients gy0, ..., the inputs' g0, ...;
then, where these have gradients themselves, directions v0, ... and the gradients h0, ... of
sum(g0 * v0) + ... Computed in float64 of the float32 inputs. "name|n" are the same function's answers for the
first n elements of the inputs' first axes.

Two arrays are in the file: "values", all elements behind one another as float32, and "layout", a text with a
line for each array: its name, f, i or b for what it was of (floating, integers, bool), its shape.
"""
import importlib.util
import io
import pathlib
import sys
import warnings
import zipfile
import zlib

import chainer
import chainer.functions as F
import numpy as np
import torch

FOLDER = pathlib.Path(__file__).resolve().parent / "functions"
records = {}


def uniform(low, high, shape):
    """A floating input."""
    return lambda rng: rng.uniform(low, high, shape).astype(np.float32)


def normal(shape):
    return lambda rng: rng.normal(size=shape).astype(np.float32)


def integers(low, high, shape, dtype=np.int32):
    """An input of integers, `high` left out."""
    return lambda rng: rng.randint(low, high, shape).astype(dtype)


def values(data, dtype=np.float32):
    """An input as it is."""
    return lambda rng: np.array(data, dtype)


def case(name, function, *inputs, by=chainer, sizes=None, batched=None, orders=2, fixed=()):
    """Records `function` of the inputs, as variables of the library `by`, and of the first n elements, for
    n in `sizes` (1 and 0, for a name that says no options), of the inputs `batched` (all that have an axis).
    Its gradients are recorded up to `orders`, those of the inputs `fixed` not."""
    if sizes is None:
        sizes = () if " " in name else (1, 0)
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    arrays = [make(rng) for make in inputs]
    record(name, function, arrays, by, orders, fixed)
    if batched is None:
        batched = [k for k, a in enumerate(arrays) if a.ndim]
    for size in sizes:
        if batched:
            cut = [a[:size] if k in batched else a for k, a in enumerate(arrays)]
            record(f"{name}|{size}", function, cut, by, orders, fixed)


def record(name, function, arrays, by, orders, fixed):
    if f"{name}/x0" in records:
        raise ValueError(f"two cases {name}")
    rng = np.random.RandomState(zlib.crc32(name.encode()) ^ 1)
    library = Chainer if by is chainer else Torch
    wants = [a.dtype.kind == "f" and k not in fixed and orders > 0 for k, a in enumerate(arrays)]
    variables = [library.variable(a.astype(np.float64) if a.dtype.kind == "f" else a, want)
                 for a, want in zip(arrays, wants)]
    ys = function(*variables)
    ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
    found = {f"x{k}": a for k, a in enumerate(arrays)}
    found.update({f"y{k}": library.array(y) for k, y in enumerate(ys)})
    leaves = [v for v, want in zip(variables, wants) if want]
    indexes = [k for k, want in enumerate(wants) if want]
    roots = [k for k, y in enumerate(ys) if library.differentiable(y)]
    if leaves and roots:
        gys = [rng.uniform(0.5, 1.5, library.array(ys[k]).shape).astype(np.float32) for k in roots]
        found.update({f"gy{k}": g for k, g in zip(roots, gys)})
        gs = library.grad([ys[k] for k in roots], leaves, gys, orders > 1)
        for k, x, g in zip(indexes, leaves, gs):
            found[f"g{k}"] = np.zeros(x.shape) if g is None else library.array(g)
        if orders > 1:
            again = [k for k, g in enumerate(gs) if g is not None]
            vs = [rng.uniform(0.5, 1.5, leaves[k].shape).astype(np.float32) for k in again]
            found.update({f"v{indexes[k]}": v for k, v in zip(again, vs)})
            roots2 = [(gs[k], v) for k, v in zip(again, vs) if library.differentiable(gs[k])]
            hs = [None] * len(leaves)
            if roots2:
                hs = library.grad([g for g, _ in roots2], leaves, [v for _, v in roots2], False)
            for k, x, h in zip(indexes, leaves, hs):
                found[f"h{k}"] = np.zeros(x.shape) if h is None else library.array(h)
    for key, value in found.items():
        value = np.asarray(value)
        records[f"{name}/{key}"] = value


class Chainer:
    @staticmethod
    def variable(array, want):
        return chainer.Variable(array, requires_grad=want)

    @staticmethod
    def array(y):
        return y.array if isinstance(y, chainer.Variable) else np.asarray(y)

    @staticmethod
    def differentiable(y):
        return isinstance(y, chainer.Variable) and y.creator is not None

    @staticmethod
    def grad(ys, xs, gys, again):
        gys = [chainer.Variable(g.astype(y.dtype)) for g, y in zip(gys, ys)]
        return chainer.grad(ys, xs, gys, enable_double_backprop=again)


class Torch:
    @staticmethod
    def variable(array, want):
        if array.dtype.kind in "iu":
            array = array.astype(np.int64)
        return torch.tensor(array, requires_grad=want)

    @staticmethod
    def array(y):
        return y.detach().numpy()

    @staticmethod
    def differentiable(y):
        return y.requires_grad

    @staticmethod
    def grad(ys, xs, gys, again):
        gys = [torch.tensor(g, dtype=y.dtype) for g, y in zip(gys, ys)]
        return torch.autograd.grad(ys, xs, gys, create_graph=again, allow_unused=True)


def write(path):
    """The same bytes for the same answers."""
    kinds = {"f": "f", "i": "i", "u": "i", "b": "b"}
    layout = "".join(f"{name}\t{kinds[a.dtype.kind]}\t{' '.join(map(str, a.shape))}\n" for name, a in records.items())
    flat = [a.astype(np.float32).ravel() for a in records.values()]
    arrays = {"layout": np.frombuffer(layout.encode(), np.uint8), "values": np.concatenate(flat)}
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, allow_pickle=False)
            entry = zipfile.ZipInfo(name + ".npy")
            archive.writestr(entry, stream.getvalue(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    sys.modules["make_function_cases"] = sys.modules["__main__"]
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    for path in sorted(FOLDER.glob("*.py")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        records.clear()
        spec = importlib.util.spec_from_file_location(path.stem, path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        write(path.with_suffix(".npz"))
        print(path.stem, len({name.rsplit("/", 1)[0] for name in records}), "cases,",
              path.with_suffix(".npz").stat().st_size, "bytes")
