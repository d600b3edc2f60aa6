"""chainer.links: the engine's links with Chainer's forms of their calls, and what they were made with as attributes."""

import contextlib
import functools
import warnings

import numpy

import rensa
from rensa import links
from rensa._methods import add_members
from rensa.link import Link, _reduce_link

# What these were made with is not kept as it was given: Chainer has one number for each axis.
PER_AXIS = ("stride", "pad", "ksize", "dilate")


def _get_attribute(member):
    def found(self, name):
        try:
            return member(self, name)
        except AttributeError:
            made = self.__dict__.get("_made_with")
            if made is None or name not in made or name.startswith("_"):
                raise
            value = made[name]
            return (
                (value,) * (self.W.ndim - 2)
                if name in PER_AXIS and isinstance(value, int) and self.W.is_initialized
                else value
            )

    return found


def _remade(cls, made_with, values, attributes):
    link = cls(**made_with)
    for path, parameter in link.namedparams():
        if path in values:
            parameter.initialize(values[path].shape)
            parameter.array[...] = values[path]
    link.__dict__.update(attributes)
    return link


def _reduce(self, protocol):
    """How an engine's link is pickled: as it was made, with its parameters' values."""
    if "_made_with" not in self.__dict__:
        return _reduce_link(self, protocol)
    values = {path: rensa.xp.asnumpy(p.array) for path, p in self.namedparams() if p.is_initialized}
    attributes = {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
    return _remade, (type(self), self.__dict__["_made_with"], values, attributes)


def _dropconnect(call):
    def forward(self, x, train=True, mask=None, use_batchwise_mask=True):
        with rensa.using_config("train", bool(train)):
            return call(self, x, mask, use_batchwise_mask)

    return forward


def _of_weights(call, function):
    """x, W and b of several dtypes are computed by the function, whose are so too."""

    def forward(self, x, *args, **kwargs):
        arrays = [
            a
            for a in (x, self.W, self.b)
            if a is not None and getattr(a, "is_initialized", True) and hasattr(a, "dtype")
        ]
        if len({str(a.dtype) for a in arrays}) == 1:
            try:
                return call(self, x, *args, **kwargs)
            except rensa.DtypeError:
                if self.b is None or self.W.dtype == self.b.dtype:  # W got its array, and dtype, in this call
                    raise
        from rensa.compat.functions import names

        made = self.__dict__.get("_made_with", {})
        options = {name: made[name] for name in OPTIONS if made.get(name) is not None}
        return names()[function](x, self.W, self.b, *args, **options, **kwargs)

    return forward


def _dtype_scope(dtype):
    return contextlib.nullcontext() if dtype is None else rensa.using_config("dtype", dtype)


class BatchNormalization(links.BatchNormalization):
    """Of mixed16 too: its parameters are float32 then."""

    def __init__(self, size=None, decay=0.9, eps=2e-5, dtype=None, *args, **kwargs):
        dtype = "float32" if isinstance(dtype, rensa.configuration.Mixed) else dtype
        super().__init__(size, decay, eps, dtype, *args, **kwargs)


class DecorrelatedBatchNormalization(links.DecorrelatedBatchNormalization):
    """With the dtype of its statistics."""

    def __init__(self, size, groups=16, decay=0.9, eps=2e-5, dtype=None):
        with _dtype_scope(dtype):
            super().__init__(size, groups, decay, eps)


class NegativeSampling(links.NegativeSampling):
    """With the dtype of W."""

    def __init__(self, in_size, counts, sample_size, power=0.75, dtype=None):
        with _dtype_scope(dtype):
            super().__init__(in_size, list(counts), sample_size, power)


class Bilinear(links.Bilinear):
    """With initial values of V1, V2 and b in one tuple."""

    def __init__(self, left_size, right_size, out_size, nobias=False, initialW=None, initial_bias=None):
        V1, V2, b = (None, None, initial_bias) if not isinstance(initial_bias, (tuple, list)) else initial_bias
        super().__init__(left_size, right_size, out_size, nobias, initialW, V1, V2, b)


class Maxout(links.Maxout):
    """With initial values by the outputs, and of each of these by its pool."""

    def __init__(self, in_size, out_size, pool_size, initialW=None, initial_bias=0):
        def flat(values, ndim):
            if not isinstance(values, numpy.ndarray):
                return values
            if values.ndim != ndim:
                raise ValueError(f"Maxout: initial values of {ndim} axes are needed, not {values.ndim}")
            return values.reshape(out_size * pool_size, *values.shape[2:])

        super().__init__(in_size, out_size, pool_size, initialW=flat(initialW, 3), initial_bias=flat(initial_bias, 2))


def names():
    """Those of chainer.links."""
    own = {
        cls.__name__: cls
        for cls in (BatchNormalization, DecorrelatedBatchNormalization, NegativeSampling, Bilinear, Maxout)
    }
    return {**{name: getattr(links, name) for name in links.__all__}, **own}


# The functions of links of weights, and what these are made with that is an argument of them.
OF_WEIGHTS = {
    "Linear": "linear",
    **{f"{kind}volution{n}D": f"{kind.lower()}volution_{n.lower()}d" for kind in ("Con", "Decon") for n in "123N"},
    "DepthwiseConvolution2D": "depthwise_convolution_2d",
    "DilatedConvolution2D": "dilated_convolution_2d",
    "LocalConvolution2D": "local_convolution_2d",
}
OPTIONS = ("stride", "pad", "dilate", "groups", "cover_all", "outsize")


def _deprecated(method, instead):
    @functools.wraps(method, updated=())
    def called(self, *args, **kwargs):
        warnings.warn(f"{method.__name__} is deprecated: use {instead}", DeprecationWarning, stacklevel=2)
        return method(self, *args, **kwargs)

    return called


def _linear_of(cls, W, b=None, nobias=False):
    """The link of given weights."""
    return cls(W.shape[1], W.shape[0], nobias or b is None, initialW=_values(W), initial_bias=_values(b))


def _embedding_of(cls, W, ignore_label=None):
    """The link of given weights."""
    return cls(
        W.shape[0], W.shape[1], initialW=_values(W), **({} if ignore_label is None else {"ignore_label": ignore_label})
    )


def _convolution_of(cls, W, b=None, stride=1, pad=0, nobias=False, **kwargs):
    """The link of given weights."""
    transposed = "Deconvolution" in cls.__name__
    channels = (W.shape[0], W.shape[1]) if transposed else (W.shape[1], W.shape[0])
    if not transposed:
        channels = (W.shape[1] * kwargs.get("groups", 1), W.shape[0])
    axes = (W.ndim - 2,) if cls.__name__.endswith("ND") else ()
    return cls(
        *axes,
        *channels,
        W.shape[2:],
        stride,
        pad,
        nobias=nobias or b is None,
        initialW=_values(W),
        initial_bias=_values(b),
        **kwargs,
    )


def _values(array):
    return None if array is None else numpy.asarray(getattr(array, "array", array))


@functools.lru_cache(maxsize=None)
def add_methods():
    """Chainer's forms."""
    add_members(Link, __getattr__=_get_attribute(Link.__getattr__), __reduce_ex__=_reduce)
    for name in ("to_cpu", "to_gpu"):
        setattr(Link, name, _deprecated(getattr(Link, name), "to_device"))
    add_members(links.SimplifiedDropconnect, forward=_dropconnect(links.SimplifiedDropconnect.forward))
    for name, function in OF_WEIGHTS.items():
        add_members(getattr(links, name), forward=_of_weights(getattr(links, name).forward, function))
    links.Linear.from_params = classmethod(_linear_of)
    links.EmbedID.from_params = classmethod(_embedding_of)
    for name in (
        "Convolution2D ConvolutionND Convolution1D Convolution3D Deconvolution2D DeconvolutionND Deconvolution1D "
        "Deconvolution3D"
    ).split():
        getattr(links, name).from_params = classmethod(_convolution_of)
