#!/usr/bin/env python3
"""The functions of activations.cc in PyTorch, eagerly: forward and backward apart.

    activations.py cpu|gpu [--threads N]
"""
import argparse
import json

from timing import median_seconds


def emit(name, way, seconds):
    print(json.dumps({"name": f"{name}, {way} torch", "value": round(seconds * 1e6, 1),
                      "unit": "us"}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", choices=("cpu", "gpu"))
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    try:
        import torch
        import torch.nn.functional as functional
    except ImportError as error:
        print(f"torch: {error}", flush=True)
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    on_gpu = options.device == "gpu"
    device = "cuda" if on_gpu else "cpu"
    size = (64 if on_gpu else 4) << 20

    def wait():
        if on_gpu:
            torch.cuda.synchronize()

    def numbers(*shape):
        return torch.randn(shape, device=device)

    def both_ways(name, call, inputs, gradients):
        with torch.no_grad():
            emit(name, "forward", median_seconds(lambda: call(*inputs), 20, wait))
        for x in inputs:
            x.requires_grad_()
        y = call(*inputs)
        emit(name, "backward", median_seconds(
            lambda: torch.autograd.grad(y, inputs, gradients, retain_graph=True), 20, wait))

    functions = {
        "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "gelu": functional.gelu,
        "softplus": functional.softplus, "leaky_relu": functional.leaky_relu, "elu": functional.elu,
        "selu": functional.selu, "silu": functional.silu, "hard_sigmoid": functional.hardsigmoid}
    x, gy = numbers(size), numbers(size)
    for name, call in functions.items():
        both_ways(name, call, [x.detach()], [gy])
    x, gy = numbers(size // 1024, 1024), numbers(size // 1024, 1024)
    for name, call in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        both_ways(name, lambda x, call=call: call(x, 1), [x.detach()], [gy])

    def cell(c, x):
        a, i, f, o = x.chunk(4, 1)
        c = torch.tanh(a) * torch.sigmoid(i) + torch.sigmoid(f) * c
        return c, torch.sigmoid(o) * torch.tanh(c)

    units = 1024
    rows = size // (4 * units)
    both_ways("lstm cell", cell, [numbers(rows, units), numbers(rows, 4 * units)],
              [numbers(rows, units), numbers(rows, units)])


if __name__ == "__main__":
    main()
