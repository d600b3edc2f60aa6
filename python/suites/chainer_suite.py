"""Chainer's own tests: SOURCE_DIR is a checkout of github.com/chainer/chainer at v7.8.1.

Its tests compute on the names that rensa.compat puts under `chainer`. What only judges (chainer.testing,
chainer.gradient_check, helpers below chainer.utils that the expected values come from) is Chainer's own, from there.
They want pytest, scipy, mock, six and typing_extensions.
"""

import importlib
import importlib.abc
import importlib.util
import pathlib
import sys
import types

# Chainer's own modules, which tests judge by.
JUDGES = ("chainer.testing", "chainer.gradient_check", "chainer.utils", "chainer.types", "chainer.memory_layouts")

FOLDERS = [
    f"tests/chainer_tests/{name}"
    for name in (
        *(f"functions_tests/{part}_tests" for part in "activation array connection evaluation loss math noise".split()),
        *(f"functions_tests/{part}_tests" for part in "normalization pooling rnn util".split()),
        *(f"links_tests/{part}_tests" for part in "activation connection loss model normalization rnn".split()),
        *(f"{part}_tests" for part in "optimizers optimizer_hooks link_hooks initializer iterators dataset datasets".split()),
        *(f"training_tests/{part}_tests" for part in "extensions triggers updaters".split()),
        *(f"training_tests/test_{part}.py" for part in "trainer extension".split()),
        *(f"test_{part}.py" for part in "variable link link_hook sequential reporter initializer backprop".split()),
        "serializers_tests",
    )
]

_NOT_HERE = "gpu cudnn chainerx ideep multi_gpu theano slow".split()
if importlib.import_module("rensa").num_gpus():
    _NOT_HERE = "chainerx ideep multi_gpu theano slow".split()
PYTEST_ARGUMENTS = ["-m", " and ".join(f"not {mark}" for mark in _NOT_HERE)]

_SERIALIZERS = "objects that serialize: files are written by serializers.save_npz"
_GENERATOR = "an initializer's generator of NumPy's: random numbers are the engine's"
_FILES = "text|pickle|image|zipped_image|labeled_image|labeled_zipped_image"
_SETS = "svhn|ptb|kuzushiji|cifar|mnist|fashion"

# Tests of what is not there by a decision.
ABSENT = [
    (r"test_sparse_matmul\.py", "sparse matrices"),
    (r"test_inceptionbn\.py", "L.InceptionBN"),
    (r"test_hierarchical_softmax\.py", "L.BinaryHierarchicalSoftmax"),
    (rf"test_({_FILES})_dataset|image_dataset/|text_dataset/|test_({_SETS})", "datasets of files: C++ has its own"),
    (r"tabular_tests/", "tabular datasets"),
    (r"rng_class=(RandomState|Random)", _GENERATOR),
    (r"serializers_tests/|test_snapshot_writers|test_npz|test_hdf5", _SERIALIZERS),
    (r"multiprocess_parallel_updater", "processes: they are C++'s"),
    (r"dataset_tests/test_download", "chainer.dataset.download: datasets of C++ fetch theirs"),
    (r"extensions_tests/test_snapshot\.py", "snapshots by functions, conditions and writers of one's own"),
    (r"extensions_tests/test_parameter_statistics", "statistics of parameters of one's own"),
    (r"test_as_strided\.py.*(unstride|general_stride)", "F.as_strided of a view's memory: strides count in C order"),
    (r"test_computational_graph\.py", "chainer.computational_graph: extensions.DumpGraph draws"),
]

# What Chainer's functions and links have for themselves.
_PRIVATE = "|".join((
    r"'FunctionNode' object has no attribute",
    r"'NoneType' object has no attribute 'mask'",
    r"has no (_\w+|Dropout|DiagEinSum|\w+Grad|\w+Function|Reservoir|Statistician|Cos|Sin|Tan|DeconvolutionND) here",
    r"has no attribute '(_\w+|flag_h|available|node|outputs|inputs|initializer|debug_print)'",
    r"property of '\w+' object has no setter",
    r"chainer.functions.math.\w+ has no [A-Z]",
))
_MOCKS = "|".join((
    r"MagicMock|mock\.Mock\b.*Invoked|Invoked with types:.*mock",
    r"Dummy(Trainer|Iterator|Target|Converter|Optimizer)",
    r"hyperparameter \"x\"",
))
_ARRAYS = "|".join((
    r"is not an instance of <class 'numpy.ndarray'>",
    r"isinstance\(.*type\(",
    r"where False = isinstance",
    r"<module 'rensa.xp'",
    r"is not <module 'numpy'",
    r"unhashable type: 'ndarray'",
))
_SAME = "|".join((
    r"assert (array|variable)\(.* is (array|variable)\(",
    r"AssertionError: (array|variable)\(.*\n.*\n?.* is not ",
    r"assertIs\b",
    r"no_cast_grad",
))
_PRINTED = r"[\"']variable\W.*==|'(Chain|ChainList|Sequential)\\n|'\(\d+,\), float"
_REFUSED = "|".join((
    r"not raised",
    r"DID NOT RAISE",
    r"::test_\w*(inv[al]+id|forbid|fail|_type_error|value_check|too_many|no_arg|dtype_assertion)\w*",
))
_OTHER_ERROR = "what Chainer refuses is taken, or refused by another error"
_DTYPES = "x and the weights within a link differ in dtype"

# The first that fits counts.
REASONS = [
    (r"(zeta|polygamma)\(\): incompatible", "zeta and polygamma of an array of orders", False),
    (_MOCKS, "a mock in place of an optimizer, a trainer or a model", False),
    (r"\.serialize\b|attribute 'serialize'|[sS]erializer here|DictionarySerializer", _SERIALIZERS, False),
    (r"attribute '(finished|patience)'", "what triggers know of their end", False),
    (r"return_samples|'(NegativeSampling|BlackOut)' object", "the sampler of L.NegativeSampling and L.BlackOut", False),
    (r"layout", "memory layouts", False),
    (r"DeviceError", "a GPU", False),
    (r"all must be of one floating dtype", _DTYPES, False),
    (r"links_tests.*test_simplified_dropconnect\.py(?s:.*)(Shapes and/or|dtype\('float)", _DTYPES, False),
    (r"(det|inv)\b.*is not taken; cast to float", "linear algebra of float16", False),
    (r"is out of bounds for uint|a mask cpu \(0,\)|only 0-dimensional arrays can be", "NumPy 2 refuses it too", False),
    (r"'Hook' object has no attribute 'v'", "private parts of Chainer's functions and links", False),
    (r"= hasattr\(\w+, 'W_u'\)", "a persistent that waits for its shape is there, as None", True),
    (_PRIVATE, "private parts of Chainer's functions and links", False),
    (_ARRAYS, "arrays are rensa.xp's", False),
    (_SAME, "a result that is an argument is another object of the same", False),
    (r"cannot pickle|cannot be pickled", "pickles of iterators, and of parameters without an array", False),
    (r"nothing leads back from .* (uint|int)\d", "gradients of integers", False),
    (_PRINTED, "how variables and links are printed", False),
    (r"add_observer\(\): incompatible|report: a link is needed", "observers that are no links", False),
    (
        r"TestDefaultInitializer.*test_initialize_cpu|dtype_given_by_initializer",
        "a parameter takes its dtype when it gets its array",
        False,
    ),
    (r"not a file of this model: it lacks", "a file that lacks something is refused", True),
    (r"make_statistics", "standard deviations of what is reported", False),
    (r"rng: ", _GENERATOR, False),
    (r"instance of <class 'list'>|stack: cpu \(\)|numbers, seq.*dict", "examples that threads fetch are arrays", False),
    (r"int64.*int32", "the sampler of L.NegativeSampling and L.BlackOut", False),
    (r"Warning.*not trigger|TimeoutWarning", "warnings", False),
    (r"constant_values: tuple", "F.pad with several constants", False),
    (r"WithEvalFunc|TestEvaluatorProgressBar|TestEvaluator\w*Data|converter.args", "Evaluator: it has a target, "
     "gives converters a device and reports under one name", True),
    (r"UpdateRule: rules are made by", "update rules of a program's own", False),
    (r"with a weight", "weights of what is reported", False),
    (r"WeightDecayLossScale", "backward(loss_scale=...): an optimizer divides by its own scale", True),
    (r'parameter "" is not initialized|test_sequential.py.*test_zerograds|TestUninitializedParameter.*test_initialize',
     "gradients and dtypes of parameters without an array", True),
    (r"TestFailOnNonNumber|DeviceArgumentFallback|test_pickle_with_lambda|members of a link of the engine's are",
     _OTHER_ERROR, True),
    (r"for a variable cpu|not match .backward of|test_bool_inconvertible|operand type\(s\) for \+=?: 'Sequential'|"
     r"TestVariableBackwardErrorTraceback|TestVariableDoubleBackward|test_no_call_no_forward", _OTHER_ERROR, True),
    (r"test_variable.py.*(test_unchain|test_backward2|test_backward_accumulate|retain_grad)",
     "gradients given to variables within a graph, and ranks after unchain()", True),
    (r"test_concatenated_dataset_slice|test_advanced_indexing|TestBatchNormalization.*test_bn", "arrays are rensa.xp's",
     False),
    (r"PrintReport: out is not there", "PrintReport to a stream of a program's", True),
    (r"test_count_params", "warnings", False),
    (r"serializers: a link, an optimizer", _SERIALIZERS, False),
    (r"Expected 'rand' to be called", _GENERATOR, False),
    (r"test_softmax_cross_entropy.*(?s:.*)nan location mismatch", "the reference overflows in float16", False),
    (r"test_gumbel_softmax.*shape=\(\)", "softmax of an array without axes", True),
    (r"test_maxout.*initializer='callable'", "functions that initialize L.Maxout get flat arrays", True),
    (r"test_estimated_outsize|TestInvalidArgument|ClassWeightAssertion|test_r?pow_constant_array", _OTHER_ERROR, True),
    (r"TestGenerateArray", "a parameter takes its dtype when it gets its array", False),
    (_REFUSED, _OTHER_ERROR, True),
    (r"no implementation found for 'numpy|__array_function__", "NumPy's functions that rensa.xp lacks", True),
    (r"incompatible function arguments|unexpected keyword argument", "arguments that are not there", True),
    (r"has no \w+ here|cannot import name|ImportError|has no attribute", "names that are not there", True),
]


class _Judges(importlib.abc.MetaPathFinder):
    """Finds JUDGES in Chainer's source."""

    def __init__(self, source):
        self.source = pathlib.Path(source)

    def find_spec(self, name, path, target=None):
        if not any(name == judge or name.startswith(judge + ".") for judge in JUDGES):
            return None
        place = self.source.joinpath(*name.split("."))
        if place.is_dir():
            return importlib.util.spec_from_file_location(
                name, place / "__init__.py", submodule_search_locations=[str(place)]
            )
        return importlib.util.spec_from_file_location(name, place.with_suffix(".py"))


def _give_removed_names():
    """What NumPy 2 has no more and Chainer's tests, written for NumPy 1, name."""
    import numpy

    for name, value in {
        "bool": bool,
        "int": int,
        "float": float,
        "complex": complex,
        "object": object,
        "product": numpy.prod,
        "float_": numpy.float64,
        "infty": numpy.inf,
        "Inf": numpy.inf,
        "NaN": numpy.nan,
        "cumproduct": numpy.cumprod,
        "rollaxis": numpy.rollaxis,
    }.items():
        if name not in vars(numpy):
            setattr(numpy, name, value)


def _say_that_chainerx_is_absent(source):
    """chainerx of the source, which says so."""
    build = types.ModuleType("chainerx._build_info")
    build.build_chainerx = False
    sys.modules[build.__name__] = build
    sys.path.append(source)


def _leave_out_backends(rensa):
    """Tests of backends that this machine lacks are not even collected: they are four of five."""
    from chainer import testing
    from chainer.testing import backend

    inject = backend.inject_backend_tests

    def is_here(parameters):
        other = parameters.get("use_chainerx") or parameters.get("use_ideep", "never") != "never"
        return not other and (not parameters.get("use_cuda") or parameters.get("cuda_device", 0) < rensa.num_gpus())

    def inject_those(method_names, params):
        return inject(method_names, [p for p in params if is_here(p)])

    testing.inject_backend_tests = backend.inject_backend_tests = inject_those


def _add_private_names(chainer):
    """What the judges call below chainer.backends."""
    cpu = types.ModuleType("chainer.backends._cpu")
    cpu._to_cpu = chainer.backends.cuda.to_cpu
    cpu.CpuDevice = chainer.backend.CpuDevice
    chainer.backends._cpu = sys.modules[cpu.__name__] = cpu
    numpy = importlib.import_module("numpy")
    importlib.import_module("chainer.functions.array.flip")._flip = numpy.flip

    def stride_array(array, shape, strides, storage_offset):
        flat = array.ravel()[storage_offset:]
        return numpy.lib.stride_tricks.as_strided(flat, shape, [stride * array.itemsize for stride in strides])

    importlib.import_module("chainer.functions.array.as_strided")._stride_array = stride_array
    chainer.basic_math = importlib.import_module("chainer.functions.math.basic_math")
    ideep = types.ModuleType("chainer.backends.intel64")
    ideep.mdarray, ideep.is_ideep_available = type("mdarray", (), {}), lambda: False
    chainer.backends.intel64 = sys.modules[ideep.__name__] = ideep
    for name in ("AbstractSerializer", "Serializer", "Deserializer"):  # tests derive from them
        setattr(chainer, name, type(name, (), {}))
    for name in ("resnet", "vgg", "googlenet"):  # what reads Caffe's files
        importlib.import_module(f"chainer.links.model.vision.{name}").available = False


def prepare(source):
    _give_removed_names()
    _say_that_chainerx_is_absent(source)
    import rensa.compat

    rensa.compat.install()
    import chainer

    _add_private_names(chainer)
    for name in JUDGES:
        for known in [n for n in sys.modules if n == name or n.startswith(name + ".")]:
            del sys.modules[known]
        if name.count(".") == 1:
            vars(chainer).pop(name.removeprefix("chainer."), None)
    sys.meta_path.insert(0, _Judges(source))
    sys.path.append(source + "/tests")
    from chainer.utils import type_check

    type_check.InvalidType = rensa.InvalidType
    _leave_out_backends(rensa)
