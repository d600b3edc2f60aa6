"""The listings of the founding texts run as they are printed, where their folder is at hand (RENSA_FOUNDING_TEXTS, or
../shared/texts beside the repository). Where there are no GPUs the CPU stands for them."""

import ast
import contextlib
import io
import os
import pathlib
import re
import tempfile
import tokenize
import unittest

import numpy as np
import rensa
import rensa.compat

FOLDER = pathlib.Path(os.environ.get("RENSA_FOUNDING_TEXTS",
                                     pathlib.Path(__file__).resolve().parents[3] / "shared" / "texts"))


def program_in(part):
    """The program that a part of a text begins with, or None: words alone, of the sentence behind it, are names to
    Python."""
    try:
        body = ast.parse(part).body
    except SyntaxError:
        return None
    lines = [node.end_lineno for node in body if not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call)]
    return "\n".join(part.split("\n")[:lines[-1]]) if lines else None


def listings(path):
    """The programs in a text: paragraphs that are code, with the indented ones behind them."""
    parts = re.split(r"\n\s*\n(?=\S)", path.read_text().replace("\r\n", "\n"))
    return [program for program in (program_in(part.strip("\n")) for part in parts) if program]


# Between these words a statement goes on.
WITHIN = {"in", "and", "or", "not", "is", "if", "else", "for", "as", "import", "from", "return", "class", "def", "lambda"}


def with_lines(text):
    """Classes that have lost the ends of their lines, with them: a statement begins where an operand follows another,
    and a comment ends where a name is assigned to."""
    text = re.sub(r"# .*?(?=\b\w+ = )", "", text)
    result, depth, before, indent = "", 0, None, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT, tokenize.NL):
            continue
        starts = token.type in (tokenize.NAME, tokenize.STRING) and token.string not in WITHIN - {"return", "class", "def"}
        ends = before is not None and (before.type in (tokenize.NUMBER, tokenize.STRING) or before.string in ")]:" or
                                       before.type == tokenize.NAME and before.string not in WITHIN)
        if depth == 0 and starts and ends:
            if token.string == "class":
                indent = 0
            elif token.string == "def":
                indent = 4
            elif before.string == ":":
                indent += 4
            result += "\n" + " " * indent
        elif before is not None and token.start != before.end:
            result += " "
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.type != tokenize.STRING or not token.string.startswith('"""'):
            result += token.string
        else:
            result += '"""' + token.string[3:-3].strip() + '"""'
        before = token
    return re.sub(r"\n +(cuda|model)\b", r"\n\1", result)  # what stands behind the classes


def text_of(number):
    found = sorted(FOLDER.glob(f"{number}_*.txt"))
    if not found:
        raise unittest.SkipTest(f"the founding texts are not in {FOLDER}")
    return found[0]


class Listings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gpus = rensa.num_gpus()
        rensa.compat.install(gpus=None if cls.gpus >= 2 else "cpu")

    @classmethod
    def tearDownClass(cls):
        rensa.compat.uninstall()
        rensa.Device("cpu").use()  # a text leaves another one current

    def data(self):
        """What the texts take from their earlier chapters."""
        random = np.random.RandomState(0)
        x, t = random.rand(400, 784).astype("float32"), random.randint(0, 10, 400).astype("int32")
        return {"np": np, "numpy": np, "x_train": x, "y_train": t}

    def run_all(self, number, names):
        """Runs every listing of a text in one namespace, and gives how many there were."""
        count = 0
        folder = os.getcwd()
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            try:
                for listing in listings(text_of(number)):
                    if "get_as_parameter" in listing and not hasattr(np.ones(1).ctypes, "get_as_parameter"):
                        continue  # NumPy 2.5 has it no more
                    with self.subTest(listing=listing[:60]), contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(listing, f"text {number}, listing {count}", "exec"), names)
                        count += 1
            finally:
                os.chdir(folder)
        return count

    def test_guide_of_today(self):
        names = self.data()
        import chainer
        import cupy

        class MLP(chainer.Chain):
            def __init__(self, n_units, n_out):
                super().__init__()
                with self.init_scope():
                    self.l1 = chainer.links.Linear(None, n_units)
                    self.l2 = chainer.links.Linear(None, n_units)
                    self.l3 = chainer.links.Linear(None, n_out)

            def forward(self, x):
                h = chainer.functions.relu(self.l1(x))
                return self.l3(chainer.functions.relu(self.l2(h)))

        model = chainer.links.Classifier(MLP(20, 10))
        optimizer = chainer.optimizers.SGD()
        optimizer.setup(model)
        dataset = chainer.datasets.TupleDataset(names["x_train"], names["y_train"])
        names.update(cupy=cupy, MLP=MLP, model=model, optimizer=optimizer,
                     train_iter=chainer.iterators.SerialIterator(dataset, 100),
                     test_iter=chainer.iterators.SerialIterator(dataset, 100, repeat=False, shuffle=False))
        count = self.run_all("001", names)
        self.assertGreaterEqual(count, 18)
        self.assertEqual(names["x_on_gpu1"].get().tolist(), [1, 2, 3, 4, 5])
        x = np.array([-1000.0, 0.0, 1000.0])
        np.testing.assert_allclose(names["softplus"](x), [0, np.log(2), 1000])
        main, second = names["model_0"], names["model_1"]
        for one, other in zip(main.params(), second.params()):
            np.testing.assert_array_equal(one.array.get(), other.array.get())
        parallel = names["ParallelMLP"]()
        y = parallel(chainer.Variable(names["cuda"].to_gpu(names["x_train"][:4], 0)))
        self.assertEqual(y.shape, (4, 10))

    def test_guide_of_chainer_1(self):
        names = self.data()
        import chainer
        import chainer.functions as F
        import cupy
        from chainer import cuda, optimizers

        def forward(x, t):
            model = names["model"]
            h = F.relu(model.l2(F.relu(model.l1(chainer.Variable(x)))))
            y, labels = model.l3(h), chainer.Variable(t)
            return F.softmax_cross_entropy(y, labels), F.accuracy(y, labels)

        names.update(chainer=chainer, F=F, cupy=cupy, cuda=cuda, optimizers=optimizers, FunctionSet=chainer.FunctionSet,
                     forward=forward)
        count = self.run_all("000", names)
        self.assertGreaterEqual(count, 9)
        self.assertLess(float(names["loss"].array), np.log(10) + 0.2)
        self.assertEqual(names["x_cpu"].shape, (5, 4, 3))

    def test_report_of_two_gpus(self):
        import chainer
        import chainer.functions as F
        import chainer.links as L
        from chainer import cuda

        class NIN(chainer.Chain):
            """What the report takes from an example: a loss of images and labels."""

            insize = 227

            def __init__(self):
                super().__init__()
                self.accuracy = None
                with self.init_scope():
                    self.conv = L.Convolution2D(None, 5, 3)

            def __call__(self, x, t):
                y = F.mean(self.conv(x), axis=(2, 3))
                self.accuracy = F.accuracy(y, t)
                return F.softmax_cross_entropy(y, t)

        names = {"chainer": chainer, "F": F, "L": L, "cuda": cuda, "nin": type("nin", (), {"NIN": NIN})}
        programs = [line for line in text_of("003").read_text().split("\n") if line.startswith("class ")]
        self.assertEqual(len(programs), 2)
        for program in programs:
            exec(compile(with_lines(program), "text 003", "exec"), names)
        x = self.data()["x_train"][:6]
        gpu = lambda array: cuda.to_gpu(array, 0)  # noqa: E731
        mlp = names["MnistMLPParallel"](784, 20, 10)
        self.assertEqual(sorted(name for name, _ in mlp.namedparams())[0], "/first0/l1/W")
        self.assertEqual(mlp(chainer.Variable(gpu(x))).shape, (6, 10))
        images = np.random.RandomState(0).rand(2, 3, 8, 8).astype("float32")
        labels = np.array([1, 2], "int32")
        loss = names["model"](chainer.Variable(gpu(images)), chainer.Variable(gpu(labels)))
        names["model"].cleargrads()
        loss.backward()
        self.assertGreater(float(abs(names["model"].first1.conv.W.grad).max()), 0)

    def test_asynchronous_transfers(self):
        if self.gpus == 0:
            self.skipTest("no GPU: transfers beside computation are nothing on the CPU")
        import cupy

        names = {"numpy": np, "cupy": cupy}
        self.assertGreaterEqual(self.run_all("004", names), 6)


if __name__ == "__main__":
    unittest.main()
