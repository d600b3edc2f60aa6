#!/usr/bin/env python3
"""Holds the ONNX files that the tests write to onnx's checker and shape inference, and to onnxruntime.

    pip install onnx==1.23.2 onnxruntime==1.32.0 numpy
    python3 tests/answers/check_onnx.py build/cpu/tests/rensa_tests

Lets the program write NAME.onnx, and for each batch N NAMEN_x.npy and NAMEN_y.npy, what the model gave there, into a
temporary folder. No number that onnxruntime gives may be farther from it than 1e-4 of the largest
(2e-3 in float16).
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

program = sys.argv[1]
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([program, "--gtest_filter=OnnxTest.*ComeBackAsTheyWere"], check=True, stdout=subprocess.DEVNULL,
                   env=os.environ | {"RENSA_TEST_ONNX_FOLDER": str(folder)})
    models = sorted(folder.glob("*.onnx"))
    far = 0
    for path in models:
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        if "bfloat16" in path.stem:
            continue  # onnxruntime has no products of it on the CPU
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        examples = sorted(folder.glob(path.stem + "[0-9]_x.npy"))
        if not examples and "bfloat16" not in path.stem:
            sys.exit(f"{path.stem}: no examples")
        for example in examples:
            y = np.load(str(example).replace("_x.npy", "_y.npy"))
            got = session.run(None, {session.get_inputs()[0].name: np.load(example)})[0]
            difference = np.abs(got.astype(np.float64) - y).max() / max(1, np.abs(y).max())
            same = got.shape == y.shape and got.dtype == y.dtype and difference <= (2e-3 if y.dtype == np.float16 else 1e-4)
            far += not same
            print(f"{example.stem[:-2]:24} {str(got.shape):16} {difference:.1e}{'' if same else '  FAR'}")
    if not models:
        sys.exit("the program wrote no files")
    sys.exit(far > 0)
