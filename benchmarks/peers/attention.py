#!/usr/bin/env python3
"""The attention of attention.cc in PyTorch: on a GPU by its flash attention, on a CPU as it chooses.

    attention.py cpu|gpu [--threads N]
"""
import argparse
import contextlib
import json

from timing import median_seconds


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
    batch, heads, repeats = (8, 16, 20) if on_gpu else (1, 8, 2)
    dtype, device = (torch.bfloat16, "cuda") if on_gpu else (torch.float32, "cpu")

    def wait():
        if on_gpu:
            torch.cuda.synchronize()

    def flash():
        if not on_gpu:
            return contextlib.nullcontext()
        try:
            return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION)
        except AttributeError:
            return torch.backends.cuda.sdp_kernel(enable_math=False, enable_mem_efficient=False)

    def emit(name, way, products, count, seconds):
        print(json.dumps({"name": f"{name}, {way} torch", "value": round(seconds * 1e6, 1),
                          "unit": "us", "tflops": round(2 * products * count / seconds / 1e12, 1)}),
              flush=True)

    for length in (1024, 4096) if on_gpu else (1024,):
        for width in (64, 128):
            for causal in (False, True):
                x = [torch.randn(batch, length, heads, width, device=device, dtype=dtype)
                     .transpose(1, 2).requires_grad_() for _ in range(3)]
                gy = torch.randn(batch, length, heads, width, device=device,
                                 dtype=dtype).transpose(1, 2)

                def attend(x=x, causal=causal):
                    return functional.scaled_dot_product_attention(*x, is_causal=causal)

                def both(x=x, gy=gy, attend=attend):
                    torch.autograd.grad(attend(), x, gy)

                name = f"attention L={length} D={width}{' causal' if causal else ''}"
                count = batch * heads * length * length * width / (2 if causal else 1)
                with flash():
                    with torch.no_grad():
                        emit(name, "forward", 2, count, median_seconds(attend, repeats, wait))
                    emit(name, "both", 7, count, median_seconds(both, repeats, wait))


if __name__ == "__main__":
    main()
