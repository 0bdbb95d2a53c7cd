#!/usr/bin/env bash
# ONNX Attention: the optional output of scores "before softcap" is capped already in the reference evaluator.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, CPU, opsets 23 and 24. Run 2026-11-28.
# Guess: with qk_matmul_output_mode=0 both return the scaled product of queries and keys.
# Seen: the runtime does; the reference returns softcap tanh(s / softcap) of it. The attention itself agrees. A test that
# compares scores of a runtime with the reference fails although nothing is wrong with the map.
# Output: largest difference from q k / sqrt(d) with softcap 1: runtime 0.000, reference above 0.1.
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
    feeds = tensors(3, 3)
    plain = (feeds["Q"] @ feeds["K"].swapaxes(-1, -2) / 8**0.5)[0, 0]
    proto = model(opset, ("Q", "K", "V"), ("Y", "", "", "S"), softcap=1.0, qk_matmul_output_mode=0)
    (out, scores), (own_out, own_scores) = reference(proto, feeds), runtime(proto, feeds)
    gaps = [float(abs(each[0, 0] - plain).max()) for each in (own_scores, scores)]
    print(opset, "runtime %.3f, reference %.3f" % tuple(gaps))
    np.testing.assert_allclose(out, own_out, atol=1e-5)
    assert gaps[0] < 1e-5 and gaps[1] > 0.1
    np.testing.assert_allclose(scores[0, 0], np.tanh(plain), atol=1e-5)
PY
