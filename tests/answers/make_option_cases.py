"""NumPy's answers to calls with the keywords that routines share (axis, keepdims, dtype, out, where, mode,
casting, order and their like), for tests/array/options_test.cc."""
import numpy as np

from case_file import COMPLEX, FLOATS, REAL, CaseFile, Values

F = CaseFile("options")
VALUES = Values(17)


def written(call, shape, dtype):
    """call(out=...) of an `out` that holds 7, as its answer."""
    out = np.full(shape, 7, dtype)
    call(out)
    return out


def positions():
    for dtype in REAL:
        a = VALUES(dtype, (2, 3, 4), specials=True)
        for name in ("argmax", "argmin", "nanargmax", "nanargmin"):
            f = getattr(np, name)
            for axis in ("none", 0, -1):
                real = None if axis == "none" else axis
                for keepdims in (False, True):
                    F.add(name, [a], lambda x: f(x, axis=real, keepdims=keepdims), axis=axis, keepdims=keepdims)
            F.add(name, [a], lambda x: written(lambda o: f(x, axis=1, out=o), (2, 4), "int64"), axis=1,
                  keepdims=False, out="int64")


def statistics():
    for dtype in FLOATS + ["int32", "uint8"]:
        a = VALUES(dtype, (3, 4), specials=False)
        b = a.copy()
        if np.dtype(dtype).kind == "f":
            b[1, 2] = b[0, 0] = np.nan
        mask = VALUES("bool", (3, 4))
        mask[0], mask[:, 1] = True, True
        for name in ("nanvar", "nanstd", "var", "std"):
            f = getattr(np, name)
            x = b if name.startswith("nan") else a
            for axis in (0, 1):
                F.add(name, [x, mask], lambda x, m: f(x, axis=axis, where=m, ddof=1), axis=axis, ddof=1)
                F.add(name + "_dtype", [x], lambda x: f(x, axis=axis, dtype="float64"), axis=axis)
            F.add(name + "_correction", [x], lambda x: f(x, axis=0, correction=0.5, keepdims=True))
            if dtype != "float16":
                F.add(name + "_out", [x], lambda x: written(lambda o: f(x, axis=1, out=o), (3,), "float64"))
        for name in ("var", "std"):
            F.add(name + "_mean", [a, a.mean(axis=0, keepdims=True)],
                  lambda x, m: getattr(np, name)(x, axis=0, mean=m))
        F.add("nanmean", [b, mask], lambda x, m: np.nanmean(x, axis=0, where=m))
        F.add("nanmean_dtype", [b], lambda x: np.nanmean(x, axis=1, dtype="float64", keepdims=True))
        F.add("nanmean_out", [b], lambda x: written(lambda o: np.nanmean(x, axis=1, out=o), (3,), "float64"))
        for name, g in (("median", np.median), ("nanmedian", np.nanmedian), ("ptp", np.ptp)):
            F.add(name + "_out", [b if name == "nanmedian" else a],
                  lambda x: written(lambda o: g(x, axis=1, keepdims=True, out=o), (3, 1), "float64"))
        q = np.array([[0.25, 0.5, 0.75], [0, 1, 0.1]])
        for name, g in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
            x = (b if name == "nanquantile" else a).astype("float64")
            F.add(name, [x, q], lambda x, q: g(x, q, axis=1, keepdims=True), axis=1, keepdims=True)
            F.add(name + "_out", [x],
                  lambda x: written(lambda o: g(x, [0.5, 0.25], axis=0, out=o), (2, 4), "float64"))


def taking():
    for dtype in ("int16", "float32", "complex128"):
        a, at = VALUES(dtype, (3, 4)), np.array([[-7, 0], [2, 9]])
        for mode in ("wrap", "clip"):
            for axis in ("none", 0, 1):
                real = None if axis == "none" else axis
                F.add("take", [a, at], lambda x, i: np.take(x, i, axis=real, mode=mode), axis=axis, mode=mode)
            F.add("choose", [np.array([-1, 0, 5, 1]), *a[:2]],
                  lambda i, *c: np.choose(i, c, mode=mode), mode=mode)
        F.add("take_out", [a, at[:, :1] % 3],
              lambda x, i: written(lambda o: np.take(x, i, axis=1, out=o, mode="clip"), (3, 2, 1), a.dtype))
        F.add("compress_out", [np.array([True, False, True]), a],
              lambda c, x: written(lambda o: np.compress(c, x, axis=0, out=o), (2, 4), a.dtype))
        F.add("put_mode", [a, np.array([-30, 17]), VALUES(dtype, (2,))],
              lambda x, i, v: (y := x.copy(), np.put(y, i, v, mode="clip"))[0])
        F.add("trace_dtype", [a], lambda x: np.trace(x, 1, dtype="complex128"), offset=1)
        F.add("trace_out", [VALUES(dtype, (3, 2, 3))],
              lambda x: written(lambda o: np.trace(x, -1, 0, 2, out=o), (2,), "complex128"))


def joining():
    for dtype in ("int32", "float32", "float64"):
        a, b = VALUES(dtype, (2, 3)), VALUES("float32", (2, 3))
        for axis in ("none", 0, 1):
            real = None if axis == "none" else axis
            F.add("concatenate", [a, b], lambda *p: np.concatenate(p, axis=real, dtype="complex64",
                                                                   casting="same_kind"), axis=axis)
        F.add("stack", [a, b], lambda *p: np.stack(p, axis=-1, dtype="float16", casting="same_kind"), axis=-1)
        F.add("hstack", [a, b], lambda *p: np.hstack(p, dtype="int8", casting="unsafe"))
        F.add("vstack", [a, b], lambda *p: np.vstack(p, dtype="float32", casting="no"))
        F.add("stack_out", [a, b],
              lambda *p: written(lambda o: np.stack(p, axis=1, out=o), (2, 2, 3), "complex128"))


def orders():
    for shape in ((2, 3), (2, 3, 4), (5,)):
        a = VALUES("int16", shape)
        for order in "CFAK":
            F.add("ravel", [a], lambda x: np.ravel(np.ascontiguousarray(x), order=order), order=order)
            F.add("ravel_f", [a], lambda x: np.ravel(np.asfortranarray(x), order=order), order=order)
            F.add("flatten", [a], lambda x: np.asfortranarray(x).flatten(order=order), order=order)
            F.add("copy", [a], lambda x: x.copy(order=order), order=order)
            for to in ((-1,), (a.size // shape[0], -1)):
                F.add("reshape", [a], lambda x: np.reshape(np.ascontiguousarray(x), to, order=order),
                      order=order, to=to)
        F.add("ravel", [a], lambda x: np.ravel(x.transpose().copy().transpose(), order="F"), order="F")
    for casting in ("no", "safe", "same_kind", "unsafe"):
        for to in ("float32", "int16", "complex64"):
            F.add("astype", [VALUES("float64", (2, 3))], lambda x: x.astype(to, casting=casting), to=to,
                  casting=casting)


def products():
    for dtype in ("float64", "complex64", "int32"):
        a, b = VALUES(dtype, (3, 2, 4)), VALUES(dtype, (4, 5, 2))
        F.add("matmul_axes", [a, b],
              lambda x, y: np.matmul(x, y, axes=[(0, 2), (0, 1), (-1, 0)]))
        F.add("matmul_dtype", [a, b[:, :, 0]], lambda x, y: np.matmul(x, y, dtype="complex128"))
        F.add("vecdot_axis", [a, VALUES(dtype, (3, 2, 4))], lambda x, y: np.vecdot(x, y, axis=0), axis=0)
        F.add("vecdot_axes", [a, VALUES(dtype, (2, 4, 3))],
              lambda x, y: np.vecdot(x, y, axes=[(0,), (2,)]))
        F.add("matvec_axes", [a, VALUES(dtype, (4,))],
              lambda x, y: np.matvec(x, y, axes=[(0, 2), (0,), (0,)]))
        F.add("outer_out", [a[0, 0], b[0, 0]],
              lambda x, y: written(lambda o: np.outer(x, y, out=o), (4, 2), "complex128"))
        F.add("einsum", [a[:, 0], b[:, 0]], lambda x, y: np.einsum("ij,jk", x, y, dtype="complex128"))
    F.add("matmul_dtype", [VALUES("complex64", (2, 2)), VALUES("float32", (2, 2))],
          lambda x, y: np.matmul(x, y, dtype="float64"))


def algebra():
    full = VALUES("float64", (2, 3, 4))
    full[0, 2] = full[0, 1] * 2 + 1e-4 * full[0, 0]
    for rtol in (1e-12, 1e-2):
        F.add("matrix_rank", [full, float(rtol)], lambda x, r: np.linalg.matrix_rank(x, rtol=r))
        F.add("pinv", [full, float(rtol)], lambda x, r: np.linalg.pinv(x, rtol=r))
    tolerances = np.array([1e-2, 1e-12])
    F.add("matrix_rank", [full, tolerances], lambda x, r: np.linalg.matrix_rank(x, rtol=r))
    F.add("pinv", [full, tolerances], lambda x, r: np.linalg.pinv(x, rtol=r))
    square = VALUES("float64", (4, 4))
    F.add("svd_hermitian", [square + square.T], lambda x: np.linalg.svd(x, hermitian=True, compute_uv=False))
    F.add("svd_product", [square + square.T], lambda x: x)


def others():
    for dtype in ("complex64", "float64"):
        a = VALUES(dtype, (3, 8))
        for norm in ("backward", "ortho", "forward"):
            F.add("fft", [a], lambda x: np.fft.fft(x.astype("complex128"), n=6, axis=1, norm=norm), norm=norm)
        F.add("fft_out", [a], lambda x: written(lambda o: np.fft.fft(x, axis=0, out=o), (3, 8), "complex128"))
    for endpoint in (True, False):
        F.add("linspace_complex", [], lambda: np.linspace(1 + 2j, -3j, 7, endpoint=endpoint), endpoint=endpoint)
    a = VALUES("int32", (3, 4))
    for invert in (False, True):
        F.add("isin_number", [a], lambda x: np.isin(x, 2, invert=invert), invert=invert)
        F.add("number_isin", [a], lambda x: np.isin(2, x, invert=invert), invert=invert)
    u, v = VALUES("float64", (3, 5)), VALUES("float64", (3, 5))
    F.add("cross", [u, v], lambda x, y: np.cross(x, y, axis=0))
    F.add("diff", [a, np.array(1), a[:, :1]], lambda x, p, q: np.diff(x, n=2, axis=1, prepend=p, append=q))
    F.add("trapezoid", [u, np.array([0., 1, 4])], lambda y, x: np.trapezoid(y, x=x, axis=0))
    F.add("gradient", [u], lambda x: list(np.gradient(x, 0.5, axis=(1, 0), edge_order=2)))
    F.add("partition", [VALUES("int32", (50,), -9, 9)],
          lambda x: (y := np.partition(x, [3, 20, -1]))[[3, 20, -1]])


def rare():
    for dtype in ("int32", "float64", "complex128"):
        x = VALUES(dtype, (2, 3))
        F.add("polyvander", [x], lambda x: np.polynomial.polynomial.polyvander(x, 3))
        roots = VALUES(dtype, (3, 2))
        F.add("polyvalfromroots", [x, roots], np.polynomial.polynomial.polyvalfromroots)
        c = np.append(VALUES(dtype, (3,)), np.ones(1, dtype))
        F.add("polycompanion", [c], np.polynomial.polynomial.polycompanion)
        F.add("trimseq", [np.append(c, np.zeros(2, dtype))], np.polynomial.polyutils.trimseq)
        F.add("trimcoef", [c * np.array([1, 1, 0, 0])],
              lambda c: np.polynomial.polyutils.trimcoef(c, 0.5))
        F.add("polyint", [c], lambda c: np.polyint(c, 2, [3, 4]))
        if dtype != "complex128":
            F.add("poly", [x[0]], np.poly)
        F.add("apply_over_axes", [VALUES(dtype, (2, 3, 4))], lambda a: np.apply_over_axes(np.sum, a, [0, 2]))
    F.add("mask_indices", [], lambda: list(np.mask_indices(4, np.triu, 1)))
    F.add("fromfunction", [], lambda: np.fromfunction(lambda i, j: i * 10 + j, (3, 4)))
    F.add("fromstring", [], lambda: np.fromstring("1, 2.5,-3", sep=","))


positions()
statistics()
taking()
joining()
orders()
products()
algebra()
others()
rare()
F.write()
