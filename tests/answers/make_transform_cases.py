#!/usr/bin/env python3
"""What PIL and torchvision make of a small picture: image_transforms.npz. Names are those of the functions, with their
arguments behind them."""
import pathlib

import numpy as np
import torch
from make_image_cases import HEIGHT, WIDTH, picture
from PIL import Image
from torchvision.transforms import functional

SIZES = [(13, 50), (26, 10), (5, 37), (52, 74), (1, 1), (25, 36), (100, 3), (7, 9)]


def resized(plane, size):
    """A plane of uint8 or float32, by PIL, rows first: Pillow 13 takes the columns first where that is less work."""
    height, width = size
    for shape in ((width, HEIGHT), (width, height)):
        plane = np.asarray(Image.fromarray(plane).resize(shape, Image.Resampling.BILINEAR))
    return plane


def main():
    image = picture(3)
    planes = image.transpose(2, 0, 1)
    floats = (planes * np.float32(1 / 3)).astype(np.float32)
    units = (planes / np.float32(255)).astype(np.float32)
    answers = {"uint8": planes, "float": floats, "unit": units}
    for size in SIZES:
        name = f"resize {size[0]} {size[1]}"
        answers[f"uint8 {name}"] = np.stack([resized(p, size) for p in planes])
        answers[f"float {name}"] = np.stack([resized(p, size) for p in floats])
    for size in ((9, 12), (26, 37), (7, 8), (8, 7)):
        cut = functional.center_crop(torch.from_numpy(planes.copy()), size)
        answers[f"uint8 center_crop {size[0]} {size[1]}"] = cut.numpy()
    for factor in ("0", "0.3", "1", "1.7", "30"):
        for adjust in ("adjust_brightness", "adjust_contrast", "adjust_saturation"):
            function = getattr(functional, adjust)
            name = f"{adjust} {factor}"
            answers[f"uint8 {name}"] = function(torch.from_numpy(planes.copy()), float(factor)).numpy()
            if float(factor) <= 1:  # torchvision cuts floats off at 0 and 1
                answers[f"unit {name}"] = function(torch.from_numpy(units.copy()), float(factor)).numpy()
    mean, std = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
    normalized = functional.normalize(torch.from_numpy(planes.astype(np.float32)), mean, std).numpy()
    answers["uint8 normalize"] = normalized
    assert planes.shape == (3, HEIGHT, WIDTH)
    np.savez_compressed(pathlib.Path(__file__).parent / "image_transforms.npz", **answers)


if __name__ == "__main__":
    main()
