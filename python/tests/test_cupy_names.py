"""rensa.xp's names beside the standard's, as NumPy has them, and what `cupy` has under rensa.compat."""

import io
import pickle
import unittest

import numpy as np
import rensa
import rensa.compat
from rensa import xp

A = np.random.RandomState(0).rand(4, 6).round(2)
B = np.random.RandomState(1).randint(-5, 5, (4, 6))
ROW = B[0]


class Names(unittest.TestCase):
    def same(self, function, *args, **kwargs):
        """One call by both libraries; arrays of NumPy's among the arguments are given to ours as ours."""
        name, place, ours = function, np, xp
        for part in name.split(".")[:-1]:
            place, ours = getattr(place, part), getattr(ours, part)
        name = name.split(".")[-1]

        def of(value):
            if isinstance(value, (list, tuple)):
                return type(value)(of(v) for v in value)
            return xp.asarray(value) if isinstance(value, np.ndarray) else value

        expected = getattr(place, name)(*args, **kwargs)
        result = getattr(ours, name)(*of(args), **{key: of(value) for key, value in kwargs.items()})
        self.compare(result, expected, function)

    def compare(self, result, expected, what):
        if isinstance(expected, (list, tuple)):
            self.assertEqual(len(result), len(expected), what)
            for a, b in zip(result, expected):
                self.compare(a, b, what)
            return
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-7, atol=1e-12, err_msg=what)
        if isinstance(result, xp.ndarray) and isinstance(expected, np.ndarray):
            self.assertEqual(str(result.dtype), str(expected.dtype), what)

    def test_orders_and_sets(self):
        self.same("lexsort", (ROW, A[0]))
        self.same("digitize", A, np.array([0.2, 0.5]))
        self.same("argwhere", B), self.same("flatnonzero", B), self.same("extract", B > 0, B)
        for name in ("setdiff1d", "setxor1d", "union1d", "intersect1d"):
            self.same(name, B[0], B[1])
        self.same("isin", B, ROW, invert=True), self.same("sort_complex", ROW)
        self.same("searchsorted", np.sort(A[0]), A[1], side="right")
        self.assertEqual(xp.partition(xp.asarray(ROW), 2)[2].item(), np.sort(ROW)[2])
        descending = xp.sort(xp.asarray(A), axis=0, descending=True)
        np.testing.assert_array_equal(descending, -np.sort(-A, axis=0))

    def test_indices(self):
        for name in ("tril_indices", "triu_indices"):
            self.same(name, 4, 1, 5), self.same(name + "_from", A)
        self.same("diag_indices", 3), self.same("indices", (2, 3)), self.same("ix_", ROW > 0, np.array([1, 2]))
        self.same("unravel_index", np.array([1, 5, 7]), (3, 4), order="F")
        self.same("ravel_multi_index", (np.array([1, 2]), np.array([0, 3])), (3, 4))
        self.same("diagonal", A, 1), self.same("trace", B, dtype="float32")
        self.same("choose", np.array([0, 1, 1]), [np.arange(3), np.arange(3) * 10])
        self.same("compress", [True, False, True], A, axis=0)
        self.same("select", [B > 2, B < 0], [B, -B], 7)
        self.same("take_along_axis", B, np.argsort(B, axis=1), 1)

    def test_writes(self):
        for name, args in (("put", ([1, 3], [7, 8])), ("place", (B > 0, np.array([1, 2]))), ("putmask", (B > 0, B * 2)),
                           ("fill_diagonal", (9,)), ("copyto", (B[0],))):
            ours, theirs = xp.array(B), B.copy()
            getattr(xp, name)(ours, *args), getattr(np, name)(theirs, *args)
            np.testing.assert_array_equal(ours, theirs, name)
        ours = xp.zeros(4)
        ours.scatter_add(xp.asarray([0, 0, 2]), 1.5)
        xp.maximum.at(ours, xp.asarray([1, 1]), xp.asarray([3.0, 2.0]))
        self.assertEqual(ours.tolist(), [3, 3, 1.5, 0])
        ours[1] = 2.5
        counts = xp.zeros(2, "int32")
        counts[0] = 3.7  # as NumPy's, in whatever way
        self.assertEqual(counts.tolist(), [3, 0])

    def test_rearranging(self):
        self.same("delete", A, [0, 2], axis=1), self.same("delete", A, slice(1, 3), axis=0)
        self.same("insert", ROW, 2, np.array(9)), self.same("resize", A, (3, 9)), self.same("rollaxis", A, 1)
        self.same("trim_zeros", np.array([0, 1, 2, 0])), self.same("vander", ROW, 3), self.same("tri", 3, 4, -1)
        self.same("hsplit", A, 2), self.same("vsplit", A, [1, 3]), self.same("column_stack", (ROW, A[0]))
        self.same("atleast_2d", ROW), self.same("repeat", ROW, np.array([1, 0, 2, 1, 1, 3]))
        self.same("broadcast_shapes", (3, 1), (1, 4)), self.same("asfortranarray", A)
        self.same("lib.stride_tricks.sliding_window_view", ROW, 3)
        self.assertTrue(xp.shares_memory(a := xp.asarray(A), a[1:])), self.assertFalse(xp.isfortran(a))
        self.assertEqual(xp.broadcast(xp.ones((3, 1)), xp.ones(4)).shape, (3, 4))

    def test_elementwise(self):
        for name in ("modf", "frexp", "sinc", "i0", "angle", "isreal"):
            self.same(name, A)
        self.same("divmod", B, 3), self.same("around", A, 1), self.same("unwrap", np.array([0, 3, 7, 1.0]))
        self.same("nan_to_num", np.array([np.nan, np.inf, 1]), nan=2.0, posinf=3.0)
        self.same("packbits", B > 0), self.same("unpackbits", np.array([7, 200], "uint8"))
        self.assertEqual(xp.binary_repr(5, 8), "00000101")
        quotient, rest = divmod(xp.asarray(B), 3)
        self.compare((quotient, rest), divmod(B, 3), "divmod()")
        self.same("add.reduceat", np.arange(8), np.array([0, 4, 1]))

    def test_polynomials(self):
        self.same("polyval", ROW, A), self.same("polyadd", ROW, np.array([1, 2])), self.same("polyint", A[0], 2)
        self.same("polyfit", np.arange(6.0), A[0], 2)
        ours, theirs = xp.poly1d(xp.asarray([1.0, -3, 2])), np.poly1d([1.0, -3, 2])
        self.compare(ours(xp.asarray(A)), theirs(A), "poly1d()")
        self.compare((ours * ours).coeffs, (theirs * theirs).coeffs, "poly1d *")
        self.compare(xp.sort_complex(ours.roots), np.sort_complex(theirs.roots), "poly1d.roots")

    def test_calculus_and_signals(self):
        self.same("gradient", A, axis=1), self.same("ediff1d", ROW, to_end=np.array([9]))
        self.same("trapezoid", A, dx=0.5)
        self.same("diff", A, prepend=np.zeros((4, 1))), self.same("cross", A[:, :3], A[:, 3:])
        self.same("convolve", ROW, A[0][:3], "same"), self.same("correlate", ROW, ROW, "full")
        self.same("interp", A[0], np.array([0.0, 0.5, 1]), np.array([1.0, 0, 3]))
        self.same("hanning", 7), self.same("kaiser", 7, 3.0)

    def test_statistics(self):
        gaps = np.where(A > 0.8, np.nan, A)
        for name in ("nanmax", "nanmin", "nanmedian", "nanvar", "nanstd", "nanargmax"):
            self.same(name, gaps, axis=1)
        self.same("cov", A), self.same("corrcoef", A), self.same("nanpercentile", gaps, [10, 50], axis=1)
        self.same("average", A, axis=0, weights=np.arange(4.0), returned=True)
        self.same("histogram", A, bins=5, range=(0, 1)), self.same("histogram2d", A[0], A[1], bins=4)
        self.same("quantile", A, 0.3, method="lower"), self.same("var", A, axis=1, where=B > 0)
        out = xp.empty(6)
        self.assertIs(xp.sum(xp.asarray(A), axis=0, out=out), out)  # what is given is what comes back

    def test_linear_algebra(self):
        a, b = A @ A.T + np.eye(4), A[:, 0]
        self.same("linalg.cond", a), self.same("linalg.multi_dot", [A, A.T, a]), self.same("linalg.pinv", A)
        self.same("linalg.tensorinv", a.reshape(2, 2, 2, 2)), self.same("linalg.matrix_rank", A, tol=1e-3)
        self.same("einsum", "ij,j->i", a, b), self.same("einsum", a, [0, 1], b, [1], [0])
        x, residuals, rank, s = xp.linalg.lstsq(A, b)
        self.compare((x, rank, s), [np.linalg.lstsq(A, b, rcond=None)[i] for i in (0, 2, 3)], "lstsq")
        with self.assertRaises(np.linalg.LinAlgError):
            xp.linalg.inv(xp.zeros((2, 2)))
        with self.assertRaises(np.linalg.LinAlgError):
            xp.linalg.inv(xp.zeros((2, 3)))

    def test_ranges_and_grids(self):
        self.same("linspace", np.array([0.0, 1]), np.array([2.0, 4]), 3, axis=1)
        self.same("linspace", 0, 1, 5, retstep=True)
        self.same("logspace", 0, 2, 3), self.same("geomspace", 1, 8, 4), self.same("identity", 3)
        self.same("meshgrid", ROW, A[0], indexing="ij", sparse=True)
        self.compare(xp.mgrid[0:3, 0:1:3j], np.mgrid[0:3, 0:1:3j], "mgrid")
        self.compare(xp.ogrid[0:3, 1:3], np.ogrid[0:3, 1:3], "ogrid")
        self.compare(xp.r_[xp.asarray(ROW), 0, 1:3], np.r_[ROW, 0, 1:3], "r_")
        self.compare(xp.c_[xp.asarray(ROW), xp.asarray(ROW)], np.c_[ROW, ROW], "c_")

    def test_files_and_functions(self):
        a = xp.asarray(A)
        opened = io.BytesIO()
        a.tofile(opened)
        np.testing.assert_array_equal(xp.frombuffer(opened.getvalue()).reshape(4, 6), A)
        np.testing.assert_array_equal(xp.loadtxt(io.StringIO("1 2\n3 4")), [[1, 2], [3, 4]])
        np.testing.assert_array_equal(xp.fromiter((i * i for i in range(4)), int), [0, 1, 4, 9])
        self.compare(xp.apply_along_axis(lambda row: row.max(), 1, a), A.max(axis=1), "apply_along_axis")
        of = [lambda i, j: i + j, (2, 3)]
        self.compare(xp.fromfunction(*of), np.fromfunction(*of), "fromfunction")
        np.testing.assert_array_equal(pickle.loads(a.dumps()), A)


class Arrays(unittest.TestCase):
    def test_flags_and_parts(self):
        a = xp.asarray(A)
        for view in (a, a.T, a[:, ::2], a[1]):
            theirs = np.asarray(view).flags
            self.assertEqual(view.flags.c_contiguous, theirs.c_contiguous)
            self.assertEqual(view.flags.f_contiguous, theirs.f_contiguous)
        self.assertTrue(xp.zeros(3).flags.owndata), self.assertFalse(a[1:].flags["OWNDATA"])
        z = xp.zeros(3, "complex64")
        z.real, z.imag = 1, xp.arange(3)
        self.assertEqual(z.tolist(), [1, 1 + 1j, 1 + 2j])
        z.shape = (3, 1)
        self.assertEqual(z.shape, (3, 1))

    def test_orders(self):
        a = xp.array(A, order="F")
        self.assertTrue(a.flags.f_contiguous), self.assertTrue(xp.asarray(a, order="C").flags.c_contiguous)
        self.assertEqual(a.tobytes("F"), A.tobytes("F")), self.assertEqual(xp.array(3, ndmin=2).shape, (1, 1))
        self.assertIs(xp.asarray(a), a), self.assertIs(xp.asfortranarray(a), a)
        self.assertEqual([float(x) for x in a.flat], A.ravel().tolist())
        a.flat[1:3] = 0
        self.assertEqual(a[0, 1:3].tolist(), [0, 0])

    def test_dtypes_by_numpys_names(self):
        for name in ("longlong", "ulonglong", "intc", "q", "L"):
            given = getattr(np, name) if len(name) > 1 else name
            self.assertEqual(str(xp.zeros(1, given).dtype), np.dtype(given).name)
        self.assertEqual(xp.zeros(1, "f").dtype.char, "f"), self.assertIs(xp.zeros(1, "f").dtype.type, np.float32)
        self.assertEqual(xp.array([0, 2**64 - 1], "uint64").tolist(), [0, 2**64 - 1])

    def test_errors_are_numpys(self):
        a = xp.asarray(A)
        with self.assertRaises(np.exceptions.AxisError):
            a.sum(axis=3)
        with self.assertRaises(OverflowError):
            xp.array([300], "uint8")
        with self.assertRaises(OverflowError):
            xp.ones(2, "uint8") + 300
        with self.assertRaises(ValueError):
            xp.unravel_index(xp.asarray([9]), (2, 2))
        with self.assertRaises(rensa.IndexError):
            a.sum(axis=3)

    def test_comparison_with_what_is_no_number(self):
        self.assertEqual((xp.zeros(2) == None).tolist(), [False, False])  # noqa: E711 NumPy's
        self.assertEqual((xp.zeros(2) != object()).tolist(), [True, True])

    def test_generators(self):
        first, second = xp.random.default_rng(3), xp.random.Generator(xp.random.Philox4x3210(3))
        a = first.normal(2.0, 1.0, size=(100, 50))
        np.testing.assert_array_equal(a, second.normal(2.0, 1.0, size=(100, 50)))
        self.assertAlmostEqual(float(a.mean()), 2, delta=0.1)
        state = first.get_state()
        b = first.integers(10, size=20)
        first.set_state(state)
        np.testing.assert_array_equal(first.integers(10, size=20), b)
        self.assertTrue(bool((b >= 0).all()) and bool((b < 10).all()))
        self.assertEqual(sorted(first.permutation(5).tolist()), list(range(5)))


class Compat(unittest.TestCase):
    def setUp(self):
        rensa.compat.install(gpus="cpu")
        self.addCleanup(rensa.compat.uninstall)

    def test_cupy(self):
        import cupy
        from cupy.exceptions import AxisError
        import cupyx

        self.assertIs(cupy.float32, np.float32), self.assertIs(AxisError, np.exceptions.AxisError)
        a = cupy.ndarray((2, 3), "float32")
        self.assertIsInstance(a, cupy.ndarray)
        a[...] = 1
        self.assertIs(cupy.get_array_module(a), cupy), self.assertIs(cupy.get_array_module(np.ones(1)), np)
        b = cupy.ndarray((3, 2), "float32", a.data)
        b[0] = 5
        self.assertEqual(a.tolist(), [[5, 5, 1], [1, 1, 1]])
        cupyx.scatter_add(a, (0, 0), 1)
        self.assertEqual(a[0, 0].item(), 6)
        self.assertEqual(cupy.result_type(a, np.float64), np.float64)
        state = cupy.random.RandomState(1)
        self.assertEqual(state.rand(2, 3).shape, (2, 3)), self.assertEqual(state.randint(3, size=4).dtype, np.int64)

        @cupy.fuse(kernel_name="twice")
        def twice(x):
            return x + x

        self.assertEqual(twice(a)[0, 0].item(), 12)


if __name__ == "__main__":
    unittest.main()
