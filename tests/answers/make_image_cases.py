#!/usr/bin/env python3
"""Draws small pictures, writes them to images/jpg and images/png, and what PIL makes of them as images.npz."""
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
WIDTH, HEIGHT = 37, 26  # neither is a multiple of a block's 8 pixels


def picture(channels, depth=8):
    """Waves, a different one in each channel, with sharp squares: (height, width, channels)."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    planes = [np.sin(x / (4 + c) + c) * np.cos(y / (6 - c)) * 0.5 + 0.5 for c in range(channels)]
    for c, plane in enumerate(planes):
        plane[5 + c:12 + c, 20 - 3 * c:29] = c % 2
    top = 2**depth - 1
    return np.round(np.stack(planes, -1) * top).astype(np.uint8 if depth == 8 else np.uint16)


def png(pixels, kind, depth):
    """A PNG of what PIL does not write: 16 bits of any kind, rows packed by hand."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = pixels.reshape(HEIGHT, -1).astype(">u2" if depth == 16 else "u1")
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, kind, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def pictures():
    """(name, bytes)"""
    rgb, rgba = Image.fromarray(picture(3)), Image.fromarray(picture(4))
    gray = Image.fromarray(picture(1)[..., 0])
    palette = rgb.quantize(16)
    yield "rgb.jpg", encoded(rgb, "JPEG", quality=90)
    yield "rgb_444.jpg", encoded(rgb, "JPEG", quality=90, subsampling=0)
    yield "progressive.jpg", encoded(rgb, "JPEG", quality=80, progressive=True)
    yield "restarts.jpg", encoded(rgb, "JPEG", quality=80, restart_marker_blocks=2)
    yield "gray.jpg", encoded(gray, "JPEG", quality=90)
    yield "cmyk.jpg", encoded(Image.fromarray(picture(4), "CMYK"), "JPEG", quality=90)
    yield "large.jpg", encoded(rgb.resize((205, 142), Image.Resampling.BICUBIC), "JPEG", quality=70)
    yield "rgb.png", encoded(rgb, "PNG")
    yield "rgba.png", encoded(rgba, "PNG")
    yield "gray.png", encoded(gray, "PNG")
    yield "gray_alpha.png", encoded(Image.fromarray(picture(2), "LA"), "PNG")
    yield "transparent.png", encoded(rgb, "PNG", transparency=(0, 0, 0))
    for bits in (1, 2, 4, 8):
        yield f"palette{bits}.png", encoded(rgb.quantize(2**bits), "PNG", bits=bits)
    yield "palette_alpha.png", encoded(palette, "PNG", transparency=bytes(range(16)))
    yield "bits.png", encoded(gray.convert("1"), "PNG")
    yield "gray16.png", png(picture(1, 16), 0, 16)
    yield "gray_alpha16.png", png(picture(2, 16), 4, 16)
    yield "rgb16.png", png(picture(3, 16), 2, 16)
    yield "rgba16.png", png(picture(4, 16), 6, 16)


def planes(image):
    """(channels, height, width), as Chainer's ImageDataset stores a picture."""
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def path_of(name):
    return FOLDER / "images" / name[-3:] / name


def gray(content):
    """As grey; of a JPEG its luminance."""
    with Image.open(io.BytesIO(content)) as image:
        image.draft("L", image.size)
        return image.copy() if image.mode == "L" else image.convert("RGB").convert("L")


def main():
    answers = {}
    for kind in ("jpg", "png"):
        (FOLDER / "images" / kind).mkdir(parents=True, exist_ok=True)
    for name, content in pictures():
        path_of(name).write_bytes(content)
        with Image.open(io.BytesIO(content)) as image:
            image.load()
        unchanged = image
        if image.mode in ("P", "CMYK"):
            unchanged = image.convert("RGB")
        elif image.mode == "1":
            unchanged = image.convert("L")
        elif name == "gray_alpha16.png":  # PIL has no mode for it
            unchanged = image.convert("LA")
        answers[name] = planes(unchanged)
        if image.mode != "I;16":  # whose conversions in PIL clip at 255
            answers[f"{name} rgb"] = planes(image.convert("RGB"))
            answers[f"{name} gray"] = planes(gray(content))
    for size in (80, 50, 20, 1):
        with Image.open(path_of("large.jpg")) as image:
            image.draft("RGB", (size, size))
            answers[f"large.jpg {size}"] = planes(image)
    np.savez_compressed(FOLDER / "images.npz", **answers)


if __name__ == "__main__":
    main()
