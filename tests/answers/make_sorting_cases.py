"""NumPy's answers to sorts, searches, scans, sets, quantiles and histograms, for
tests/array/sorting_test.cc and scan_test.cc."""
import numpy as np

from case_file import (BOOL, COMPLEX, DTYPES, FLOATS, REAL, SIGNED, UNSIGNED, CaseFile, Values)

SHAPES = [(1,), (7,), (3, 4), (2, 3, 4), (0,), (2, 0), (0, 3)]


def with_nans(a, rng):
    if a.dtype.kind == "c" and a.size > 4:
        flat = a.reshape(-1)
        for special in (complex(np.nan, 1), complex(1, np.nan), complex(np.nan, np.nan)):
            flat[rng.integers(0, flat.size)] = special
    return a


def axes_of(shape):
    return sorted({0, len(shape) - 1, -1})


def sorting(values):
    f = CaseFile("sorting")
    for dtype in DTYPES:
        for shape in SHAPES:
            for specials in (False, True):
                if specials and np.dtype(dtype).kind not in "fc":
                    continue
                a = values(dtype, shape, specials=specials)
                if specials:
                    a = with_nans(a, values.rng)
                for axis in axes_of(shape):
                    f.add("sort", [a], lambda x: np.sort(x, axis=axis), axis=axis)
                    f.add("argsort", [a], lambda x: np.argsort(x, axis=axis, kind="stable"),
                          axis=axis)
                f.add("sort_flat", [a], lambda x: np.sort(x, axis=None))
                f.add("argsort_flat", [a], lambda x: np.argsort(x, axis=None, kind="stable"))
        a = values(dtype, (3, 4))
        f.add("sort", [a], lambda x: np.sort(x, axis=2), axis=2)
        f.add("msort", [a], lambda x: np.sort(x, axis=0))
        f.add("sort_complex", [a], np.sort_complex)
        f.add("sort", [a[:1, 0].reshape(())], lambda x: np.sort(x), axis=-1)
        f.add("argsort", [a[:1, 0].reshape(())], lambda x: np.argsort(x), axis=-1)
        few = [np.asarray(values.rng.integers(0, 2, (3, 5))).astype(dtype) for _ in range(2)]
        for axis in (0, -1):
            f.add("lexsort", [*few, values("float32", (3, 5), 0, 1)],
                  lambda *k: np.lexsort(k, axis=axis), axis=axis)
        f.add("lexsort_rows", [few[0]], np.lexsort)
        f.add("partition_raises", [a], lambda x: np.partition(x, 4))
    f.add("lexsort", [np.zeros(3), np.zeros(4)], lambda *k: np.lexsort(k), axis=-1)
    f.add("lexsort", [np.array(3.0), np.array(4)], lambda *k: np.lexsort(k), axis=-1)
    return f


def searching(values):
    f = CaseFile("searching")
    for dtype in DTYPES:
        a = np.sort(with_nans(values(dtype, (9,), specials=True), values.rng))
        for v in (values(dtype, (2, 5), specials=True), values("float64", (4,), -4, 4, True),
                  values("int8", (3,)), a, values(dtype, (0,)), values(dtype, ())):
            for side in ("left", "right"):
                f.add("searchsorted", [a, v], lambda x, y: np.searchsorted(x, y, side), side=side)
        shuffled = values(dtype, (8,))
        order = np.argsort(shuffled, kind="stable")
        for sorter in (order, order.astype("int32"), order[:5], order.astype("float32")):
            f.add("searchsorted", [shuffled, values(dtype, (6,)), sorter],
                  lambda x, y, z: np.searchsorted(x, y, sorter=z), side="left")
        f.add("searchsorted", [a[:0], a], lambda x, y: np.searchsorted(x, y), side="left")
        bins = np.unique(values(dtype, (5,)))
        for right in (False, True):
            for b in (bins, bins[::-1], bins[:1], bins[:0], np.repeat(bins, 2)):
                f.add("digitize", [values(dtype, (3, 4), -4, 4, True), np.ascontiguousarray(b)],
                      lambda x, y: np.digitize(x, y, right), right=right)
    f.add("searchsorted", [np.zeros((2, 2)), np.zeros(2)], np.searchsorted, side="left")
    f.add("digitize", [np.zeros(2), np.zeros((2, 2))], np.digitize, right=False)
    return f


def scans(values):
    f = CaseFile("scans")
    for dtype in DTYPES:
        for shape in [(7,), (3, 4), (2, 1, 3), (0,), (0, 3), ()]:
            a = values(dtype, shape, -2, 2)
            for name in ("cumsum", "cumprod"):
                call = getattr(np, name)
                f.add(name, [a], call)
                for axis in axes_of(shape) if shape else ():
                    f.add(name, [a], lambda x: call(x, axis=axis), axis=axis)
            for name in ("cumulative_sum", "cumulative_prod"):
                call = getattr(np, name)
                for initial in (False, True):
                    f.add(name, [a], lambda x: call(x, include_initial=initial), initial=initial)
                    for axis in axes_of(shape)[:2] if shape else ():
                        f.add(name, [a], lambda x: call(x, axis=axis, include_initial=initial),
                              axis=axis, initial=initial)
        a = values(dtype, (4, 3), -2, 2)
        for to in ("bool", "int8", "int32", "uint16", "float16", "float32", "complex64"):
            if np.dtype(dtype).kind == "c" and to != "complex64":
                continue
            if np.dtype(dtype).kind == "f" and to == "uint16":
                continue  # what a negative number becomes is left open
            f.add("cumsum", [a], lambda x: np.cumsum(x, axis=1, dtype=to), axis=1, dtype=to)
            f.add("cumprod", [a], lambda x: np.cumprod(x, axis=0, dtype=to), axis=0, dtype=to)
        nans = with_nans(values(dtype, (3, 5), specials=dtype in COMPLEX), values.rng)
        if dtype in FLOATS:
            nans[1, 2] = nans[0, 0] = np.nan
        for axis in (0, 1):
            f.add("nancumsum", [nans], lambda x: np.nancumsum(x, axis=axis), axis=axis)
            f.add("nancumprod", [nans], lambda x: np.nancumprod(x, axis=axis), axis=axis)
        f.add("cumsum", [a], lambda x: np.cumsum(x, axis=2), axis=2)
    return f


def sets(values):
    f = CaseFile("sets")
    for dtype in DTYPES:
        for shape in [(12,), (3, 4), (0,), ()]:
            for specials in (False, True):
                a = values(dtype, shape, -2, 2)
                if np.dtype(dtype).kind in "fc":
                    a = np.asarray(np.round(a))
                    if specials and a.size > 4:
                        a = a.copy()
                        a.reshape(-1)[[1, 3]] = np.nan
                elif specials:
                    continue
                f.add("unique", [a], lambda x: np.unique(x))
                f.add("unique_full", [a], lambda x: np.unique(x, True, True, True))
                if np.dtype(dtype).kind != "c" or not specials:  # an order of its own
                    f.add("unique_full", [a],
                          lambda x: np.unique(x, True, True, True, equal_nan=False), equal_nan=False)
                    f.add("unique_all", [a], lambda x: tuple(np.unique_all(x)))
                    f.add("unique_counts", [a], lambda x: tuple(np.unique_counts(x)))
                    f.add("unique_inverse", [a], lambda x: tuple(np.unique_inverse(x)))
                    f.add("unique_values", [a], lambda x: np.sort(np.unique_values(x)))
                for other in (dtype, "int16") if shape != (3, 4) else ("float32",):
                    b = np.round(values(other, (5,), -2, 3)).astype(other)
                    for invert in (False, True):
                        f.add("isin", [a, b], lambda x, y: np.isin(x, y, invert=invert),
                              invert=invert)
                    f.add("isin", [a, b[:0]], np.isin, invert=False)
                    f.add("intersect1d", [a, b], np.intersect1d)
                    f.add("intersect1d_indices", [a, b],
                          lambda x, y: np.intersect1d(x, y, return_indices=True))
                    f.add("setdiff1d", [a, b], np.setdiff1d)
                    f.add("union1d", [a, b], np.union1d)
                    f.add("setxor1d", [a, b], np.setxor1d)
        for shape in ((6, 2), (3, 2, 3)):
            a = np.round(values(dtype, shape, 0, 1)).astype(dtype)
            for axis in (0, -1, 3):
                f.add("unique_axis", [a], lambda x: np.unique(x, True, True, True, axis=axis),
                      axis=axis)
        u, v = np.unique(np.round(values(dtype, (6,)))), np.unique(np.round(values(dtype, (6,))))
        for name in ("intersect1d", "setdiff1d", "setxor1d"):
            f.add(name, [u[::-1].copy(), v],
                  lambda x, y: getattr(np, name)(x, y, assume_unique=True), assume_unique=True)
    return f


METHODS = ["linear", "lower", "higher", "midpoint", "nearest", "hazen", "weibull",
           "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf", "inverted_cdf",
           "averaged_inverted_cdf", "closest_observation"]


def statistics(values):
    f = CaseFile("order_statistics")
    for dtype in DTYPES:
        for shape in [(1,), (6,), (7,), (3, 4), (2, 3, 5), (), (0,), (0, 3)]:
            for specials in (False, True):
                a = values(dtype, shape)
                if specials:
                    if np.dtype(dtype).kind != "f" or a.size < 5:
                        continue
                    a.reshape(-1)[[0, 3]] = np.nan
                for name in ("median", "nanmedian"):
                    call = getattr(np, name)
                    f.add(name, [a], call)
                    for axis in axes_of(shape)[:2] if shape else ():
                        f.add(name, [a], lambda x: call(x, axis=axis, keepdims=True), axis=axis,
                              keepdims=True)
                if dtype in COMPLEX or (not a.size and shape != (0,)):
                    continue
                for method in METHODS if shape == (6,) else METHODS[:1]:
                    if method != "linear" and dtype == "bool":
                        continue
                    for q in (0.0, 0.3, 0.5, 0.95, 1.0) if method == "linear" else (0.0, 0.35, 1.0):
                        f.add("quantile", [a, q], lambda x, y: np.quantile(x, y, method=method),
                              method=method)
                    axis = len(shape) - 1 if shape else None
                    if axis is None:
                        continue
                    q = np.array([0.25, 0.7])
                    f.add("quantile", [a, q],
                          lambda x, y: np.quantile(x, y, axis=axis, method=method), axis=axis,
                          method=method)
                    if specials:
                        f.add("nanquantile", [a, 0.4],
                              lambda x, y: np.nanquantile(x, y, axis=0, method=method), axis=0,
                              method=method)
                        f.add("nanquantile", [a, q],
                              lambda x, y: np.nanquantile(x, y, axis=axis, method=method,
                                                          keepdims=True), axis=axis,
                              method=method, keepdims=True)
                        f.add("nanpercentile", [a, 70.0],
                              lambda x, y: np.nanpercentile(x, y, method=method), method=method)
                if shape:
                    f.add("percentile", [a, 35.0], lambda x, y: np.percentile(x, y, axis=0), axis=0,
                          method="linear")
        a = values(dtype, (2, 3, 4))
        f.add("median", [a], lambda x: np.median(x, axis=(0, 2)), axes=(0, 2))
        if dtype not in COMPLEX + BOOL:
            f.add("quantile", [a, 0.6], lambda x, y: np.quantile(x, y, axis=(2, 1)), axes=(2, 1),
                  method="linear")
    # At shares that fall on an element, and weights.
    for dtype in REAL:
        for n in (4, 5, 8):
            a = values(dtype, (n,))
            for method in METHODS[-4:]:
                f.add("quantile", [a, np.array([0.125, 0.2, 0.25, 0.375, 0.5, 0.625, 0.8])],
                      lambda x, y: np.quantile(x, y, method=method), method=method)
    for dtype in REAL:
        a = values(dtype, (3, 6))
        of_all, of_axis = np.abs(values("float32", (3, 6))), np.array([0.0, 1, 2, 0, 0.5, 3])
        q = np.array([0.0, 0.3, 0.75, 1.0])
        for weights in (of_all, of_axis, of_axis.astype("int16")):
            f.add("weighted_quantile", [a, q, weights],
                  lambda x, y, w: np.quantile(x, y, axis=1, weights=w, method="inverted_cdf"), axis=1)
        if dtype in FLOATS:
            a[1, [2, 5]] = np.nan
            for name in ("quantile", "nanquantile"):
                f.add("weighted_" + name, [a, q, of_all],
                      lambda x, y, w: getattr(np, name)(x, y, axis=1, weights=w,
                                                        method="inverted_cdf"), axis=1)
    x = np.arange(5.0)
    f.add("weighted_quantile", [x, np.array([0.5]), np.arange(4.0)],
          lambda a, q, w: np.quantile(a, q, axis=0, weights=w, method="inverted_cdf"), axis=0)
    f.add("quantile", [x, 1.5], np.quantile, method="linear")
    f.add("percentile", [x, 101.0], np.percentile, method="linear")
    f.add("quantile", [x, 0.5], lambda a, q: np.quantile(a, q, method="none"), method="none")
    f.add("quantile", [x.astype("complex64"), 0.5], np.quantile, method="linear")
    all_nan = np.array([[np.nan, np.nan], [1, np.nan]], "float32")
    f.add("nanmedian", [all_nan], lambda a: np.nanmedian(a, axis=1), axis=1)
    f.add("nanquantile", [all_nan, 0.5], lambda a, q: np.nanquantile(a, q, axis=1), axis=1,
          method="linear")
    return f


def histograms(values):
    f = CaseFile("histograms")
    for dtype in BOOL + SIGNED + UNSIGNED:
        for shape in ((20,), (0,)):
            x = values(dtype, shape, 0, 6)
            f.add("bincount", [x], np.bincount)
            f.add("bincount", [x], lambda a: np.bincount(a, minlength=10), minlength=10)
            for to in ("float32", "int16", "float64"):
                f.add("bincount", [x, values(to, shape)], np.bincount)
    f.add("bincount", [np.zeros((2, 2), int)], np.bincount)
    f.add("bincount", [np.zeros(2)], np.bincount)
    f.add("bincount", [np.array([1, -1])], np.bincount)
    f.add("bincount", [np.array([1, 1]), np.ones(3)], np.bincount)
    f.add("bincount", [np.array([1, 1]), np.ones(2, "complex64")], np.bincount)
    f.add("bincount", [np.array([1, 1])], lambda a: np.bincount(a, minlength=-1), minlength=-1)
    for dtype in REAL:
        for shape in ((30,), (4, 5), (0,), ()):
            a = values(dtype, shape)
            for bins in (1, 10):
                if dtype != "float16":
                    f.add("histogram", [a], lambda x: np.histogram(x, bins), bins=bins)
                f.add("histogram", [a], lambda x: np.histogram(x, bins, range=(-2, 3)), bins=bins,
                      low=-2, high=3)
                f.add("histogram", [a], lambda x: np.histogram(x, bins, (0, 2), density=True),
                      bins=bins, low=0, high=2, density=True)
            for edges in (np.array([-2.0, -1, 0.5, 3]), np.array([0, 1, 1, 2]), np.array([2])):
                f.add("histogram_edges", [a, edges], np.histogram)
                for to in ("float32", "complex64", "int16"):
                    f.add("histogram_edges", [a, edges, values(to, shape)],
                          lambda x, b, w: np.histogram(x, b, weights=w))
            if dtype != "float16" and shape == (30,):
                f.add("histogram", [np.full_like(a, 3)], lambda x: np.histogram(x, 4), bins=4)
    nans = values("float32", (20,), specials=True)
    f.add("histogram", [nans], lambda x: np.histogram(x, 4, (-1, 1)), bins=4, low=-1, high=1)
    f.add("histogram", [nans], lambda x: np.histogram(x, 4, (1, -1)), bins=4, low=1, high=-1)
    f.add("histogram", [nans], lambda x: np.histogram(x, 0, (-1, 1)), bins=0, low=-1, high=1)
    f.add("histogram_edges", [nans, np.array([-1.0, 0, 1, np.inf])], np.histogram)
    x, y = values("float64", (40,)), values("float64", (40,))
    w = values("float32", (40,), 0, 2)
    for density in (False, True):
        f.add("histogram2d", [x, y], lambda a, b: np.histogram2d(a, b, 5, density=density), bins=5,
              density=density)
        f.add("histogram2d", [x, y, w],
              lambda a, b, c: np.histogram2d(a, b, 3, [[-2, 2], [-1, 3]], density, c), bins=3,
              density=density, ranged=True)
    return f


for make in (sorting, searching, scans, sets, statistics, histograms):
    make(Values(7)).write()
