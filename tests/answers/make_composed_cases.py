"""Writes numpy_composed.txt: what NumPy's routines made of other routines answer: differences,
covariance, convolution, interpolation, windows, polynomials."""
import numpy as np

from case_file import COMPLEX, DTYPES, FLOATS, CaseFile, Values

file, values = CaseFile("composed"), Values(73)
SOME = ["int16", "uint8", "float16", "float32", "complex64"]


def differences():
    for dtype in DTYPES:
        for shape in [(5,), (2, 4), (0,), (1,)]:
            a = values(dtype, shape)
            for n in (0, 1, 2, 7, -1):
                if dtype in SOME or n == 1:
                    file.add("diff", [a], lambda a: np.diff(a, n), n=n, axis=-1)
        a = values(dtype, (2, 3))
        file.add("diff", [a], lambda a: np.diff(a, axis=0), n=1, axis=0)
        file.add("diff_ends", [a, values(dtype, ()), values(dtype, (2, 2))],
                 lambda a, b, c: np.diff(a, 1, -1, b, c), n=1, axis=-1)
        file.add("ediff1d", [a], lambda a: np.ediff1d(a))
        for end in ("int8", "float32"):
            file.add("ediff1d_ends", [a, values(end, (2,)), values(end, ())],
                     lambda a, b, c: np.ediff1d(a, b, c))
    file.add("diff", [values("float32", ())], lambda a: np.diff(a), n=1, axis=-1)
    file.add("diff", [values("float32", (2,))], lambda a: np.diff(a, axis=1), n=1, axis=1)
    for dtype in ["int32", "uint8", "float16", "float32", "float64", "complex64"]:
        for shape in [(5,), (3, 4), (2,), (1,)]:
            for order in (1, 2, 3):
                a = values(dtype, shape)

                def gradient(a, *h, axis=None):
                    r = np.gradient(a, *h, axis=axis, edge_order=order)
                    return list(r) if isinstance(r, tuple) else [r]
                file.add("gradient", [a], gradient, order=order)
                file.add("gradient_even", [a], lambda a: gradient(a, 0.5), order=order, h=0.5)
                x = np.cumsum(values("float64", shape[-1:], 1, 3))
                file.add("gradient_uneven", [a, x], lambda a, x: gradient(a, x, axis=-1), order=order)
                y = np.array([0, 1, 3, 9, 12])[:shape[-1]]
                file.add("gradient_uneven", [a, y], lambda a, x: gradient(a, x, axis=-1), order=order)
    for dtype in DTYPES:
        y = values(dtype, (3, 4))
        file.add("trapezoid", [y], lambda y: np.trapezoid(y), axis=-1, dx=1.0)
        file.add("trapezoid", [y], lambda y: np.trapezoid(y, dx=0.25, axis=0), axis=0, dx=0.25)
        file.add("trapezoid_x", [y, np.cumsum(values("float32", (4,), 0, 2))], np.trapezoid, axis=-1)
        file.add("trapezoid_x", [y, values(dtype, (3, 4))], np.trapezoid, axis=-1)
    file.add("trapezoid", [values("float32", (0,))], lambda y: np.trapezoid(y), axis=-1, dx=1.0)


def vectors():
    for dtype in DTYPES:
        a, b = values(dtype, (2, 3)), values(dtype, (3,))
        file.add("cross", [a, b], np.cross, axisa=-1, axisb=-1, axisc=-1)
        file.add("cross", [a[:, :2], b], np.cross, axisa=-1, axisb=-1, axisc=-1)
        file.add("cross", [b, a[:, :2]], np.cross, axisa=-1, axisb=-1, axisc=-1)
        file.add("cross", [a[:, :2], b[:2]], np.cross, axisa=-1, axisb=-1, axisc=-1)
        file.add("cross", [a.T, values("float32", (2, 3))], lambda a, b: np.cross(a, b, 0, 1, 0),
                 axisa=0, axisb=1, axisc=0)
        file.add("linalg_cross", [a, values(dtype, (2, 3))], np.linalg.cross, axis=-1)
    file.add("cross", [values("int8", (4,)), values("int8", (3,))], np.cross, axisa=-1, axisb=-1,
             axisc=-1)
    file.add("linalg_cross", [values("int8", (2,)), values("int8", (2,))], np.linalg.cross, axis=-1)
    for dtype in DTYPES:
        m, v = values(dtype, (3, 5)), values(dtype, (4,))
        for named in [{}, {"rowvar": False}, {"bias": True}, {"ddof": 2}, {"ddof": 9}]:
            for x in (m, v):
                if (dtype in SOME and not (named == {"ddof": 9} and dtype in COMPLEX)) or not named:
                    file.add("cov", [x], lambda x: np.cov(x, **named), **named)
        file.add("cov", [m, values("float32", (5,))], lambda x, y: np.cov(x, y))
        file.add("cov", [m], lambda x: np.cov(x, dtype="complex64"), dtype="complex64")
        file.add("corrcoef", [m], np.corrcoef)
        file.add("corrcoef", [m, values("float64", (2, 5))], np.corrcoef)
        file.add("corrcoef", [v], np.corrcoef)
    m, f, w = values("float64", (2, 4)), values("int64", (4,), 1, 3), values("float64", (4,), 0, 1)
    for ddof in (0, 1, 2):
        file.add("cov_weights", [m, f], lambda m, f: np.cov(m, fweights=f, ddof=ddof), kind="f", ddof=ddof)
        file.add("cov_weights", [m, w], lambda m, w: np.cov(m, aweights=w, ddof=ddof), kind="a", ddof=ddof)
        file.add("cov_weights", [m, f, w], lambda m, f, w: np.cov(m, fweights=f, aweights=w, ddof=ddof),
                 kind="fa", ddof=ddof)
    file.add("cov", [values("float32", (2, 2, 2))], lambda x: np.cov(x))
    file.add("cov", [values("float32", (0, 3))], lambda x: np.cov(x))


def signals():
    for dtype in DTYPES:
        for other in sorted({dtype, "float32", "int8"}):
            for n, m in [(5, 3), (2, 4), (4, 4), (1, 1)]:
                for mode in ("full", "same", "valid"):
                    if (dtype not in SOME or other == "int8") and (n, m) != (5, 3):
                        continue
                    operands = [values(dtype, (n,)), values(other, (m,))]
                    file.add("convolve", operands, lambda a, v: np.convolve(a, v, mode), mode=mode)
                    file.add("correlate", operands, lambda a, v: np.correlate(a, v, mode), mode=mode)
    a = values("float64", (40,))
    file.add("correlate", [a, values("float64", (30,))], np.correlate, mode="valid")
    file.add("correlate", [a, values("complex128", (40,))], np.correlate, mode="valid")
    file.add("convolve", [a, values("int16", (33,))], lambda a, v: np.convolve(a, v, "valid"),
             mode="valid")
    file.add("convolve", [a, values("float32", ())], np.convolve, mode="full")
    file.add("convolve", [a, values("float32", (0,))], np.convolve, mode="full")
    file.add("convolve", [a, values("float32", (2, 2))], np.convolve, mode="full")
    file.add("convolve", [a, a], lambda a, v: np.convolve(a, v, "half"), mode="half")
    for dtype in DTYPES:
        x = np.array([-5, -3, -2.5, 0, 0.1, 1.75, 2, 7, np.nan, np.inf, -np.inf])
        x = (np.nan_to_num(x, posinf=9, neginf=-9) if dtype not in FLOATS else x).astype(dtype)
        points = np.array([-3, -1, 0.1, 2, 2.5])
        for heights in (values("float64", (5,)), values(dtype, (5,)), values("complex128", (5,)),
                        np.array([1, np.inf, np.inf, 2, -np.inf])):
            file.add("interp", [x, points, heights], np.interp)
        file.add("interp_ends", [x.reshape(1, -1), points, values("float32", (5,))],
                 lambda x, p, f: np.interp(x, p, f, -7, 8), left=-7, right=8)
        file.add("interp", [x, points[:1], points[:1]], np.interp)
    file.add("interp", [values("float64", (2,)), points[:0], points[:0]], np.interp)
    file.add("interp", [values("float64", (2,)), points, points[1:]], np.interp)
    file.add("interp", [values("float64", ()), points, points], np.interp)
    for m in (-1, 0, 1, 2, 3, 8, 13):
        for name in ("bartlett", "blackman", "hamming", "hanning"):
            file.add(name, [], lambda: getattr(np, name)(m), m=m)
        for beta in (0.0, 5.5, 14.0):
            file.add("kaiser", [], lambda: np.kaiser(m, beta), m=m, beta=beta)


def polynomials():
    for dtype in DTYPES:
        p, q = values(dtype, (3,)), values(dtype, (2,))
        for x in (values(dtype, (2, 2)), values("float32", ()), values("int8", (3,)), values(dtype, (0,))):
            file.add("polyval", [p, x], np.polyval)
        file.add("polyval", [p[:0], q], np.polyval)
        for other in (q, values("float32", (4,)), values(dtype, ())):
            file.add("polyadd", [p, other], np.polyadd)
            file.add("polysub", [p, other], np.polysub)
            if dtype != "bool":
                file.add("polymul", [p, other], np.polymul)
        if dtype not in ("bool", "uint64"):
            for m in (0, 1, 2, 5, -1):
                file.add("polyder", [p], lambda p: np.polyder(p, m), m=m)
                if dtype != "float16":
                    file.add("polyint", [p], lambda p: np.polyint(p, m), m=m)
    zeros = np.array([0, 0, 1, 2])
    file.add("polymul", [zeros, np.array([0.0, 3.0])], np.polymul)
    file.add("polymul", [zeros, np.array([0, 0])], np.polymul)
    file.add("poly1d", [zeros, np.array([1, -1, 2])],
             lambda a, b: [(np.poly1d(a) + np.poly1d(b)).c, (np.poly1d(a) - np.poly1d(b)).c,
                           (np.poly1d(a) * np.poly1d(b)).c, np.poly1d(b)(np.poly1d(a)).c,
                           np.poly1d(b).deriv().c, np.poly1d(b).integ(2).c, (-np.poly1d(a)).c,
                           np.poly1d(a)[0], np.poly1d(a)[9], np.poly1d(b)(np.arange(3))])


def fits():
    for dtype in DTYPES:
        x, y = np.array([0, 1, 2, 4, 5]).astype(dtype), values(dtype, (5,))
        if dtype in ("bool", "float16", "complex64", "complex128"):
            continue
        for degree in (0, 2, -1):
            file.add("polyfit", [x, y], lambda x, y: np.polyfit(x, y, degree), degree=degree)
        file.add("polyfit", [x, values("float64", (5, 2))], lambda x, y: np.polyfit(x, y, 1), degree=1)
        # NumPy multiplies y by the weights in place, in y's dtype.
        weights = values("float32" if dtype == "float32" else "float64", (5,), 1, 2)
        file.add("polyfit", [x, y, weights],
                 lambda x, y, w: np.polyfit(x, y, 2, w=w), degree=2)
    file.add("polyfit", [x, y[:4]], lambda x, y: np.polyfit(x, y, 1), degree=1)
    points = np.array([350, 10, -30, 200.5])
    for dtype in ("int64", "float32"):
        x = np.array([-370, -30, 0, 9, 190, 359, 721]).astype(dtype)
        for heights in (values("float64", (4,)), values("int8", (4,)), values("complex64", (4,))):
            for period in (360, -360, 100.5, 0):
                file.add("interp_round", [x, points, heights],
                         lambda x, p, f: np.interp(x, p, f, period=period), period=float(period))


def functions():
    for dtype in DTYPES:
        for axis in (0, 1, -1, 4):
            a = values(dtype, (2, 3))
            file.add("apply_reversed", [a], lambda a: np.apply_along_axis(lambda x: x[::-1], axis, a),
                     axis=axis)
            file.add("apply_last", [a], lambda a: np.apply_along_axis(lambda x: x[-1], axis, a), axis=axis)
        a = values(dtype, (2, 3, 2))
        file.add("apply_square", [a], lambda a: np.apply_along_axis(lambda x: x[:, None] + x, 1, a), axis=1)
        x = values(dtype, (2, 3))
        if dtype not in COMPLEX:
            file.add("piecewise", [x, x < 0, x > 1], lambda x, a, b: np.piecewise(x, [a, b], [1, 2]))
            file.add("piecewise", [x, x > 0], lambda x, a: np.piecewise(x, [a], [lambda v: v + v, 1]))
    file.add("apply_last", [values("int8", (0, 3))],
             lambda a: np.apply_along_axis(lambda x: x[-1], 1, a), axis=1)


differences()
vectors()
signals()
polynomials()
fits()
functions()
file.write()
