#!/usr/bin/env python3
"""Writes dtype_tables.txt: NumPy's own answers to every question about dtypes that the tests ask.

    python3 tests/answers/make_dtype_tables.py > tests/answers/dtype_tables.txt
"""
import itertools
import pathlib
import re
import warnings

import numpy as np

NAMES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
         "complex64 complex128").split()
OPS = pathlib.Path(__file__).parent.parent.parent / "rensa" / "core" / "ufuncs"
SCALARS = {"b": True, "i": 1, "f": 1.0, "c": 1j}
UNARY = ("negative positive absolute fabs sign square conjugate reciprocal exp log sqrt sin floor "
         "isnan signbit logical_not").split()
BINARY = ("add subtract multiply divide floor_divide remainder power maximum equal less logical_and "
          "bitwise_and left_shift hypot copysign").split()
REDUCTIONS = "sum prod mean max any argmax".split()

warnings.simplefilter("ignore")
UFUNCS = re.findall(r"^RENSA_UFUNC\((\w+),\s*[12]", "".join(p.read_text() for p in sorted(OPS.glob("*.def"))), re.M)
print(f"# NumPy {np.__version__}")
for a in NAMES:
    for b in NAMES:
        print("promote", a, b, np.promote_types(a, b))
        print("cast", a, b, int(np.can_cast(a, b, "same_kind")))
    for b, c in itertools.combinations_with_replacement(NAMES[NAMES.index(a):], 2):
        (result,) = {np.result_type(*order) for order in itertools.permutations((a, b, c))}
        print("promote3", a, b, c, result)
    for kind, value in SCALARS.items():
        print("scalar", kind, a, np.result_type(np.dtype(a), value))
    one = np.ones(1, a)
    for names, arguments in ((UNARY, (one,)), (BINARY, (one, one))):
        for name in names:
            try:
                print("ufunc", name, a, getattr(np, name)(*arguments).dtype)
            except TypeError:
                print("ufunc", name, a, "none")
    for name in REDUCTIONS:
        print("reduction", name, a, getattr(np, name)(one).dtype)
    print("names", a, np.dtype(a).char, np.dtype(a).str)
for name in UFUNCS:
    ufunc = getattr(np, name, None)
    if not isinstance(ufunc, np.ufunc):
        continue
    # Without long double, dates, objects and a second name for 64 bits.
    loops = [loop for loop in dict.fromkeys(ufunc.types) if not set(loop) & set("gGmMOqQ")]
    print("types", name, ufunc.identity, *loops)
