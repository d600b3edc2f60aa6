"""chainer.functions: the engine's, with what Chainer's have beside: arguments, and weights of another dtype than x."""

import functools
import warnings

import numpy

import rensa
from rensa import functions, xp
from rensa.compat import links, old_forms

# Functions of x, weights and a bias, whose dtypes may differ: computed in the widest, the result of x's.
OF_WEIGHTS = (
    "bilinear convolution_1d convolution_2d convolution_3d convolution_nd deconvolution_1d deconvolution_2d "
    "deconvolution_3d "
    "deconvolution_nd deformable_convolution_2d_sampler depthwise_convolution_2d dilated_convolution_2d linear "
    "local_convolution_2d simplified_dropconnect"
).split()

# Chainer's names of arguments where the engine's are others.
RENAMED = {
    "cast": {"typ": "dtype"},
    "copy": {"dst": "device"},
    "depth2space": {"X": "x"},
    "space2depth": {"X": "x"},
    "fliplr": {"a": "x"},
    "flipud": {"a": "x"},
    "maximum": {"x1": "a", "x2": "b"},
    "minimum": {"x1": "a", "x2": "b"},
    "arctan2": {"x1": "a", "x2": "b"},
    "zeta": {"x": "s"},
}


def _renamed(function, names):
    @functools.wraps(function)
    def called(*args, **kwargs):
        return function(*args, **{names.get(name, name): value for name, value in kwargs.items()})

    return called


def _is_floating(value):
    return hasattr(value, "dtype") and hasattr(value, "shape") and str(value.dtype).startswith("float")


def _of_weights(function):
    @functools.wraps(function)
    def called(x, *args, **kwargs):
        dtypes = {str(a.dtype) for a in (x, *args, *kwargs.values()) if _is_floating(a)}
        if len(dtypes) < 2 or not _is_floating(x):
            return function(x, *args, **kwargs)
        widest = max(dtypes, key=lambda name: numpy.dtype(name).itemsize)

        def cast(a):
            return functions.cast(a, widest) if _is_floating(a) else a

        y = function(cast(x), *map(cast, args), **{name: cast(a) for name, a in kwargs.items()})
        return functions.cast(y, x.dtype)

    return called


def split_axis(x, indices_or_sections, axis, force_tuple=True):
    """The parts of x along an axis: a tuple; the one part itself where there is one and not `force_tuple`."""
    indices = indices_or_sections
    if not isinstance(indices, (int, numpy.integer)):
        if getattr(indices, "ndim", 1) == 0:
            indices = int(indices)
        else:
            indices = [int(i) for i in indices]
    parts = functions.split_axis(x, indices, axis)
    return parts[0] if len(parts) == 1 and not force_tuple else parts


def dropout(x, ratio=0.5, *, mask=None, return_mask=False):
    """As the engine's; with `mask`, what x is multiplied by, and with `return_mask` a tuple with it."""
    from rensa import config

    if mask is None and not return_mask:
        return functions.dropout(x, ratio)
    if not config.train:
        y = functions.dropout(x, ratio)
        return (y, None) if return_mask else y
    if mask is None:
        values = getattr(x, "array", x)
        mask = functions.dropout(xp.ones_like(xp.asarray(values)), ratio).array
    y = functions.where(xp.asarray(mask) != 0, x * mask, xp.zeros_like(xp.asarray(mask)))
    return (y, mask) if return_mask else y


def r2_score(pred, true, sample_weight=None, multioutput="uniform_average"):
    """As the engine's."""
    if sample_weight is not None:
        raise NotImplementedError("r2_score: sample_weight is not there, nor is it in Chainer")
    return functions.r2_score(pred, true, multioutput)


def repeat(x, repeats, axis=None):
    """As the engine's; bools count as numbers."""
    return functions.repeat(x, int(repeats) if isinstance(repeats, (bool, numpy.bool_)) else repeats, axis)


def softmax_cross_entropy(
    x,
    t,
    normalize=True,
    cache_score=True,
    class_weight=None,
    ignore_label=-1,
    reduce="mean",
    enable_double_backprop=False,
    soft_target_loss="cross-entropy",
):
    """As the engine's, which needs no word of what is kept, nor for gradients of gradients."""
    if isinstance(class_weight, rensa.Variable):
        raise ValueError("softmax_cross_entropy: class_weight is an array, not a variable")
    return functions.softmax_cross_entropy(
        x,
        t,
        normalize,
        class_weight=class_weight,
        ignore_label=ignore_label,
        reduce=reduce,
        soft_target_loss=soft_target_loss,
    )


def fft(x):
    """Of the pair (real, imag): a pair."""
    return functions.fft(*x)


def ifft(x):
    """Of the pair (real, imag): a pair."""
    return functions.ifft(*x)


def spatial_pyramid_pooling_2d(x, pyramid_height, pooling=None):
    """As the engine's, of maxima."""
    if pooling not in (None, "max"):
        raise ValueError(f"spatial_pyramid_pooling_2d: pooling is 'max', not {pooling!r}")
    return functions.spatial_pyramid_pooling_2d(x, pyramid_height)


def batch_matmul(a, b, transa=False, transb=False):
    """As the engine's; Chainer has matmul in its place."""
    warnings.warn("batch_matmul is deprecated: use matmul", DeprecationWarning, stacklevel=2)
    return functions.batch_matmul(a, b, transa, transb)


def fixed_batch_renormalization(x, gamma, beta, mean, var, eps=2e-5):
    """As the engine's; Chainer has fixed_batch_normalization in its place."""
    warnings.warn(
        "fixed_batch_renormalization is deprecated: use fixed_batch_normalization", DeprecationWarning, stacklevel=2
    )
    return functions.fixed_batch_renormalization(x, gamma, beta, mean, var, eps)


def einsum(*operands):
    """Of subscripts and operands; or of operands, each with a list of numbers for its axes, and those of the result."""
    if isinstance(operands[0], str):
        return functions.einsum(*operands)

    def letters(numbers):
        return "".join("..." if number is Ellipsis else chr(ord("a") + number) for number in numbers)

    pairs = len(operands) // 2
    subscripts = ",".join(letters(operands[2 * i + 1]) for i in range(pairs))
    if len(operands) % 2:
        subscripts += "->" + letters(operands[-1])
    return functions.einsum(subscripts, *operands[: 2 * pairs : 2])


def tensordot(a, b, axes=2):
    """As the engine's; `axes` also a pair, of an axis or several of each."""
    if isinstance(axes, (int, numpy.integer)):
        return functions.tensordot(a, b, int(axes))
    return functions.tensordot(a, b, *[[one] if isinstance(one, (int, numpy.integer)) else list(one) for one in axes])


def tree_lstm(*inputs):
    """tree_lstm(c1, c2, ..., x)."""
    return functions.tree_lstm(list(inputs[:-1]), inputs[-1])


def _of_samples(function):
    @functools.wraps(function)
    def called(x, rois, roi_indices, outsize, spatial_scale, sampling_ratio=None):
        if isinstance(sampling_ratio, (tuple, list)):
            sampling_ratio = tuple(0 if one is None else one for one in sampling_ratio)
        return function(x, rois, roi_indices, outsize, spatial_scale, sampling_ratio)

    return called


def _of_running(function):
    """Running statistics that do not lie together are computed beside, and written back."""

    @functools.wraps(function)
    def called(*args, running_mean=None, running_var=None, **kwargs):
        given = running_mean, running_var
        together = [
            None if a is None else numpy.ascontiguousarray(a) if isinstance(a, numpy.ndarray) else a for a in given
        ]
        y = function(*args, running_mean=together[0], running_var=together[1], **kwargs)
        for own, computed in zip(given, together):
            if own is not computed:
                own[...] = computed
        return y

    return called


def argmax_crf1d(cost, xs):
    """As the engine's; the labels are in a list."""
    score, labels = functions.argmax_crf1d(cost, xs)
    return score, list(labels)


@functools.lru_cache(maxsize=None)
def names():
    """Those of chainer.functions, with the names of links that it had."""
    found = {name: getattr(functions, name) for name in functions.__all__}
    found.update({name: _of_weights(found[name]) for name in OF_WEIGHTS if name in found})
    found.update({name: link for name, link in links.names().items() if name in old_forms.PARAMETRIC})
    found.update({name: _renamed(found[name], renamed) for name, renamed in RENAMED.items()})
    found.update({name: _of_samples(found[name]) for name in ("roi_average_align_2d", "roi_max_align_2d")})
    found["batch_normalization"] = _of_running(found["batch_normalization"])
    own = {
        "fixed_batch_renormalization": fixed_batch_renormalization,
        "argmax_crf1d": argmax_crf1d,
        "batch_matmul": batch_matmul,
        "einsum": einsum,
        "tensordot": tensordot,
        "tree_lstm": tree_lstm,
        "split_axis": split_axis,
        "dropout": dropout,
        "r2_score": r2_score,
        "repeat": repeat,
        "fft": fft,
        "ifft": ifft,
        "softmax_cross_entropy": softmax_cross_entropy,
        "spatial_pyramid_pooling_2d": spatial_pyramid_pooling_2d,
    }
    return {**found, **own}
