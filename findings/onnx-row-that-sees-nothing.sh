#!/usr/bin/env bash
# ONNX Attention: a row that may see nothing is all zeros, not NaN and not a mean.
#
# Versions: onnx 1.23.2 (reference evaluator), onnxruntime 1.32.0, CPU, opsets 23 and 24. Run 2026-11-28.
# Guess: NaN in the reference, as its softmax is written with minus infinity; the mean of all values in the runtime.
# Seen: both give a row of zeros, for a boolean mask and for minus infinity alike. A model exported from a framework whose
# own kernel gives NaN or a mean there has another output after the export.
# Output: eight times [0. 0. 0.].
source "$(dirname "$0")/environment.bash"
in_environment onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 <<'PY'
import numpy as np
from onnx_attention import model, reference, runtime, tensors

allowed = np.ones((3, 3), bool)
allowed[1] = False
masks = {"allowed": allowed, "added": np.where(allowed, 0, -np.inf).astype(np.float32)}
for opset in (23, 24):
    for name, mask in masks.items():
        feeds = tensors(3, 3) | {name: mask}
        proto = model(opset, ("Q", "K", "V", name))
        for engine in (reference, runtime):
            rows = engine(proto, feeds)[0][0, 0, :, :3]
            print(opset, name, engine.__name__, rows[1])
            assert (rows[1] == 0).all()
            np.testing.assert_allclose(rows[[0, 2]].sum(-1), 1, rtol=1e-5)
PY
