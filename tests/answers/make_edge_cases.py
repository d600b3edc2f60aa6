"""Writes numpy_edges.txt: what NumPy answers where routines other than elementwise ones meet what is
rare: axes in the middle, infinities and NaN, nothing at all."""
import numpy as np

from case_file import BOOL, COMPLEX, FLOATS, SIGNED, UNSIGNED, CaseFile, Values

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


def number(value):
    letter = {bool: "b", int: "i", float: "f"}[type(value)]
    return f"{letter}{int(value) if letter == 'b' else value}"


def reduction(name, a, axis=None, keepdims=False, **options):
    """options: dtype, initial, where, and `out` as its dtype."""
    operands, attributes = [a], {"of": name, "keepdims": keepdims}
    if axis is not None:
        attributes["axes"] = axis if isinstance(axis, tuple) else (axis,)
    if "where" in options:
        operands.append(options["where"])
    for key in ("dtype", "out"):
        if key in options:
            attributes[key] = options[key]
    if "initial" in options:
        attributes["initial"] = number(options["initial"])

    def call(a, *where):
        given = {k: v for k, v in options.items() if k not in ("where", "out")}
        if where:
            given["where"] = where[0]
        if "out" in options:
            shape = np.any(a, axis=axis, keepdims=keepdims).shape
            given["out"] = np.zeros(shape, options["out"])
        return getattr(np, name)(a, axis=axis, keepdims=keepdims, **given)
    file.add("reduce", operands, call, **attributes)


def reductions():
    for dtype in BOOL + SIGNED + UNSIGNED + FLOATS + COMPLEX:
        a, kind = values(dtype, (2, 3)), np.dtype(dtype).kind
        mask = values("bool", (2, 3))
        for name in ("sum", "prod", "max", "min", "nansum", "nanprod", "nanmax", "nanmin"):
            orders = name[-3:] in ("max", "min")
            if kind == "c" and orders:
                continue
            for initial in (True, 2, 1.5, -1, 300, 2.0**70, float("inf"), float("nan")):
                if kind == "f" and initial == 2.0**70 and dtype == "float16":
                    continue
                if kind == "c" and name[-4:] == "prod" and initial == float("inf"):
                    continue  # which part of the product is NaN is left open
                reduction(name, a, 1, initial=initial)
                reduction(name, a, initial=initial, where=mask)
            if kind == "f":
                reduction(name, a, 0, out="float64")
        for to in ("float32", "float64", "complex64"):
            if kind == "c" and to != "complex64" or (kind == "f" and a.itemsize > 4):
                continue
            for name in ("sum", "prod"):
                reduction(name, a, 1, out=to)
                for along in (name.replace("sum", "cumsum").replace("prod", "cumprod"),):
                    file.add(along, [a], lambda a: getattr(np, along)(a, axis=1, out=np.zeros((2, 3), to)),
                             axis=1, out=to)
        if kind in "biuf":
            for to in ("int8", "uint8", "int64", "bool", "float16", "float32"):
                if to == "uint8" and kind == "f":
                    continue  # what a negative number becomes is left open
                reduction("mean", a, 1, dtype=to)
                reduction("mean", a, keepdims=True, dtype=to)
                if to != "float16" or kind != "f":
                    reduction("sum", a, 0, dtype=to)
                    reduction("prod", a, 0, dtype=to)
    steps = np.array([16777216, 1, 1], "float32")
    for name in ("cumsum", "cumprod", "nancumsum"):
        file.add(name, [steps], lambda a: getattr(np, name)(a, axis=0, out=np.zeros(3)), axis=0, out="float64")
    for name in ("sum", "mean", "nansum"):
        reduction(name, steps, out="float64")
    huge = np.array([3e38, 3e38, 1e38], "float32")
    for name in ("sum", "prod", "mean"):
        reduction(name, huge, 0, out="float64")
    reduction("max", np.array([1, 2], "int8"), initial=300, out="int16")
    reduction("max", np.array([1, 2], "int8"), initial=2.5, out="float32")
    reduction("prod", np.array([7, 200, 50], "uint8"), dtype="uint16", out="int64")
    reduction("sum", np.array([-2, 1], "int32"), dtype="uint32", out="float32")
    reduction("mean", np.array([[1, 2], [3, 5]], "int8"), 1, dtype="int64", out="float64")
    reduction("mean", np.zeros((0, 3), "int8"), dtype="complex64")
    reduction("min", np.array([3], "uint64"), initial=-1.25, out="complex128")
    reduction("nanmax", np.array([[-2]], "int32"), 0, initial=1.5, out="complex128")
    reduction("mean", np.array([16777216, 1, 1, 7], "float32"), where=np.array([True, True, True, False]), out="float64")
    reduction("sum", np.array([1, -1]), dtype="bool")
    reduction("sum", np.array([1e5, -1e5]), dtype="float16")
    reduction("mean", np.array([100, 100, 7], "int16"), dtype="int8")
    reduction("mean", np.array([[1, 2, 40], [3, 5, 6]]), 0, dtype="int8", where=np.array([[True, False, True]] * 2))
    for shape in ((0, 0), (0, 3), (3, 0), (2, 0, 0)):
        for axis in (0, 1, -1, (0, 1)):
            for name in ("max", "min", "nanmax", "argmax", "argmin", "ptp", "sum", "any", "mean", "prod"):
                if name[:3] == "arg":
                    if not isinstance(axis, tuple):
                        file.add(name, [np.zeros(shape)], lambda a: getattr(np, name)(a, axis=axis), axis=axis)
                elif name == "ptp":
                    file.add(name, [np.zeros(shape)], lambda a: np.ptp(a, axis=axis), axes=axis if isinstance(axis, tuple) else (axis,))
                else:
                    reduction(name, np.zeros(shape), axis)
            reduction("max", np.zeros(shape), axis, initial=2.5)


def selections():
    """Sets, orders, quantiles and indices of nothing, and of NaN."""
    nan = np.nan
    for a in [np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((0, 0)), np.zeros((0,)), np.zeros((2, 0, 3), "int32"),
              np.array([nan, nan]), np.array([nan, 1, nan, 1]), np.array([[nan, 1], [nan, 1]]), np.array([3, 1, 3]),
              np.array([2j, complex(nan, 1), complex(nan, 1)])]:
        for axis in range(a.ndim):
            file.add("unique_axis", [a], lambda a: np.unique(a, True, True, True, axis=axis), axis=axis)
    file.add("unique_axis", [np.array(1.0)], lambda a: np.unique(a, True, True, True, axis=0), axis=0)
    for shape in [(0,), (3, 0), (0, 3), (0, 0)]:
        a = np.zeros(shape, "float32")
        for axis in range(-1, len(shape)):
            for k in (0, 5, -7):
                file.add("partition", [a], lambda a: np.partition(a, k, axis=axis), axis=axis, k=k)
                file.add("argpartition", [a], lambda a: np.argpartition(a, k, axis=axis), axis=axis, k=k)
    for shape in [(5, 1, 0), (0, 3), (3, 0), (5, 1)]:
        for dtype in ("float16", "float32", "float64", "int16", "uint8"):
            for method in ("linear", "higher", "nearest", "midpoint", "inverted_cdf", "hazen"):
                for axis in (0, 1):
                    for q in (np.array([0.1, 0.7]), 0.3):
                        for name in ("quantile", "nanquantile"):
                            if 0 in shape and name == "nanquantile" and not isinstance(q, float):
                                continue  # NumPy forgets the axis of q
                            file.add(name, [np.ones(shape, dtype), q],
                                     lambda a, q: getattr(np, name)(a, q, axis=axis, method=method),
                                     axis=axis, method=method)
    for shape in [(0, 3), (3, 0), (0, 0), (2, 0, 2), (0,)]:
        for indices in ([], [0], [1], [3], [-1], [[2, 0]], 0):
            for axis in range(len(shape)):
                file.add("take", [np.zeros(shape), np.array(indices, int)], lambda a, i: np.take(a, i, axis=axis), axis=axis)
                mask = np.array([True, False, False, True])
                file.add("compress", [mask, np.zeros(shape)], lambda m, a: np.compress(m, a, axis=axis), axis=axis)
            i = np.array(indices, int)
            file.add("index", [np.zeros(shape), i], lambda a, i: a[i])
            file.add("index_empty", [np.zeros(shape), i], lambda a, i: a[0:0, i] if a.ndim > 1 else a[i])
            file.add("index_last", [np.zeros(shape), i], lambda a, i: a[..., i])
            if len(shape) > 1 and (i.ndim > 0 or shape[1] == 0):  # a 0-d array is an index array here
                file.add("index_both", [np.zeros(shape), np.zeros(0, int), i.ravel()[:1] if i.ndim else i],
                         lambda a, i, j: a[i, j])


def flattened():
    """Whether writing into what ravel and reshape give is seen in the array."""
    a = np.arange(12)
    views = {"plain": lambda a: a, "reversed": lambda a: a[::-1], "steps": lambda a: a[::2], "matrix": lambda a: a.reshape(3, 4),
             "turned": lambda a: a.reshape(3, 4).T, "rows": lambda a: a.reshape(3, 4)[::-1], "columns": lambda a: a.reshape(3, 4)[:, ::-1],
             "inner": lambda a: a.reshape(3, 4)[1:], "narrow": lambda a: a.reshape(3, 4)[:, 1:3], "one": lambda a: a[3:4][::-1],
             "column": lambda a: a.reshape(3, 4)[:, 1:2], "backwards": lambda a: a[::-1].reshape(3, 4)}
    for name, view in views.items():
        for shape in ("ravel", (-1,), (2, -1), (1, -1)):
            def call(a):
                v = view(a.copy())
                if isinstance(shape, tuple) and v.size % 2 and shape[0] == 2:
                    raise ValueError
                flat = v.ravel() if shape == "ravel" else v.reshape(shape)
                flat[...] = 77
                return v
            file.add("flattened", [a], call, view=name, **({} if shape == "ravel" else {"shape": shape}))


products()
signals()
linear_algebra()
reductions()
selections()
flattened()
file.write()
