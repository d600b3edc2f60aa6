"""What only GPUs do: CUDA graphs, memory shared with other libraries there, replicas on two."""

import importlib.util
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import rensa
from devices import two_gpus
from rensa import Chain, functions as F, iterators, links as L, optimizers, training, xp


class MLP(Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(6, 16)
            self.l2 = L.Linear(16, 4)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


# What another library adds is ours, and ours its.
SHARED = """
import {name} as peer
from rensa import xp
x = xp.arange(6, dtype="float32", device="cuda:0").reshape(2, 3)
theirs = peer.{take}(x)
theirs += 1
assert float(theirs.sum()) == float(x.sum()) == 21
for way in (xp.from_dlpack, xp.asarray):
    ours = way(theirs)
    ours[...] = 0
    assert float(theirs.sum()) == 0
print(ours.device, float(x.sum()))
"""


def rows(n=64):
    x = np.random.RandomState(0).rand(n, 6).astype("float32")
    return rensa.datasets.TupleDataset(x, (x.sum(axis=1) * 7 % 4).astype("int32"))


def parameters_after(epochs, updater_of, device="cpu"):
    """The parameters of a model after a run, and the updater that trained it."""
    xp.random.seed(3)
    model = L.Classifier(MLP())
    model.to_device(device)
    optimizer = optimizers.MomentumSGD(lr=0.1).setup(model)
    updater = updater_of(iterators.SerialIterator(rows(), 16, seed=1), optimizer)
    training.Trainer(updater, (epochs, "epoch"), out=tempfile.mkdtemp()).run()
    return [p.array.get() for p in model.params()], updater


@unittest.skipUnless(rensa.num_gpus(), "no GPU")
class OneGpu(unittest.TestCase):
    def test_a_graph_is_eager_bit_for_bit(self):
        def on_gpu(**options):
            return parameters_after(
                5, lambda *of: training.updaters.StandardUpdater(*of, device="cuda:0", **options), "cuda:0")

        (eager, _), (captured, updater) = on_gpu(), on_gpu(capture=True)
        self.assertGreater(updater.capture_stats["replays"], 5, updater.capture_stats)
        for one, other in zip(eager, captured):
            np.testing.assert_array_equal(one, other)
        on_cpu, _ = parameters_after(5, training.updaters.StandardUpdater)
        for one, other in zip(eager, on_cpu):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)

    def test_memory_is_shared_with_other_libraries(self):
        x = xp.arange(6, dtype="float32", device="cuda:0").reshape(2, 3)
        interface = x.T.__cuda_array_interface__
        self.assertEqual((interface["shape"], interface["strides"]), ((3, 2), (4, 12)))
        for name, take in [("cupy", "asarray"), ("torch", "from_dlpack")]:
            if importlib.util.find_spec(name) is None:
                continue
            with self.subTest(library=name):  # in a process of its own: compat.install() wants the name here
                program = SHARED.format(name=name, take=take)
                done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (0, "cuda:0 0.0\n"), done.stderr)

    def test_copies_of_pinned_memory_do_not_wait(self):
        pinned = np.frombuffer(rensa.cuda.alloc_pinned_memory(800), "float32").reshape(2, 100)
        pinned[...] = 5
        x = xp.empty(100, "float32", device="cuda:0")
        with rensa.cuda.ForbidSync():
            x.set(pinned[1])
        rensa.cuda.synchronize("cuda:0")
        np.testing.assert_array_equal(x.get(), 5)

    def test_a_pickle_comes_back_on_its_device(self):
        x = xp.arange(5, device="cuda:0")
        again = pickle.loads(pickle.dumps(x))
        self.assertEqual(str(again.device), "cuda:0")
        np.testing.assert_array_equal(again.get(), np.arange(5))


@two_gpus
class TwoGpus(unittest.TestCase):
    def test_replicas(self):
        def replicas(devices, **options):
            return parameters_after(5, lambda *of: training.updaters.ParallelUpdater(*of, devices=devices, **options),
                                    devices["main"])

        on_cpu, _ = replicas({"main": "cpu", "second": "cpu"})
        on_gpus, _ = replicas({"main": "cuda:0", "second": "cuda:1"})
        captured, _ = replicas({"main": "cuda:0", "second": "cuda:1"}, capture=True)
        for cpu, eager, graph in zip(on_cpu, on_gpus, captured):
            np.testing.assert_allclose(eager, cpu, rtol=1e-3, atol=1e-4)
            np.testing.assert_array_equal(graph, eager)

    def test_a_model_in_parts(self):
        x = xp.ones((4, 6), "float32", device="cuda:0")
        first, second = L.Linear(6, 8), L.Linear(8, 2)
        first.to_device("cuda:0")
        second.to_device("cuda:1")
        y = F.copy(second(F.copy(first(x), "cuda:1")), "cuda:0")
        self.assertEqual(str(y.array.device), "cuda:0")
        F.sum(y).backward()
        self.assertEqual([str(link.W.grad.device) for link in (first, second)], ["cuda:0", "cuda:1"])


if __name__ == "__main__":
    unittest.main()
