"""Kernels of one's own, fused functions, streams and waits."""

import unittest

import numpy as np
import rensa
from rensa import cuda, xp

DEVICES = ["cpu"] + (["cuda:0"] if rensa.num_gpus() else [])


class Kernels(unittest.TestCase):
    def test_elementwise(self):
        for device in DEVICES:
            with self.subTest(device=device):
                squared_difference = rensa.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")
                x, y = np.arange(10, dtype="f").reshape(2, 5), np.arange(5, dtype="f")
                z = squared_difference(xp.asarray(x, device=device), xp.asarray(y, device=device))
                np.testing.assert_array_equal(z.get(), (x - y) ** 2)
                out = xp.empty((2, 5), "float32", device=device)
                squared_difference(xp.asarray(x, device=device), np.float32(2), out)
                np.testing.assert_array_equal(out.get(), (x - 2) ** 2)

    def test_reduction(self):
        for device in DEVICES:
            with self.subTest(device=device):
                norm = rensa.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
                x = np.arange(12, dtype="float64").reshape(3, 4)
                np.testing.assert_allclose(norm(xp.asarray(x, device=device), axis=1).get(), np.linalg.norm(x, axis=1))
                self.assertEqual(norm(xp.asarray(x, device=device), keepdims=True).shape, (1, 1))

    def test_what_is_wrong_in_a_kernel_is_told(self):
        with self.assertRaises(rensa.CompileError):
            rensa.ElementwiseKernel("float32 x", "float32 y", "y = nothing_of_this_name(x)", "broken")(xp.ones(3, "f"))
        with self.assertRaises(rensa.ValueError):
            rensa.ElementwiseKernel("float32", "float32 y", "y = 1", "no_name")

    def test_fuse(self):
        @rensa.fuse
        def f(x, y):
            return xp.exp(x) * y + 1, x - y

        for device in DEVICES:
            with self.subTest(device=device):
                x, y = np.linspace(0, 1, 12).reshape(3, 4), np.ones(4)
                a, b = f(xp.asarray(x, device=device), xp.asarray(y, device=device))
                np.testing.assert_allclose(a.get(), np.exp(x) * y + 1, rtol=1e-14)
                np.testing.assert_array_equal(b.get(), x - y)
                self.assertLessEqual(f.kernels, 1)

    @unittest.skipUnless(rensa.num_gpus(), "no GPU")
    def test_raw(self):
        kernel = rensa.RawKernel("""extern "C" __global__ void add(const float* x, float* y, int n, float a) {
            int i = blockDim.x * blockIdx.x + threadIdx.x;
            if (i < n) y[i] = x[i] + a;
        }""", "add")
        x, y = xp.arange(100, dtype="float32", device="cuda:0"), xp.zeros(100, "float32", device="cuda:0")
        kernel((1,), (128,), (x, y, np.int32(100), np.float32(2)))
        np.testing.assert_array_equal(y.get(), np.arange(100) + 2)


class Streams(unittest.TestCase):
    def test_a_wait_is_forbidden(self):
        with cuda.ForbidSync():
            self.assertEqual(xp.ones(3).sum().item(), 3)  # the CPU waits for nobody

    @unittest.skipUnless(rensa.num_gpus(), "no GPU")
    def test_streams(self):
        stream = cuda.Stream(non_blocking=True)
        pinned = np.frombuffer(cuda.alloc_pinned_memory(400), "float32", 100)
        pinned[...] = 3
        x = xp.empty(100, "float32", device="cuda:0")
        with cuda.ForbidSync():
            x.set(pinned, stream=stream)
        start, stop = cuda.Event(), cuda.Event()
        with stream:
            self.assertTrue(cuda.get_current_stream() == stream)
            start.record(stream)
            y = x * 2
            stop.record(stream)
        stream.synchronize()
        self.assertTrue(stream.done and stop.done)
        self.assertGreaterEqual(cuda.get_elapsed_time(start, stop), 0)
        np.testing.assert_array_equal(y.get(), 6)
        with self.assertRaises(rensa.SyncError), cuda.ForbidSync():
            y.get()
        self.assertGreater(cuda.get_default_memory_pool().used_bytes(), 0)


if __name__ == "__main__":
    unittest.main()
