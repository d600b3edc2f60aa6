"""What programs for Chainer call that the listings of the guides do not: forms of calls, bases of classes, pickles."""

import io
import pickle
import unittest

import numpy as np

import rensa
import rensa.compat


class Compat(unittest.TestCase):
    """With the names installed."""

    @classmethod
    def setUpClass(cls):
        rensa.compat.install(gpus="cpu")

    @classmethod
    def tearDownClass(cls):
        rensa.compat.uninstall()


class Names(Compat):
    def test_files_of_chainer_are_modules(self):
        from chainer.functions.loss.softmax_cross_entropy import softmax_cross_entropy
        from chainer.links.connection.linear import Linear
        from chainer.training.updaters.standard_updater import StandardUpdater
        import chainer

        self.assertIs(softmax_cross_entropy, chainer.functions.softmax_cross_entropy)
        self.assertIs(Linear, chainer.links.Linear)
        self.assertIs(StandardUpdater, chainer.training.StandardUpdater)
        self.assertIs(chainer.functions.array.flip.flip, chainer.functions.flip)
        with self.assertRaises(ImportError):
            import chainer.functions.loss.nothing  # noqa: F401

    def test_devices(self):
        import chainer

        cpu = chainer.get_device("@numpy")
        self.assertIsInstance(cpu, chainer.backend.CpuDevice)
        self.assertEqual(cpu.name, "@numpy")
        self.assertIsInstance(cpu.send(rensa.xp.ones(3)), np.ndarray)
        with chainer.using_device(cpu):
            self.assertIs(cpu.xp, np)
        with self.assertRaises(ValueError):
            chainer.get_device("@elsewhere")

    def test_configuration(self):
        import chainer

        with chainer.using_config("use_cudnn", "never"), chainer.using_config("my_own", 3):
            self.assertEqual((chainer.config.use_cudnn, chainer.config.my_own), ("never", 3))
        self.assertFalse(hasattr(chainer.config, "my_own"))
        with chainer.using_config("dtype", chainer.mixed16):
            self.assertIs(chainer.config.dtype, chainer.mixed16)
            self.assertEqual(chainer.links.Linear(2, 3).W.dtype, np.float16)
            self.assertEqual(chainer.links.BatchNormalization(3).gamma.dtype, np.float32)
        self.assertEqual(chainer.get_dtype(chainer.mixed16, map_mixed16=np.float32), np.float32)

    def test_errors_are_invalid_types(self):
        import chainer.functions as F

        for call in (lambda: F.matmul(np.ones((2, 3)), np.ones((2, 3))), lambda: F.sum(np.ones(3), axis=4)):
            with self.assertRaises(rensa.InvalidType):
                call()


class Functions(Compat):
    def test_forms_of_calls(self):
        import chainer.functions as F

        x = np.arange(6, dtype="f").reshape(2, 3)
        self.assertEqual(F.split_axis(x, 1, 0, force_tuple=False).shape, (2, 3))
        self.assertEqual(F.einsum(x, [0, 1], x, [0, 1], [0]).shape, (2,))
        self.assertEqual(F.tensordot(x, x, axes=((0, 1), (0, 1))).shape, ())
        y, mask = F.dropout(x, 0.5, return_mask=True)
        np.testing.assert_array_equal(F.dropout(x, mask=mask).array, y.array)
        loss = F.softmax_cross_entropy(x, np.array([0, 1], "i"), True, False, None, -1, "no", True)
        self.assertEqual(loss.shape, (2,))
        self.assertEqual(F.cast(x, typ="d").dtype, np.float64)
        self.assertEqual(len(F.classification_summary(x, np.array([0, 1], "i"))), 4)

    def test_weights_of_another_dtype(self):
        import chainer

        x, W = chainer.Variable(np.ones((2, 3), "e")), chainer.Parameter(np.ones((4, 3), "f"))
        y = chainer.functions.linear(x, W)
        self.assertEqual(y.dtype, np.float16)
        chainer.functions.sum(y).backward()
        self.assertEqual((x.grad.dtype, W.grad.dtype), (np.float16, np.float32))

    def test_scatter_add(self):
        import chainer.functions as F

        a = rensa.Variable(np.zeros(3))
        y = F.scatter_add(a, [0, 0, 2], np.array([1.0, 2.0, 3.0]))
        self.assertEqual(y.array.tolist(), [3, 0, 3])
        self.assertEqual(F.get_item(np.arange(4.0), np.array([True, False, False, True])).array.tolist(), [0, 3])

    def test_backward_of_several(self):
        import chainer

        x = chainer.Variable(np.array([1.0, 2.0]))
        y, z = x * 2, x * 3
        chainer.backward([y, z], [np.ones(2), None])
        self.assertEqual(x.grad.tolist(), [2, 2])
        x.cleargrad()
        chainer.backward([y, z], [np.ones(2), np.ones(2)])
        self.assertEqual(x.grad.tolist(), [5, 5])
        x.cleargrad()
        chainer.backward([y, y], [np.ones(2), np.ones(2)])
        self.assertEqual(x.grad.tolist(), [4, 4])
        chainer.backward([x, x, y], [np.ones(2), np.ones(2), np.ones(2)])
        self.assertEqual(x.grad.tolist(), [4, 4])
        with self.assertRaises(ValueError):
            chainer.backward([y, z], [np.ones(2)])

    def test_variables(self):
        import chainer

        x = chainer.Variable(np.ones(2, "f"))
        x.requires_grad = False
        self.assertFalse((x * 2).requires_grad)
        with self.assertRaises(ValueError):
            (chainer.Variable(np.ones(2, "f")) * 2).requires_grad = False
        self.assertIsNone(chainer.Variable(None).array)
        x.name, x.grad = "x", np.full(2, 3, "f")
        made = pickle.loads(pickle.dumps(x))
        self.assertEqual((made.array.tolist(), made.name, made.grad.tolist(), made.requires_grad), ([1, 1], "x", [3, 3], False))

    def test_functions_of_ones_own(self):
        import chainer

        class Twice(chainer.FunctionNode):
            def forward_cpu(self, inputs):
                return (inputs[0] * 2,)

            def backward_accumulate(self, indexes, grad_outputs, grad_inputs):
                return (grad_outputs[0] * 2,)

        x = chainer.Variable(np.ones(2))
        (y,) = Twice().apply((x,))
        chainer.functions.sum(y).backward()
        self.assertEqual((x.grad.tolist(), y.creator.label), ([2, 2], "Twice"))
        (g,) = chainer.grad([y], [x], [chainer.Variable(np.ones(2))], [chainer.Variable(np.ones(2))], set_grad=True)
        self.assertEqual((g.array.tolist(), x.grad.tolist()), ([3, 3], [3, 3]))

    def test_function_hooks(self):
        import chainer

        class Told(chainer.FunctionHook):
            def __init__(self):
                self.told = []

            def forward_preprocess(self, function, in_data):
                self.told.append((function.label, in_data[0].shape))

            def backward_postprocess(self, function, in_data, out_grad):
                self.told.append((function.label + ", backward", out_grad[0].shape))

        x = chainer.Variable(np.ones((2, 3)))
        timer = chainer.function_hooks.TimerHook()
        with Told() as hook, timer:
            chainer.functions.exp(x).sum().backward()
        self.assertEqual([hook.told[0], hook.told[-1]], [("exp", (2, 3)), ("exp, backward", (2, 3))])
        self.assertEqual(timer.call_history[0][0], "exp")
        self.assertEqual(timer.summary()["exp"]["occurrence"], 1)

    def test_link_hooks(self):
        import chainer
        from chainer import functions as F, link_hooks, links as L

        class Told(chainer.LinkHook):
            name = "Told"

            def __init__(self):
                self.told = []

            def added(self, link):
                self.told.append(("added", link))

            def deleted(self, link):
                self.told.append(("deleted", link))

            def forward_preprocess(self, args):
                self.told.append((args.forward_name, args.link, args.args, args.kwargs))

            def forward_postprocess(self, args):
                self.told.append(("out", args.out))

        class Net(chainer.Chain):
            def __init__(self):
                super().__init__()
                with self.init_scope():
                    self.l1 = L.Linear(3, 2)

            def forward(self, x, twice=False):
                y = F.relu(self.l1(x))
                return (y, y) if twice else y

        net, x = Net(), chainer.Variable(np.ones((2, 3), "f"))
        for link in (net, net.l1):  # of Python's, and of the engine's
            hook = Told()
            link.add_hook(hook)
            self.assertEqual(link.local_link_hooks, {"Told": hook})
            with self.assertRaisesRegex(ValueError, "Told"):
                link.add_hook(Told())
            y = net(x)
            self.assertEqual([told[0] for told in hook.told], ["added", "forward", "out"])
            self.assertIs(hook.told[1][1], link)
            self.assertEqual((len(hook.told[1][2]), hook.told[1][3]), (1, {}))
            np.testing.assert_array_equal(hook.told[1][2][0].array, x.array)
            np.testing.assert_array_equal(F.relu(hook.told[2][1]).array, y.array)
            link.copy()(x)
            self.assertEqual(len(hook.told), 5)  # copies have it
            link.delete_hook("Told")
            net(x)
            self.assertEqual((len(hook.told), hook.told[-1][0], link.local_link_hooks), (6, "deleted", {}))
        with Told() as hook:
            y = net(x, twice=True)
        self.assertEqual([told[0] for told in hook.told], ["added", "forward", "forward", "out", "out", "deleted"])
        self.assertEqual((hook.told[1][3], hook.told[4][1]), ({"twice": True}, y))

        class Throws(chainer.LinkHook):
            def forward_preprocess(self, args):
                raise KeyError("of the hook")

        with self.assertRaisesRegex(KeyError, "of the hook"), Throws():
            net(x)
        net(x)
        with link_hooks.TimerHook() as timer:
            net(x)
        self.assertEqual([name for name, _ in timer.call_history], ["Linear", "Net"])
        with self.assertRaisesRegex(NotImplementedError, "takes no hooks"):
            L.LSTM(2, 2).add_hook(Told())

    def test_hooks_that_normalize_weights(self):
        import chainer
        from chainer import link_hooks, links as L

        W, x = np.diag([3, 1, 0.5, 0.25]).astype("f")[:3] + 0.1, np.eye(4, dtype="f")
        layer = L.Linear(4, 3, initialW=W)
        layer.add_hook(link_hooks.SpectralNormalization(n_power_iteration=50))
        np.testing.assert_allclose(layer(x).array.get(), W.T / np.linalg.svd(W)[1][0], rtol=1e-3, atol=1e-5)
        self.assertIn("SpectralNormalization", layer.local_link_hooks)
        self.assertEqual(layer.W_u.shape, (3,))
        layer.delete_hook("SpectralNormalization")
        layer.add_hook(link_hooks.WeightStandardization(eps=0, name="even"))
        even = (W - W.mean(1, keepdims=True)) / W.std(1, keepdims=True)
        np.testing.assert_allclose(layer(x).array.get(), even.T, rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(NotImplementedError, "parts of"):
            chainer.Chain(l1=layer).add_hook(link_hooks.SpectralNormalization())

    def test_gradient_check(self):
        from chainer import FunctionNode, functions as F, gradient_check

        class Wrong(FunctionNode):
            def forward(self, inputs):
                return (inputs[0] * 2,)

            def backward(self, indexes, grad_outputs):
                return (3 * grad_outputs[0],)

        x = np.array([[0.3, -0.7], [1.1, 0.2]])
        gradient_check.check_backward(F.tanh, x, np.ones((2, 2)))
        gradient_check.check_double_backward(lambda a, b: a * F.sin(b), (x, x + 1), np.ones((2, 2)))
        with self.assertRaises(AssertionError):
            gradient_check.check_backward(lambda a: Wrong().apply((a,))[0], x, np.ones((2, 2)))
        (gradient,) = gradient_check.numerical_grad(lambda: (x * x,), (x,), (np.ones((2, 2)),))
        np.testing.assert_allclose(gradient, 2 * x, rtol=1e-6)


class Links(Compat):
    def test_short_forms(self):
        import chainer.links as L

        conv = L.Convolution2D(4, 3, nobias=True)
        self.assertIsNone(conv.b)
        self.assertEqual(conv(np.ones((1, 2, 5, 5), "f")).shape, (1, 4, 3, 3))
        self.assertEqual(conv.ksize, (3, 3))
        self.assertEqual(L.EmbedID(3, 4, ignore_label=1).ignore_label, 1)
        self.assertIsNone(L.BatchNormalization(3, use_gamma=False).gamma)
        made = L.Convolution2D.from_params(np.ones((4, 3, 2, 2), "f"), np.ones(4, "f"), stride=2)
        self.assertEqual(made(np.ones((1, 3, 4, 4), "f")).array[0, 0].tolist(), [[13, 13], [13, 13]])

    def test_lists_of_layers(self):
        import chainer
        from chainer import functions as F, links as L

        net = chainer.Sequential(L.Linear(2, 2), F.relu) + chainer.Sequential(L.Linear(2, 1))
        self.assertEqual((len(net), net.count(F.relu), net.index(F.relu), net.count_by_layer_type("Linear")), (3, 1, 1, 2))
        net[1] = F.tanh
        net.remove_by_layer_type("Linear")
        self.assertEqual(list(net), [F.tanh])
        with self.assertRaises(IndexError):
            net.insert(3, F.relu)
        links = chainer.ChainList(L.Linear(2, 2), L.Linear(2, 3))
        links[0] = L.Linear(2, 4)
        del links[1]
        links += [L.Linear(2, 5)]
        self.assertEqual([path for path, _ in links.namedparams()], ["/0/W", "/0/b", "/1/W", "/1/b"])
        self.assertEqual([link.name for link in links], ["0", "1"])

    def test_layers_of_lists(self):
        import chainer.links as L

        lstm = L.NStepLSTM(2, 3, 4, 0.1)
        self.assertEqual([layer.w0.shape for layer in lstm], [(4, 3), (4, 4)])
        self.assertEqual((len(lstm.ws), len(lstm.bs[0]), lstm.n_cells), (2, 8, 2))
        self.assertEqual(len(L.MLPConvolution2D(3, (4, 5), 1)), 2)
        c, h, x = (np.ones((2, n), "f") for n in (4, 4, 3))
        self.assertEqual(L.ChildSumTreeLSTM(3, 4)(c, c, h, h, x)[0].shape, (2, 4))

    def test_a_parameter_in_place_of_another(self):
        import chainer

        link = chainer.links.Linear(2, 1, nobias=True)
        W = chainer.Parameter(np.array([[2.0, 3.0]], "f"))
        with link.init_scope():
            link.W = W
        y = link(np.ones((1, 2), "f"))
        y.backward()
        self.assertIs(link.W, W)
        self.assertEqual((y.item(), W.grad.tolist()), (5, [[1, 1]]))
        with self.assertRaises(TypeError), link.init_scope():
            link.other = chainer.Parameter(np.ones(1, "f"))

    def test_pickles(self):
        import chainer

        optimizer = chainer.optimizers.Adam()
        model = Model()
        optimizer.setup(model)
        x = np.ones((1, 2), "f")
        optimizer.update(model, x)
        again = pickle.loads(pickle.dumps(optimizer))
        self.assertEqual(again.t, 1)
        self.assertEqual(again.target(x).item(), model(x).item())
        self.assertEqual(again.target.q.tolist(), [0, 0])
        optimizer.update(model, x), again.update(again.target, x)
        self.assertEqual(again.target.p.array.tolist(), model.p.array.tolist())

    def test_initializers_are_classes(self):
        import chainer

        class Own(chainer.Initializer):
            def __call__(self, array):
                array[...] = 7

        self.assertEqual(chainer.links.Linear(2, 3, initialW=Own("d")).W.array.tolist(), [[7, 7]] * 3)
        self.assertEqual(chainer.links.Linear(2, 3, initialW=Own("d")).W.dtype, np.float64)
        self.assertTrue(issubclass(chainer.initializers.HeNormal, chainer.Initializer))
        made = chainer.initializers.generate_array(chainer.initializers.Constant(2), (2,), np, dtype="f")
        self.assertEqual((made.tolist(), made.dtype), ([2, 2], np.float32))


def make_model():
    import chainer

    class Model(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l = chainer.links.Linear(2, 3)
                self.p = chainer.Parameter(np.ones(3, "f"))
            self.add_persistent("q", np.zeros(2))

        def forward(self, x):
            return chainer.functions.sum(self.l(x) + self.p)

    Model.__qualname__ = "Model"
    return Model


class Optimizers(Compat):
    def test_hyperparameters_and_rules(self):
        import chainer

        link = chainer.links.Linear(2, 1)
        optimizer = chainer.optimizers.Adam(alpha=0.1)
        self.assertIsNone(link.W.update_rule)
        optimizer.setup(link)
        self.assertEqual(optimizer.hyperparam.alpha, 0.1)
        optimizer.hyperparam.alpha = 0.2
        self.assertEqual((optimizer.alpha, link.W.update_rule.hyperparam.alpha), (0.2, 0.2))
        link.W.update_rule.hyperparam.alpha = 0.3
        self.assertEqual(optimizer.alpha, 0.2)
        optimizer.update(lambda: chainer.functions.sum(link(np.ones((1, 2), "f"))))
        self.assertEqual(set(link.W.update_rule.state), {"m", "v"})
        self.assertEqual(link.W.update_rule.t, 1)
        with self.assertRaisesRegex(TypeError, "must be a link"):
            optimizer.setup("model")


class Training(Compat):
    def test_updaters_and_iterators_of_python(self):
        from chainer import dataset, training

        class Numbers(dataset.Iterator):
            epoch, is_new_epoch, epoch_detail, previous_epoch_detail = 0, False, 0.0, None

            def __next__(self):
                self.epoch_detail += 0.5
                self.epoch = int(self.epoch_detail)
                self.is_new_epoch = self.epoch_detail == self.epoch
                return [np.ones(2, "f")] * 3

        class Updater(training.Updater):
            iteration, epoch, is_new_epoch, epoch_detail, previous_epoch_detail = 0, 0, False, 0.0, None

            def update(self):
                self.iteration += 1

            def get_all_optimizers(self):
                return {}

        trainer, told = training.Trainer(Updater(), (3, "iteration"), extensions=[]), []
        trainer.extend(lambda trainer: told.append(trainer.updater.iteration), name="tell", trigger=(1, "iteration"))
        trainer.run()
        self.assertEqual(told, [1, 2, 3])
        self.assertTrue(callable(trainer.get_extension("tell")))

        model = rensa.links.Linear(2, 1)
        updater = training.updaters.StandardUpdater(Numbers(), rensa.optimizers.SGD().setup(model),
                                                    loss_func=lambda x: rensa.functions.sum(model(x)))
        updater.update(), updater.update()
        self.assertEqual((updater.epoch, updater.is_new_epoch), (1, True))

    def test_iterators_give_the_examples_themselves(self):
        from chainer import iterators

        examples = [{"a": 1}, "b", (1, 2)]
        iterator = iterators.SerialIterator(examples, 2, shuffle=False)
        self.assertEqual(iterator.next(), examples[:2])
        self.assertIs(iterator.dataset, examples)
        order = iterators.SerialIterator(list(range(4)), 4, order_sampler=lambda order, place: np.arange(4)[::-1])
        self.assertEqual(order.next(), [3, 2, 1, 0])
        self.assertEqual(len(iterators.MultiprocessIterator(list(range(4)), 2, n_processes=1).next()), 2)

    def test_extensions(self):
        from chainer import training
        from chainer.training import extensions, triggers

        class Twice(extensions.Evaluator):
            def evaluate(self):
                return {name + "/twice": 2 * value for name, value in super().evaluate().items()}

        model = rensa.links.Classifier(rensa.links.Linear(2, 2))
        data = rensa.datasets.TupleDataset(np.ones((4, 2), "f"), np.zeros(4, "i"))
        evaluator = Twice(rensa.iterators.SerialIterator(data, 2, repeat=False, shuffle=False), model)
        self.assertEqual(set(evaluator()), {"main/loss/twice", "main/accuracy/twice"})
        with self.assertRaises(NotImplementedError):
            extensions.snapshot(condition=lambda: True)
        extensions.PlotReport(["main/loss"], "epoch", (1, "epoch"), None, "a.png", "x", True)
        report = extensions.LogReport(None, (1, "iteration"), lambda means: means.update(double=2 * means["x"]), None or "log")
        self.assertEqual(report.default_name, "LogReport")
        self.assertEqual(str(triggers.IntervalTrigger(2, "epoch")), "IntervalTrigger(2, 'epoch')")
        self.assertIsInstance(training.get_trigger((1, "epoch")), type(triggers.IntervalTrigger(1, "epoch")))

    def test_reporters(self):
        import chainer

        link = chainer.links.Linear(2, 3)
        reporter, observation = chainer.Reporter(), {}
        reporter.add_observer("l", link)
        with reporter.scope(observation):
            chainer.report({"loss": 1.5}, link)
        self.assertEqual(float(observation["l/loss"]), 1.5)
        summary = chainer.DictSummary()
        summary.add({"a": 1.0}), summary.add({"a": 3.0, "word": "left out"})
        self.assertEqual(float(summary.compute_mean()["a"]), 2)

    def test_files(self):
        from chainer import serializers

        file, model, other = io.BytesIO(), rensa.links.Linear(2, 3), rensa.links.Linear(2, 3)
        serializers.save_npz(file, model)
        file.seek(0)
        serializers.load_npz(file, other)
        self.assertEqual(other.W.array.tolist(), model.W.array.tolist())

    def test_parts_of_datasets(self):
        from chainer import datasets

        folds = datasets.get_cross_validation_datasets([1, 2, 3, 4], 2)
        self.assertEqual([[int(i) for i in test[:]] for _, test in folds], [[3, 4], [1, 2]])
        self.assertEqual([int(i) for i in datasets.split_dataset([1, 2, 3], 1, [2, 1, 0])[0][:]], [3])


def setUpModule():
    global Model
    rensa.compat.install(gpus="cpu")
    Model = make_model()
    rensa.compat.uninstall()


if __name__ == "__main__":
    unittest.main()
