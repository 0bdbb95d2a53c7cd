#!/usr/bin/env bash
# ONNX Attention: a mask with fewer columns than keys hides the missing keys in one runtime and is refused by another.
#
# Versions: onnx 1.23.2 (reference evaluator), onnxruntime 1.32.0, CPU, opsets 23 and 24. Run 2026-11-28.
# Guess: an error in both, as shapes that do not broadcast.
# Seen: the reference pads the mask with minus infinity, so that the last keys get no weight; onnxruntime raises.
# Output: reference weights of the two keys without a column 0.0 and 0.0; onnxruntime Fail.
source "$(dirname "$0")/environment.bash"
in_environment onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 <<'PY'
import numpy as np
from onnx_attention import model, reference, runtime, tensors

for opset in (23, 24):
    feeds = tensors(3, 5) | {"added": np.zeros((3, 3), np.float32)}
    proto = model(opset, ("Q", "K", "V", "added"))
    rows = reference(proto, feeds)[0][0, 0, :, :5]
    assert (rows[:, 3:] == 0).all() and (rows[:, :3] > 0).all()
    try:
        runtime(proto, feeds)
    except Exception as error:
        print(opset, "reference", rows[:, 3:].max(), "onnxruntime", type(error).__name__)
    else:
        raise AssertionError("onnxruntime took the mask")
PY
