"""Writes numpy_edges.txt: what NumPy answers where routines other than elementwise ones meet what is
rare: axes in the middle, infinities and NaN, nothing at all."""
import numpy as np

from case_file import CaseFile, Values

file, values = CaseFile("edges"), Values(1109)
la = np.linalg


def products():
    for dtype in ("int64", "float32", "complex64"):
        for shape in ((2, 3, 4), (1, 2, 3), (3, 3, 3), (2, 2, 2, 2)):
            a, b = values(dtype, shape), values(dtype, shape)
            for axis in range(-len(shape), len(shape)):
                file.add("vecdot", [a, b], lambda a, b: np.vecdot(a, b, axis=axis), axis=axis)
    a, b = values("float64", (2, 3, 4)), values("float64", (3, 1))
    file.add("vecdot", [a, b], lambda a, b: np.vecdot(a, b, axis=-2), axis=-2)


def signals():
    nan, inf = np.nan, np.inf
    for dtype in ("float16", "float32", "float64", "complex64", "complex128"):
        for a, v in [([1, nan], [1, 0, 2]), ([-inf, 1.75, 0.5], [-inf, 1.75, 0.5]), ([nan], [1, 2]),
                     ([1, 2, 3, 4, 5], [nan, 1, 1]), ([1, 2, 3, 4, 5], [0, inf, 0]),
                     ([inf, 2, 3, 0, -inf, 1], [1, 2])]:
            if "complex" in dtype and inf in np.abs(a + v):
                continue  # which part of a product with an infinity is NaN is left open
            for mode in ("full", "same", "valid"):
                operands = [np.array(a, dtype), np.array(v, dtype)]
                file.add("convolve", operands, lambda a, v: np.convolve(a, v, mode), mode=mode)
                file.add("correlate", operands, lambda a, v: np.correlate(a, v, mode), mode=mode)
    a = np.arange(50.0)
    a[[0, 20, 49]] = nan
    for m in (3, 30, 50):
        for mode in ("full", "same", "valid"):
            v = values("float64", (m,))
            file.add("convolve", [a, v], lambda a, v: np.convolve(a, v, mode), mode=mode)
            v[[0, -1]] = inf
            file.add("correlate", [a, v], lambda a, v: np.correlate(a, v, mode), mode=mode)


def linear_algebra():
    """Of NumPy's singular vectors of infinities some never come, so that there are values alone."""
    for dtype in ("float32", "float64", "complex64", "complex128"):
        for special in (np.inf, -np.inf, np.nan):
            a = values(dtype, (3, 3))
            a[0, 2] = special
            batch = np.stack([values(dtype, (3, 3)), a])
            for x in (a, batch):
                file.add("svdvals", [x], la.svdvals)
                file.add("cond", [x], la.cond)
                file.add("matrix_rank", [x], la.matrix_rank)
                file.add("eigvals", [x], lambda x: la.eigvals(x))
                file.add("eig", [x], lambda x: la.eig(x))
                for ord in ("nuc", "2"):
                    order = ord if ord == "nuc" else 2
                    file.add("matrix_norm", [x], lambda x: la.matrix_norm(x, ord=order), ord=ord)
            upper = values(dtype, (3, 3))
            upper[0, 2] = special  # in the triangle that is not read
            real = np.real(np.diagonal(upper))
            np.fill_diagonal(upper, real)
            file.add("eigvalsh", [upper], la.eigvalsh)
    for dtype in ("float32", "complex128"):
        a = values(dtype, (3, 3))
        a[1, 0] = np.nan
        file.add("eigvalsh", [a], la.eigvalsh)
        a = values(dtype, (4, 3))
        a[1, 2] = np.nan
        file.add("lstsq", [a, np.ones(4, dtype)], lambda a, b: la.lstsq(a, b)[0])
        file.add("pinv", [a], la.pinv)


products()
signals()
linear_algebra()
file.write()
