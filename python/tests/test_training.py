"""Training: optimizers, the Trainer, files."""

import contextlib
import io
import os
import tempfile
import unittest

import numpy as np
import rensa
from devices import on_gpu_too
from networks import MLP, examples, host
from rensa import functions as F, iterators, links as L, optimizer_hooks, optimizers
from rensa import serializers, training, xp
from rensa.training import extensions


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


if __name__ == "__main__":
    unittest.main()
