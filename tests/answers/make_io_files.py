#!/usr/bin/env python3
"""Writes files as NumPy writes them: numpy_arrays.npz, numpy_savetxt.txt and numpy_savetxt_complex.txt."""
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).parent


def main():
    base = np.arange(6).reshape(2, 3)
    arrays = {
        "bool": base % 2 == 0,
        "big_endian": base.astype(">f4"),
        "big_complex": (base * (1 - 2j)).astype(">c16"),
        "fortran": np.asfortranarray(base.astype(np.int16)),
        "empty": np.zeros((2, 0), np.float16),
        "scalar": np.array(7, np.uint64),
    }
    for code in "bhilBHILefdFD":
        arrays["dtype_" + np.dtype(code).name] = base.astype(code)
    np.savez_compressed(FOLDER / "numpy_arrays.npz", **arrays)
    values = np.array([[1.5, -2, 3e300], [np.nan, np.inf, 0]])
    np.savetxt(FOLDER / "numpy_savetxt.txt", values, fmt="%10.4g", delimiter=",", header="a\nb", footer="end")
    np.savetxt(FOLDER / "numpy_savetxt_complex.txt", np.array([1 + 2j, -3.5 - 1e-3j]))


if __name__ == "__main__":
    main()
