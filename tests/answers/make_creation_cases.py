"""Writes numpy_creation.txt: what NumPy's routines that make arrays and index grids answer."""
import numpy as np

from case_file import COMPLEX, DTYPES, CaseFile, Values

file, values = CaseFile("creation"), Values(71)
SOME = ["bool", "int8", "int64", "float16", "float32", "complex64"]


def of_shapes():
    for dtype in DTYPES:
        for n, m, k in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (0, 3, 0), (3, 0, 1), (2, 2, 5), (3, 2, -7)]:
            if dtype in SOME or k == 0:
                file.add("eye", [], lambda: np.eye(n, m, k, dtype), n=n, m=m, k=k, dtype=dtype)
                file.add("tri", [], lambda: np.tri(n, m, k, dtype), n=n, m=m, k=k, dtype=dtype)
        file.add("identity", [], lambda: np.identity(3, dtype), n=3, dtype=dtype)
        a = values(dtype, (2, 3))
        for shape in [(2, 3), (), (0, 2), (4,)]:
            file.add("zeros_like", [a], lambda a: np.zeros_like(a, shape=shape), shape=shape)
            file.add("ones_like", [a], lambda a: np.ones_like(a, dtype="float32", shape=shape),
                     shape=shape, dtype="float32")
        file.add("full_like", [a], lambda a: np.full_like(a, 1), value=1)


def ranges():
    for dtype in ["float64", "float32", "float16", "int32", "complex128"]:
        for start, stop, num in [(0, 1, 5), (-3.5, 2.25, 7), (1, 1, 3), (0, 10, 0), (2, 9, 1),
                                 (5, -5, 4), (-2, 3, 50), (0, 1, -1)]:
            for endpoint in (True, False):
                named = dict(start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype)
                call = dict(num=num, endpoint=endpoint, dtype=dtype)
                file.add("linspace", [], lambda: np.linspace(start, stop, **call), **named)
                if dtype in ("float64", "float32"):
                    file.add("logspace", [], lambda: np.logspace(start, stop, **call, base=2), base=2,
                             **named)
                    if start * stop >= 0:
                        file.add("geomspace", [], lambda: np.geomspace(start, stop, **call), **named)
                if dtype == "float64":
                    file.add("linspace_retstep", [],
                             lambda: np.linspace(start, stop, num, endpoint, retstep=True), **named)
    for dtype in ["float32", "float64", "int16", "complex64", "float16"]:
        for axis in (0, 1, -1):
            for endpoint in (True, False):
                file.add("linspace_arrays", [values(dtype, (2, 3)), values("float32", (3,))],
                         lambda a, b: np.linspace(a, b, 4, endpoint, axis=axis), num=4,
                         endpoint=endpoint, axis=axis)
        file.add("linspace_arrays", [values(dtype, ()), values(dtype, (2,))],
                 lambda a, b: np.linspace(a, b, 3, dtype="int32"), num=3, endpoint=True, axis=0,
                 dtype="int32")
    file.add("mgrid", [], lambda: np.mgrid[0:3, -1:5:2], form="ints")
    file.add("mgrid", [], lambda: np.mgrid[0:1:0.25, 2:4], form="floats")
    file.add("mgrid", [], lambda: np.mgrid[-1:1:5j, 0:2:3j], form="points")
    file.add("mgrid", [], lambda: np.mgrid[1:7:2], form="one")
    file.add("mgrid", [], lambda: np.mgrid[0:0, 0:2], form="none")
    file.add("ogrid", [], lambda: np.ogrid[0:3, -1:5:2], form="ints")
    file.add("ogrid", [], lambda: np.ogrid[-1:1:5j, 0:2:3j], form="points")


def matrices():
    for dtype in DTYPES:
        for shape in [(3,), (3, 3), (2, 4), (4, 2), (0,), (0, 3), (1,), ()]:
            a = values(dtype, shape)
            for k in (0, 1, -2, 6):
                if dtype not in SOME and k != 1:
                    continue
                file.add("diag", [a], lambda a: np.diag(a, k), k=k)
                if a.size < 5:
                    file.add("diagflat", [a], lambda a: np.diagflat(a, k), k=k)
                if len(shape):
                    file.add("tril", [a], lambda a: np.tril(a, k), k=k)
                    file.add("triu", [a], lambda a: np.triu(a, k), k=k)
        file.add("tril", [values(dtype, (2, 3, 2))], lambda a: np.tril(a, 0), k=0)
        if dtype not in ("bool",):
            for n in (None, 0, 1, 4):
                for increasing in (False, True):
                    more = {} if n is None else {"n": n}
                    x = values(dtype, (3,))
                    x = x if dtype != "uint64" else x.astype("uint32")
                    file.add("vander", [x], lambda x: np.vander(x, n, increasing),
                             increasing=increasing, **more)
    file.add("vander", [values("float32", (2, 2))], lambda x: np.vander(x), increasing=False)


def grids():
    x, y, z = values("int32", (2,)), values("float32", (3,)), values("float64", ())
    for operands in [[x], [x, y], [y, x, z], [x, values("bool", (0,))], [x, y, z, y]]:
        for indexing in ("xy", "ij", "yx"):
            for sparse in (False, True):
                for copy in (False, True):
                    file.add("meshgrid", operands,
                             lambda *a: np.meshgrid(*a, indexing=indexing, sparse=sparse, copy=copy),
                             indexing=indexing, sparse=sparse, copy=copy)
    for n, k, m in [(3, 0, 3), (4, 1, 2), (2, -1, 5), (0, 0, 3), (3, 9, 3), (3, -9, 2)]:
        file.add("tril_indices", [], lambda: np.tril_indices(n, k, m), n=n, k=k, m=m)
        file.add("triu_indices", [], lambda: np.triu_indices(n, k, m), n=n, k=k, m=m)
    for n, d in [(3, 2), (2, 3), (0, 1)]:
        file.add("diag_indices", [], lambda: np.diag_indices(n, d), n=n, ndim=d)
    for shape in [(2, 3), (4,), (), (0, 2), (2, 1, 3)]:
        for dtype in ("int64", "float32", "uint8"):
            file.add("indices", [], lambda: np.indices(shape, dtype), shape=shape, dtype=dtype)
    file.add("ix_", [values("int64", (3,)), values("uint8", (2,))], lambda *a: np.ix_(*a))
    file.add("ix_", [np.array([True, False, True]), values("int64", (2,)), values("int16", (1,))],
             lambda *a: np.ix_(*a))
    file.add("ix_", [values("int64", (3, 1))], lambda *a: np.ix_(*a))


def flat_indices():
    for dtype in ("int64", "int8", "uint32", "float32"):
        for shape in [(4, 3), (12,), (2, 3, 2)]:
            for order in "CF":
                flat = values(dtype, (2, 3), 0, 11)
                file.add("unravel_index", [flat], lambda a: np.unravel_index(a, shape, order),
                         shape=shape, order=order)
    for flat in (np.array(7), np.array([], "int64"), np.array([12]), np.array([-1])):
        file.add("unravel_index", [flat], lambda a: np.unravel_index(a, (4, 3)), shape=(4, 3),
                 order="C")
    for mode in ("raise", "wrap", "clip", "none"):
        for order in "CF":
            for low, high in [(0, 1), (-4, 6)]:
                operands = [values("int64", (2, 3), low, high), values("int32", (3,), low, high)]
                file.add("ravel_multi_index", operands,
                         lambda a, b: np.ravel_multi_index((a, b), (2, 3), mode, order), shape=(2, 3),
                         mode=mode, order=order)
    file.add("ravel_multi_index", [np.array([1, 4, 0])], lambda a: np.ravel_multi_index((a,), (5,)),
             shape=(5,), mode="raise", order="C")


def diagonals():
    for dtype in DTYPES:
        for shape in [(3, 4), (2, 3, 4), (0, 2)]:
            a = values(dtype, shape)
            for offset, axis1, axis2 in [(0, 0, 1), (1, 1, 0), (-2, 0, -1), (9, 0, 1), (0, 1, 1),
                                         (0, 0, 5)]:
                if dtype not in SOME and axis1 == 1:
                    continue
                named = dict(offset=offset, axis1=axis1, axis2=axis2)
                file.add("diagonal", [a], lambda a: np.diagonal(a, **named), **named)
                file.add("trace", [a], lambda a: np.trace(a, **named), **named)
        file.add("trace", [values(dtype, (3, 3))], lambda a: np.trace(a, dtype="float32")
                 if dtype not in COMPLEX else np.trace(a, dtype="complex128"),
                 dtype="complex128" if dtype in COMPLEX else "float32")
        for shape in [(3, 3), (7, 2), (2, 4), (2, 2, 2), (2, 3, 2), (4,), (3, 0)]:
            for wrap in (False, True):
                a = values(dtype, shape)

                def fill(a, v):
                    b = a.copy()
                    np.fill_diagonal(b, v, wrap)
                    return b
                if dtype in SOME:
                    file.add("fill_diagonal", [a, values(dtype, (2,))], fill, wrap=wrap)
                if dtype not in SOME or shape == (7, 2):
                    file.add("fill_diagonal", [a, values(dtype, ())], fill, wrap=wrap)


of_shapes()
ranges()
matrices()
grids()
flat_indices()
diagonals()
file.write()
