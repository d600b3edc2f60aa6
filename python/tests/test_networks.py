"""Networks: gradients, models of Python's own, training, files."""

import contextlib
import gc
import io
import os
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
from rensa import Chain, ChainList, Sequential, Variable, functions as F, initializers, iterators, links as L
from rensa import optimizer_hooks, optimizers, serializers, training, xp
from rensa.training import extensions


def host(value):
    """The elements of a variable or an array, as NumPy's."""
    array = value.array if isinstance(value, Variable) else value
    return np.asarray(array.get())


class MLP(Chain):
    def __init__(self, units=16, out=4):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, units)
            self.l2 = L.Linear(units, out)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


class CountsCalls(rensa.link_hooks.LinkHook):
    name, calls = "CountsCalls", 0

    def forward_preprocess(self, args):
        self.calls += 1


class CountedLink(Chain):
    def forward(self, x):
        return x


def examples(n=64, units=6, seed=0):
    random = np.random.RandomState(seed)
    x = random.rand(n, units).astype("float32")
    return rensa.datasets.TupleDataset(x, (x.sum(axis=1) * 7 % 4).astype("int32"))


def trained(seed=3, epochs=2, model=None, dataset=None, **options):
    """(model, losses) of a short run."""
    xp.random.seed(seed)
    model = model or L.Classifier(MLP())
    optimizer = optimizers.MomentumSGD(lr=0.1)
    optimizer.setup(model)
    iterator = iterators.SerialIterator(dataset or examples(), 16, seed=1)
    updater = training.updaters.StandardUpdater(iterator, optimizer, **options)
    losses = []
    trainer = training.Trainer(updater, (epochs, "epoch"), out=tempfile.mkdtemp())
    trainer.extend(lambda t: losses.append(float(t.observation["main/loss"])), name="losses", trigger=(1, "iteration"))
    trainer.run()
    return model, losses


@on_gpu_too
class Gradients(unittest.TestCase):
    def numerical(self, f, x, gy, eps=1e-3):
        gradient = np.zeros_like(x)
        for index in np.ndindex(*x.shape):
            moved = x.copy()
            moved[index] += eps
            above = host(f(Variable(moved)))
            moved[index] -= 2 * eps
            gradient[index] = ((above - host(f(Variable(moved)))) * gy).sum() / (2 * eps)
        return gradient

    def test_functions_of_one(self):
        random = np.random.RandomState(0)
        x = random.uniform(0.2, 0.8, (2, 4))
        names = ("absolute arccos arcsin arctan cos cosh elu erf exp expm1 gelu leaky_relu log log10 log1p log2 "
                 "log_softmax mish relu rsqrt selu sigmoid silu sin sinh softmax softplus sqrt square tan tanh").split()
        for name in names:
            with self.subTest(function=name):
                f = getattr(F, name)
                variable = Variable(x)
                y = f(variable)
                gy = random.rand(*y.shape)
                y.grad = gy
                y.backward()
                np.testing.assert_allclose(host(variable.grad), self.numerical(f, x, gy), rtol=1e-4, atol=1e-5)

    def test_gradients_of_gradients(self):
        x = Variable(np.array([0.5, 2.0]))
        (gx,) = rensa.grad([F.sum(x * x * x)], [x], enable_double_backprop=True)
        (ggx,) = rensa.grad([F.sum(gx)], [x])
        np.testing.assert_allclose(host(ggx), [3, 12])

    def test_operators(self):
        a, b = np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])
        x = Variable(a)
        for ours, theirs in [(x + b, a + b), (b - x, b - a), (2 / x, 2 / a), (x ** 3, a ** 3), (-x, -a), (abs(x), a),
                             (b @ x, b @ a), (b * x, b * a), (x[0, ::-1], a[0, ::-1]), (x[:, [1]], a[:, [1]])]:
            self.assertIsInstance(ours, Variable)
            np.testing.assert_allclose(host(ours), theirs)
        np.testing.assert_array_equal(host(x > 1), a > 1)
        self.assertEqual(len(x), 1)

    def test_a_function_of_ones_own(self):
        class Cube(rensa.FunctionNode):
            def forward(self, inputs):
                self.retain_inputs([0])
                return inputs[0] ** 3

            def backward(self, indexes, grad_outputs):
                (x,) = self.get_retained_inputs()
                return 3 * x * x * grad_outputs[0]

        x = Variable(np.array([1.0, 2.0]))
        (y,) = Cube().apply((x,))
        y.grad = np.ones(2)
        y.backward(enable_double_backprop=True)
        np.testing.assert_allclose(host(x.grad), [3, 12])
        (gg,) = rensa.grad([F.sum(x.grad_var)], [x])
        np.testing.assert_allclose(host(gg), [6, 12])

    def test_what_a_function_throws_comes_back(self):
        class Broken(rensa.FunctionNode):
            def forward(self, inputs):
                raise KeyError("of the function's own")

        with self.assertRaisesRegex(KeyError, "of the function's own"):
            Broken().apply((np.ones(2),))

    def test_forget_computes_again(self):
        calls = []

        def block(x):
            calls.append(1)
            return F.tanh(x) * 2

        x = Variable(np.array([0.3]))
        y = F.forget(block, x)
        y.backward()
        self.assertEqual(len(calls), 2)
        np.testing.assert_allclose(host(x.grad), 2 / np.cosh(0.3) ** 2)

    def test_no_backprop_mode(self):
        with rensa.no_backprop_mode():
            y = F.exp(Variable(np.ones(2)))
        self.assertIsNone(y.creator)
        with rensa.using_config("train", False):
            np.testing.assert_array_equal(host(F.dropout(Variable(np.ones(100)))), 1)
        for value in (True, "x3", False):
            with rensa.using_config("tf32", value):
                self.assertEqual(rensa.config.tf32, value)
        for value in ("three", 3):
            with self.assertRaises(TypeError):
                rensa.config.tf32 = value


@on_gpu_too
class Links(unittest.TestCase):
    def test_members_have_names(self):
        model = L.Classifier(MLP())
        self.assertEqual([name for name, _ in model.namedparams()],
                         ["/predictor/l1/W", "/predictor/l1/b", "/predictor/l2/W", "/predictor/l2/b"])
        self.assertEqual([name for name, _ in model.namedlinks()], ["/", "/predictor", "/predictor/l1", "/predictor/l2"])
        self.assertIs(model.predictor["l1"], model.predictor.l1)
        self.assertEqual(len(list(model.links())), 4)

    def test_every_link_of_the_engine_is_called(self):
        image = np.random.RandomState(0).rand(2, 4, 9, 9).astype("float32")
        rows = image.reshape(2, -1)[:, :12]
        for link, x in [(L.Linear(5), rows), (L.Linear(None, 5), rows), (L.Linear(12, 5), rows),
                        (L.Convolution2D(4, 3, 3), image), (L.Convolution2D(None, 3, 3, stride=2, pad=1), image),
                        (L.Deconvolution2D(4, 3, 3), image), (L.DepthwiseConvolution2D(4, 2, 3), image),
                        (L.DilatedConvolution2D(4, 3, 3, dilate=2), image), (L.BatchNormalization(4), image),
                        (L.LayerNormalization(12), rows), (L.GroupNormalization(2, 4), image), (L.PReLU(()), rows),
                        (L.Maxout(12, 3, 2), rows), (L.Highway(12), rows), (L.LSTM(12, 3), rows),
                        (L.StatefulGRU(12, 3), rows), (L.Scale(1, (4,)), image), (L.Bias(1, (4,)), image),
                        (L.Inception(4, 2, 2, 2, 2, 2, 2), image), (L.MultiHeadAttention(12, 3), rows[None]),
                        (L.TransformerEncoderLayer(12, 3), rows[None]), (L.MLPConvolution2D(4, (3, 2), 3), image)]:
            with self.subTest(link=repr(link)):
                link(x)  # recurrent ones have a state from then on
                y = link(x)
                self.assertTrue(np.isfinite(host(y)).all())
                y.grad = np.ones(y.shape, "float32")
                link.cleargrads()
                y.backward()
                for name, parameter in link.namedparams():
                    self.assertIsNotNone(parameter.grad, name)

    def test_sequences(self):
        layer = L.NStepLSTM(2, 3, 5, 0.0)
        xs = [np.ones((n, 3), "float32") for n in (4, 2)]
        hy, cy, ys = layer(None, None, xs)
        self.assertEqual([y.shape for y in ys], [(4, 5), (2, 5)])
        self.assertEqual((hy.shape, cy.shape), ((2, 2, 5), (2, 2, 5)))

    def test_networks_by_name(self):
        net = L.ResNet50Layers(classes=10, width=8)
        self.assertEqual(net.fc6.W.shape[0], 10)
        self.assertIn("/conv1/W", [name for name, _ in net.namedparams()])

    def test_own_parameters_and_persistents(self):
        class Scaled(Chain):
            def __init__(self):
                super().__init__()
                self.add_persistent("calls", 0)
                self.add_persistent("mean", np.zeros(3, "float32"))
                with self.init_scope():
                    self.scale = rensa.Parameter(initializers.Constant(2), (3,))

            def forward(self, x):
                self.calls += 1
                self.mean = 0.5 * self.mean + 0.5 * xp.mean(x.array, axis=0)
                return x * F.broadcast_to(self.scale, x.shape)

        link = Scaled()
        y = link(Variable(np.ones((4, 3), "float32")))
        np.testing.assert_array_equal(host(y), 2)
        np.testing.assert_array_equal(host(link.mean), 0.5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "link.npz")
            serializers.save_npz(path, link)
            self.assertEqual(sorted(np.load(path).files), ["calls", "mean", "scale"])
            other = Scaled()
            serializers.load_npz(path, other)
        self.assertEqual(other.calls, 1)
        np.testing.assert_array_equal(host(other.mean), 0.5)

    def test_copies(self):
        model = L.Classifier(MLP())
        model(np.ones((2, 6), "float32"), np.zeros(2, "int32"))
        deep, shared, fresh = model.copy("copy"), model.copy(), model.copy("init")
        self.assertIsInstance(deep.predictor, MLP)
        self.assertIsNot(deep.predictor.l1, model.predictor.l1)
        before = host(model.predictor.l2.W).copy()
        model.predictor.l2.W.array[...] = 7
        np.testing.assert_array_equal(host(deep.predictor.l2.W), before)
        np.testing.assert_array_equal(host(shared.predictor.l2.W), 7)
        self.assertFalse((host(fresh.predictor.l2.W) == before).all())

    def test_lists(self):
        layers = ChainList(L.Linear(3, 4), L.Linear(4, 2))
        self.assertEqual([name for name, _ in layers.namedparams()], ["/0/W", "/0/b", "/1/W", "/1/b"])
        net = Sequential(L.Linear(3, 4), F.relu, L.Linear(4, 2))
        x = np.ones((1, 3), "float32")
        copied = net.copy("copy")
        np.testing.assert_array_equal(host(net(x)), host(copied(x)))
        net[2].b.array[...] = 1
        self.assertFalse((host(net(x)) == host(copied(x))).all())
        self.assertEqual(len(Sequential(L.Linear(3, 3), F.relu).repeat(3)), 6)

    def test_a_size_that_is_none_is_found_at_the_first_call(self):
        for link, x in ((L.Linear(None, 2), np.ones((1, 3), "f")), (L.Swish(None), np.ones((4, 3, 2), "f"))):
            link(x)
            for parameter in link.params():
                self.assertIn(parameter.shape, [(2, 3), (2,), (3, 2)])

    def test_errors_name_what_is_wrong(self):
        with self.assertRaisesRegex(rensa.ShapeError, r"linear.*\(2, 3\).*\(4, 5\)"):
            F.linear(np.ones((2, 3), "f"), np.zeros((4, 5), "f"))
        with self.assertRaisesRegex(AttributeError, "has no attribute 'V'"):
            L.Linear(3, 4).V
        with self.assertRaisesRegex(TypeError, "no forward"):
            Chain()(1)
        with self.assertRaisesRegex(ValueError, "share"):
            MLP().copy("deep")
        with self.assertRaisesRegex(rensa.NotImplementedError, "Own: serialize .* add_persistent"):
            type("Own", (Chain,), {"serialize": lambda self, serializer: None})()
        link = L.Linear(3, 4)
        with self.assertRaisesRegex(AttributeError, "by .array"):
            link.W = np.zeros((4, 3))


@on_gpu_too
class Training(unittest.TestCase):
    def test_a_trainer_trains(self):
        _, losses = trained(epochs=30)
        self.assertLess(np.mean(losses[-4:]), np.mean(losses[:4]))

    def test_captured_is_eager_bit_for_bit(self):
        eager, eager_losses = trained(epochs=5)
        captured, losses = trained(epochs=5, capture=True, replay_lists=True)
        self.assertEqual(eager_losses, losses)
        for one, other in zip(eager.params(), captured.params()):
            np.testing.assert_array_equal(host(one), host(other))

    def test_a_captured_function(self):
        model = MLP()
        optimizer = optimizers.SGD()
        optimizer.setup(model)

        @rensa.capture
        def eager(x):
            return F.sum(model(x))

        def step(x):
            loss = F.sum(model(x) * model(x))
            model.cleargrads()
            loss.backward()
            optimizer.update()
            return loss

        recorded = rensa.capture(step, replay_lists=True)
        x = np.ones((2, 6), "float32")
        losses = [float(host(recorded(x))) for _ in range(8)]
        self.assertGreater(recorded.stats["replays"], 3, recorded.stats)
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(eager(x).shape, ())

    def test_an_updater_of_ones_own(self):
        class Own(training.updaters.StandardUpdater):
            def update_core(self):
                batch = self.get_iterator("main").next()
                x = np.stack([np.asarray(example[0]) for example in batch])
                t = np.array([int(example[1]) for example in batch], "int32")
                self.get_optimizer("main").update(self.get_optimizer("main").target, x, t)

        model = L.Classifier(MLP())
        optimizer = optimizers.SGD()
        optimizer.setup(model)
        updater = Own(iterators.SerialIterator(examples(), 16), optimizer)
        updater.update()
        self.assertEqual((updater.iteration, optimizer.t), (1, 1))

    def test_replicas_on_the_cpu(self):
        model = L.Classifier(MLP())
        optimizer = optimizers.SGD(lr=0.05)
        optimizer.setup(model)
        updater = training.updaters.ParallelUpdater(
            iterators.SerialIterator(examples(), 16), optimizer, devices={"main": -1, "second": -1})
        for _ in range(4):
            updater.update()
        self.assertEqual(updater.iteration, 4)
        self.assertTrue(all(np.isfinite(host(p)).all() for p in model.params()))

    def test_replicas_are_as_one_device(self):
        start = MLP()
        start(np.stack([np.asarray(example[0]) for example in examples()[:4]]))  # makes its parameters

        def trained(**options):
            model = L.Classifier(start.copy("copy"))
            optimizer = optimizers.SGD(lr=0.05).setup(model)
            iterator = iterators.SerialIterator(examples(), 16, shuffle=False)
            if options:
                devices = {"main": -1, "second": -1}
                updater = training.updaters.ParallelUpdater(iterator, optimizer, devices=devices, reduction="mean", **options)
            else:
                updater = training.updaters.StandardUpdater(iterator, optimizer)
            for _ in range(3):
                updater.update()
            return [host(parameter) for parameter in model.params()]

        want = trained()
        for options in ({"accumulate": 1}, {"accumulate": 2}, {"update_on_main": True}, {"pack_bytes": 1}):
            for one, other in zip(trained(**options), want):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
        with self.assertRaisesRegex(ValueError, "packs of 0 bytes"):
            trained(pack_bytes=0)

    def test_resume_is_exact(self):
        def run(folder, epochs):
            xp.random.seed(5)
            model = L.Classifier(MLP())
            optimizer = optimizers.Adam()
            optimizer.setup(model)
            iterator = iterators.SerialIterator(examples(), 16)
            trainer = training.Trainer(training.updaters.StandardUpdater(iterator, optimizer), (epochs, "epoch"), out=folder)
            trainer.extend(extensions.snapshot(filename="snapshot", autoload=True))
            trainer.extend(extensions.LogReport())
            trainer.run()
            return model

        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            straight = run(a, 4)
            run(b, 2)
            resumed = run(b, 4)
        for one, other in zip(straight.params(), resumed.params()):
            np.testing.assert_array_equal(host(one), host(other))

    def test_what_objects_of_pythons_serialize_is_resumed(self):
        class Best(training.Extension):
            trigger = (1, "epoch")
            best, at, words, sums, calls = None, 0, "none", np.zeros(2, "float32"), xp.zeros(())

            def __call__(self, trainer):
                loss = float(trainer.observation["main/loss"].item())
                self.at, self.words = trainer.updater.iteration, f"at {trainer.updater.iteration}"
                self.best = loss if self.best is None else min(self.best, loss)
                self.sums = self.sums + np.float32([1, loss])
                self.calls = self.calls + 1

            def serialize(self, serializer):
                self.best, self.at = serializer("best", self.best), serializer("at", self.at)
                self.words, part = serializer("words", self.words), serializer["part"]
                self.sums, self.calls = part("sums", self.sums), part("calls", self.calls)

        class Counting(training.updaters.StandardUpdater):
            steps = 0

            def update_core(self):
                self.steps += 1
                optimizer = self.get_optimizer("main")
                optimizer.update(optimizer.target, *rensa.converters.concat_examples(self.get_iterator("main").next()))

            def serialize(self, serializer):
                super().serialize(serializer)
                self.steps = serializer("steps", self.steps)

        class Rows:  # an iterator of Chainer's kind
            batch_size, epoch, is_new_epoch, at = 16, 0, False, 0

            def next(self):
                rows = list(examples()[self.at:self.at + 16])
                self.at = (self.at + 16) % len(examples())
                self.is_new_epoch = self.at == 0
                self.epoch += self.is_new_epoch
                return rows

            @property
            def epoch_detail(self):
                return self.epoch + self.at / len(examples())

            def serialize(self, serializer):
                self.epoch, self.at = serializer("epoch", self.epoch), serializer("at", self.at)

        def run(folder, steps):
            xp.random.seed(5)
            optimizer = optimizers.Adam().setup(L.Classifier(MLP()))
            updater, best = Counting(Rows(), optimizer), Best()
            trainer = training.Trainer(updater, (steps, "iteration"), out=folder)
            trainer.extend(extensions.snapshot(filename="snapshot", autoload=True), trigger=(7, "iteration"))
            trainer.extend(best, trigger=(1, "iteration"))
            trainer.run()
            return [updater.steps, best.at, best.words, best.best, *best.sums, float(best.calls), type(best.sums),
                    *(host(p).sum() for p in optimizer.target.params())]

        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            straight = run(a, 21)
            run(b, 14)
            self.assertEqual(run(b, 21), straight)
        self.assertEqual(straight[:3], [21, 21, "at 21"])

    def test_a_serializer_refuses_what_files_do_not_hold(self):
        class Odd(training.Extension):
            def __call__(self, trainer):
                pass

            def serialize(self, serializer):
                serializer("odd", object())

        with tempfile.TemporaryDirectory() as folder:
            optimizer = optimizers.SGD().setup(L.Classifier(MLP()))
            updater = training.updaters.StandardUpdater(iterators.SerialIterator(examples(), 16), optimizer)
            trainer = training.Trainer(updater, (1, "epoch"), out=folder)
            trainer.extend(Odd())
            with self.assertRaisesRegex(TypeError, 'serialize: "odd" is a .*files hold'):
                rensa.serializers.save_npz(folder + "/a", trainer)

    def test_extensions(self):
        model = L.Classifier(MLP())
        optimizer = optimizers.SGD()
        optimizer.setup(model)
        seen = []

        class Counting(training.Extension):
            trigger = (1, "epoch")

            def initialize(self, trainer):
                seen.append("initialize")

            def __call__(self, trainer_):
                assert trainer_ is trainer
                seen.append(trainer_.updater.epoch)

            def finalize(self):
                seen.append("finalize")

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            updater = training.updaters.StandardUpdater(iterators.SerialIterator(examples(), 16), optimizer)
            trainer = training.Trainer(updater, (3, "epoch"), out=folder)
            trainer.extend(extensions.Evaluator(iterators.SerialIterator(examples(), 16, repeat=False, shuffle=False), model))
            trainer.extend(extensions.LogReport())
            trainer.extend(extensions.PlotReport(["main/loss"], "epoch"))
            trainer.extend(extensions.snapshot_object(model, "model_{.updater.epoch}"), trigger=(1, "epoch"))
            trainer.extend(extensions.ExponentialShift("lr", 0.5), trigger=(1, "epoch"))
            trainer.extend(Counting())
            trainer.run()
            self.assertEqual(sorted(os.listdir(folder)), ["log", "model_1", "model_2", "model_3", "plot.png"])
        self.assertEqual(seen, ["initialize", 1, 2, 3, "finalize"])
        self.assertAlmostEqual(optimizer.lr, 0.01 * 0.125)

    def test_what_an_extension_throws_ends_the_run(self):
        def fails(trainer):
            raise RuntimeError("of the extension's own")

        model = L.Classifier(MLP())
        optimizer = optimizers.SGD()
        optimizer.setup(model)
        trainer = training.Trainer(
            training.updaters.StandardUpdater(iterators.SerialIterator(examples(), 16), optimizer), (1, "epoch"),
            out=tempfile.mkdtemp())
        trainer.extend(fails, trigger=(1, "iteration"))
        with self.assertRaisesRegex(RuntimeError, "of the extension's own"):
            trainer.run()

    def test_hooks(self):
        model = MLP()
        optimizer = optimizers.SGD(lr=1)
        optimizer.setup(model)
        model(np.ones((1, 6), "float32"))
        for parameter in model.params():
            parameter.array[...] = 1
            parameter.grad = np.zeros(parameter.shape, "float32")
        optimizer.add_hook(optimizer_hooks.WeightDecay(0.25))
        called = []
        optimizer.add_hook(lambda o: called.append(o.t), name="mine")
        optimizer.update()
        self.assertEqual(called, [0])  # as Chainer counts: before the update
        np.testing.assert_array_equal(host(model.l2.W), 0.75)

    def test_optimizers(self):
        for name in ("AdaDelta AdaGrad Adam AdamW AMSGrad AdaBound AMSBound CorrectedMomentumSGD MomentumSGD MSVAG "
                     "NesterovAG RMSprop RMSpropGraves SGD SMORMS3").split():
            with self.subTest(optimizer=name):
                x = rensa.Parameter(np.array([1.0], "float32"))
                link = rensa.Link()
                with link.init_scope():
                    link.x = x
                optimizer = getattr(optimizers, name)()
                optimizer.setup(link)
                for _ in range(20):
                    optimizer.update(lambda: F.sum(link.x * link.x))
                self.assertLess(abs(float(host(link.x)[0])), 1)
                self.assertEqual(optimizer.t, 20)

    def test_datasets_of_pythons(self):
        rows = [(np.full(6, i, "float32"), np.int32(i % 4)) for i in range(32)]
        _, losses = trained(epochs=2, dataset=rows)
        self.assertEqual(len(losses), 4)
        batch = iterators.SerialIterator(rows, 3, shuffle=False).next()
        self.assertEqual([int(t) for _, t in batch], [0, 1, 2])

    def test_a_file_of_a_run_of_python(self):
        model, _ = trained()
        with tempfile.TemporaryDirectory() as folder:
            for save, load, name in [(serializers.save_npz, serializers.load_npz, "m.npz"),
                                     (serializers.save_safetensors, serializers.load_safetensors, "m.safetensors")]:
                path = os.path.join(folder, name)
                save(path, model)
                other = L.Classifier(MLP())
                load(path, other)
                for one, two in zip(model.params(), other.params()):
                    np.testing.assert_array_equal(host(one), host(two))


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
