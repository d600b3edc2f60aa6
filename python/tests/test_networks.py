"""Networks: gradients, models of Python's own."""

import os
import tempfile
import unittest

import numpy as np
import rensa
from devices import on_gpu_too
from networks import MLP, host
from rensa import Chain, ChainList, Sequential, Variable, functions as F, initializers, links as L
from rensa import serializers, xp


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


if __name__ == "__main__":
    unittest.main()
