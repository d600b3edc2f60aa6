#!/usr/bin/env python3
"""What arrays.cc does, in PyTorch and CuPy on one GPU. Prints one JSON object per figure."""
import importlib
import json

import numpy
from timing import median_seconds as seconds

SIZE, SIDE = 1 << 26, 8192
GIGA = SIZE * 4 / 1e9  # bytes of an array


def emit(name, peer, value, unit):
    print(json.dumps({"name": f"{name} {peer}", "value": round(float(value), 3), "unit": unit}),
          flush=True)


def run_torch(torch):
    wait = torch.cuda.synchronize

    def rate(name, arrays, call, count=20):
        emit(name, "torch", arrays * GIGA / seconds(call, count, wait), "GB/s")
    a, b = torch.rand(SIZE, device="cuda"), torch.rand(SIZE, device="cuda")
    out, square = torch.empty_like(a), a.reshape(SIDE, SIDE)
    rate("device copy", 2, lambda: out.copy_(a))
    rate("a + b", 3, lambda: torch.add(a, b, out=out))

    def softplus(x):
        return torch.clamp(x, min=0) + torch.log1p(torch.exp(-torch.abs(x)))
    rate("softplus, eager", 2, lambda: softplus(a))
    try:
        compiled = torch.compile(softplus)
        rate("softplus, fused", 2, lambda: compiled(a))
    except Exception as error:
        print("left out:", repr(error)[:200])
    rate("sum of all", 1, a.sum)
    rate("sum over axis 0", 1, lambda: square.sum(0))
    rate("sum over axis 1", 1, lambda: square.sum(1))
    rate("transposed copy", 2, lambda: square.t().contiguous())
    rate("softmax over rows", 2, lambda: torch.softmax(square, 1))
    rate("cumsum", 2, lambda: torch.cumsum(a, 0))
    rate("normal random numbers", 1, lambda: torch.randn(SIZE, device="cuda"))
    emit("sort", "torch", SIZE / seconds(lambda: torch.sort(a), 3, wait) / 1e9, "Gkeys/s")
    m = torch.randn(SIDE, SIDE, device="cuda")
    tera = 2 * SIDE**3 / 1e12
    emit("matmul 8192, float32", "torch", tera / seconds(lambda: m @ m, 10, wait), "TFLOP/s")
    torch.backends.cuda.matmul.allow_tf32 = True
    emit("matmul 8192, TF32", "torch", tera / seconds(lambda: m @ m, 10, wait), "TFLOP/s")
    torch.backends.cuda.matmul.allow_tf32 = False
    half = m.bfloat16()
    emit("matmul 8192, bfloat16", "torch", tera / seconds(lambda: half @ half, 10, wait), "TFLOP/s")
    pageable = torch.ones(1000, 10000, dtype=torch.float64)
    pinned, gpu = pageable.pin_memory(), torch.empty(1000, 10000, dtype=torch.float64, device="cuda")
    for name, call in (
            ("80 MB pinned, host to device", lambda: gpu.copy_(pinned, non_blocking=True)),
            ("80 MB pinned, device to host", lambda: pinned.copy_(gpu, non_blocking=True)),
            ("80 MB pageable, host to device", lambda: gpu.copy_(pageable)),
            ("80 MB pageable, device to host", lambda: pageable.copy_(gpu))):
        emit(name, "torch", 0.08 / seconds(call, 20, wait), "GB/s")
    xs, y = torch.randn(1000, 100, 100, device="cuda"), torch.randn(100, 100, device="cuda")

    def each():
        return [torch.linalg.norm(x @ y).item() for x in xs]

    def logged():
        log = torch.empty(1000, device="cuda")
        for i, x in enumerate(xs):
            log[i] = torch.linalg.norm(x @ y)
        return log
    emit("1000 products with norm, each to the host", "torch", seconds(each, 1, wait) * 1e3, "ms")
    emit("1000 products with norm, log on the device", "torch", seconds(logged, 1, wait) * 1e3, "ms")


def run_cupy(cupy):
    wait = cupy.cuda.Device().synchronize

    def rate(name, arrays, call, count=20):
        emit(name, "cupy", arrays * GIGA / seconds(call, count, wait), "GB/s")
    a = cupy.random.rand(SIZE, dtype=cupy.float32)
    b, out, square = cupy.random.rand(SIZE, dtype=cupy.float32), cupy.empty_like(a), a.reshape(SIDE, SIDE)
    rate("device copy", 2, lambda: cupy.copyto(out, a))
    rate("a + b", 3, lambda: cupy.add(a, b, out))

    def softplus(x):
        return cupy.maximum(0, x) + cupy.log1p(cupy.exp(-abs(x)))
    rate("softplus, eager", 2, lambda: softplus(a))

    @cupy.fuse
    def fused(x):
        return cupy.maximum(0, x) + cupy.log1p(cupy.exp(-cupy.abs(x)))
    rate("softplus, fused", 2, lambda: fused(a))
    rate("sum of all", 1, a.sum)
    rate("sum over axis 0", 1, lambda: square.sum(0))
    rate("sum over axis 1", 1, lambda: square.sum(1))
    rate("transposed copy", 2, lambda: cupy.ascontiguousarray(square.T))
    rate("cumsum", 2, lambda: cupy.cumsum(a))
    rate("normal random numbers", 1,
         lambda: cupy.random.standard_normal(SIZE, dtype=cupy.float32))
    emit("sort", "cupy", SIZE / seconds(lambda: cupy.sort(a), 3, wait) / 1e9, "Gkeys/s")
    host = numpy.ones((1000, 10000))
    gpu = cupy.asarray(host)
    emit("80 MB pageable, host to device", "cupy", 0.08 / seconds(lambda: gpu.set(host), 20, wait), "GB/s")
    emit("80 MB pageable, device to host", "cupy",
         0.08 / seconds(lambda: gpu.get(out=host), 20, wait), "GB/s")


def main():
    for peer, run in (("torch", run_torch), ("cupy", run_cupy)):
        try:
            run(importlib.import_module(peer))
        except ImportError as error:
            print(f"left out: {error}")


if __name__ == "__main__":
    main()
