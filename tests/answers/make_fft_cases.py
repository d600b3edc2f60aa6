"""Writes what NumPy answers to numpy.fft (numpy_fft.txt)."""
import numpy as np

from case_file import DTYPES, CaseFile, Values

NORMS = ["backward", "ortho", "forward"]
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"]


def one(file, name, a, n=None, axis=-1, norm="backward"):
    attributes = {"axis": axis, "norm": norm, **({} if n is None else {"n": n})}
    file.add(name, [a], lambda x: getattr(np.fft, name)(x, n, axis, norm), **attributes)


def many(file, name, a, s=None, axes=None, norm="backward"):
    attributes = {"norm": norm, **({} if s is None else {"s": s}), **({} if axes is None else {"axes": axes})}
    call = getattr(np.fft, name)
    if axes is None and name.endswith("2"):
        file.add(name, [a], lambda x: call(x, s, norm=norm), **attributes)
    else:
        file.add(name, [a], lambda x: call(x, s, axes, norm), **attributes)


def main():
    file, v = CaseFile("fft"), Values(20261122)
    for name in ONE:
        for d in DTYPES:
            one(file, name, v(d, (6,)))
        for n in [1, 2, 3, 4, 7, 12, 17]:
            one(file, name, v("float64" if name in ("rfft", "ihfft") else "complex128", (n,)))
        for i, n in enumerate((None, 2, 3, 4, 7, 1, 0)):
            for j, axis in enumerate((0, 1, -1)):
                one(file, name, v("float32", (4, 2, 3)), n, axis, NORMS[(i + j) % 3])
        one(file, name, v("float64", (2, 3)), None, 2)
        one(file, name, v("float64", ()))
        one(file, name, v("float64", (3, 0)))
        one(file, name, v("float64", (0, 3)))
        one(file, name, v("float64", (0,)), 4)
    for name in MANY:
        for d in ("int16", "float16", "float32", "float64", "complex64", "complex128"):
            many(file, name, v(d, (3, 4)))
        many(file, name, v("float32", (2, 3, 5)))
        x = v("float32", (2, 4, 3)) if name.startswith("rfft") else v("complex64", (2, 4, 3))
        for i, norm in enumerate(NORMS):
            for s, axes in [(None, (0, 1)), (None, (1, 0)), (None, (0, 2)), ((2, 6), (0, 2)), ((5, 3), (1, 2)), ((4, -1), (1, 2)),
                            (None, (0, 1, 2)), ((2, 3, 4), (2, 0, 1)), ((3, 3), None)][i::2]:
                many(file, name, x, s, axes, norm)
        many(file, name, x, None, (0, 3))
        many(file, name, x, (2,), (0, 1))
        many(file, name, x, (2, 0), (0, 1))
        many(file, name, x, None, ())
        many(file, name, x, None, (1, 1))
        many(file, name, v("float64", (0, 3)))
        many(file, name, v("float64", (2, 0, 3, 4)))
        many(file, name, v("float64", (3,)))
    for n in (1, 2, 5, 8):
        for d in (1.0, 0.25):
            file.add("fftfreq", [np.zeros(1)], lambda _: np.fft.fftfreq(n, d), n=n, d=d)
            file.add("rfftfreq", [np.zeros(1)], lambda _: np.fft.rfftfreq(n, d), n=n, d=d)
    for name in ("fftshift", "ifftshift"):
        for shape in [(1,), (4,), (5,), (3, 4), (2, 0, 3), (2, 3, 5)]:
            file.add(name, [v("int32", shape)], getattr(np.fft, name))
            for axes in [(0,), (-1,), (0, 1)]:
                file.add(name, [v("float32", shape)], lambda a: getattr(np.fft, name)(a, axes), axes=axes)
    file.write()


if __name__ == "__main__":
    main()
