"""Writes what NumPy answers, for the tests of rensa/array to compare with.

    python tests/answers/make_numpy_cases.py

    numpy_cases.txt  one line a case: operation, arguments, the result, the operands; an array is
                     dtype:shape:bytes in hex (C order, little-endian), a weak number is a letter of
                     its kind and its text
    numpy_reprs.txt  an array, then numpy.array_repr of it, then a line "."
    philox.txt       the first numbers of the generators, from a Philox written here
"""
import pathlib
import re
import warnings

import numpy as np

HERE = pathlib.Path(__file__).parent
OPS = HERE.parent.parent / "rensa" / "core" / "ufuncs"
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128"]
KINDS = {"any": "biufc", "number": "biufc", "arithmetic": "iufc", "real": "biuf",
         "real_bool": "biuf", "doubles": "biufc", "integer": "iu",
         "floating": "biuf", "analytic": "biufc", "real_predicate": "biuf", "bit_count": "biu",
         "division": "biufc", "magnitude": "biufc", "equality": "biufc",
         "comparison": "biuf", "predicate": "biufc", "bitwise": "biu", "shift": "biu",
         "where": "biufc"}
rng = np.random.default_rng(20260101)


def text_of(a):
    a = np.asarray(a)
    shape = ",".join(map(str, a.shape)) or "-"
    return f"{a.dtype.name}:{shape}:{np.ascontiguousarray(a).tobytes().hex() or '-'}"


def number(v):
    if isinstance(v, bool):
        return f"b{int(v)}"
    return f"i{v}" if isinstance(v, int) else f"f{v!r}"


def values(op, dtype, shape, which):
    """Operand number `which` of `op`: inside its domain, with the odd special value."""
    n = int(np.prod(shape))
    kind = np.dtype(dtype).kind
    if kind == "b":
        v = rng.integers(0, 2, n)
    elif kind in "iu":
        info = np.iinfo(dtype)
        low, high = max(info.min, -100), min(info.max, 100)
        if op == "power":
            low, high = (0, 5) if which else (max(info.min, -6), 7)
        elif op.endswith("_shift"):
            low, high = (0, 9) if which else (low, high)
        elif op == "reciprocal":
            low = 1
        elif op in ("arcsin", "arccos", "arctanh", "exp", "exp2", "expm1", "sinh", "cosh", "tan"):
            low, high = max(low, -1), 2
        elif op in ("log", "log2", "log10", "sqrt", "log1p", "arccosh"):
            low = 1
        v = rng.integers(low, high, n).astype(dtype)
        if n > 4 and op not in ("power", "left_shift", "right_shift", "reciprocal") and low < 0:
            v[0] = info.min
        elif n > 4 and op in ("add", "subtract", "multiply", "maximum", "less", "negative"):
            v[0] = info.max
    elif kind == "f":
        v = rng.uniform(-3, 3, n)
        if op in ("arcsin", "arccos", "arctanh"):
            v /= 3.1
        elif op in ("log", "log2", "log10", "sqrt"):
            v = np.abs(v) + 0.01
        elif op == "arccosh":
            v = np.abs(v) + 1
        elif op == "log1p":
            v = np.abs(v) - 0.9
        elif op == "power" and which == 0:
            v = np.abs(v)
        v = v.astype(dtype)
        if n > 4:
            specials = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -2.5]
            v[rng.integers(0, n)] = specials[rng.integers(0, 7)]
            v[rng.integers(0, n)] = specials[rng.integers(0, 7)]
    else:
        v = rng.uniform(-2, 2, n) + 1j * rng.uniform(-2, 2, n)
    return np.asarray(v).astype(dtype).reshape(shape)


def rows():
    pattern = r"^RENSA_UFUNC\((\w+),\s*(\d),\s*(\w+),"
    for name, inputs, rule in re.findall(pattern, "".join(p.read_text() for p in sorted(OPS.glob("*.def"))), re.M):
        if hasattr(np, name) and name != "ldexp":  # make_ufunc_cases.py
            yield name, int(inputs), rule


def takes(name, rule, dtypes):
    return np.result_type(*dtypes).kind in KINDS[rule]


def elementwise_cases():
    # Rows whose dtype pairs are run in full stand for their rules.
    full = {"add", "less", "divide", "bitwise_and", "arctan2"}
    for name, inputs, rule in rows():
        f = getattr(np, name)
        for a in DTYPES:
            if inputs == 1 and takes(name, rule, [a]):
                x = values(name, a, (7,), 0)
                yield name, f(x), [text_of(x)]
            if inputs == 3 and takes(name, rule, [a]):
                x = values(name, "bool" if name == "where" else a, (2, 3), 0)
                y, z = values(name, a, (3,), 1), values(name, a, (2, 1), 2)
                yield name, f(x, y, z), [text_of(x), text_of(y), text_of(z)]
            if inputs != 2:
                continue
            for b in DTYPES if name in full else [a, DTYPES[rng.integers(0, len(DTYPES))]]:
                common = np.result_type(a, b)
                mixed = {np.dtype(a).kind, np.dtype(b).kind} == {"i", "u"}
                if not takes(name, rule, [a, b]) or (mixed and common.kind == "f"):
                    continue  # int64 with uint64: NumPy compares those exactly, and shifts neither
                x, y = values(name, a, (2, 3), 0), values(name, b, (3,) if a != b else (2, 3), 1)
                if common.kind == "c":  # what infinities and NaN give is left open
                    x, y = (np.nan_to_num(v, posinf=2, neginf=-2).astype(v.dtype) for v in (x, y))
                yield name, f(x, y), [text_of(x), text_of(y)]
            yield from number_cases(name, rule, f, a)


def number_cases(name, rule, f, a):
    """NEP 50: numbers beside an array are weak."""
    if name not in ("add", "multiply", "maximum", "less", "divide", "power", "equal"):
        return
    for v in (True, 2, 0.1):
        if not takes(name, rule, [a, type(v)]) or np.dtype(a).kind == "c":
            continue
        if name == "power" and (np.dtype(a).kind == "b" or isinstance(v, bool)):
            continue
        x = values(name, a, (3,), 0)
        yield name, f(x, v), [text_of(x), number(v)]
        if name != "power":
            yield name, f(v, x), [number(v), text_of(x)]


def cast_cases():
    for a in DTYPES:
        x = values("astype", a, (5,), 0)
        if np.dtype(a).kind in "fc":
            x = np.asarray([0, 1.5, -2.75, 100, 7], a)
        if np.dtype(a).kind in "i":
            x = np.abs(x // 2)
        for b in DTYPES:
            negative = np.dtype(a).kind in "fc" and np.dtype(b).kind == "u"
            y = abs(x).astype(a) if negative else x
            with warnings.catch_warnings(action="ignore"):  # complex to real
                result = y.astype(b)
            yield f"astype/{b}", result, [text_of(y)]


def reduction_cases():
    layouts = [((), None, 0), ((6,), 0, 0), ((2, 3, 2), None, 0), ((2, 3, 2), None, 1),
               ((2, 3, 2), 0, 0), ((2, 3, 2), 1, 1), ((2, 3, 2), -1, 0), ((2, 3, 2), (0, 2), 0),
               ((2, 3, 2), (1, 2), 1), ((5, 1), 1, 0)]
    for name in ("sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin"):
        for d in DTYPES:
            if np.dtype(d).kind == "c" and name not in ("sum", "prod", "mean"):
                continue
            for shape, axis, keepdims in layouts:
                if name.startswith("arg") and isinstance(axis, tuple):
                    continue
                x = values("prod" if name == "prod" else "reduce", d, shape, 0)
                if np.dtype(d).kind == "f":
                    finite = np.nan_to_num(x, nan=0.5, posinf=2, neginf=-2)
                    x = finite.astype(d) if name in ("sum", "prod", "mean") else x
                result = getattr(np, name)(x, axis=axis, keepdims=bool(keepdims))
                axes = "all" if axis is None else ",".join(map(str, np.atleast_1d(axis)))
                yield f"{name}/{axes}/{keepdims}", result, [text_of(x)]


def product_cases():
    shapes = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 3), (3, 1)),
              ((2, 2, 3), (3, 4)), ((2, 3), (2, 3, 2)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 0), (0, 3)),
              ((0, 2), (2, 3))]
    for d in DTYPES:
        for a, b in shapes:
            x, y = (np.clip(np.nan_to_num(values("matmul", d, s, 0)), -9, 9).astype(d)
                    if np.dtype(d).kind == "f" else values("matmul", d, s, 0) for s in (a, b))
            yield "matmul", x @ y, [text_of(x), text_of(y)]
            if d in ("float32", "int64"):
                yield "dot", np.dot(x, y), [text_of(x), text_of(y)]
    for a, b in (("float32", "float64"), ("int32", "float32"), ("float16", "float32")):
        x, y = values("power", a, (2, 3), 1), values("power", b, (3, 2), 1)
        x, y = np.nan_to_num(x, posinf=1, neginf=1), np.nan_to_num(y, posinf=1, neginf=1)
        yield "matmul", x @ y, [text_of(x), text_of(y)]


def write_cases():
    lines = []
    with np.errstate(all="ignore"):
        for cases in (elementwise_cases, cast_cases, reduction_cases, product_cases):
            for name, result, operands in cases():
                lines.append(" ".join([name, text_of(result), *operands]))
    (HERE / "numpy_cases.txt").write_text("\n".join(lines) + "\n")
    return len(lines)


def write_reprs():
    arrays = [np.arange(6, dtype="float32").reshape(2, 3), np.arange(5), np.asarray(3.5),
              np.asarray(7), np.asarray(True), np.array([True, False]), np.zeros((0,), "float32"),
              np.zeros((2, 0, 3)), np.array([1.5, 22.25, -3]), np.array([1e-5, 1.0]),
              np.array([1e10, 1.0]), np.array([np.nan, np.inf, -np.inf, 1.0]),
              np.array([np.nan, np.nan]), np.array([-np.inf, 0.25], "float16"),
              np.array([0.1, 0.2, 0.3], "float16"), np.array([2049.0, 1.0], "float16"),
              np.array([1 / 3, 2 / 3, 1e-3]), np.array([1 / 3, 2 / 3], "float32"),
              np.array([99999992.0, 1.0], "float32"), np.array([123456.0, 999.5], "float32"),
              np.array([1e6, 2.0], "float32"), np.array([12345678.0, 12345.5]),
              np.array([0.0, -0.0]), np.array([1e-300, 1e300]), np.array([5e-324]),
              np.array([1 + 2j, -0.5j, 1e-9 + 3j]), np.array([np.nan + 1j, 2 - np.inf * 1j]),
              np.array([1 + 2j], "complex64"), np.arange(24).reshape(2, 3, 4),
              np.arange(24, dtype="float64").reshape(2, 3, 2, 2) / 7, np.arange(60),
              np.arange(100, dtype="float32") / 3, np.arange(1001), np.arange(2000.0).reshape(20, 100),
              np.arange(3000, dtype="float32").reshape(10, 10, 30) / 9, np.arange(1200).reshape(4, 300),
              np.array([-128, 127], "int8"), np.array([2**64 - 1, 0], "uint64"),
              np.array([[1000000, -5], [3, 4]]), np.array([[0.001, 1000.0], [3, 4]]),
              np.array([0.5] * 30) + np.arange(30) * 1e-8, np.array([[True], [False]]),
              np.array([100.0, 0.1]), np.array([0.09999999, 100.5, 1.0])]
    for d in ("float16", "float32", "float64"):
        for scale in (1e-4, 1e-2, 1, 30, 1000):
            arrays.append((rng.normal(size=(3, 4)) * scale).astype(d))
    text = "".join(f"{text_of(a)}\n{np.array_repr(a)}\n.\n" for a in arrays)
    (HERE / "numpy_reprs.txt").write_text(text)
    return len(arrays)


def philox(seed, counter):
    """Philox4x32-10 of Salmon et al. 2011, in Python's integers."""
    c = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def write_philox():
    # The known answer of the authors' Random123 for counter and key 0.
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    lines = []
    for seed in (0, 1, 12345, 2**63 + 7):
        words = sum((philox(seed, i) for i in range(4)), [])
        singles = np.array([(w >> 8) * 2.0**-24 for w in words], "float32")
        doubles = np.array([((h >> 5) * 2.0**26 + (l >> 6)) * 2.0**-53
                            for h, l in zip(words[::2], words[1::2])])
        integers = np.array([(int(w) * 1000 >> 32) - 500 for w in words])
        lines += [f"{seed} uniform {text_of(singles)}", f"{seed} uniform {text_of(doubles)}",
                  f"{seed} randint {text_of(integers)}"]
    (HERE / "philox.txt").write_text("\n".join(lines) + "\n")
    return len(lines)


if __name__ == "__main__":
    print(write_cases(), "cases,", write_reprs(), "reprs,", write_philox(), "lines of random numbers")
