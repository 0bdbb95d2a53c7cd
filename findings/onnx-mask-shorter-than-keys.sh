#!/usr/bin/env bash
# ONNX Attention: a mask with fewer columns than keys hides the missing keys in one runtime and is refused by another.
#
# Versions: onnx 1.23.2 (reference evaluator), onnxruntime 1.32.0, CPU, opsets 23 and 24. Run 2026-11-28.
# Guess: an error in both, as shapes that do not broadcast.
# Seen: the reference pads the mask with minus infinity, so that the last keys get no weight; onnxruntime raises.
# Output: reference weights of the two keys without a column 0.0 and 0.0; onnxruntime Fail.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/env/bin/python" - <<'PY'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)


def model(opset, inputs, outputs=("Y",), **attributes):
    node = helper.make_node("Attention", list(inputs), list(outputs), **attributes)
    kinds = {name: TensorProto.BOOL if name == "allowed" else TensorProto.FLOAT for name in inputs}
    infos = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name]
    graph = helper.make_graph([node], "attention", infos, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def reference(proto, feeds):
    return ReferenceEvaluator(proto).run(None, feeds)


def runtime(proto, feeds):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def tensors(num_queries, num_keys):
    queries, keys = (rng.normal(size=(1, 1, n, 8)).astype(np.float32) for n in (num_queries, num_keys))
    return {"Q": queries, "K": keys, "V": np.eye(num_keys, 8, dtype=np.float32)[None, None]}


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
