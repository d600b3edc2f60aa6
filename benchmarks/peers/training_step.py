#!/usr/bin/env python3
"""The training step of training_step.cc in PyTorch and JAX, as well as each does it.

MLP 784-1000-1000-10, softmax cross entropy, SGD, the data on the GPU and the batch gathered by index
inside the step. Prints one JSON object per figure, as the C++ program does.
    training_step.py gpu | cpu [--threads N]
"""
import json
import math
import os
import sys

from timing import graphed, median_seconds as median

SAMPLES = 60000


def emit(name, seconds):
    print(json.dumps({"name": name, "value": round(seconds * 1e6, 1), "unit": "us/step"}), flush=True)


class TorchStep:
    """The step in PyTorch; `fused` is its one-launch SGD."""

    def __init__(self, torch, x, t, fused):
        self.torch, self.x, self.t = torch, x, t
        nn = torch.nn
        self.model = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(),
                                   nn.Linear(1000, 10)).to(x.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, fused=fused)

    def __call__(self, index, set_to_none=True):
        loss = self.torch.nn.functional.cross_entropy(self.model(self.x[index]), self.t[index])
        self.optimizer.zero_grad(set_to_none=set_to_none)
        loss.backward()
        self.optimizer.step()


def torch_graph(torch, step, batch):
    """The replay of `step` as one CUDA graph, and the array that its index is read from."""
    index = torch.zeros(batch, dtype=torch.long, device="cuda")
    return graphed(lambda: step(index, set_to_none=False), 3), index


def torch_gpu():
    import torch
    x = torch.rand(SAMPLES, 784, device="cuda")
    t = torch.randint(0, 10, (SAMPLES,), device="cuda")
    order = torch.randperm(SAMPLES, device="cuda")
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for batch in (100, 1024):
            row = f"mnist_mlp1000 B={batch} {'tf32' if tf32 else 'fp32'} torch"
            state = {"k": 0}

            def next_index():
                first = state["k"] % (SAMPLES // batch) * batch
                state["k"] += 1
                return order[first:first + batch]

            for fused in (False, True):
                step = TorchStep(torch, x, t, fused)
                seconds = median(lambda: step(next_index()), 300, torch.cuda.synchronize)
                emit(f"{row} eager{' fused sgd' if fused else ''}", seconds)
            run, index = torch_graph(torch, TorchStep(torch, x, t, True), batch)

            def replay():
                index.copy_(next_index())
                run()

            emit(f"{row} cuda graph", median(replay, 1000, torch.cuda.synchronize))


def jax_gpu():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp
    key = jax.random.PRNGKey(0)
    x = jax.random.uniform(key, (SAMPLES, 784))
    t = jax.random.randint(key, (SAMPLES,), 0, 10)
    order = jax.random.permutation(key, SAMPLES)

    def layer(inputs, outputs):
        return jax.random.normal(key, (inputs, outputs)) / math.sqrt(inputs), jnp.zeros(outputs)

    def loss_of(parameters, xb, tb):
        h = xb
        for i, (w, b) in enumerate(parameters):
            h = h @ w + b
            h = jax.nn.relu(h) if i < 2 else h
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(h), tb[:, None], 1))

    for name, precision in (("fp32", "float32"), ("tf32x3", "TF32_TF32_F32_X3"), ("tf32", "tensorfloat32")):
        with jax.default_matmul_precision(precision):
            for batch in (100, 1024):
                row = f"mnist_mlp1000 B={batch} {name} jax"

                def update(p, index):
                    loss, g = jax.value_and_grad(loss_of)(p, x[index], t[index])
                    return jax.tree.map(lambda a, b: a - 0.01 * b, p, g), loss

                step = jax.jit(update)
                epoch = jax.jit(lambda p, rows: jax.lax.scan(update, p, rows))
                rows = order[:SAMPLES // batch * batch].reshape(-1, batch)
                indices = [jax.block_until_ready(r) for r in rows]
                state = {"p": [layer(784, 1000), layer(1000, 1000), layer(1000, 10)], "k": 0, "l": 0}

                def one():
                    state["p"], state["l"] = step(state["p"], indices[state["k"] % len(indices)])
                    state["k"] += 1

                def whole():
                    state["p"], state["l"] = epoch(state["p"], rows)

                wait = lambda: jax.block_until_ready(state["l"])
                emit(f"{row} jit", median(one, 300, wait))
                emit(f"{row} scan over the epoch", median(whole, 1, wait) / len(indices))


def torch_cpu(threads):
    import torch
    torch.set_num_threads(threads)
    x, t = torch.rand(SAMPLES, 784), torch.randint(0, 10, (SAMPLES,))
    order = torch.randperm(SAMPLES)
    for batch in (1, 10, 100, 1024):
        step = TorchStep(torch, x, t, False)
        state = {"k": 0}

        def one():
            first = state["k"] % (SAMPLES // batch) * batch
            state["k"] += 1
            step(order[first:first + batch])

        emit(f"mnist_mlp1000 B={batch} fp32 cpu torch eager", median(one, 30, lambda: None))


def main():
    where = sys.argv[1] if len(sys.argv) > 1 else "gpu"
    if where == "cpu":
        torch_cpu(int(sys.argv[3]) if "--threads" in sys.argv else os.cpu_count())
        return 0
    missing = []
    for peer in (torch_gpu, jax_gpu):
        try:
            peer()
        except ImportError as error:
            missing.append(str(error))
    for text in missing:
        print(f"left out: {text}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
