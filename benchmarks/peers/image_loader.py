#!/usr/bin/env python3
"""What image_loader.cc does, with torchvision. Prints one JSON object per figure.

    image_loader.py FOLDER [--threads N]
    image_loader.py FOLDER --make N [--of PHOTOS]   writes N JPEGs of 256 pixels on the shorter side there

--of is a folder of photos to make them of; without it they are drawn.
"""
import argparse
import itertools
import json
import pathlib
import time

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def drawn(i):
    """A picture with structure at every scale, as photos have."""
    random = np.random.default_rng(i)
    layers = [np.asarray(Image.fromarray(random.integers(0, 256, (side, side * 4 // 3, 3), dtype=np.uint8))
                         .resize((341, 256), Image.Resampling.BICUBIC), np.float32) for side in (3, 8, 20, 60)]
    return Image.fromarray(np.clip(np.average(layers, 0, weights=(4, 3, 2, 1)), 0, 255).astype(np.uint8))


def make(folder, count, photos):
    sources = sorted(p for p in pathlib.Path(photos).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg")) if photos else []
    for i, source in zip(range(count), itertools.cycle(sources or [None])):
        image = Image.open(source).convert("RGB") if source else drawn(i)
        scale = 256 / min(image.size)
        image = image.resize([round(side * scale) for side in image.size], Image.Resampling.BILINEAR)
        path = folder / f"class{i % 10}" / f"{i:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, quality=90)


def measure(name, dataset, batch, threads):
    loader = torch.utils.data.DataLoader(dataset, batch, shuffle=True, num_workers=threads if threads > 1 else 0,
                                         persistent_workers=threads > 1)
    best = cpu_best = float("inf")
    for _ in range(5):
        start, cpu_start = time.perf_counter(), time.process_time()
        for _ in loader:
            pass
        best = min(best, time.perf_counter() - start)
        cpu_best = min(cpu_best, time.process_time() - cpu_start)
    figure = {"name": f"image_loader: {name}", "value": round(len(dataset) / best, 1), "unit": "pictures/s"}
    if threads == 1:  # other processes' time is not known here
        figure["cpu_us"] = round(cpu_best / len(dataset) * 1e6)
    print(json.dumps(figure), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1, help="processes that fetch; 1: this one")
    parser.add_argument("--make", type=int, metavar="N")
    parser.add_argument("--of", metavar="PHOTOS")
    options = parser.parse_args()
    if options.make:
        return make(options.folder, options.make, options.of)
    torch.set_num_threads(1)

    def pil(path):
        with Image.open(path) as image:
            return image.convert("RGB")

    def tensor(path):
        return torchvision.io.decode_image(path, torchvision.io.ImageReadMode.RGB)

    first = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    folder = torchvision.datasets.ImageFolder
    ways = {"PIL": (pil, [*first, v2.PILToTensor(), *last], v2.PILToTensor()),
            "tensors": (tensor, [*first, *last], None)}
    for way, (loader, transforms, whole) in ways.items():
        measure(f"decoded torchvision {way}", folder(options.folder, whole, loader=loader), None, options.threads)
        measure(f"for training torchvision {way}", folder(options.folder, v2.Compose(transforms), loader=loader), 32,
                options.threads)


if __name__ == "__main__":
    main()
