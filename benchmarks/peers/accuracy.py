#!/usr/bin/env python3
"""The networks of accuracy.cc in PyTorch, and the file that both sides train by.

    accuracy.py write NETWORK FILE.npz --data FOLDER [--seed N] [--epochs N] [--samples N]
    accuracy.py train NETWORK FILE.npz [--device cpu|cuda:0] [--precision fp64|fp32|tf32|bf16] [--threads N]
NETWORK is lenet, vgg, resnet18, charlstm or transformer. FOLDER has mnist/, cifar10/ and text/ with the
published files; those of CIFAR-10 and the text may be packed by xz. FILE.npz holds all that a run depends on:
the samples, their order and which are mirrored in each epoch, the size of a batch, each epoch's learning rate,
and the initial parameters as net/NAME with PyTorch's names.
"""
import argparse
import gzip
import json
import lzma
import pathlib
import time

import numpy as np

FIRST_LOSSES = 10
LENGTH = 64  # characters of a sample of text


# --- data: arrays of samples ---

def read(path):
    """The bytes of `path`, or of what xz made of it."""
    packed = path.with_name(path.name + ".xz")
    return path.read_bytes() if path.exists() else lzma.decompress(packed.read_bytes())


def mnist(folder):
    def idx(name, header):
        return np.frombuffer(gzip.decompress((folder / "mnist" / name).read_bytes()), np.uint8, offset=header)
    parts = {}
    for part, name in (("train", "train"), ("test", "t10k")):
        parts[f"{part}_x"] = idx(f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
        parts[f"{part}_t"] = idx(f"{name}-labels-idx1-ubyte.gz", 8).astype(np.int32)
    return parts


def cifar10(folder):
    """The training images that are there less the last 4,000, and these and the test images to test with."""
    def records(pattern):
        names = sorted({path.name.removesuffix(".xz") for path in (folder / "cifar10").glob(pattern)})
        return [np.frombuffer(read(folder / "cifar10" / name), np.uint8).reshape(-1, 3073) for name in names]
    train = np.concatenate(records("data_batch_*.bin*"))
    test = np.concatenate([train[-4000:], *records("test_batch*.bin*")])
    return {f"{part}_{what}": values for part, rows in (("train", train[:-4000]), ("test", test))
            for what, values in (("x", rows[:, 1:].reshape(-1, 3, 32, 32)), ("t", rows[:, 0].astype(np.int32)))}


def text(folder):
    """Samples of characters, each with the characters that follow; a tenth of them to test with."""
    characters = np.frombuffer(read(folder / "text" / "shakespeare.txt"), np.uint8)
    tokens = np.unique(characters, return_inverse=True)[1].astype(np.int32)
    n = (len(tokens) - 1) // LENGTH
    x, t = (tokens[i:i + n * LENGTH].reshape(n, LENGTH) for i in (0, 1))
    split = n - n // 10
    return {"train_x": x[:split], "train_t": t[:split], "test_x": x[split:], "test_t": t[split:]}


# --- networks ---

def lenet(_classes):
    from torch import nn

    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
            self.fc1, self.fc2 = nn.Linear(800, 500), nn.Linear(500, 10)

        def forward(self, x):
            for conv in (self.conv1, self.conv2):
                x = nn.functional.max_pool2d(conv(x).relu(), 2)
            return self.fc2(self.fc1(x.flatten(1)).relu())
    return LeNet()


def vgg(_classes):
    import torchvision
    from torch import nn
    net = torchvision.models.vgg16_bn(num_classes=10)
    net.avgpool = nn.Identity()
    net.classifier = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Identity(), nn.Linear(512, 10))
    return net


def resnet18(_classes):
    import torchvision
    from torch import nn
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return net


def charlstm(words):
    from torch import nn

    class CharLSTM(nn.Module):
        def __init__(self, units=128):
            super().__init__()
            self.embed, self.out = nn.Embedding(words, units), nn.Linear(units, words)
            self.lstm = nn.LSTM(units, units, 2, batch_first=True)

        def forward(self, x):
            return self.out(self.lstm(self.embed(x))[0])
    return CharLSTM()


def transformer(words):
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, units, heads):
            super().__init__()
            self.c_attn, self.c_proj, self.heads = nn.Linear(units, 3 * units), nn.Linear(units, units), heads

        def forward(self, x):
            q, k, v = self.c_attn(x).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.c_proj(y.transpose(1, 2).reshape(x.shape))

    class MLP(nn.Module):
        def __init__(self, units):
            super().__init__()
            self.c_fc, self.c_proj = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

        def forward(self, x):
            return self.c_proj(nn.functional.gelu(self.c_fc(x), approximate="tanh"))

    class Block(nn.Module):
        def __init__(self, units, heads):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(units), nn.LayerNorm(units)
            self.attn, self.mlp = Attention(units, heads), MLP(units)

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT2(nn.Module):
        def __init__(self, units=128, heads=4):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(words, units), nn.Embedding(LENGTH, units)
            self.h, self.ln_f = nn.ModuleList(Block(units, heads) for _ in range(2)), nn.LayerNorm(units)
            for name, parameter in self.named_parameters():
                if parameter.ndim == 2:
                    nn.init.normal_(parameter, std=0.01 if "c_proj" in name else 0.02)
                elif name.endswith("bias"):
                    nn.init.zeros_(parameter)

        def forward(self, x):
            h = self.wte(x) + self.wpe.weight[:x.shape[1]]
            for block in self.h:
                h = block(h)
            return nn.functional.linear(self.ln_f(h), self.wte.weight)
    return GPT2()


# Data, how it is made, mirrored images, samples in a batch, epochs, learning rate.
NETWORKS = {"lenet": (mnist, lenet, False, 64, 12, 0.02),
            "vgg": (cifar10, vgg, True, 128, 20, 0.05),
            "resnet18": (cifar10, resnet18, True, 128, 15, 0.05),
            "charlstm": (text, charlstm, False, 64, 3, 3e-3),
            "transformer": (text, transformer, False, 64, 3, 2e-3)}


def write(options):
    import torch
    data, make, mirrored, batch, epochs, rate = NETWORKS[options.network]
    task = data(pathlib.Path(options.data))
    if options.samples:
        task = {name: values[:options.samples] for name, values in task.items()}
    epochs = options.epochs or epochs
    rng, n = np.random.default_rng(options.seed), len(task["train_x"])
    task["order"] = np.stack([rng.permutation(n) for _ in range(epochs)]).astype(np.int32)
    if mirrored:
        task["mirrored"] = rng.random((epochs, n)) < 0.5
    if data is not text:
        task["mean"] = task["train_x"].mean((0, 2, 3), dtype=np.float64, keepdims=True).astype(np.float32)
        task["std"] = task["train_x"].std((0, 2, 3), dtype=np.float64, keepdims=True).astype(np.float32)
    task["classes"] = np.int64(task["train_t"].max() + 1)
    task["batch"] = np.int64(batch)
    task["rates"] = rate * 0.5 * (1 + np.cos(np.pi * np.arange(epochs) / epochs))
    torch.manual_seed(options.seed)
    for name, values in make(int(task["classes"])).state_dict().items():
        task[f"net/{name}"] = values.numpy()
        if name.startswith("lstm."):
            task.update(gates(name, values.numpy()))
    np.savez(options.file, **task)


def gates(name, values):
    """Of PyTorch's weight or bias of all gates of a layer those of each gate, by L::NStepLSTM's names."""
    kind, which, layer = name.removeprefix("lstm.").split("_")
    first = 0 if which == "ih" else 4
    return {f"net/lstm.{layer[1:]}.{kind[0]}{first + i}": part for i, part in enumerate(np.split(values, 4))}


def train(options):
    import torch
    from torch import nn
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    if options.threads:
        torch.set_num_threads(options.threads)
    device, file = torch.device(options.device), np.load(options.file)
    wide = torch.float64 if options.precision == "fp64" else torch.float32
    task = {name: torch.from_numpy(file[name]).to(device) for name in file.files if "/" not in name}
    net = NETWORKS[options.network][1](int(task["classes"]))
    net.load_state_dict({name: torch.from_numpy(file[f"net/{name}"]) for name in net.state_dict()})
    net.to(device, wide)
    images = "mean" in task
    if images and device.type == "cuda":
        net.to(memory_format=torch.channels_last)
    if images:
        optimizer = torch.optim.SGD(net.parameters(), 0, momentum=0.9, weight_decay=5e-4)
    else:
        optimizer = torch.optim.Adam(net.parameters(), 0)

    def take(part, rows, mirrored=None):
        x, t = task[f"{part}_x"][rows], task[f"{part}_t"][rows].long()
        if images:
            x = (x.float() - task["mean"]) / task["std"]
        if mirrored is not None:
            x = torch.where(mirrored[:, None, None, None], x.flip(3), x)
        return x.to(wide) if images else x, t

    def scores(x):
        with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bf16"):
            y = net(x)
        return y.to(wide).view(-1, int(task["classes"]))

    batch, losses, start, step = int(task["batch"]), [], time.perf_counter(), 0
    for order, rate, mirrored in zip(task["order"], task["rates"].tolist(), task.get("mirrored", task["order"])):
        optimizer.param_groups[0]["lr"] = rate
        for i in range(0, len(order) - batch + 1, batch):
            rows = slice(i, i + batch)
            x, t = take("train", order[rows], mirrored[rows] if "mirrored" in task else None)
            loss = nn.functional.cross_entropy(scores(x), t.view(-1))
            optimizer.zero_grad()
            loss.backward()
            step += 1
            if not images:  # Kingma and Ba's other order: eps comes before the correction of the bias
                optimizer.param_groups[0]["eps"] = 1e-8 / (1 - 0.999**step) ** 0.5
            optimizer.step()
            losses += [loss.detach()] if len(losses) < FIRST_LOSSES else []
    net.eval()
    loss, right, n = 0.0, 0, len(task["test_x"])
    with torch.no_grad():
        for i in range(0, n, 500):
            x, t = take("test", slice(i, i + 500))
            y = scores(x)
            loss += nn.functional.cross_entropy(y, t.view(-1)).item() * len(x) / n
            right += (y.argmax(1) == t.view(-1)).sum().item()
    print(json.dumps({
        "name": f"accuracy {pathlib.Path(options.file).stem} {options.precision} torch",
        "value": round(100 * right / n if images else loss, 4), "unit": "%" if images else "nats", "loss": loss,
        "first_losses": [one.item() for one in losses], "seconds": round(time.perf_counter() - start, 1)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("write", "train"))
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("file")
    parser.add_argument("--data", help="of write: the folder of the published files")
    parser.add_argument("--seed", type=int, default=0, help="of write")
    parser.add_argument("--epochs", type=int, help="of write: other than the network's own number")
    parser.add_argument("--samples", type=int, help="of write: the first ones alone")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=("fp64", "fp32", "tf32", "bf16"), default="fp32")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    {"write": write, "train": train}[options.action](options)


if __name__ == "__main__":
    main()
