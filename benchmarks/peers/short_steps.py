#!/usr/bin/env python3
"""The steps of short_steps.cc in PyTorch (as a CUDA graph, eager on the CPU) and JAX (jit)."""
import argparse
import json
import os

from timing import graphed, median_seconds as median

UNITS, OBSERVATIONS, ACTIONS = 256, 32, 8


def emit(what, batch, how, who, seconds):
    print(json.dumps({"name": f"{what} B={batch} {how} {who}", "value": round(seconds * 1e6, 2), "unit": "us"}),
          flush=True)


def torch_steps(device, batches, calls, threads):
    import torch
    on_gpu = device != "cpu"
    if threads:
        torch.set_num_threads(threads)
    wait = torch.cuda.synchronize if on_gpu else (lambda: None)
    torch.manual_seed(1)
    for tf32 in (False, True) if on_gpu else (False,):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        how = ("tf32" if tf32 else "fp32") if on_gpu else "cpu"
        policy = torch.nn.Sequential(
            torch.nn.Linear(OBSERVATIONS, UNITS), torch.nn.Tanh(), torch.nn.Linear(UNITS, UNITS), torch.nn.Tanh(),
            torch.nn.Linear(UNITS, ACTIONS), torch.nn.Tanh()).to(device)
        cell = torch.nn.LSTMCell(UNITS, UNITS).to(device)
        with torch.no_grad():
            for batch in batches:
                new_x, x, out = (torch.randn(batch, OBSERVATIONS, device=device) for _ in range(3))
                new_i, i, h, c = (torch.randn(batch, UNITS, device=device) for _ in range(4))

                def act():
                    nonlocal out
                    out = policy(x)

                def remember():
                    next_h, next_c = cell(i, (h, c))
                    h.copy_(next_h)
                    c.copy_(next_c)

                act_now, remember_now = (graphed(act), graphed(remember)) if on_gpu else (act, remember)

                def policy_step():
                    x.copy_(new_x)
                    act_now()

                def policy_to_host():
                    policy_step()
                    out.cpu()

                def cell_step():
                    i.copy_(new_i)
                    remember_now()

                who = "torch cuda graph" if on_gpu else "torch"
                emit("policy", batch, how, who, median(policy_step, calls, wait))
                emit("policy", batch, how, f"{who} to the host", median(policy_to_host, calls, wait))
                emit("lstm cell", batch, how, who, median(cell_step, calls, wait))


def jax_steps(device, batches, calls, _threads):
    if device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
    import numpy as np
    on_gpu = device != "cpu"
    keys = iter(jax.random.split(jax.random.PRNGKey(1), 100))

    def normal(*shape):
        return jax.random.normal(next(keys), shape) / 16

    weights = [(normal(OBSERVATIONS, UNITS), normal(UNITS)), (normal(UNITS, UNITS), normal(UNITS)),
               (normal(UNITS, ACTIONS), normal(ACTIONS))]
    upward, lateral, bias = normal(UNITS, 4 * UNITS), normal(UNITS, 4 * UNITS), normal(4 * UNITS)

    def policy(weights, x):
        for w, b in weights:
            x = jnp.tanh(x @ w + b)
        return x

    def cell(upward, lateral, bias, c, h, x):
        a, i, f, o = jnp.split(x @ upward + h @ lateral + bias, 4, axis=1)
        c = jnp.tanh(a) * jax.nn.sigmoid(i) + c * jax.nn.sigmoid(f)
        return c, jax.nn.sigmoid(o) * jnp.tanh(c)

    for tf32 in (False, True) if on_gpu else (False,):
        how = ("tf32" if tf32 else "fp32") if on_gpu else "cpu"
        with jax.default_matmul_precision("tensorfloat32" if tf32 else "float32"):
            act, remember = jax.jit(policy), jax.jit(cell, donate_argnums=(3, 4))
            for batch in batches:
                x, i, c, h = normal(batch, OBSERVATIONS), normal(batch, UNITS), normal(batch, UNITS), normal(batch, UNITS)
                last = [None]

                def policy_step():
                    last[0] = act(weights, x)

                def policy_to_host():
                    np.asarray(act(weights, x))

                def cell_step():
                    nonlocal c, h
                    c, h = remember(upward, lateral, bias, c, h, i)

                emit("policy", batch, how, "jax jit", median(policy_step, calls, lambda: jax.block_until_ready(last[0])))
                emit("policy", batch, how, "jax jit to the host", median(policy_to_host, calls, lambda: None))
                emit("lstm cell", batch, how, "jax jit", median(cell_step, calls, lambda: jax.block_until_ready((c, h))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--batchsize", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--threads", type=int, help="PyTorch's, on the CPU")
    options = parser.parse_args()
    for peer in (torch_steps, jax_steps):
        try:
            peer(options.device, options.batchsize, options.calls, options.threads)
        except ImportError as error:
            print(f"{peer.__name__}: {error}", flush=True)
