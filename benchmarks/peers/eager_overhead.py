#!/usr/bin/env python3
"""What eager_overhead.cc does, in PyTorch and CuPy. Prints a JSON object a figure."""
import importlib
import json
import statistics
import time


def median_us(call, wait, count=3000):
    """Median microseconds a call over five timings."""
    for _ in range(10):
        call()
    values = []
    for _ in range(5):
        wait()
        start = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        values.append((time.perf_counter() - start) / count * 1e6)
    return statistics.median(values)


def main():
    for peer in ("torch", "cupy"):
        try:
            module = importlib.import_module(peer)
        except ImportError as error:
            print(f"left out: {error}")
            continue
        if peer == "torch":
            a, wait = module.ones(16, device="cuda"), module.cuda.synchronize
        else:
            a, wait = module.ones(16, dtype=module.float32), module.cuda.Device().synchronize
        value = round(median_us(lambda: a + a, wait), 2)
        print(json.dumps({"name": f"host cost of a small add, cuda:0 {peer}", "value": value,
                          "unit": "us"}), flush=True)


if __name__ == "__main__":
    main()
