"""allreduce over processes by PyTorch's gloo: rensa-run -n 2 python collectives.py"""
import json

import torch
import torch.distributed as dist

from timing import median_seconds

torch.set_num_threads(1)
dist.init_process_group("gloo")
size = dist.get_world_size()
for kilobytes in (4, 64, 1024, 16384, 131072):
    x = torch.ones(kilobytes * 256)
    calls = max(2, 20000 // (kilobytes + 50))
    seconds = median_seconds(lambda: dist.all_reduce(x.clone()), calls, lambda: None)
    if dist.get_rank() == 0:
        print(json.dumps({"name": f"allreduce {kilobytes} KB, {size} processes gloo", "value": round(seconds * 1e6, 1),
                          "unit": "us"}), flush=True)
dist.destroy_process_group()
