"""What the generators of tests/answers share: a file of routine calls with NumPy's answers, which
tests/array/replay.h reads. One line a call:

    routine key=value ... | operand ... | result ...

An array is dtype:shape:bytes in hex (C order, little-endian), a number is a letter of its kind and
its text; "raises" as the result says that NumPy turns the call down.
"""
import pathlib
import warnings

import numpy as np

HERE = pathlib.Path(__file__).parent
BOOL = ["bool"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = SIGNED + UNSIGNED + FLOATS
DTYPES = BOOL + REAL + COMPLEX


def text_of(a):
    if isinstance(a, (bool, int, float)):
        return f"b{int(a)}" if isinstance(a, bool) else f"i{a}" if isinstance(a, int) else f"f{a!r}"
    a = np.asarray(a)
    shape = ",".join(map(str, a.shape)) or "-"
    return f"{a.dtype.name}:{shape}:{np.ascontiguousarray(a).tobytes().hex() or '-'}"


def attribute(value):
    if isinstance(value, (list, tuple)):
        return ",".join(map(attribute, value)) or "-"
    return str(int(value)) if isinstance(value, bool) else str(value)


class Values:
    """Operands from one seed, so that a generator writes the same file each time."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, dtype, shape, low=-3, high=3, specials=False):
        """Numbers in [low, high] (not below 0 for unsigned), some NaN and infinite if asked."""
        kind, n = np.dtype(dtype).kind, int(np.prod(shape))
        if kind == "b":
            v = self.rng.integers(0, 2, n)
        elif kind in "iu":
            v = self.rng.integers(max(low, 0) if kind == "u" else low, high + 1, n)
        elif kind == "f":
            v = self.rng.uniform(low, high, n)
            if specials and n > 3:
                for special in (np.nan, np.inf, -np.inf, -0.0):
                    v[self.rng.integers(0, n)] = special
        else:
            v = self.rng.uniform(low, high, n) + 1j * self.rng.uniform(low, high, n)
        return np.asarray(v).astype(dtype).reshape(shape)


class CaseFile:
    def __init__(self, subject):
        self.path, self.lines = HERE / f"numpy_{subject}.txt", []

    def add(self, routine, operands, call, **attributes):
        """The answer of `call(*operands)`: an array, several, or that it raises."""
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            try:
                results = call(*operands)
                results = results if isinstance(results, (tuple, list)) else [results]
                results = " ".join(map(text_of, map(np.asarray, results)))
            except (ValueError, TypeError, IndexError, OverflowError, np.linalg.LinAlgError):
                results = "raises"
        head = " ".join([routine, *(f"{k}={attribute(v)}" for k, v in attributes.items())])
        self.lines.append(f"{head} | {' '.join(map(text_of, operands))} | {results}")

    def write(self):
        self.path.write_text("\n".join(self.lines) + "\n")
        print(len(self.lines), "cases in", self.path.name)
