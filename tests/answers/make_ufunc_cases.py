"""Writes numpy_casting.txt, numpy_ufuncs.txt and numpy_complex.txt: what NumPy's ufuncs answer with
outputs and dtypes of another kind, by their methods, and of complex numbers at the ends of the range.

    python tests/answers/make_ufunc_cases.py

What is not recorded in numpy_complex.txt: log1p of small numbers, which NumPy rounds to 1 first;
products, quotients and signs that overflow on the way, where NumPy's answer depends on the processor.
"""
import numpy as np

from case_file import BOOL, COMPLEX, DTYPES, FLOATS, REAL, SIGNED, UNSIGNED, CaseFile, Values

values = Values(20261122)
INTEGERS = SIGNED + UNSIGNED
INF, NAN = np.inf, np.nan
BINARY = ["add", "subtract", "multiply", "power", "left_shift", "lcm", "divide", "maximum", "hypot",
          "bitwise_and", "less", "logical_xor", "floor_divide"]
UNARY = ["negative", "absolute", "square", "exp", "sqrt", "conjugate", "invert", "floor",
         "bitwise_count", "isnan", "reciprocal"]


def operand(dtype, n, which=0):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([True, False, True, True])[:n]
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.max, 91, info.min, 3] if which == 0 else [2, 200 % info.max, 1, 5],
                        dtype)[:n]
    big = {"float16": 60000, "complex64": 70000}.get(dtype, 70000)
    v = np.array([big, 0.1, -2.75, 3] if which == 0 else [big, 3, 2, 0.7], dtype)[:n]
    return v * np.array(1 + (0.5j if kind == "c" else 0), dtype)


def outputs(cases):
    """out= of every dtype; dtype= beside it."""
    for name in BINARY + UNARY:
        f = getattr(np, name)
        for number, dtype in enumerate(DTYPES):
            if dtype in COMPLEX and name in ("maximum", "less"):
                continue  # ordered by their parts
            operands = [operand(dtype, 4)] if name in UNARY else [operand(dtype, 4),
                                                                   operand(dtype, 4, 1)]
            if name in ("power", "left_shift") and np.dtype(dtype).kind in "iu":
                operands[1] = np.array([2, 3, 1, 2], dtype)
            if name == "power" and np.dtype(dtype).kind == "c":
                operands[1] = np.array([2, 3, 1, 2], dtype)
            for place, out in enumerate(DTYPES):
                if name not in ("add", "negative") and (number + place) % 3:
                    continue
                if np.dtype(dtype).kind == "f" and np.dtype(out).kind in "iu":
                    if place % 4:
                        continue
                cases.add("out_" + name, operands,
                          lambda *a, o=out: f(*a, out=np.zeros(4, o)), out=out)
    for name in ("add", "multiply", "subtract", "negative", "divide", "arctan2", "sqrt"):
        f = getattr(np, name)
        for dtype in ("bool", "int8", "uint8", "int64", "float16", "float32", "complex64"):
            operands = [operand(dtype, 4)] if name in UNARY else [operand(dtype, 4),
                                                                   operand(dtype, 4, 1)]
            for loop in ("int8", "uint16", "float16", "float64", "complex128"):
                if np.dtype(loop).kind in "iu" and np.dtype(dtype).kind in "fc":
                    continue
                for out in ("uint8", "int64", "float32", "float64", "complex64"):
                    cases.add("out_" + name, operands,
                              lambda *a, o=out, d=loop: f(*a, out=np.zeros(4, o), dtype=d),
                              out=out, dtype=loop)


def casting(cases):
    for word in ("no", "equiv", "safe", "same_kind", "unsafe", "other"):
        for a, b in (("int32", "int32"), ("uint8", "int32"), ("float32", "float64"),
                     ("int64", "float32"), ("float32", "float32")):
            x, y = operand(a, 4), operand(b, 4, 1)
            x, y = (np.array([3, 1, 2, 5], v.dtype) for v in (x, y))
            cases.add("out_add", [x, y], lambda p, q, w=word: np.add(p, q, casting=w), casting=word)
            for out in ("int16", "uint32", "float32", "float64"):
                cases.add("out_add", [x, y],
                          lambda p, q, w=word, o=out: np.add(p, q, out=np.zeros(4, o), casting=w),
                          casting=word, out=out)
            for loop in ("int16", "float32", "float64"):
                cases.add("out_multiply", [x, y],
                          lambda p, q, w=word, d=loop: np.multiply(p, q, dtype=d, casting=w),
                          casting=word, dtype=loop)
            cases.add("out_sqrt", [x], lambda p, w=word: np.sqrt(p, casting=w), casting=word)


def numbers(cases):
    """Numbers that an integer dtype does not hold, beside it."""
    names = ["divide", "hypot", "arctan2", "copysign", "logaddexp", "logaddexp2", "heaviside",
             "nextafter", "float_power", "add", "remainder", "minimum", "power"]
    for dtype in INTEGERS + BOOL:
        x = np.array([1, 100, 7], dtype)
        for name in names:
            f = getattr(np, name)
            if name != "power":
                cases.add(name, [x, 1.5], f)
                cases.add(name, [True, x], f)
            for number in (-1, 256, 70000, 2**40):
                if name == "power" and number == -1:
                    continue  # raised for the exponent, not for the dtype
                cases.add(name, [x, number], f)
                if number == 256:
                    cases.add(name, [number, x], f)
    for dtype in INTEGERS:
        x = np.array([1, 100, 7], dtype)
        for low, high in ((-1, 50), (-1, 70000), (2, 2**40), (70000, 80000), (-(2**40), 50), (3, 6)):
            cases.add("clip", [x, low, high], np.clip)
        for number in (-1, 300, 70000, -(2**40)):
            cases.add("where", [np.array([True, False, True]), x, number], np.where)
            cases.add("where", [np.array([True, False, True]), number, x], np.where)
            cases.add("clip_above", [x, number], lambda a, n: np.clip(a, None, n))
            cases.add("clip_below", [x, number], lambda a, n: np.clip(a, n, None))
    for dtype in REAL + BOOL:
        x = np.array([1, 3, 0, 7], dtype)
        for exponents in BOOL + INTEGERS:
            cases.add("ldexp", [x, np.array([1, 0, 3, 2], exponents)], np.ldexp)
        for number in (-4, 3, 300):
            cases.add("ldexp", [x, number], np.ldexp)
    for number in (3, 1.5, True):
        cases.add("ldexp", [number, np.array([1, 5], "int32")], np.ldexp)
    cases.add("ldexp", [np.array([1.5]), 0.5], np.ldexp)
    for name in ("power", "reciprocal", "remainder", "fmod", "floor_divide", "square", "conjugate",
                 "left_shift", "right_shift", "gcd", "lcm", "sign", "positive", "negative",
                 "subtract", "divmod"):
        x = np.array([True, True, False])
        f = getattr(np, name)
        two = name in BINARY + ["remainder", "fmod", "right_shift", "gcd", "divmod"]
        y = np.array([True, True, True])
        cases.add(name, [x, y] if two else [x], f)
    for dtype in SIGNED:
        cases.add("reciprocal", [np.array([-3, -2, -1, 1, 2, 5], dtype)], np.reciprocal)
    cases.add("round", [np.array([-2**31, 2**31 - 1, 15, -25], "int32")],
              lambda a: np.round(a, -1), decimals=-1)


def functions(cases):
    for dtype in BOOL + INTEGERS + FLOATS:
        x = values(dtype, (2, 5), -9, 9, specials=True)
        cases.add("frexp", [x], np.frexp)
        cases.add("i0", [np.nan_to_num(x, posinf=3, neginf=2)], np.i0)
        if dtype in FLOATS:
            info = np.finfo(dtype)
            cases.add("frexp", [np.array([0, -0.0, info.max, info.smallest_subnormal, 1, -0.5],
                                         dtype)], np.frexp)
    cases.add("i0", [np.linspace(-40, 40, 41)], np.i0)
    cases.add("i0", [np.array([1j])], np.i0)
    for dtype in SIGNED + FLOATS:
        p = np.cumsum(values("int8", (4, 9), -7, 7), axis=1).astype(dtype)
        for period in (4, 5, 6.5):
            if isinstance(period, float) and dtype == "float16":
                continue  # rounds its way
            cases.add("unwrap", [p], lambda a, t=period: np.unwrap(a, period=t), period=period)
            cases.add("unwrap", [p], lambda a, t=period: np.unwrap(a, 3, axis=0, period=t),
                      period=period, discont=3, axis=0)
        cases.add("unwrap", [p[:, :1]], lambda a: np.unwrap(a, period=4), period=4)
    cases.add("unwrap", [np.cumsum(values("float64", (20,), -6, 6))], np.unwrap)
    for dtype in BOOL + INTEGERS + ["float32"]:
        for shape in ((11,), (3, 10), (8, 2), (0, 3), ()):
            x = values(dtype, shape, -1, 1)
            for axis in (None, 0, -1):
                for order in ("big", "little"):
                    where = {} if axis is None else {"axis": axis}
                    cases.add("packbits", [x], lambda a, ax=axis, o=order:
                              np.packbits(a, axis=ax, bitorder=o), **where, bitorder=order)
    for shape in ((3,), (2, 3), (0, 2), ()):
        x = values("uint8", shape, 0, 255)
        for axis in (None, 0, -1):
            for count in (None, 3, 40, 0, -2, -100):
                if 0 in shape and count:
                    continue  # NumPy leaves what was in memory
                where = {k: v for k, v in (("axis", axis), ("count", count)) if v is not None}
                cases.add("unpackbits", [x], lambda a, ax=axis, n=count:
                          np.unpackbits(a, axis=ax, count=n, bitorder="little"), **where,
                          bitorder="little")
    cases.add("unpackbits", [np.array([1], "int8")], np.unpackbits, bitorder="big")
    for dtype in COMPLEX:
        eps = np.finfo(dtype).eps
        for x in ([1 + 50j * eps, 2], [1 + 200j * eps, 2], [3, 4]):
            cases.add("real_if_close", [np.array(x, dtype)], np.real_if_close, tol=100)
        cases.add("real_if_close", [np.array([1 + 0.001j], dtype)],
                  lambda a: np.real_if_close(a, tol=0.01), tol=0.01)


METHODS = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "power",
           "float_power", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or",
           "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "hypot",
           "logaddexp", "logaddexp2", "arctan2", "copysign", "heaviside", "nextafter", "left_shift",
           "equal", "less", "ldexp"]

# Folded along contiguous elements NumPy 2.4's vector loops take elements side by side for one after
# the other: np.power.reduce([2., 2., 2., 2., 2.]) is not 65536.
SIMD_FOLDS = {"power", "float_power", "arctan2"}


def method_operand(name, dtype, shape):
    kind = np.dtype(dtype).kind
    if kind in "iu" and name in ("power", "left_shift", "float_power"):
        return values(dtype, shape, 1, 2)
    if kind == "f" and name in ("power", "float_power"):
        return values(dtype, shape, 0.5, 1.5)
    if name in ("floor_divide", "remainder", "fmod", "divide"):
        x = values(dtype, shape, 1, 5)
        return np.where(x == 0, np.asarray(1, dtype), x)
    return values(dtype, shape, -3, 3)


def methods(cases):
    indices = np.array([0, 3, 1, 4, 4, 2])
    for name in METHODS:
        f = getattr(np, name)
        for number, dtype in enumerate(("bool", "int8", "uint8", "int64", "float16", "float32",
                                        "float64", "complex64")):
            if dtype == "complex64" and name in ("maximum", "minimum", "fmax", "fmin", "less"):
                continue  # ordered by their parts
            if dtype == "float16" and name not in ("add", "maximum", "logical_xor"):
                continue  # rounded after every element
            if name == "ldexp" and np.dtype(dtype).kind != "f":
                continue
            x = method_operand(name, dtype, (5, 3))
            y = method_operand(name, dtype, (3, 5))
            for kind, a, axis in (("reduce", x, 0), ("reduce", y, 1), ("accumulate", x, 0),
                                  ("accumulate", y, -1), ("reduce", x, (0, 1)),
                                  ("reduce", x[:0], 0), ("reduce", x[:1], 0),
                                  ("accumulate", x[:0], 0), ("reduce", x[0, 0, ...], 0)):
                if a is y and name in SIMD_FOLDS:
                    continue
                cases.add(f"{name}.{kind}", [a], lambda v, ax=axis, k=kind: getattr(f, k)(v, axis=ax),
                          axis=axis)
            if name not in SIMD_FOLDS:
                cases.add(f"{name}.reduceat", [x, indices], lambda v, i: f.reduceat(v, i))
                cases.add(f"{name}.reduceat", [y, indices], lambda v, i: f.reduceat(v, i, axis=1),
                          axis=1)
            cases.add(f"{name}.outer", [x[:2], y[0, :2]], f.outer)
            if number % 2 == 1:
                start = True if dtype == "bool" else 2
                mask = np.array([[True, False, True]] * 5)
                mask[3] = False
                cases.add(f"{name}.reduce", [x, mask], lambda v, m, s=start:
                          f.reduce(v, axis=0, initial=s, where=m), axis=0, initial=start, where=True)
                cases.add(f"{name}.reduce", [x, mask], lambda v, m: f.reduce(v, axis=0, where=m),
                          axis=0, where=True)
                cases.add(f"{name}.reduce", [x[:0]], lambda v, s=start:
                          f.reduce(v, axis=0, initial=s, keepdims=True),
                          axis=0, initial=start, keepdims=True)
        for dtype, loop in (("int8", "int16"), ("float32", "float64"), ("float64", "int32")):
            x = method_operand(name, dtype, (4,))
            for kind in ("reduce", "accumulate") if name not in SIMD_FOLDS else ():
                if name != "ldexp":
                    cases.add(f"{name}.{kind}", [x], lambda v, k=kind, d=loop:
                              getattr(f, k)(v, dtype=d), axis=0, dtype=loop)
        for index in ([5], [-1], [0, 9]):
            cases.add(f"{name}.reduceat", [np.ones(5), np.array(index)], lambda v, i: f.reduceat(v, i))


def at(cases):
    index = np.array([0, 3, 0, 1, 3, 0, -1])

    def updated(f, a, i, *b):
        a = a.copy()
        f.at(a, i, *b)
        return a

    for name in METHODS:
        f = getattr(np, name)
        if name == "ldexp":
            continue
        for dtype in ("bool", "int8", "uint8", "int64", "float32", "float64", "complex64"):
            if dtype == "complex64" and name in ("maximum", "minimum", "fmax", "fmin", "less"):
                continue
            if dtype == "float32" and name == "float_power":
                continue
            a, b = method_operand(name, dtype, (5,)), method_operand(name, dtype, (7,))
            cases.add(f"{name}.at", [a, index, b], lambda v, i, w: updated(f, v, i, w))
            if dtype in ("int64", "float64"):
                table, rows = method_operand(name, dtype, (5, 2)), method_operand(name, dtype, (2,))
                cases.add(f"{name}.at", [table, index, rows], lambda v, i, w: updated(f, v, i, w))
        cases.add(f"{name}.at", [np.ones(3), np.array([3]), np.ones(1)],
                  lambda v, i, w: updated(f, v, i, w))
    for name in ("negative", "square", "sqrt", "invert", "logical_not"):
        f = getattr(np, name)
        for dtype in ("bool", "int8", "float64"):
            cases.add(f"{name}.at", [values(dtype, (5,), 1, 3), index],
                      lambda v, i: updated(f, v, i))
    cases.add("add.at", [np.array([1, 2], "uint8"), np.array([0, 0]), np.array([300, 1])],
              lambda v, i, w: updated(np.add, v, i, w))
    cases.add("add.at", [np.array([1, 2], "uint8"), np.array([0, 0]), np.array([1.5, 2.5])],
              lambda v, i, w: updated(np.add, v, i, w))


COMPLEX_FUNCTIONS = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos",
                     "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh",
                     "arccosh", "arctanh", "reciprocal", "sign"]


def grid(dtype):
    """Every pair of parts, at both ends of the range and beyond."""
    double = dtype == "complex128"
    ends = [1.5e308, 1e200, 1e-200, 5e-324, 1e-310, 710.0] if double else [
        3e38, 1e30, 1e-30, 1e-45, 1e-40, 89.0]
    parts = [NAN] + [s * v for v in [0.0, 1.0, 2.5, INF] for s in (1, -1)]
    parts += [v * (-1) ** i for i, v in enumerate(ends)]
    parts = np.array(parts, "float64" if double else "float32")
    x = np.empty((len(parts), len(parts)), dtype)
    x.real, x.imag = parts[:, None], parts
    return x.ravel()


def complex_edges(cases):
    def both_parts(f):
        return lambda *a: [v for r in [f(*a)] for v in (np.real(r).copy(), np.imag(r).copy())]

    for name in COMPLEX_FUNCTIONS:
        for dtype in COMPLEX:
            x = grid(dtype)
            if name == "log1p":
                x = x[~np.isfinite(x)]
            if name == "sign":  # NumPy gives 1j where |x| overflows
                x = x[~(np.isfinite(x) & np.isinf(np.abs(x)))]
            for part in np.array_split(x, 4):
                cases.add(name, [part], both_parts(getattr(np, name)))
    for dtype in COMPLEX:
        bases = np.array([-4, 3 + 4j, -2, 0.1 + INF * 1j, 0, 1.5 - 0.25j, -1j, complex(NAN, 2),
                          complex(2.5, INF), 1e10 + 3e9j], dtype)
        for exponent in [*range(-6, 13), 50, 99, -99]:
            # 1 over a power that overflows depends on the division.
            here = bases[np.isfinite(bases)] if exponent < 0 else bases
            if abs(exponent) > 3:
                here = here[np.abs(here) < 1e9]
                here = here[np.isfinite(here)]
            cases.add("power", [here, np.full(len(here), exponent, dtype)], both_parts(np.power))
        bases = np.array([-4, 3 + 4j, 0, 1.5 - 0.25j, -1j, complex(INF, 1), complex(NAN, 0)], dtype)
        for exponent in (0.5, 1 + 1j, 2j, -1.5, 0.25 - 3j):
            cases.add("power", [bases, np.full(len(bases), exponent, dtype)], both_parts(np.power))


for subject, sections in (("casting", (outputs, casting, numbers)),
                          ("ufuncs", (functions, methods, at)), ("complex", (complex_edges,))):
    cases = CaseFile(subject)
    for section in sections:
        section(cases)
    cases.write()
