"""Writes numpy_math.txt and numpy_statistics.txt: what NumPy's elementwise routines, reductions and
statistics answer.

    python tests/answers/make_math_cases.py

The rows of ops.def are in numpy_cases.txt; here are complex numbers, the routines made of rows, the
options, and everything that reduces.
"""
import numpy as np

from case_file import BOOL, COMPLEX, DTYPES, FLOATS, REAL, SIGNED, UNSIGNED, CaseFile, Values

cases = CaseFile("math")
values = Values(20261121)
INTEGERS = SIGNED + UNSIGNED
COMPLEX_FUNCTIONS = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos",
                     "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh",
                     "arccosh", "arctanh", "rint", "sign", "isnan", "isinf", "isfinite", "sinc"]
INF, NAN = np.inf, np.nan


def complex_functions():
    """Small, large and nearly real numbers, every quadrant, both sides of the branch cuts."""
    parts = [(-2.5, 0.75), (0.25, -3.0), (1e-3, 1e-3), (-0.999, 1e-4), (20.0, 30.0), (-30.0, -7.0),
             (2.0, 0.0), (2.0, -0.0), (-2.0, 0.0), (-2.0, -0.0), (0.0, 1.5), (-0.0, 1.5), (0.5, 0.0),
             (1.0, 1e-3), (0.6, 0.8), (1e15, -1e14), (0.0, 0.0)]
    for name in COMPLEX_FUNCTIONS:
        for dtype in COMPLEX:
            here = parts
            if name in ("exp", "exp2", "expm1", "sinh", "cosh", "sin", "cos", "tan", "tanh", "sinc"):
                here = [p for p in parts if abs(p[0]) < 1e6]
            if name == "sinc":  # overflows in different places
                here = [p for p in here if abs(p[1]) < 10]
            if name == "exp2":  # of huge angles only the magnitude is right in NumPy
                here = [p for p in here if abs(p[1]) < 10]
            x = np.array([complex(*p) for p in here], dtype)
            cases.add(name, [x], getattr(np, name))
            if name in ("sqrt", "exp", "log", "isnan", "isinf", "isfinite", "tanh"):
                special = [complex(INF, 1), complex(-INF, 1), complex(1, INF), complex(NAN, 1),
                           complex(1, NAN), complex(-INF, 0), complex(INF, 0)]
                cases.add(name, [np.array(special, dtype)], getattr(np, name))


def rounding():
    for dtype in DTYPES:
        x = values(dtype, (7,), -200, 200, specials=True)
        for decimals in (-2, -1, 0, 1, 2):
            if dtype == "bool" and decimals != 0:
                continue
            cases.add("round", [x], lambda a, n=decimals: np.round(a, n), decimals=decimals)
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 12.345, -0.04, 1e10])
    for dtype in ("float32", "float64"):
        for decimals in (-1, 0, 1, 2):
            cases.add("round", [x.astype(dtype)], lambda a, n=decimals: np.round(a, n),
                      decimals=decimals)


def parts_of_numbers():
    for dtype in DTYPES:
        x = values(dtype, (2, 4), -40, 40, specials=True)
        for name in ("real", "imag", "iscomplex", "isreal", "conj", "nan_to_num"):
            cases.add(name, [x], getattr(np, name))
        cases.add("angle", [x], np.angle)
        cases.add("angle", [x], lambda a: np.angle(a, deg=True), deg=1)
        if dtype != "float16":  # NumPy rounds pi * x to 16 bits
            x = np.nan_to_num(x, posinf=1, neginf=1) / 16 if np.dtype(dtype).kind == "f" else x
            cases.add("sinc", [x.astype(dtype)], np.sinc)
        x = values(dtype, (2, 4), -40, 40, specials=True)
        if np.dtype(dtype).kind in "fc":
            cases.add("nan_to_num", [x], lambda a: np.nan_to_num(a, nan=2, posinf=7, neginf=-3),
                      nan=2, posinf=7, neginf=-3)
            cases.add("nan_to_num", [x], lambda a: np.nan_to_num(a, posinf=7), posinf=7)
        if np.dtype(dtype).kind != "c":
            cases.add("modf", [x], np.modf)
            cases.add("fix", [x], np.fix)
    for dtype in REAL:
        x, y = values(dtype, (3, 1), -40, 40, True), values(dtype, (4,), -9, 9)
        cases.add("divmod", [x, y], np.divmod)
        cases.add("fmod", [x, y], np.fmod)
        cases.add("mod", [x, y], np.mod)


def integers():
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        x = np.array([info.min, info.max, 0, 1, 12, 18, info.max - 1, info.max // 3], dtype)
        y = values(dtype, (8,), 0, 40)
        for name in ("gcd", "lcm"):
            cases.add(name, [x, y], getattr(np, name))
            cases.add(name, [x, x], getattr(np, name))
        cases.add("bitwise_count", [x], np.bitwise_count)
        for name in ("add", "subtract", "multiply", "floor_divide", "remainder", "fmod", "power",
                     "left_shift", "right_shift"):
            shift = name.endswith("shift") or name == "power"
            z = np.array([0, 1, 2, 3, 7, 5, 1, 4] if shift else [3, 7, 5, 1, 2, 9, 100, 0], dtype)
            cases.add(name, [x, z], getattr(np, name))
            if np.dtype(dtype).kind == "i" and not shift:
                cases.add(name, [x, -z], getattr(np, name))
        for name in ("negative", "absolute", "sign", "invert", "square", "positive"):
            cases.add(name, [x], getattr(np, name))
        for name in ("isposinf", "isneginf"):
            cases.add(name, [x], getattr(np, name))
        cases.add("ldexp", [np.array([1.5, -0.75]), np.array([3, 5], dtype)], np.ldexp)
    for big in (2**53 + 1, 2**63 - 1, -1, 0):
        for other in (2**53, 2**63, 2**64 - 1, 2**63 - 1, 0):
            a, b = np.array([big], np.int64), np.array([other], np.uint64)
            for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
                cases.add(name, [a, b], getattr(np, name))
                cases.add(name, [b, a], getattr(np, name))


def floating():
    for dtype in BOOL + INTEGERS + FLOATS:
        x, y = values(dtype, (6,), -3, 3, True), values(dtype, (6,), -3, 3)
        for name in ("logaddexp2", "heaviside", "nextafter", "copysign"):
            cases.add(name, [x, y], getattr(np, name))
            cases.add(name, [y, x], getattr(np, name))
        for name in ("degrees", "radians", "isposinf", "isneginf"):
            cases.add(name, [x], getattr(np, name))
        cases.add("float_power", [abs(x) if dtype != "bool" else x, y], np.float_power)
    for dtype in FLOATS:
        info = np.finfo(dtype)
        x = np.array([0, 0, 1, 1, info.max, info.smallest_normal, -info.smallest_subnormal, NAN, 2,
                      INF], dtype)
        y = np.array([1, -1, 2, 0, INF, 0, 1, 1, NAN, 0], dtype)
        cases.add("nextafter", [x, y], np.nextafter)
        for equal_nan in (False, True):
            a = np.array([1, 1, 1, INF, INF, NAN, 0], dtype)
            b = np.array([1, 1.001, 1.2, INF, -INF, NAN, 1e-9], dtype)
            cases.add("isclose", [a, b],
                      lambda a, b, e=equal_nan: np.isclose(a, b, rtol=0.01, equal_nan=e),
                      equal_nan=equal_nan)
    for dtype in COMPLEX:
        cases.add("isclose", [values(dtype, (2, 3)), values(dtype, (3,))],
                  lambda a, b: np.isclose(a, b, rtol=0.01))
        cases.add("float_power", [values(dtype, (3,)), values(dtype, (3,))], np.float_power)
    for name in ("gcd", "bitwise_count", "invert"):
        x = values("float32", (3,))
        cases.add(name, [x, x] if name == "gcd" else [x], getattr(np, name))
    for name in ("logaddexp2", "fmod", "isposinf"):
        x = values("complex64", (3,))
        cases.add(name, [x] if name == "isposinf" else [x, x], getattr(np, name))


LAYOUTS = [((), None), ((6,), 0), ((2, 3, 2), None), ((2, 3, 2), 0), ((2, 3, 2), 1),
           ((2, 3, 2), -1), ((2, 3, 2), (0, 2)), ((0, 3), 0), ((3, 0), 0)]


def reductions():
    for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "count_nonzero", "sum", "prod",
                 "any", "all", "ptp", "mean"):
        for dtype in DTYPES:
            if dtype in COMPLEX and name in ("nanmax", "nanmin", "ptp"):
                continue  # NumPy orders them by their parts
            for number, (shape, axis) in enumerate(LAYOUTS):
                if (name in ("sum", "prod", "any", "all", "mean") and dtype not in COMPLEX
                        and number > 1):
                    continue
                x = values(dtype, shape, -2, 2, specials=name.startswith("nan"))
                if name.startswith("nan") and name not in ("nanmax", "nanmin"):
                    x = np.where(np.isinf(x), np.asarray(1, dtype), x)
                keepdims = number % 2 == 1
                f = getattr(np, name)
                cases.add(name, [x], lambda a, ax=axis, k=keepdims: f(a, axis=ax, keepdims=k)
                          if name != "ptp" else np.ptp(a, axis=ax, keepdims=k),
                          **axes_of(axis), keepdims=keepdims)
    for dtype in FLOATS + ["int32"]:
        for name in ("nanargmax", "nanargmin"):
            x = values(dtype, (3, 5), -9, 9, specials=True)
            if np.dtype(dtype).kind == "f":
                x[:, 2] = 4
            for axis in (None, 0, 1):
                if axis == 0 and np.isnan(x.astype(float)).all(axis=0).any():
                    continue
                cases.add(name, [x], lambda a, ax=axis: getattr(np, name)(a, axis=ax),
                          **axes_of(axis))


def axes_of(axis):
    return {} if axis is None else {"axis": axis}


def variances():
    for name in ("var", "std", "nanvar", "nanstd"):
        for which, dtype in enumerate(DTYPES):
            for number, (shape, axis) in enumerate(LAYOUTS):
                if (which + number) % 2 == 1 and number > 1:
                    continue
                x = values(dtype, shape, -3, 3, specials=name.startswith("nan"))
                if name.startswith("nan"):
                    x = np.where(np.isinf(x), np.asarray(1, dtype), x)
                ddof = (0, 1, 2)[number % 3]
                cases.add(name, [x], lambda a, ax=axis, d=ddof, k=number % 2 == 0:
                          getattr(np, name)(a, axis=ax, ddof=d, keepdims=k),
                          **axes_of(axis), ddof=ddof, keepdims=number % 2 == 0)
        # A spread that is small beside the mean.
        x = (10000 + np.arange(20) / 8).astype("float32").reshape(4, 5)
        cases.add(name, [x], lambda a: getattr(np, name)(a, axis=1), axis=1, ddof=0, keepdims=False)


def averages():
    for dtype in DTYPES:
        for weight in ("float32", "int16", "float64"):
            x, w = values(dtype, (3, 4), -3, 3), values(weight, (3, 4), 1, 4)
            for axis in (None, 0, 1):
                cases.add("average", [x, w], lambda a, b, ax=axis: list(map(np.asarray, np.average(
                    a, axis=ax, weights=b, returned=True))), **axes_of(axis))
            cases.add("average", [x, w[0]], lambda a, b: list(map(np.asarray, np.average(
                a, axis=1, weights=b, returned=True))), axis=1)
        cases.add("average", [x], lambda a: list(np.average(a, axis=0, returned=True)), axis=0)
    cases.add("average", [x, w[:2]], lambda a, b: np.average(a, axis=0, weights=b), axis=0)
    cases.add("average", [x, w[0, :3]], lambda a, b: np.average(a, axis=1, weights=b), axis=1)


def options():
    """initial, where and dtype of reductions, where and dtype of ufuncs."""
    mask = np.array([[True, False, True], [False, False, True]])
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float32", "complex64"):
        x = values(dtype, (2, 3), -3, 3)
        for axis in (None, 0, 1):
            for name in ("sum", "prod", "mean", "any", "all", "var", "std"):
                if name == "mean" and axis == 0:
                    continue  # a mean of nothing warns, and an integer's is of another dtype
                cases.add("where_" + name, [x, mask], lambda a, m, ax=axis:
                          getattr(np, name)(a, axis=ax, where=m), **axes_of(axis))
            for name in ("sum", "prod"):
                if dtype != "bool":
                    cases.add("initial_" + name, [x], lambda a, ax=axis:
                              getattr(np, name)(a, axis=ax, initial=2), **axes_of(axis))
            if dtype not in ("bool", "complex64"):
                for name in ("max", "min"):
                    cases.add("initial_" + name, [x], lambda a, ax=axis:
                              getattr(np, name)(a, axis=ax, initial=2), **axes_of(axis))
                    cases.add("where_" + name, [x, mask], lambda a, m, ax=axis:
                              getattr(np, name)(a, axis=ax, initial=2, where=m), **axes_of(axis),
                              initial=2)
    for name in ("max", "min"):
        cases.add("where_" + name, [x.real, mask], lambda a, m: getattr(np, name)(a, where=m))
        cases.add("initial_" + name, [np.zeros((0, 3), "int16")],
                  lambda a: getattr(np, name)(a, axis=0, initial=2), axis=0)
    for source in ("bool", "int8", "int64", "uint8", "float16", "float64", "complex64"):
        x = values(source, (3, 2), -3, 3)
        for dtype in ("int16", "float32", "float64", "complex128"):
            if np.dtype(source).kind == "c" and np.dtype(dtype).kind != "c":
                continue
            for name in ("sum", "prod", "mean"):
                if name == "mean" and dtype == "int16":
                    continue
                cases.add("dtype_" + name, [x], lambda a, d=dtype:
                          getattr(np, name)(a, axis=0, dtype=d), axis=0, dtype=dtype)
            for name in ("add", "multiply", "divide", "arctan2", "less"):
                if source == "bool" and name in ("divide", "arctan2"):
                    continue
                if name != "less":
                    cases.add("dtype_" + name, [x, x], lambda a, b, d=dtype:
                              getattr(np, name)(a, b, dtype=d), dtype=dtype)
    wide = np.array([300, -300, 70000], np.int64)
    cases.add("dtype_add", [wide, wide], lambda a, b: np.add(a, b, dtype="int8"), dtype="int8")
    cases.add("dtype_arctan2", [wide, wide], lambda a, b: np.arctan2(a, b, dtype="float32"),
              dtype="float32")
    for a, b in (((2, 3), (3,)), ((2, 3), (2, 1)), ((3,), (2, 3)), ((2,), (3,)), ((1, 1), ())):
        x, y = values("float32", a), values("float32", b)
        cases.add("array_equiv", [x, y], lambda p, q: np.asarray(np.array_equiv(p, q)))
        same = np.broadcast_to(x.ravel()[0], a), np.broadcast_to(x.ravel()[0], b)
        cases.add("array_equiv", [v.copy() for v in same],
                  lambda p, q: np.asarray(np.array_equiv(p, q)))


for section in (complex_functions, rounding, parts_of_numbers, integers, floating):
    section()
cases.write()
cases = CaseFile("statistics")
for section in (reductions, variances, averages, options):
    section()
cases.write()
