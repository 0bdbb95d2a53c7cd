#!/usr/bin/env bash
# ONNX Attention: a row that may see nothing is all zeros, not NaN and not a mean.
#
# Versions: onnx 1.23.2 (reference evaluator), onnxruntime 1.32.0, CPU, opsets 23 and 24. Run 2026-11-28.
# Guess: NaN in the reference, as its softmax is written with minus infinity; the mean of all values in the runtime.
# Seen: both give a row of zeros, for a boolean mask and for minus infinity alike. A model exported from a framework whose
# own kernel gives NaN or a mean there has another output after the export.
# Output: eight times [0. 0. 0.].
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
