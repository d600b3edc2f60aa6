#!/usr/bin/env python3
"""The activation of captured_chains.cc in PyTorch (eager, as a CUDA graph, compiled) and JAX (jit)."""
import json
import os

from timing import graphed, median_seconds as median

SHAPES = [(8192, 8192), (1024, 1000), (100, 1000)]


def emit(shape, who, seconds):
    name = f"gelu and its gradient, ({shape[0]}, {shape[1]}) {who}"
    print(json.dumps({"name": name, "value": round(seconds * 1e6, 1), "unit": "us"}), flush=True)


def calls(shape):
    return 10 if shape[0] * shape[1] > 1 << 20 else 200


def torch_steps():
    import torch

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.7978846 * (x + 0.044715 * x * x * x)))

    for shape in SHAPES:
        x = torch.randn(shape, device="cuda", requires_grad=True)
        g = torch.randn(shape, device="cuda")

        def step(function=gelu):
            y = function(x)
            return y.detach(), torch.autograd.grad(y, x, g)[0]

        emit(shape, "torch eager", median(step, calls(shape), torch.cuda.synchronize))
        emit(shape, "torch cuda graph", median(graphed(step, 3), calls(shape), torch.cuda.synchronize))
        try:
            compiled = torch.compile(gelu, dynamic=False)
            seconds = median(lambda: step(compiled), calls(shape), torch.cuda.synchronize)
            emit(shape, "torch compile", seconds)
        except Exception as error:  # its own compiler may lack something: the row stays empty
            print(f"torch.compile: {error}"[:300], flush=True)


def jax_steps():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(0.7978846 * (x + 0.044715 * x * x * x)))

    @jax.jit
    def step(x, g):
        y, back = jax.vjp(gelu, x)
        return y, back(g)[0]

    for shape in SHAPES:
        x, g = (jax.random.normal(jax.random.PRNGKey(k), shape) for k in (0, 1))
        last = []

        def call():
            last[:] = step(x, g)

        emit(shape, "jax jit", median(call, calls(shape), lambda: jax.block_until_ready(last)))


if __name__ == "__main__":
    for peer in (torch_steps, jax_steps):
        try:
            peer()
        except ImportError as error:
            print(f"{peer.__name__}: {error}", flush=True)
