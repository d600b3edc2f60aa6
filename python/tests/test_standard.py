"""The array API standard's names and keywords, beside NumPy."""

import unittest

import numpy as np
import rensa
from rensa import xp


class Standard(unittest.TestCase):
    def setUp(self):
        self.host = np.random.RandomState(0).randint(0, 5, (4, 6)).astype("float64")
        self.a = xp.asarray(self.host)

    def test_order(self):
        np.testing.assert_array_equal(xp.sort(self.a, axis=0, descending=True), -np.sort(-self.host, axis=0))
        np.testing.assert_array_equal(xp.argsort(self.a, descending=True), np.argsort(-self.host, kind="stable"))

    def test_sets(self):
        found = xp.unique_all(self.a)
        values, indices, inverse, counts = np.unique(self.host, return_index=True, return_inverse=True, return_counts=True)
        for ours, theirs in [(found.values, values), (found.indices, indices), (found.counts, counts),
                             (found.inverse_indices, inverse.reshape(self.host.shape))]:
            np.testing.assert_array_equal(ours, theirs)

    def test_results_have_names(self):
        symmetric = xp.asarray(self.host @ self.host.T)
        made = xp.linalg.eigh(symmetric)
        np.testing.assert_allclose(made.eigenvalues, np.linalg.eigvalsh(self.host @ self.host.T), atol=1e-9)
        q, r = xp.linalg.qr(self.a)
        np.testing.assert_allclose(xp.asnumpy(q @ r), self.host, atol=1e-12)
        self.assertEqual(xp.linalg.svd(self.a).S.shape, (4,))

    def test_transforms(self):
        for name in ("fft", "ifft", "rfft", "hfft"):
            np.testing.assert_allclose(getattr(xp.fft, name)(self.a, axis=0, norm="ortho"),
                                       getattr(np.fft, name)(self.host, axis=0, norm="ortho"), atol=1e-12)
        np.testing.assert_allclose(xp.fft.fftn(self.a), np.fft.fftn(self.host), atol=1e-12)
        np.testing.assert_array_equal(xp.fft.fftfreq(5, d=0.5), np.fft.fftfreq(5, 0.5))

    def test_norms(self):
        for order in (1, 2, np.inf):
            np.testing.assert_allclose(xp.linalg.vector_norm(self.a, axis=1, ord=order),
                                       np.linalg.norm(self.host, order, axis=1))
        np.testing.assert_allclose(xp.linalg.norm(self.a).item(), np.linalg.norm(self.host))

    def test_statistics(self):
        np.testing.assert_allclose(xp.var(self.a, axis=0, correction=1), self.host.var(axis=0, ddof=1))
        np.testing.assert_array_equal(xp.cumulative_sum(self.a, axis=1, include_initial=True)[:, 1:], self.host.cumsum(axis=1))
        np.testing.assert_array_equal(xp.diff(self.a, prepend=self.a[:, :1]), np.diff(self.host, prepend=self.host[:, :1]))

    def test_inspection(self):
        self.assertIs(self.a.__array_namespace__(), xp)
        information = xp.__array_namespace_info__()
        self.assertIn(rensa.Device("cpu"), information.devices())
        self.assertEqual(information.dtypes(kind="bool"), {"bool": xp.bool_})
        self.assertEqual(np.dtype(self.a.dtype), np.float64)
        self.assertEqual(xp.finfo(xp.float32).eps, np.finfo("float32").eps)
        self.assertEqual(xp.result_type(self.a, 1, xp.float32), xp.float64)

    def test_views(self):
        self.assertTrue(np.shares_memory(np.asarray(xp.reshape(self.a, (24,), copy=False)), np.asarray(self.a)))
        with self.assertRaises(ValueError):
            xp.reshape(self.a.T, (24,), copy=False)
        self.assertFalse(np.shares_memory(np.asarray(xp.reshape(self.a, (24,), copy=True)), np.asarray(self.a)))


if __name__ == "__main__":
    unittest.main()
