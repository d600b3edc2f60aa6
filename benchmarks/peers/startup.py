#!/usr/bin/env python3
"""What startup.cc does, in a peer: startup.py torch|cupy|jax add|product. Prints one number."""
import sys


def main():
    peer, work = sys.argv[1:3]
    if peer == "torch":
        import torch
        a = torch.ones(128, 128, device="cuda")
        result = a @ a if work == "product" else a + a
    elif peer == "cupy":
        import cupy
        a = cupy.ones((128, 128), dtype=cupy.float32)
        result = a @ a if work == "product" else a + a
    else:
        import jax.numpy
        a = jax.numpy.ones((128, 128))
        result = a @ a if work == "product" else a + a
    print(float(result[0, 0]), flush=True)


if __name__ == "__main__":
    main()
