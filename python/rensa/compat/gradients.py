"""chainer.grad, with the arguments that the engine's has not."""

import rensa


def _of_loss_scale(grad_outputs, outputs, loss_scale):
    given = [None] * len(outputs) if grad_outputs is None else grad_outputs
    ones = [rensa.Variable(rensa.xp.ones_like(y.array)) if g is None else g for y, g in zip(outputs, given)]
    return [g * loss_scale for g in ones]


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    grad_inputs=None,
    set_grad=False,
    retain_grad=False,
    enable_double_backprop=False,
    loss_scale=None,
):
    """Gradients of `outputs` with respect to `inputs`, to which `grad_inputs` are added; with `set_grad` they are the
    inputs' own too."""
    for name, values in (("outputs", outputs), ("inputs", inputs)):
        if not isinstance(values, (tuple, list)):
            raise TypeError(f"grad: {name} are a tuple or a list, not {type(values).__name__}")
    for name, values in (("grad_outputs", grad_outputs), ("grad_inputs", grad_inputs)):
        if values is not None and not isinstance(values, (tuple, list)):
            raise TypeError(f"grad: {name} are a tuple or a list, not {type(values).__name__}")
    if retain_grad:
        raise NotImplementedError("grad: retain_grad is not there: name what is between among the inputs")
    if loss_scale is not None:
        grad_outputs = _of_loss_scale(grad_outputs, outputs, loss_scale)
    found = list(rensa.grad(outputs, inputs, grad_outputs or [], enable_double_backprop))
    for i, more in enumerate(grad_inputs or []):
        if more is not None:
            found[i] = more if found[i] is None else found[i] + more
    for x, g in zip(inputs, found):
        if set_grad:
            x.grad_var = g
    return found
