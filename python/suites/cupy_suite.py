"""CuPy's own tests: SOURCE_DIR is a checkout of github.com/cupy/cupy at v14.2.0.

Its tests compute on the names that rensa.compat puts under `cupy`. What only judges (cupy.testing) is CuPy's own, from
SOURCE_DIR. What tests name of CuPy's insides (cupy._core, its bindings of CUDA) is there as a name, so that a file of
tests can be read, and throws where a test uses it.
"""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types

FOLDERS = [f"tests/cupy_tests/{name}_tests" for name in
           "binary core creation indexing linalg logic manipulation math random sorting statistics".split()]

PYTEST_ARGUMENTS = ["-m", "not slow and not multi_gpu"]

_INSIDES = "CuPy's insides: its compiler, its accelerators, its helpers"
_CUDA = "memory of CUDA: __cuda_array_interface__ (DLPack shares it here), textures, CUDA C++ on the CPU"
_RECORDS = "dtypes of records, bytes and foreign byte order"

ABSENT = [
    (r"test_(mdspan|internal|include|cub_reduction)\.py", _INSIDES),
    (r"TestMatmulFp16ComputeTypes|CuTensor|Cub\w*::|TestNdarrayInit.*slots", _INSIDES),
    (r"test_structured\.py|test_ndarray_byteswap\.py|TestCudaArrayInterfaceNonBuiltinDtype", _RECORDS),
    (r"test_ndarray_cuda_array_interface\.py|TestCudaArrayInterface|cuda_array_interface", _CUDA),
    (r"TestElementwiseKernelTexture", _CUDA),
    (r"test_raw\.py|test_carray\.py", _CUDA),
    (r"fusion_tests/", "cupy.fuse (it is there): on the CPU each of thousands of kernels is compiled, for hours"),
    (r"test_syncdetect\.py", "waits: the CPU has none to forbid"),
    (r"TestBitGenerator(XORWOW|MRG32k3a)", "bit generators other than Philox"),
]

# What each (pattern, reason) means is in docs/python.md.
_RULES = [
    (r"is of CuPy's insides|has no attribute '_interval'|expected call not found|to be called once", _INSIDES),
    (r"has no attribute 'base'|\.base\b", "an array does not say which one it is a view of: shares_memory(a, b) does"),
    (r"(complex64|complex128) is not taken|complex numbers have no order", "complex numbers have no order"),
    (r"names no dtype|are none of an array's dtypes|is big-endian|make_aligned_dtype", _RECORDS),
    (r"DummyObjectWithCu|__cuda_array_interface__|does not compile it", _CUDA),
    (r"Regex pattern did not match", "an error of the right class with Rensa's own text"),
    (r"(?s)TestEinSumUnaryOperation.*different dtypes",
     "einsum of one operand in `dtype`: NumPy's is a view of the operand's own"),
    (r"ComplexWarning|DID NOT WARN|assert 0 == 1|test_casting_(out_only|in_out)\[unsafe\]", "warnings"),
    (r"(?s)test_dot_with_out|transposed_dot_with_out|InvalidOuts|invalid_(contiguity|dtype_out|shape)",
     "results are written into any `out` of their kind, whatever its layout"),
    (r"under the rule \"same_kind\"|cannot write int64 into bool",
     "results are written into `out` of their kind alone"),
    (r"test_distributions.*(?s:.*)is not taken, only float16|holds no counts",
     "floating distributions of integer dtypes"),
    (r"(?s)test_distributions.*DID NOT RAISE ValueError", "parameters in arrays are not looked at: nothing waits"),
    (r"has no (nancumsum|nancumprod|fromstring|genfromtxt|asarray_chkfinite|byteswap)\b|nan_to_num_broadcast",
     "routines that are not there: nancumsum, nancumprod, fromstring, genfromtxt, nan_to_num of arrays"),
    (r"overwrite", "overwrite_input is a permission, of which nothing is made"),
    (r"NotImplementedError not raised|DID NOT RAISE NotImplementedError", "what CuPy cannot do, and Rensa can"),
    (r"test_raises_with_numpy_input|mixed_op|array_like|TestArrayCopyFalse|test_array_copy_false",
     "arrays of NumPy's and lists are taken where CuPy refuses them"),
    (r"neither rise nor fall", "bins with NaN"),
    (r"(?s)(indices|Indices|take|choose|put).*is out of bounds for axis",
     "indices out of range are errors, as NumPy's: CuPy's go round"),
    (r"more than the 8", "arrays have 8 axes at most"),
    (r"float16 is not taken; cast", "factors of float16"),
    (r"cupy.cuda has no|MemoryPool: no constructor|'_NoStream'|test_conversion_(bad_device|device_to_cpu)", _CUDA),
    (r"_cached_codes|'_Inside' has no len|test_types\[add\]|test_astype_type", _INSIDES),
    (r"TestNdarraySubclass|TestSubclassArrayView", "the class of arrays is no base of one's own"),
    (r"test_view_flags|test_ndarray_owndata",
     "an array does not say which one it is a view of: shares_memory(a, b) does"),
    (r"TestEigenvalueEmpty|TestStackedEigenvalues",
     "eigenvalues of a general matrix are complex, in LAPACK's order of complex ones"),
    (r"\"raw\" is not one of|test_mode\[raw|TestQRDecomposition_param_1_", "qr(mode=\"raw\")"),
    (r"(?s)TestQuantileMethods.*different dtypes", "quantiles of shares in a float32 array are float64"),
    (r"(percentile|quantile)_bad_q", "what is taken where CuPy refuses it"),
    (r"test_block_size", "the engine chooses how many threads a block of a kernel has"),
    (r"TestDirichlet", "dirichlet of one number"),
    (r"test_correlate_zero_dim|disallow_arraylike_bins|test_numpy_ndarray_rejected|test_isinstance_numpy|nsample_zero|"
     r"test_copy_host_to_device_view|TestNdarrayImplicitConversion",
     "what is taken where CuPy refuses it"),
]
# What there is, and fails.
_FAILS = [
    (r"test_goodness_of_fit",
     "statistical tests that one seed of twenty fails: the numbers of a seed are Rensa's own"),
    (r"incompatible function arguments",
     "an argument of the wrong class is a TypeError, where NumPy has another error or takes it"),
    (r"test_ravel_broadcasted|Strides are not equal",
     "the order in memory of copies by order 'K' or of lists of arrays"),
]
# And what is left of a kind.
_REST = [
    (r"DID NOT RAISE|Only numpy raises|not raised|LinAlgError not|NaN to integer",
     "a result where NumPy or CuPy has an error"),
    (r"(?s)(linspace_complex|TestAverage).*Mismatched elements", "another last digit"),
    (r"Only cupy raises error\s+Traceback(?s:.*)AssertionError", "another value, shape or object"),
    (r"Only cupy raises error|Both cupy and numpy raise", "an error where NumPy has a result"),
    (r"Different types of errors|^[^\n]*\n[^\n]*Error: ",
     "an error of another class than NumPy's or CuPy's, or where there is none"),
    (r"(?s).", "another value, shape or object"),
]
REASONS = [(*why, True) for why in _FAILS] + [(*why, False) for why in _RULES]
REASONS += [(*why, True) for why in _REST]


class _Inside:
    """A name of CuPy's insides."""

    def __init__(self, name):
        self.__dict__["_name"] = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Inside(f"{self._name}.{name}")

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{self._name} is of CuPy's insides")

    def __mro_entries__(self, bases):
        return ()


class _InsideModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Inside(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds cupy.testing in CuPy's source, and gives names for its insides."""

    def __init__(self, source):
        self.source = pathlib.Path(source)

    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        if top not in ("cupy", "cupyx", "cupy_backends"):
            return None
        if name == "cupy.testing" or name.startswith("cupy.testing."):
            place = self.source.joinpath(*name.split("."))
            if place.is_dir():
                return importlib.util.spec_from_file_location(name, place / "__init__.py",
                                                              submodule_search_locations=[str(place)])
            return importlib.util.spec_from_file_location(name, place.with_suffix(".py"))
        if top != "cupy" or name.split(".")[1] in ("cuda", "cublas") or any(p.startswith("_") for p in name.split(".")):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _InsideModule(spec.name)

    def exec_module(self, module):
        pass


def _fill_insides():
    """Of CuPy's insides what its tests only set up, or read of the machine."""
    import math

    import cupy

    names = ("cupy._core._accelerator cupy._core.internal cupy.cuda.driver cupy.cuda.runtime cupyx.scipy.sparse "
             "cupyx.cusolver cupy.random._generator cupy.random._distributions cupy.random._bit_generator "
             "cupy._util cupy._environment cupy._core cupy._indexing.generate cupy.linalg._util cupy.cuda.device")
    accelerator, internal, driver, runtime, sparse, cusolver, generator = list(
        map(importlib.import_module, names.split()))[:7]

    internal.prod = math.prod
    internal.get_size = lambda size: tuple(size) if isinstance(size, (list, tuple)) else (size,)
    cupy._core.get_size = internal.get_size
    sys.modules["cupy.random._distributions"].__getattr__ = lambda name: getattr(cupy.random, name)
    sys.modules["cupy.random._bit_generator"].Philox4x3210 = cupy.random.Philox4x3210
    cupy.cuda.device.get_compute_capability = lambda: "70"
    cupy.cuda.get_local_runtime_version = lambda: 13000
    core = cupy._core
    core.ElementwiseKernel, core.ReductionKernel = cupy.ElementwiseKernel, cupy.ReductionKernel
    core.ndarray = cupy.ndarray
    core.create_reduction_func = core.create_ufunc = lambda name, *args, **kwargs: _Inside(f"cupy._core's {name}")
    generator.RandomState = cupy.random.RandomState
    generator._random_states = {}
    cupy.random.reset_states = lambda: setattr(generator, "_random_states", {})
    cusolver.check_availability = lambda name: True
    for kind in ("routine", "reduction"):
        setattr(accelerator, f"get_{kind}_accelerators", list)
        setattr(accelerator, f"set_{kind}_accelerators", lambda accelerators: None)
    sparse.issparse = lambda value: False
    runtime.is_hip = False
    runtime.runtimeGetVersion = driver.get_build_version = lambda: 13000
    cupy.cuda.cub = types.SimpleNamespace(available=False)
    cupy.cuda.cutensor = types.SimpleNamespace(available=False)


def prepare(source):
    import rensa.compat

    rensa.compat.install(gpus="cpu")
    import cupy

    cupy.__path__ = []
    cupy.cuda.__path__ = cupy.random.__path__ = cupy.linalg.__path__ = []
    sys.meta_path.insert(0, _Finder(source))
    sys.path.append(source + "/tests")
    _fill_insides()
    import cupy.testing  # noqa: F401
