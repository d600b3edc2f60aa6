#!/usr/bin/env python3
"""Writes links/<subject>.npz: what Chainer's links give. tests/links/recorded_links_test.cc replays them.

    pip install numpy==1.23.5 'setuptools<66' wheel six typing_extensions 'protobuf<3.21' filelock
    pip install --no-build-isolation --no-deps chainer==7.8.1
    python3 tests/answers/make_link_cases.py [subject ...]

A file of cases, links/<subject>.py, calls `case(name, link, calls, call)`: the link is called for each of the
lists of arrays in `calls`, by call(link, *variables), which gives a variable, or several. In the file are,
behind "name|", the parameters by the names of Chainer's files ("W/upward/W"), which are drawn; of call k the
inputs "x<k>,0", "x<k>,1", ..., the outputs "y<k>,0", ... and their gradients "gy<k>,0", ...; and the gradients
of the parameters that these come to after all calls, "g/upward/W". Computed in float32.
"""
import importlib.util
import io
import pathlib
import sys
import warnings
import zipfile
import zlib

import chainer
import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "links"
records = {}


def uniform(*shape, low=-1, high=1):
    return lambda rng: rng.uniform(low, high, shape).astype(np.float32)


def integers(low, high, *shape):
    return lambda rng: rng.randint(low, high, shape).astype(np.int32)


def case(name, link, calls, call=lambda link, *x: link(*x)):
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    inputs = [[make(rng) for make in one] for one in calls]
    outputs = []
    with chainer.using_config("train", False):
        if any(p.array is None for p in link.params()):  # made by a first call
            call(link, *map(chainer.Variable, inputs[0]))
        for p in link.params():
            p.array = rng.uniform(-1, 1, p.shape).astype(np.float32)
        if hasattr(link, "reset_state"):
            link.reset_state()
        for k, one in enumerate(inputs):
            ys = call(link, *map(chainer.Variable, one))
            ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
            for i, x in enumerate(one):
                records[f"{name}|x{k},{i}"] = x
            for i, y in enumerate(ys):
                gy = rng.uniform(0.5, 1.5, y.shape).astype(np.float32)
                records[f"{name}|y{k},{i}"] = y.array
                records[f"{name}|gy{k},{i}"] = gy
                outputs.append(chainer.functions.sum(y * gy))
    link.cleargrads()
    sum(outputs[1:], outputs[0]).backward()
    for path, p in link.namedparams():
        records[f"{name}|W{path}"] = p.array
        records[f"{name}|g{path}"] = np.zeros_like(p.array) if p.grad is None else p.grad


def write(path):
    """In make_function_cases.py's layout, the same bytes for the same answers."""
    kinds = {"f": "f", "i": "i"}
    layout = "".join(f"{name}\t{kinds[a.dtype.kind]}\t{' '.join(map(str, a.shape))}\n" for name, a in records.items())
    flat = [np.asarray(a).astype(np.float32).ravel() for a in records.values()]
    arrays = {"layout": np.frombuffer(layout.encode(), np.uint8), "values": np.concatenate(flat)}
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name + ".npy"), stream.getvalue(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    sys.modules["make_link_cases"] = sys.modules["__main__"]
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    for path in sorted(FOLDER.glob("*.py")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        records.clear()
        spec = importlib.util.spec_from_file_location(path.stem, path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        write(path.with_suffix(".npz"))
        print(path.stem, len({name.split("|")[0] for name in records}), "cases,",
              path.with_suffix(".npz").stat().st_size, "bytes")
