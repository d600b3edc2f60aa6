#!/usr/bin/env python3
"""The networks of networks.cc in PyTorch: eager, in a CUDA graph, and with --compile compiled in a CUDA graph.

    networks.py [--compile] NETWORK tf32|bf16
bf16 is torch.autocast to bfloat16; ResNet-50's inference has its parameters in bfloat16. Convolutions have the channels
last.
"""
import argparse
import json

from timing import graphed, median_seconds

BATCH = 128


def emit(name, value, unit):
    import torch
    print(json.dumps({"name": name, "value": round(value, 2), "unit": unit,
                      "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2)}), flush=True)


def nin():
    from torch import nn

    def mlpconv(channels, out, *kernel):
        return [nn.Conv2d(channels, out, *kernel), nn.ReLU(), nn.Conv2d(out, out, 1), nn.ReLU(),
                nn.Conv2d(out, out, 1), nn.ReLU()]
    return nn.Sequential(
        *mlpconv(3, 96, 11, 4), nn.MaxPool2d(3, 2), *mlpconv(96, 256, 5, 1, 2), nn.MaxPool2d(3, 2),
        *mlpconv(256, 384, 3, 1, 1), nn.MaxPool2d(3, 2), nn.Dropout(), nn.Conv2d(384, 1024, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(1024, 1024, 1), nn.ReLU(), nn.Conv2d(1024, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten())


def resnet50():
    import torchvision
    return torchvision.models.resnet50()


def vgg16():
    import torchvision
    from torch import nn
    net = torchvision.models.vgg16_bn(num_classes=10)
    net.avgpool = nn.Identity()
    net.classifier = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 10))
    return net


IMAGES = {"nin": ("nin", nin, 227, 1000), "resnet50": ("resnet50", resnet50, 224, 1000),
          "vgg16": ("vgg16-bn cifar", vgg16, 32, 10)}


def train_images(key, bf16, compiled):
    import torch
    from torch.nn import functional
    name, make, size, classes = IMAGES[key]
    net = make().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, fused=True)
    x = torch.randn(BATCH, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
    t = torch.randint(0, classes, (BATCH,), device="cuda")
    call = torch.compile(net) if compiled else net

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            loss = functional.cross_entropy(call(x), t)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return f"{name} B={BATCH}", step, "images/s", BATCH


def inference(batch):
    def make(bf16, compiled):
        import torch
        dtype = torch.bfloat16 if bf16 else torch.float32
        net = resnet50().cuda().eval().to(dtype).to(memory_format=torch.channels_last)
        call = torch.compile(net) if compiled else net
        x = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)

        def step():
            with torch.no_grad():
                call(x)
        return f"resnet50 inference B={batch}", step, "us", None
    return make


def gpt2(bf16, compiled):
    import torch
    from torch import nn
    from torch.nn import functional
    words, units, heads, batch, length = 50304, 768, 12, 16, 1024

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(units), nn.LayerNorm(units)
            self.attn, self.proj = nn.Linear(units, 3 * units), nn.Linear(units, units)
            self.up, self.down = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

        def forward(self, x):
            q, k, v = self.attn(self.ln_1(x)).view(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(a.transpose(1, 2).reshape(x.shape))
            return x + self.down(functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))

    class GPT2(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, units), nn.Embedding(length, units)
            self.blocks, self.ln = nn.ModuleList(Block() for _ in range(12)), nn.LayerNorm(units)

        def forward(self, x, t):
            h = self.words(x) + self.places(torch.arange(length, device=x.device))
            for block in self.blocks:
                h = block(h)
            scores = functional.linear(self.ln(h), self.words.weight)
            return functional.cross_entropy(scores.view(-1, words), t.view(-1))

    x, t = (torch.randint(0, 50257, (batch, length), device="cuda") for _ in range(2))
    net = GPT2().cuda()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, fused=True, capturable=True)
    call = torch.compile(net) if compiled else net

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            loss = call(x, t)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return "gpt2-small", step, "tokens/s", batch * length


def ptb(bf16, compiled):
    import torch
    from torch import nn
    from torch.nn import functional
    words, units, batch, length = 10000, 650, 20, 35
    embed, out, drop = nn.Embedding(words, units), nn.Linear(units, words), nn.Dropout(0.5)
    net = nn.ModuleList([embed, nn.LSTM(units, units, 2, dropout=0.5), out, drop]).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 1.0, fused=True)
    x, t = (torch.randint(0, words, (length, batch), device="cuda") for _ in range(2))
    state = [torch.zeros(2, batch, units, device="cuda") for _ in range(2)]

    def forward():
        y, new = net[1](drop(embed(x)), tuple(state))
        return functional.cross_entropy(out(drop(y)).view(-1, words).float(), t.view(-1)), new
    call = torch.compile(forward) if compiled else forward

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            loss, new = call()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0, foreach=True)
        optimizer.step()
        for old, value in zip(state, new):
            old.copy_(value.detach())
    return "ptb lstm", step, "us", None


MAKERS = {**{key: lambda bf16, compiled, key=key: train_images(key, bf16, compiled) for key in IMAGES},
          "inference1": inference(1), "inference128": inference(128), "gpt2": gpt2, "ptb": ptb}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=MAKERS)
    parser.add_argument("precision", choices=("tf32", "bf16"))
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    try:
        import torch
        import torchvision  # noqa: F401
    except ImportError as error:
        print(f"torch: {error}", flush=True)
        return
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    name, step, unit, amount = MAKERS[options.network](options.precision == "bf16", options.compile)

    def report(how, make):
        torch.cuda.reset_peak_memory_stats()
        seconds = median_seconds(make(), 20, torch.cuda.synchronize)
        emit(f"{name} {options.precision} torch {how}", seconds * 1e6 if unit == "us" else amount / seconds, unit)

    if options.compile:
        report("compile + graph", lambda: graphed(step))
        return
    report("eager", lambda: step)
    report("cuda graph", lambda: graphed(step))


if __name__ == "__main__":
    main()
