#!/usr/bin/env python3
"""Reads the event file that a test writes by TensorBoard's own code, and compares its histograms with PyTorch's.

    pip install tensorboard==2.21.0 torch numpy
    python3 tests/answers/check_tensorboard.py build/cpu/tests/rensa_tests
"""
import io
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.graph_pb2 import GraphDef
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import histogram


def same(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: {got}, expected {expected}")
    print(f"{what:12} as expected")


program = sys.argv[1]
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([program, "--gtest_filter=SummaryWriterTest.WritesWhatTensorBoardReads"], check=True,
                   stdout=subprocess.DEVNULL, env=os.environ | {"RENSA_TEST_TENSORBOARD_FOLDER": name})
    events = EventAccumulator(name, size_guidance={kind: 0 for kind in ("scalars", "histograms", "images", "tensors")})
    events.Reload()
    tags = events.Tags()
    same("tags", [tags[kind] for kind in ("scalars", "histograms", "images", "tensors", "graph")],
         [["train/loss"], ["normal", "skewed"], ["image"], ["note"], True])

    lines = [line.split() for line in (folder / "scalars.txt").read_text().splitlines()]
    same("scalars", [(e.step, np.float32(e.value)) for e in events.Scalars("train/loss")],
         [(int(step), np.float32(value)) for step, value in lines])

    with SummaryWriter(folder / "torch") as theirs:
        bins = theirs.default_bins
    for tag in ("normal", "skewed"):
        (event,) = events.Histograms(tag)
        got = event.histogram_value
        expected = histogram(tag, np.load(folder / f"{tag}.npy"), bins).value[0].histo
        same(tag, (event.step, list(got.bucket), list(got.bucket_limit), got.min, got.max, got.num),
             (1, list(expected.bucket), list(expected.bucket_limit), expected.min, expected.max, expected.num))
        if not np.allclose([got.sum, got.sum_squares], [expected.sum, expected.sum_squares], rtol=1e-12):
            sys.exit(f"{tag}: the sums {got.sum}, {got.sum_squares} are not {expected.sum}, {expected.sum_squares}")

    (event,) = events.Images("image")
    pixels = np.rint(np.load(folder / "image.npy").transpose(1, 2, 0).astype(np.float32) * np.float32(255))
    same("image", (event.step, event.height, event.width), (2, 20, 30))
    same("pixels", np.asarray(Image.open(io.BytesIO(event.encoded_image_string))).tolist(), pixels.astype(int).tolist())

    (event,) = events.Tensors("note")
    same("text", (event.step, list(event.tensor_proto.string_val)), (3, [b"a *text*"]))
    same("plugin", events.SummaryMetadata("note").plugin_data.plugin_name, "text")

    graph = GraphDef.FromString(events.Graph().SerializeToString())
    same("graph", {node.name: (node.op, sorted(node.input)) for node in graph.node},
         {"x": ("Variable", []), "l1/W": ("Variable", []), "linear": ("linear", ["l1/W", "x"]),
          "relu": ("relu", ["linear"]), "sum": ("sum", ["relu"])})
    shapes = {node.name: [d.size for d in node.attr["_output_shapes"].list.shape[0].dim] for node in graph.node}
    same("shapes", shapes, {"x": [2, 3], "l1/W": [4, 3], "linear": [2, 4], "relu": [2, 4], "sum": []})
