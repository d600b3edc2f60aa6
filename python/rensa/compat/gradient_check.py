"""chainer.gradient_check: the engine's checks, by Chainer's arguments and as AssertionErrors."""

import numpy

import rensa
from rensa import gradient_check
from rensa.gradient_check import numerical_grad  # noqa: F401


def _listed(values):
    return list(values) if isinstance(values, (tuple, list)) else [] if values is None else [values]


def _cast(values, dtype):
    arrays = [None if value is None else numpy.asarray(rensa.xp.asnumpy(value)) for value in _listed(values)]
    return [a if a is None or dtype is None or a.dtype.kind != "f" else a.astype(dtype) for a in arrays]


def _check(check, func, x_data, y_grad, params, options, dtype):
    try:
        check(func, _cast(x_data, dtype), _cast(y_grad, dtype) or None, _listed(params), **options)
    except rensa.ValueError as error:
        raise AssertionError(str(error)) from error


def check_backward(func, x_data, y_grad, params=(), eps=1e-3, atol=1e-5, rtol=1e-4, no_grads=None, dtype=None):
    """Of func(*x_data), along a random direction: AssertionError where the gradients are wrong."""
    if no_grads is not None and any(no_grads):
        raise NotImplementedError(
            "check_backward: no_grads is not there; what has no gradient is no argument of `func`"
        )
    _check(gradient_check.check_backward, func, x_data, y_grad, params, {"eps": eps, "atol": atol, "rtol": rtol}, dtype)


def check_double_backward(
    func,
    x_data,
    y_grad,
    x_grad_grad=None,
    params=(),
    params_grad_grad=(),
    eps=1e-3,
    atol=1e-4,
    rtol=1e-3,
    no_gxs=None,
    dtype=None,
):
    """Of the gradients of func(*x_data). The engine draws what Chainer takes as x_grad_grad."""
    if no_gxs is not None and any(no_gxs):
        raise NotImplementedError(
            "check_double_backward: no_gxs is not there; what has no gradient is no argument of `func`"
        )
    _check(
        gradient_check.check_double_backward,
        func,
        x_data,
        y_grad,
        params,
        {"eps": eps, "atol": atol, "rtol": rtol},
        dtype,
    )


def names():
    """Those of chainer.gradient_check."""
    return {
        "numerical_grad": numerical_grad,
        "check_backward": check_backward,
        "check_double_backward": check_double_backward,
    }
