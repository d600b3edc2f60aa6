#!/usr/bin/env python3
"""The rows of several_gpus.cc in PyTorch: a process for each GPU (DDP, NCCL), the model in halves in one process.

    torchrun --nproc-per-node 2 several_gpus.py [PART ...]
PART is sums, mlp, resnet50, gpt2 or model_parallel. Steps are eager.
"""
import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import networks
from timing import median_seconds

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def emit(name, value, unit, **more):
    if RANK == 0:
        print(json.dumps({"name": name, "value": round(value, 2), "unit": unit, **more}), flush=True)


def seconds_of(call, count):
    return median_seconds(call, count, torch.cuda.synchronize, 5)


def sums():
    for kilobytes in (4, 64, 1024, 7200, 102400, 1048576):
        x = torch.zeros(kilobytes * 256, device="cuda")
        seconds = seconds_of(lambda: dist.all_reduce(x), 20 if kilobytes > 10000 else 200)
        emit(f"allreduce {kilobytes} KB x{SIZE} NCCL torch", seconds * 1e6, "us",
             GB_s=round(kilobytes * 1024 / seconds / 1e9, 1))


def step_of(net, x, t, optimizer):
    def step():
        loss = functional.cross_entropy(net(x), t)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return step


def mlp():
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for batch in (200, 2048, 4096, 32768):
            figures = []
            for gpus in (1, SIZE):
                net = networks.mlp().cuda()
                optimizer = torch.optim.SGD(net.parameters(), 0.01, fused=True)
                x, t = torch.rand(batch // gpus, 784).cuda(), torch.randint(0, 10, (batch // gpus,)).cuda()
                whole = net if gpus == 1 else DistributedDataParallel(net)
                figures.append(seconds_of(step_of(whole, x, t, optimizer), 50) * 1e6)
                emit(f"mlp {'tf32' if tf32 else 'fp32'} B={batch} {gpus} GPUs DDP torch", figures[-1], "us",
                     speed_up=round(figures[0] / figures[-1], 3))


def resnet50():
    torch.backends.cudnn.benchmark = True
    net = networks.resnet50().cuda().to(memory_format=torch.channels_last)
    x = torch.randn(128, 3, 224, 224).cuda().contiguous(memory_format=torch.channels_last)
    t = torch.randint(0, 1000, (128,)).cuda()
    figures = []
    for gpus, whole in ((1, net), (SIZE, DistributedDataParallel(net))):
        optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, fused=True)

        def forward(images, whole=whole):
            with torch.autocast("cuda", torch.bfloat16):
                return whole(images)
        figures.append(gpus * 128 / seconds_of(step_of(forward, x, t, optimizer), 10))
        emit(f"resnet50 bf16 B={128 * gpus} {gpus} GPUs DDP torch", figures[-1], "images/s",
             speed_up=round(figures[-1] / figures[0], 3))


def gpt2():
    figures = []
    for gpus in (1, SIZE):
        options = argparse.Namespace(device="cuda", precision="bf16", compile=False, parallel=gpus > 1)
        _, step, unit, tokens = networks.gpt2(options)
        figures.append(gpus * tokens / seconds_of(step, 10))
        emit(f"gpt2-small bf16 B={16 * gpus} {gpus} GPUs DDP torch", figures[-1], unit,
             speed_up=round(figures[-1] / figures[0], 3))


def part(units_in, units, out, device):
    return nn.Sequential(nn.Linear(units_in, units), nn.ReLU(), nn.Linear(units, units), nn.ReLU(),
                         nn.Linear(units, out)).to(device)


def model_parallel():
    if RANK != 0:
        return
    here, there = "cuda:0", "cuda:1"
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for batch in (100, 4096):
            x, t = torch.rand(batch, 784, device=here), torch.randint(0, 10, (batch,), device=here)
            whole = nn.Sequential(part(784, 2000, 2000, here), nn.ReLU(), part(2000, 2000, 10, here))
            single = step_of(whole, x, t, torch.optim.SGD(whole.parameters(), 0.01, fused=True))
            f0, f1 = part(784, 1000, 2000, here), part(784, 1000, 2000, there)
            g0, g1 = part(2000, 1000, 10, here), part(2000, 1000, 10, there)
            on_here = torch.optim.SGD([*f0.parameters(), *g0.parameters()], 0.01, fused=True)
            on_there = torch.optim.SGD([*f1.parameters(), *g1.parameters()], 0.01, fused=True)

            def halves():
                z0, z1 = f0(x), f1(x.to(there))
                h0, h1 = functional.relu(z0 + z1.to(here)), functional.relu(z1 + z0.to(there))
                loss = functional.cross_entropy(g0(h0) + g1(h1).to(here), t)
                on_here.zero_grad(), on_there.zero_grad()
                loss.backward()
                on_here.step(), on_there.step()
            one, two = (median_seconds(step, 50, lambda: [torch.cuda.synchronize(d) for d in (here, there)], 5) * 1e6
                        for step in (single, halves))
            row = f"model-parallel 6x2000 {'tf32' if tf32 else 'fp32'} B={batch}"
            emit(f"{row} 1 GPU torch eager", one, "us")
            emit(f"{row} 2 GPUs torch eager", two, "us", speed_up=round(one / two, 3))


def main():
    parts = {"sums": sums, "mlp": mlp, "resnet50": resnet50, "gpt2": gpt2, "model_parallel": model_parallel}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    for name in options.parts or parts:
        parts[name]()
        dist.barrier()
    dist.destroy_process_group()


main()
