#!/usr/bin/env python3
"""What float8 could save a linear layer in training: its three products in bfloat16 and in float8 (cuBLASLt's, by
PyTorch), with the conversions at the speed of a copy. cuBLASLt takes float8 operands in one layout only, so
that x, W and gy are each converted and transposed once more; amax and scales are counted as free."""
import json

import torch
from timing import median_seconds

TOKENS = 16 * 1024
LAYERS = {"GPT-2 small, a layer": [(768, 2304), (768, 768), (768, 3072), (3072, 768)],
          "GPT-2 XL's 1600 to 6400": [(1600, 6400)], "4096 to 16384": [(4096, 16384)]}


def microseconds(call):
    return 1e6 * median_seconds(call, 50, torch.cuda.synchronize, 10)


def product(m, n, k):
    """Microseconds of (m, k) x (k, n) in bfloat16 and in float8."""
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    wide = microseconds(lambda: a @ b.t())
    narrow = microseconds(lambda: torch._scaled_mm(a8, b8.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16))
    return wide, narrow


def main():
    a = torch.empty(1 << 28, device="cuda", dtype=torch.uint8)
    b = torch.empty_like(a)
    bytes_a_microsecond = 2 * a.numel() / microseconds(lambda: b.copy_(a))
    for name, shapes in LAYERS.items():
        wide = narrow = conversions = 0.0
        for inputs, outputs in shapes:
            for m, n, k in ((TOKENS, outputs, inputs), (TOKENS, inputs, outputs), (outputs, inputs, TOKENS)):
                both = product(m, n, k)
                wide, narrow = wide + both[0], narrow + both[1]
            elements = TOKENS * inputs + inputs * outputs + TOKENS * outputs
            conversions += elements * (2 + 1 + 1) / bytes_a_microsecond  # read once, written in both layouts
        print(json.dumps({"name": f"float8 products, {name}", "value": round(narrow + conversions, 1), "unit": "us",
                          "bfloat16": round(wide, 1), "products alone": round(narrow, 1),
                          "ratio": round((narrow + conversions) / wide, 3)}), flush=True)


if __name__ == "__main__":
    main()
