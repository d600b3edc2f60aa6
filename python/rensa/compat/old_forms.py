"""What Chainer had before its second version."""

import math

import rensa
from rensa import optimizers
from rensa._methods import add_members
from rensa.link import Chain

# Functions that have parameters, which were links' names in chainer.functions.
PARAMETRIC = ("BatchNormalization Bilinear BinaryHierarchicalSoftmax Convolution2D Deconvolution2D EmbedID Inception Linear "
              "NegativeSampling PReLU").split()


class FunctionSet(Chain):
    """Links by name, in one: FunctionSet(l1=F.Linear(784, 100), ...)."""

    def collect_parameters(self):
        """What Optimizer.setup takes."""
        return self

    @property
    def parameters(self):
        return [parameter.array for parameter in self.params()]

    @property
    def gradients(self):
        return [parameter.grad for parameter in self.params()]

    def copy_parameters_from(self, params):
        for parameter, values in zip(self.params(), params):
            parameter.array[...] = values


class Function:
    """A function with a gradient in Chainer 1's form: forward(inputs) and backward(inputs, grad_outputs), both on
    arrays, or forward_cpu and forward_gpu and so on where they differ. No gradients of gradients."""

    def __call__(self, *inputs):
        self.node = _FunctionOf(self)
        results = self.node.apply(inputs)
        return results[0] if len(results) == 1 else results

    def _by_device(self, name, arrays):
        return getattr(self, name + ("_gpu" if any(a is not None and a.device.is_cuda for a in arrays) else "_cpu"))

    def forward(self, inputs):
        return self._by_device("forward", inputs)(inputs)

    def backward(self, inputs, grad_outputs):
        return self._by_device("backward", inputs)(inputs, grad_outputs)

    def backward_cpu(self, inputs, grad_outputs):
        return (None,) * len(inputs)

    backward_gpu = backward_cpu

    def retain_inputs(self, indexes):
        """All inputs are there in backward."""

    def retain_outputs(self, indexes):
        self.node.retain_outputs(list(indexes))

    @property
    def output_data(self):
        return tuple(variable.array for variable in self.node.get_retained_outputs())

    @property
    def label(self):
        return type(self).__name__


class _FunctionOf(rensa.FunctionNode):
    """The node of one call of a Function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, inputs):
        self.retain_inputs(list(range(len(inputs))))
        return self.function.forward(inputs)

    def backward(self, indexes, grad_outputs):
        inputs = tuple(variable.array for variable in self.get_retained_inputs())
        gradients = self.function.backward(inputs, tuple(None if g is None else g.array for g in grad_outputs))
        return tuple(None if gradients[i] is None else rensa.Variable(gradients[i], requires_grad=False) for i in indexes)


class _VariableClass(type):
    def __instancecheck__(cls, value):
        return isinstance(value, rensa.Variable)


class Variable(metaclass=_VariableClass):
    """A Variable, with Chainer 1's `volatile`: one that no gradient reaches."""

    def __new__(cls, data=None, volatile=False, name=None, grad=None, requires_grad=True):
        volatile = volatile in (True, "on", "ON")
        return rensa.Variable(data, name=name, grad=grad, requires_grad=requires_grad and not volatile)


def weight_decay(self, decay):
    """grad += decay * param."""
    for parameter in self.target.params():
        if parameter.grad is not None:
            parameter.grad += decay * parameter.array


def compute_grads_norm(self):
    """The norm of all gradients together. Waits."""
    return math.sqrt(sum(float((p.grad * p.grad).sum()) for p in self.target.params() if p.grad is not None))


def clip_grads(self, maxnorm):
    """Makes the norm of all gradients together at most `maxnorm`."""
    norm = compute_grads_norm(self)
    if norm > maxnorm:
        for parameter in self.target.params():
            if parameter.grad is not None:
                parameter.grad *= maxnorm / norm


def add_methods():
    """Chainer 1's methods of optimizers."""
    add_members(optimizers.Optimizer, weight_decay=weight_decay, compute_grads_norm=compute_grads_norm, clip_grads=clip_grads)
