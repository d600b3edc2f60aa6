#!/usr/bin/env python3
"""The convolutions of convolutions.cc in PyTorch, eagerly: forward, alone and with a bias and relu, and each gradient apart.

    convolutions.py cpu|gpu [--threads N] [--benchmark]
"""
import argparse
import json

from timing import median_seconds

# channels, extent, filters, kernel, stride, pad, groups
WORKS = [(3, 224, 64, 7, 2, 3, 1), (64, 56, 64, 3, 1, 1, 1), (128, 28, 128, 3, 1, 1, 1),
         (256, 14, 256, 3, 1, 1, 1), (512, 7, 512, 3, 1, 1, 1), (64, 56, 128, 3, 2, 1, 1),
         (256, 56, 64, 1, 1, 0, 1), (64, 56, 128, 1, 2, 0, 1), (256, 28, 256, 3, 1, 1, 256),
         (128, 28, 128, 3, 1, 1, 32), (20, 12, 50, 5, 1, 0, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", choices=("cpu", "gpu"))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--benchmark", action="store_true", help="cudnn.benchmark, which autotune is compared with")
    options = parser.parse_args()
    try:
        import torch
        from torch.nn.functional import conv2d
    except ImportError as error:
        print(f"torch: {error}", flush=True)
        return
    torch.backends.cudnn.benchmark = options.benchmark
    if options.threads:
        torch.set_num_threads(options.threads)
    on_gpu = options.device == "gpu"
    batch, count = (128, 50) if on_gpu else (8, 10)

    def wait():
        if on_gpu:
            torch.cuda.synchronize()

    for channels, extent, filters, kernel, stride, pad, groups in WORKS:
        for layout, name in ((torch.contiguous_format, "C order"), (torch.channels_last, "channels last")):
            def numbers(*shape, layout=layout):
                return torch.randn(shape, device="cuda" if on_gpu else "cpu").to(memory_format=layout)

            x = numbers(batch, channels, extent, extent)
            w = numbers(filters, channels // groups, kernel, kernel)
            b = torch.randn(filters, device=x.device)

            def y_of(x, w, b=None, stride=stride, pad=pad, groups=groups):
                return conv2d(x, w, b, stride, pad, groups=groups)

            def emit(way, call, name=name):
                seconds = median_seconds(call, count, wait)
                of_groups = f" in {groups} groups" if groups > 1 else ""
                print(json.dumps({
                    "name": f"convolution {channels} x {extent}^2, {filters} of {kernel}^2"
                            f"{' by 2' if stride > 1 else ''}{of_groups}, {name}, {way} torch",
                    "value": round(seconds * 1e6, 1), "unit": "us"}), flush=True)

            with torch.no_grad():
                emit("forward", lambda x=x, w=w, y_of=y_of: y_of(x, w))
                emit("forward with bias and relu", lambda x=x, w=w, b=b, y_of=y_of: torch.relu(y_of(x, w, b)))
            gy = numbers(*y_of(x, w).shape)
            for way, given in (("input gradient", x), ("weight gradient", w)):
                given.requires_grad_()
                y = y_of(x, w)
                emit(way, lambda y=y, given=given, gy=gy: torch.autograd.grad(y, given, gy, retain_graph=True))
                given.requires_grad_(False)


if __name__ == "__main__":
    main()
