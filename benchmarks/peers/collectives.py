"""allreduce, allgather and alltoall over processes by PyTorch's gloo, or by its NCCL with a GPU each:
rensa-run -n 2 python collectives.py [gpu]"""
import json
import os
import sys

import torch
import torch.distributed as dist

from timing import median_seconds

torch.set_num_threads(1)
on_gpus = sys.argv[1:] == ["gpu"]
if on_gpus:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
backend = "nccl" if on_gpus else "gloo"
dist.init_process_group(backend)
size = dist.get_world_size()
what = "GPUs" if on_gpus else "processes"


def exchanges(x):
    """The calls that rensa's benchmark makes, each of an array of every rank's; results are made anew."""
    yield "allreduce", lambda: dist.all_reduce(x.clone())
    if on_gpus:
        yield "allgather", lambda: dist.all_gather_into_tensor(x.new_empty(size * x.numel()), x)
        yield "alltoall", lambda: dist.all_to_all_single(torch.empty_like(x), x)
    else:  # gloo has no alltoall, and no allgather into one tensor
        yield "allgather", lambda: dist.all_gather([torch.empty_like(x) for _ in range(size)], x)


for kilobytes in (4, 64, 1024, 16384, 131072, *((1048576,) if on_gpus else ())):
    x = torch.ones(kilobytes * 256, device="cuda" if on_gpus else "cpu")
    calls = max(2, 20000 // (kilobytes + 50))
    for name, call in exchanges(x):
        seconds = median_seconds(call, calls, torch.cuda.synchronize if on_gpus else lambda: None)
        if dist.get_rank() == 0:
            print(json.dumps({"name": f"{name} {kilobytes} KB, {size} {what} {backend}", "value": round(seconds * 1e6, 1),
                              "unit": "us"}), flush=True)
dist.destroy_process_group()
