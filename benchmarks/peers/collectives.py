"""allreduce over processes by PyTorch's gloo, or by its NCCL with a GPU each:
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
for kilobytes in (4, 64, 1024, 16384, 131072):
    x = torch.ones(kilobytes * 256, device="cuda" if on_gpus else "cpu")
    calls = max(2, 20000 // (kilobytes + 50))
    seconds = median_seconds(lambda: dist.all_reduce(x.clone()), calls,
                             torch.cuda.synchronize if on_gpus else lambda: None)
    if dist.get_rank() == 0:
        print(json.dumps({"name": f"allreduce {kilobytes} KB, {size} {what} {backend}", "value": round(seconds * 1e6, 1),
                          "unit": "us"}), flush=True)
dist.destroy_process_group()
