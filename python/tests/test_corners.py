"""Where Python and the engine meet: threads that end, members that are set, what hooks do, numbers of NumPy's."""

import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np
import rensa
from devices import on_gpu_too
from rensa import Chain, Sequential, Variable, functions as F, iterators, links as L, optimizer_hooks, optimizers, training, xp


def host(value):
    array = value.array if isinstance(value, Variable) else value
    return np.asarray(array.get())


def run(program):
    """The program's exit status in a process of its own; a program that does not end within a minute fails."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=60, capture_output=True).returncode


SLOW_DATASET = """
    import time
    import numpy as np
    from rensa import iterators, links, optimizers, training

    class Slow:
        def __len__(self):
            return 64

        def __getitem__(self, i):
            time.sleep(0.002)
            return np.ones(3, "f"), np.int32(0)

    iterator = iterators.MultithreadIterator(Slow(), 4, n_threads=2)
    iterator.next()
"""


@on_gpu_too
class Threads(unittest.TestCase):
    def test_an_iterator_goes_back_while_it_fetches(self):
        self.assertEqual(run(SLOW_DATASET + "    iterator.reset(); iterator.next(); iterator.finalize()"), 0)

    def test_the_last_handle_is_a_trainers(self):
        self.assertEqual(run(SLOW_DATASET + """
    model = links.Linear(3, 1)
    optimizer = optimizers.SGD().setup(model)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (1, "epoch"))
    copy = trainer.updater.get_iterator()
    del iterator, updater, trainer
    del copy
"""), 0)

    def test_a_program_ends_while_an_iterator_fetches(self):
        self.assertEqual(run(SLOW_DATASET), 0)


class Interrupts(unittest.TestCase):
    def test_ctrl_c_ends_a_run_with_a_snapshot(self):
        self.assertEqual(run("""
            import os, signal, tempfile
            import numpy as np
            from rensa import datasets, iterators, links, optimizers, training
            from rensa.training import extensions

            optimizer = optimizers.SGD().setup(links.Classifier(links.Linear(3, 2)))
            rows = datasets.TupleDataset(np.ones((8, 3), "f"), np.zeros(8, "i"))
            folder = tempfile.mkdtemp()
            updater = training.updaters.StandardUpdater(iterators.SerialIterator(rows, 4), optimizer)
            trainer = training.Trainer(updater, (10 ** 9, "iteration"), out=folder)
            trainer.extend(extensions.snapshot(filename="snapshot"), trigger=(10 ** 9, "iteration"))
            trainer.extend(lambda t: os.kill(os.getpid(), signal.SIGINT), name="ctrl_c", trigger=(3, "iteration"))
            try:
                trainer.run()
            except KeyboardInterrupt:
                assert updater.iteration == 3 and os.listdir(folder) == ["snapshot"]
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            else:
                raise SystemExit(1)
        """), 0)


@on_gpu_too
class Hooks(unittest.TestCase):
    def model(self):
        model = L.Linear(2, 2, initialW=1, nobias=True)
        optimizer = optimizers.SGD(lr=1)
        optimizer.setup(model)
        model.W.grad = np.ones((2, 2), "float32")
        return model, optimizer

    def test_a_hook_replaces_a_gradient(self):
        model, optimizer = self.model()

        def drop(optimizer):
            for parameter in optimizer.target.params():
                parameter.grad = parameter.grad * 0

        optimizer.add_hook(drop)
        optimizer.update()
        np.testing.assert_array_equal(host(model.W), 1)

    def test_a_hook_of_replicas(self):
        def decay(optimizer):
            for parameter in optimizer.target.params():
                parameter.grad += 0.5 * parameter.array

        def trained(hook):
            xp.random.seed(0)
            model = L.Classifier(L.Linear(3, 2))
            optimizer = optimizers.SGD(lr=0.1)
            optimizer.setup(model)
            optimizer.add_hook(hook, name="decay")
            x, t = np.random.RandomState(0).rand(16, 3).astype("f"), np.arange(16, dtype="i") % 2
            iterator = iterators.SerialIterator(rensa.datasets.TupleDataset(x, t), 8, shuffle=False)
            updater = training.updaters.ParallelUpdater(iterator, optimizer, devices={"main": -1, "second": -1})
            for _ in range(4):
                updater.update()
            return host(model.predictor.W)

        np.testing.assert_allclose(trained(decay), trained(optimizer_hooks.WeightDecay(0.5)), rtol=1e-6)


@on_gpu_too
class Members(unittest.TestCase):
    def test_members_of_the_engines_links(self):
        layer = L.BatchNormalization(3)
        layer.avg_mean = np.ones(3, "float32")
        np.testing.assert_array_equal(host(layer.avg_mean), 1)
        memory = L.LSTM(3, 2)
        memory(np.ones((1, 3), "float32"))
        memory.h = None
        self.assertIsNone(memory.h)
        with self.assertRaisesRegex(AttributeError, "cannot be replaced"):
            L.ResNet18Layers(classes=3, width=4).fc6 = L.Linear(2, 2)

    def test_a_parameter_is_one_object(self):
        layer = L.Linear(2, 2)
        self.assertIs(layer.W, layer.W)
        parameters = layer.params()
        self.assertIn(layer.b, set(parameters))
        layer.W.tag = 5
        self.assertEqual([p.tag for p in parameters if p is layer.W], [5])

    def test_a_parameter_of_ones_own_is_one_object(self):
        link = rensa.Link()
        with link.init_scope():
            link.scale = rensa.Parameter(1, (2,))
        for one in (link, link.copy("copy"), link.copy()):
            self.assertIs(one.params()[0], one.scale)

    def test_a_class_that_derives_from_a_link_of_the_engines(self):
        class Doubled(L.Linear):
            def forward(self, x):
                return 2 * super().forward(x)

        class Holder(Chain):
            def __init__(self):
                super().__init__()
                with self.init_scope():
                    self.layer = Doubled(2, 2, initialW=1)

            def forward(self, x):
                return self.layer(x)

        x = np.ones((1, 2), "float32")
        np.testing.assert_array_equal(host(Holder()(x)), 4)
        np.testing.assert_array_equal(host(Holder().copy("copy")(x)), 4)

    def test_attributes_of_copies(self):
        class Listed(Chain):
            def __init__(self):
                super().__init__()
                with self.init_scope():
                    self.a = L.Linear(2, 2)
                    self.again = self.a
                self.layers = [self.a]

        link = Listed()
        copied = link.copy("copy")
        self.assertIs(copied.layers[0], copied.a)
        self.assertIsNot(copied.a, link.a)
        self.assertIs(copied.again, copied.a)

    def test_properties_and_none(self):
        class Own(Chain):
            def __init__(self):
                self.early = 1  # before the link is made
                super().__init__()
                with self.init_scope():
                    self.part = L.Linear(1, 1)

            @property
            def size(self):
                return self._size

            @size.setter
            def size(self, value):
                self._size = 2 * value

        link = Own()
        link.size = 3
        self.assertEqual((link.size, link.early), (6, 1))
        link.part = None
        self.assertEqual(link.params(), [])
        link.part = L.Linear(1, 1)
        self.assertEqual(len(link.params()), 2)

    def test_persistents_are_values(self):
        link = rensa.Link()
        link.add_persistent("mean", np.zeros(2))
        link.add_persistent("n", 1)
        before = link.mean
        link.mean = np.ones(2)
        np.testing.assert_array_equal(host(before), 0)
        link.n = np.int64(4)
        link.to_cpu()
        self.assertEqual(link.n, 4)
        link.mean = None
        self.assertIsNone(link.mean)

    def test_members_beside_layers(self):
        net = Sequential(L.Linear(2, 2))
        with net.init_scope():
            net.extra = L.Linear(2, 2)
        net.append(L.Linear(2, 2))
        self.assertEqual(sorted({name.split("/")[1] for name, _ in net.namedparams()}), ["0", "1", "extra"])

    def test_what_is_no_class_is_no_base(self):
        with self.assertRaises(TypeError):
            type("Derived", (training.extensions.Evaluator,), {})
        for made in (rensa.initializers.Normal, iterators.SerialIterator):
            self.assertTrue(issubclass(type("Derived", (made,), {}), made))


@on_gpu_too
class Numbers(unittest.TestCase):
    def test_scalars_of_numpy_take_the_variables_dtype(self):
        x = Variable(np.ones(2, "float32"))
        for y in (x * np.sqrt(2), x * np.int64(2), np.float64(2) + x, x / np.int32(2)):
            self.assertEqual(str(y.dtype), "float32")

    def test_powers(self):
        values = np.array([-2.0, 2.0])
        x = Variable(values)
        for exponent in (2, np.float32(2), np.int64(2), np.array([2.0, 3.0])):
            np.testing.assert_allclose(host(x ** exponent), values ** exponent)
        base, exponent = Variable(np.array([2.0, 3.0])), Variable(np.array([3.0, 2.0]))
        y = base ** exponent
        y.grad = np.ones(2)
        y.backward()
        np.testing.assert_allclose(host(base.grad), [12, 6])
        np.testing.assert_allclose(host(exponent.grad), [8 * np.log(2), 9 * np.log(3)])
        np.testing.assert_allclose(host(2 ** exponent), [8, 4])

    def test_arguments_in_chainers_order(self):
        optimizer = optimizers.AdaBound(1e-3, 0.9, 0.999, 0.2)
        self.assertEqual(optimizer.final_lr, 0.2)
        with self.assertRaises(TypeError):
            F.softmax_cross_entropy(np.ones((1, 2), "f"), np.zeros(1, "i"), True, False)
        self.assertEqual(F.moveaxis(np.ones((1, 2, 3)), (0, 1), (1, 2)).shape, (3, 1, 2))
        self.assertEqual(F.einsum("ij,jk->ik", np.ones((1, 2)), np.ones((2, 3))).shape, (1, 3))
        self.assertEqual([v.shape for v in F.broadcast(np.ones(3), np.ones((2, 1)))], [(2, 3)] * 2)

    def test_what_is_observed_can_be_written(self):
        model = L.Classifier(L.Linear(2, 2))
        optimizer = optimizers.SGD().setup(model)
        rows = rensa.datasets.TupleDataset(np.ones((4, 2), "f"), np.zeros(4, "i"))
        updater = training.updaters.StandardUpdater(iterators.SerialIterator(rows, 2), optimizer)
        trainer = training.Trainer(updater, (2, "iteration"), out=tempfile.mkdtemp())
        seen = []

        def write(trainer_):
            trainer_.observation["mine"] = 3.0
            seen.append(("main/loss" in trainer_.observation, trainer_ is trainer))

        trainer.extend(write, priority=training.PRIORITY_WRITER)
        trainer.extend(lambda t: seen.append(float(t.observation["mine"])), name="read")
        trainer.extend(training.extensions.observe_value("lr", lambda t: t.updater.get_optimizer("main").lr),
                       trigger=(1, "iteration"))
        trainer.run()
        self.assertEqual(seen, [(True, True), 3.0] * 2)

    def test_datasets_of_two_lengths(self):
        with self.assertRaises(rensa.ShapeError):
            rensa.datasets.TupleDataset([1, 2, 3], np.zeros(2))


if __name__ == "__main__":
    unittest.main()
