#!/usr/bin/env python3
"""The networks of networks.cc in PyTorch: eager, in a CUDA graph, and with --compile compiled in a CUDA graph.

    networks.py [--compile] [--device cpu --threads N] NETWORK fp32|tf32|bf16
bf16 is torch.autocast to bfloat16; ResNet-50's inference has its parameters in bfloat16. Convolutions have the channels
last unless --channels-first is given. On the CPU steps are eager; a figure is of the median timing, "least" of the least.
"""
import argparse
import json

from timing import graphed, median_seconds, sorted_seconds


def emit(name, value, unit, **more):
    print(json.dumps({"name": name, "value": round(value, 2), "unit": unit, **more}), flush=True)


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


def resnet18():
    import torchvision
    return torchvision.models.resnet18()


def lenet():
    from torch import nn
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def mlp():
    from torch import nn
    return nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 10))


# By their keys: name, what makes them, the batch's shape, classes, the optimizer.
SGD = ("SGD", {"lr": 0.05, "momentum": 0.9})
IMAGES = {"nin": ("nin", nin, (128, 3, 227, 227), 1000, SGD),
          "resnet50": ("resnet50", resnet50, (128, 3, 224, 224), 1000, SGD),
          "vgg16": ("vgg16-bn cifar", vgg16, (128, 3, 32, 32), 10, SGD),
          "resnet18": ("resnet18 112x112", resnet18, (16, 3, 112, 112), 1000, SGD),
          "lenet": ("lenet", lenet, (64, 1, 28, 28), 10, ("SGD", {"lr": 0.01, "momentum": 0.9})),
          "mlp": ("mlp", mlp, (100, 784), 10, ("Adam", {"lr": 1e-3}))}


def train_images(key, options):
    import torch
    from torch.nn import functional
    name, make, shape, classes, (kind, values) = IMAGES[key]
    net, x = make().to(options.device), torch.randn(shape, device=options.device)
    layout = ""
    if len(shape) == 4 and not options.channels_first:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    elif len(shape) == 4:
        layout = ", channels first"
    optimizer = getattr(torch.optim, kind)(net.parameters(), **values, fused=True)
    t = torch.randint(0, classes, shape[:1], device=options.device)
    call = torch.compile(net) if options.compile else net

    def step():
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = functional.cross_entropy(call(x), t)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return f"{name} B={shape[0]}{layout}", step, "us" if options.device == "cpu" else "images/s", shape[0]


def inference(batch):
    def make(options):
        import torch
        dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
        net = resnet50().to(options.device).eval().to(dtype).to(memory_format=torch.channels_last)
        call = torch.compile(net) if options.compile else net
        x = torch.randn(batch, 3, 224, 224, device=options.device, dtype=dtype).to(memory_format=torch.channels_last)

        def step():
            with torch.no_grad():
                call(x)
        return f"resnet50 inference B={batch}", step, "us", None
    return make


def language_model(options, name, words, units, layers, heads, batch, length, used_words, dropout):
    """A GPT-2 of these sizes, of texts of `used_words` words."""
    import torch
    from torch import nn
    from torch.nn import functional

    def drop(x):
        return functional.dropout(x, dropout) if dropout else x

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(units), nn.LayerNorm(units)
            self.attn, self.proj = nn.Linear(units, 3 * units), nn.Linear(units, units)
            self.up, self.down = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

        def forward(self, x):
            q, k, v = self.attn(self.ln_1(x)).view(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            a = functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
            x = x + drop(self.proj(a.transpose(1, 2).reshape(x.shape)))
            return x + drop(self.down(functional.gelu(self.up(self.ln_2(x)), approximate="tanh")))

    class GPT2(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, units), nn.Embedding(length, units)
            self.blocks, self.ln = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(units)

        def forward(self, x, t):
            h = drop(self.words(x) + self.places(torch.arange(length, device=x.device)))
            for block in self.blocks:
                h = block(h)
            scores = functional.linear(self.ln(h), self.words.weight)
            return functional.cross_entropy(scores.view(-1, words), t.view(-1))

    x, t = (torch.randint(0, used_words, (batch, length), device=options.device) for _ in range(2))
    net = GPT2().to(options.device)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, fused=True, capturable=options.device != "cpu")
    call = torch.compile(net) if options.compile else net
    if options.parallel:
        call = nn.parallel.DistributedDataParallel(net)

    def step():
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = call(x, t)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return name, step, "us" if options.device == "cpu" else "tokens/s", batch * length


def gpt2(options):
    return language_model(options, "gpt2-small", 50304, 768, 12, 12, 16, 1024, 50257, 0)


def transformer(dropout):
    return lambda options: language_model(options, f"transformer dropout={dropout}", 5000, 256, 4, 4, 8, 128, 5000,
                                          dropout)


def recurrent(options, name, units, dropout, length):
    import torch
    from torch import nn
    from torch.nn import functional
    words, batch = 10000, 20
    embed, out = nn.Embedding(words, units), nn.Linear(units, words)
    drop = nn.Dropout(dropout) if dropout else nn.Identity()
    net = nn.ModuleList([embed, nn.LSTM(units, units, 2, dropout=dropout), out, drop]).to(options.device)
    optimizer = torch.optim.SGD(net.parameters(), 1.0, fused=True)
    x, t = (torch.randint(0, words, (length, batch), device=options.device) for _ in range(2))
    state = [torch.zeros(2, batch, units, device=options.device) for _ in range(2)]

    def forward():
        y, new = net[1](drop(embed(x)), tuple(state))
        return functional.cross_entropy(out(drop(y)).view(-1, words).float(), t.view(-1)), new
    call = torch.compile(forward) if options.compile else forward

    def step():
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss, new = call()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0, foreach=True)
        optimizer.step()
        for old, value in zip(state, new):
            old.copy_(value.detach())
    return name, step, "us", None


MAKERS = {**{key: lambda options, key=key: train_images(key, options) for key in IMAGES},
          "inference1": inference(1), "inference128": inference(128), "gpt2": gpt2,
          "transformer": transformer(0.1), "transformer0": transformer(0),
          "lstm": lambda options: recurrent(options, "small lstm", 200, 0, 20),
          "ptb": lambda options: recurrent(options, "ptb lstm", 650, 0.5, 35)}


def report_cpu(options, name, step, unit, amount):
    seconds = sorted_seconds(step, options.steps, lambda: None)
    median, least = (s * 1e6 if unit == "us" else amount / s for s in (seconds[2], seconds[0]))
    emit(f"{name} {options.precision} torch eager", median, unit, least=round(least, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=MAKERS)
    parser.add_argument("precision", choices=("fp32", "tf32", "bf16"))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--channels-first", action="store_true")
    parser.set_defaults(parallel=False)  # several_gpus.py's alone
    options = parser.parse_args()
    try:
        import torch
        import torchvision  # noqa: F401
    except ImportError as error:
        print(f"torch: {error}", flush=True)
        return
    torch.manual_seed(0)
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision != "fp32"
    torch.backends.cudnn.benchmark = True
    name, step, unit, amount = MAKERS[options.network](options)
    if options.device == "cpu":
        report_cpu(options, name, step, unit, amount)
        return

    def report(how, make):
        torch.cuda.reset_peak_memory_stats()
        seconds = median_seconds(make(), options.steps, torch.cuda.synchronize)
        emit(f"{name} {options.precision} torch {how}", seconds * 1e6 if unit == "us" else amount / seconds, unit,
             peak_gib=round(torch.cuda.max_memory_allocated() / 2**30, 2))

    if options.compile:
        report("compile + graph", lambda: graphed(step))
        return
    report("eager", lambda: step)
    report("cuda graph", lambda: graphed(step))


if __name__ == "__main__":
    main()
