#!/usr/bin/env python3
"""Holds L::ResNet50Layers with weights of torchvision's layout to torchvision itself, on photos.

    pip install torch==2.2.2 torchvision==0.17.2 safetensors pillow
    python3 tests/answers/check_torchvision_resnet.py build/cpu/examples/classify/classify PHOTOS.jpg ...

Makes a ResNet-50 of random weights, with the statistics that the photos give its normalizations, writes them as
torchvision names them (98 MiB, into a temporary folder), lets the program examples/classify read them, and compares
the scores of each photo: none may differ by more than 1e-4.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.torch
import torch
import torchvision
from PIL import Image

program, photos = sys.argv[1], sys.argv[2:]
images = []
for photo in photos:
    image = Image.open(photo).convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.BILINEAR)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    images.append(np.asarray(image.crop((left, top, left + 224, top + 224))))
images = np.stack(images)
mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
x = ((torch.tensor(images).float() / 255 - mean) / std).permute(0, 3, 1, 2).contiguous()

torch.manual_seed(0)
model = torchvision.models.resnet50()
with torch.no_grad():
    for name, p in model.named_parameters():
        if "bn" in name or "downsample.1" in name:
            p.uniform_(0.5, 1.5) if name.endswith("weight") else p.uniform_(-0.5, 0.5)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # the mean of all batches
    model.train()(x)
    want = model.eval()(x).numpy()
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    safetensors.torch.save_file(model.state_dict(), folder / "resnet50.safetensors")
    np.save(folder / "photos.npy", images)
    subprocess.run([program, folder / "resnet50.safetensors", folder / "photos.npy", folder / "scores.npy"], check=True)
    got = np.load(folder / "scores.npy")
difference = np.abs(got - want).max(1)
for photo, one, scores in zip(photos, difference, want):
    print(f"{pathlib.Path(photo).name}: scores from {scores.min():.3f} to {scores.max():.3f}, differ by {one:.2e}")
print(f"{len(photos)} photos: the largest difference is {difference.max():.2e}")
sys.exit(not difference.max() <= 1e-4)
