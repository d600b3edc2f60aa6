"""What lives how long: models, hooks and threads at the border to Python."""

import gc
import pickle
import sys
import tempfile
import threading
import unittest
import warnings
import weakref

import numpy as np
import rensa
from devices import on_gpu_too
from networks import MLP, examples
from rensa import Chain, Variable, functions as F, iterators, links as L, optimizers
from rensa import serializers, training, xp
from rensa.training import extensions


class CountsCalls(rensa.link_hooks.LinkHook):
    name, calls = "CountsCalls", 0

    def forward_preprocess(self, args):
        self.calls += 1


class CountedLink(Chain):
    def forward(self, x):
        return x


@on_gpu_too
class Lifetimes(unittest.TestCase):
    def test_nothing_stays(self):
        """Models, optimizers, updaters and trainers go when they are given up, whatever refers to what."""

        def make():
            model = L.Classifier(MLP())
            optimizer = optimizers.SGD()
            optimizer.setup(model)
            optimizer.add_hook(lambda o: optimizer.t, name="refers to its optimizer")
            updater = training.updaters.StandardUpdater(
                iterators.SerialIterator(examples(), 16), optimizer, loss_func=lambda x, t: model(x, t))
            trainer = training.Trainer(updater, (1, "epoch"), out=tempfile.mkdtemp())
            trainer.extend(lambda t: trainer.elapsed_time, name="refers to its trainer", trigger=(1, "iteration"))
            trainer.run()
            return [weakref.ref(o) for o in (model, model.predictor, optimizer, updater, trainer)]

        alive = make()
        gc.collect()
        self.assertEqual([ref() is None for ref in alive], [True] * 5)

    def test_no_object_is_left(self):
        class Doubled(rensa.FunctionNode):
            def forward(self, inputs):
                return (inputs[0] * 2,)

            def backward(self, indexes, gys):
                return (gys[0] * 2,)

        def arrays():
            a = xp.asarray(np.arange(12.0).reshape(3, 4))
            b = a[1:, ::2] + a.sum(axis=1, keepdims=True)[1:] * 2
            a[a > 3] = 0
            on_host = xp.asarray(b.get(), device="cpu")
            np.asarray(on_host), np.from_dlpack(on_host), xp.from_dlpack(np.ones(3)), repr(a), a.tolist(), a.dtype.name, a.shape
            with self.assertRaises(ValueError):
                a + xp.ones(7)

        def graphs():
            x = Variable(np.ones((2, 3), "f"))
            y = Doubled().apply((F.exp(x),))[0]
            F.sum(y * y).backward()
            x.grad.sum().item(), x.shape, y.creator, repr(y)
            step = rensa.capture(lambda v: F.tanh(v) * 2, replay_lists=True)
            for _ in range(4):
                step(Variable(np.ones((2, 3), "f")))

        def training_of(kind, **options):
            model = L.Classifier(MLP())
            model.add_hook(CountsCalls())
            optimizer = optimizers.Adam().setup(model)
            optimizer.add_hook(lambda o: o.t, name="reads")
            updater = kind(iterators.SerialIterator(examples(), 16), optimizer, **options)
            with tempfile.TemporaryDirectory() as out:
                trainer = training.Trainer(updater, (1, "epoch"), out=out)
                trainer.extend(lambda t: t.observation["main/loss"], name="reads", trigger=(1, "iteration"))
                trainer.extend(extensions.LogReport())
                trainer.extend(extensions.snapshot(filename="snapshot"))
                trainer.run()
                serializers.load_npz(out + "/snapshot", trainer)

        def once():
            arrays(), graphs(), training_of(training.updaters.StandardUpdater)
            training_of(training.updaters.ParallelUpdater, devices={"main": -1, "second": -1}, reduction="mean")
            gc.collect()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sys._clear_type_cache()  # which keeps names of attributes
            return sys.getallocatedblocks()

        for _ in range(5):
            once()
        before, turns = once(), 20
        for _ in range(turns - 1):
            once()
        self.assertLess(once() - before, turns / 2)

    def test_pickles_have_the_hooks(self):
        link = CountedLink()
        link.add_hook(CountsCalls())
        again = pickle.loads(pickle.dumps(link))
        again(np.ones((1, 2), "f"))
        self.assertEqual((again.local_link_hooks["CountsCalls"].calls, link.local_link_hooks["CountsCalls"].calls), (1, 0))

    def test_a_part_keeps_the_whole(self):
        layer = L.Inception(4, 2, 2, 2, 2, 2, 2)
        part = next(iter(layer.links(skipself=True)))
        del layer
        gc.collect()
        self.assertTrue(len(part.params()) > 0)

    def test_threads(self):
        """Runs that start and stop in threads beside each other do not wait for each other for ever."""

        def work():
            for _ in range(250):
                x = Variable(np.ones(100))
                F.sum(F.exp(x)).backward()
                iterator = iterators.MultithreadIterator([(np.ones(2, "f"), np.int32(0))] * 8, 4, n_threads=2)
                iterator.next()
                del iterator

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
            self.assertFalse(thread.is_alive())


if __name__ == "__main__":
    unittest.main()
