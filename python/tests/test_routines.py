"""Routines of rensa.xp beside NumPy's, one call each."""

import unittest

import numpy as np

from devices import on_gpu_too
from rensa import xp

A = np.arange(24.0).reshape(2, 3, 4)
M = np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]])
V = np.array([3, 1, 2, 3, 0, 3])

# What is called with `n` (numpy or rensa.xp) and `a` (its array of what is given).
CALLS = """
n.eye(3)                              n.eye(2, 4, 1, dtype='int32')     n.diag(a(V))
n.diag(a(M), 1)                       n.diagflat(a(V), -1)              n.tril(a(M), -1)
n.triu(a(M))                          n.flip(a(A))                      n.flip(a(A), (0, 2))
n.fliplr(a(A))                        n.flipud(a(A))                    n.rot90(a(M))
n.roll(a(A), 2)                       n.roll(a(A), (1, 2), (0, 2))      n.roll(a(A), 1, 1)
n.repeat(a(V), 2)                     n.repeat(a(A), 2, 1)              n.repeat(a(V), [0, 1, 2, 0, 1, 2])
n.tile(a(V), (2, 2))                  n.tile(a(M), 2)                   n.append(a(V), [7])
n.vstack([a(M), a(M)])                n.hstack([a(M), a(M)])            n.dstack([a(M), a(M)])
n.split(a(V), 3)                      n.split(a(A), [1, 3], 2)          n.array_split(a(V), 4)
n.broadcast_arrays(a(M), [1, 2, 3])   n.meshgrid(a(V), [1, 2])          n.meshgrid(a(V), [1], indexing='ij')
n.atleast_2d(a(V))                    n.atleast_3d(a(M))                n.median(a(A), axis=1)
n.quantile(a(A), 0.3)                 n.percentile(a(A), [25, 75], 0)   n.average(a(M), 0, weights=[1, 2, 3])
n.count_nonzero(a(V))                 n.nansum(a([1.0, np.nan]))        n.nanmean(a([[1.0, np.nan, 3]]), 1)
n.bincount(a(V))                      n.bincount(a(V), minlength=9)     n.unique(a(V))
n.unique(a(V), return_counts=True)    n.isin(a(V), [1, 3])              n.isclose(a(M), M + 1e-9)
n.searchsorted(a([1, 2, 4]), [2, 5])  n.diff(a(V))                      n.diff(a(A), 2, 1)
n.clip(a(V), 1, 2)                    a(V).clip(max=2)                  n.clip(a(M), None, a(M).T)
n.vdot(a(V), a(V))                    n.inner(a(M), a(M))               n.outer(a(V), a(V))
n.kron(a(M), a(M))                    n.tensordot(a(A), a(A), 3)        n.tensordot(a(A), a(M), ([1], [0]))
n.einsum('ij,jk->ik', a(M), a(M))     n.trace(a(M))                     a(A).trace(1, 1, 2)
n.linalg.solve(a(M), a(M[0]))         n.linalg.inv(a(M))                n.linalg.det(a(M))
n.linalg.cholesky(a(M))               n.linalg.eigvalsh(a(M))           n.linalg.slogdet(a(M))
n.linalg.svd(a(M), compute_uv=False)  n.linalg.matrix_power(a(M), 3)    n.sort(a(V))
n.sort(a(M), axis=None)               n.argsort(a(V), kind='stable')    n.round(a(M) / 3, 2)
n.take(a(A), [0, 2], axis=1)          n.where(a(V) > 1)                 n.moveaxis(a(A), [0, 1], [1, 2])
""".replace("kind='stable'", "**stable").strip()


@on_gpu_too
class Routines(unittest.TestCase):
    def test_are_those_of_numpy(self):
        calls = [call.strip() for line in CALLS.splitlines() for call in line.split("  ") if call.strip()]
        self.assertGreater(len(calls), 70)
        for call in calls:
            with self.subTest(call=call):
                names = {"np": np, "A": A, "M": M, "V": V}
                want = eval(call, {**names, "n": np, "a": np.asarray, "stable": {"kind": "stable"}})
                got = eval(call, {**names, "n": xp, "a": xp.asarray, "stable": {}})
                several = isinstance(want, (tuple, list))
                self.assertEqual(isinstance(got, (tuple, list)), several)
                pairs = list(zip(got, want)) if several else [(got, want)]
                self.assertEqual(len(pairs), len(want) if several else 1)
                for ours, theirs in pairs:
                    theirs = np.asarray(theirs)
                    self.assertEqual(ours.dtype, theirs.dtype)
                    self.assertEqual(ours.shape, theirs.shape)
                    np.testing.assert_allclose(xp.asnumpy(ours), theirs, rtol=1e-9, atol=1e-12)

    def test_factors_make_the_matrix_again(self):
        m = xp.asarray(M)
        q, r = xp.linalg.qr(m)
        u, s, vh = xp.linalg.svd(m)
        values, vectors = xp.linalg.eigh(m)
        for again in [q @ r, (u * s) @ vh, (vectors * values) @ vectors.T]:
            self.assertTrue(xp.allclose(again, m))


if __name__ == "__main__":
    unittest.main()
